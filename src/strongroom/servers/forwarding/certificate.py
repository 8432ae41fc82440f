"""The certificate by which the other gateways know this one, and the TLS of both sides.

Lives here: a key and a certificate that live as long as the process. Must not live here: the
certificate that clients see (certificates/). Source: RFC 5280; RFC 8446.

No authority vouches for the certificate. A gateway announces its fingerprint in the store, which
only gateways can write. Whoever connects compares the fingerprint, and looks at nothing else of it.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import ssl
import tempfile
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NAME: Final = "Strongroom gateway"
_BEGINS: Final = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
# RFC 5280, 4.1.2.5: the date of a certificate without an end.
_ENDS: Final = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)


class GatewayCertificate(msgspec.Struct, frozen=True):
    """`tls` is the context of the server's side."""

    tls: ssl.SSLContext
    fingerprint: bytes


def new_certificate() -> GatewayCertificate:
    """It takes some milliseconds, and touches files. The key is on the disk only meanwhile, since
    OpenSSL reads it from a file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGINS)
        .not_valid_after(_ENDS)
        .sign(key, hashes.SHA256())
    )
    context = _new_context(ssl.PROTOCOL_TLS_SERVER)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with tempfile.TemporaryDirectory(prefix="strongroom-") as folder:
        # The folder has mode 0700.
        path = Path(folder) / "gateway.pem"
        path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(path)
    return GatewayCertificate(context, fingerprint_of(_der(certificate)))


def client_context() -> ssl.SSLContext:
    """The connection must be dropped unless `is_known` says yes."""
    context = _new_context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def is_known(connection: ssl.SSLObject | None, fingerprint: bytes) -> bool:
    """Whether the other side of a connection has proven to have the certificate."""
    certificate = None if connection is None else connection.getpeercert(binary_form=True)
    return certificate is not None and hmac.compare_digest(fingerprint_of(certificate), fingerprint)


def fingerprint_of(certificate: bytes) -> bytes:
    return hashlib.sha256(certificate).digest()


def _new_context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)
