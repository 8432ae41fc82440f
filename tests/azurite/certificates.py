"""A certificate for 127.0.0.1, as PEM and as PFX."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

_BEGINS = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_ENDS = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Certificates:
    """The files: certificate and key (PEM), and both in one (PFX)."""

    certificate: Path
    key: Path
    pfx: Path

    @classmethod
    def make(cls, folder: Path, password: str) -> Certificates:
        """Make `cert.pem`, `key.pem` and `cert.pfx` in a folder."""
        made = cls(folder / "cert.pem", folder / "key.pem", folder / "cert.pfx")
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(key)
        made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        made.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        encryption = serialization.BestAvailableEncryption(password.encode())
        made.pfx.write_bytes(
            pkcs12.serialize_key_and_certificates(b"server", key, certificate, None, encryption)
        )
        return made


def _certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(_BEGINS)
        .not_valid_after(_ENDS)
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
