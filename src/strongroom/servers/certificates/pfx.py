"""A certificate and its key from a PFX file (PKCS #12).

Lives here: reading the file, and passing both to OpenSSL. Must not live here: when the file is read
(served.py). The module is imported only where it is needed, since the cryptography package is
large. Source: RFC 7292.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from strongroom.platform.file_of_bytes import file_of_bytes
from strongroom.servers.certificates.tls import FILE_BYTES_MAX, TlsUnusable, new_context

_PASSWORD_BYTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Pfx:
    """What a PFX file has, as PEM: the certificates, the server's first, and the key, encrypted."""

    certificates: bytes
    key: bytes

    def context(self, password: bytes) -> ssl.SSLContext:
        """`password` is that of the encrypted key. Raises: TlsUnusable, OSError."""
        context = new_context()
        with file_of_bytes(self.key + self.certificates) as path:
            try:
                context.load_cert_chain(path, password=password)
            except ssl.SSLError as error:
                raise TlsUnusable(f"certificate and key do not go together: {error}") from None
        return context


def read_pfx(file: Path, password_file: Path | None, key_password: bytes) -> Pfx:
    """Return what a PFX file has.

    Arguments:
        password_file: holds the file's password, perhaps with a line break after it; None = the
            file has none.
        key_password: encrypts the key that is returned.

    Raises: TlsUnusable, which names the file and says why; never with a password.
    """
    password = None if password_file is None else _read(password_file, _PASSWORD_BYTES_MAX)
    content = _read(file, FILE_BYTES_MAX)
    try:
        pfx = load_pkcs12(content, None if password is None else password.rstrip(b"\r\n"))
    except (ValueError, TypeError):
        advice = "name the file of its password: --pfx-password-file" if password is None else ""
        raise TlsUnusable(
            f"{file} is no PFX file, or {advice or f'{password_file} has another password'}"
        ) from None
    if pfx.key is None or pfx.cert is None:
        raise TlsUnusable(f"{file} has no {'private key' if pfx.key is None else 'certificate'}")
    certificates = [pfx.cert, *pfx.additional_certs]
    return Pfx(
        b"".join(one.certificate.public_bytes(Encoding.PEM) for one in certificates),
        pfx.key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(key_password)
        ),
    )


def _read(path: Path, bytes_max: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise TlsUnusable(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > bytes_max:
        raise TlsUnusable(f"{path} has more than {bytes_max} bytes: is it the right file?")
    return content
