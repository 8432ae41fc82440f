"""A TLS certificate made by the server itself, for local use.

Lives here: making it, keeping it in two files, renewing it. Must not live here: the server's
context (tls.py). The module is imported only where it is needed, since the cryptography package is
large. Source: RFC 5280 section 4.2 (extensions of a certificate).
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from strongroom.clock import Clock
from strongroom.platform.files import open_file, rename, sync_file
from strongroom.servers.certificates.tls import TlsUnusable, load_context
from strongroom.values import datetime_of

_CERTIFICATE_FILE: Final = "tls-certificate.pem"
_KEY_FILE: Final = "tls-key.pem"
_LIFETIME: Final = datetime.timedelta(days=365)
_RENEW_BEFORE: Final = datetime.timedelta(days=14)
# Clients whose clocks are a little behind must not refuse a new certificate.
_BACKDATE: Final = datetime.timedelta(hours=1)
_DNS_NAMES: Final = (
    "localhost",
    "*.localhost",
    "*.blob.localhost",
    "*.queue.localhost",
    "*.table.localhost",
    "*.file.localhost",
    "*.dfs.localhost",
)
_ADDRESSES: Final = ("127.0.0.1", "::1")


def self_signed_certificate(directory: Path, clock: Clock) -> tuple[Path, Path]:
    """A certificate for localhost, made once and used again until shortly before it expires.

    Returns: the paths of certificate and key; the key is readable by its owner only.
    """
    now = datetime_of(clock.wall_ticks())
    certificate_path, key_path = directory / _CERTIFICATE_FILE, directory / _KEY_FILE
    if _still_good(certificate_path, key_path, now):
        return certificate_path, key_path
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(key, now)
    _write(
        key_path,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        0o600,
    )
    _write(certificate_path, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    return certificate_path, key_path


def _certificate(key: ec.EllipticCurvePrivateKey, now: datetime.datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Strongroom on localhost")])
    names: list[x509.GeneralName] = [x509.DNSName(dns) for dns in _DNS_NAMES]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES]
    public_key = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        # The certificate is its own authority, so that a client can trust it by this one file.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .sign(key, hashes.SHA256())
    )


def _key_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _still_good(certificate_path: Path, key_path: Path, now: datetime.datetime) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(certificate_path.read_bytes())
        load_context(certificate_path, key_path)
    except (TlsUnusable, OSError, ValueError):
        return False
    starts, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return starts <= now <= ends - _RENEW_BEFORE


def _write(path: Path, data: bytes, mode: int) -> None:
    """Replace a file atomically, so that a crash leaves the old one or the new one."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    file_number = open_file(os.fspath(temporary), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(file_number, "wb") as file:
        file.write(data)
        file.flush()
        sync_file(file.fileno())
    rename(os.fspath(temporary), os.fspath(path))
