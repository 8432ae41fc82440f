"""TLS: the context of a server.

Lives here: loading of certificate and key. Must not live here: making them (self_signed.py), when
they are loaded (served.py). Source: RFC 9325 section 3.1.1 (TLS versions).
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

FILE_BYTES_MAX: Final = 1024 * 1024
_LOCKED: Final = "the private key is protected by a password"
_BEGINS: Final = {
    "certificate": "-----BEGIN CERTIFICATE-----",
    "private key": "-----BEGIN PRIVATE KEY-----",
}


class TlsUnusable(Exception):
    """The certificate or the key cannot be used; the text says which file and why."""


def new_context() -> ssl.SSLContext:
    """Return a server's TLS context without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def load_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return a server's TLS context: TLS 1.2 or later, HTTP/1.1.

    Arguments:
        certificate: PEM file, the server's certificate first.
        key: PEM file of its private key, without a password.

    Raises: TlsUnusable: a file cannot be read, is not PEM, or they do not match.
    """
    context = new_context()
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except OSError as error:  # ssl.SSLError is one
        raise TlsUnusable(_cause(certificate, key, error)) from None
    return context


def _no_password() -> str:
    # Without this, OpenSSL would ask on the terminal and the server would hang.
    raise ssl.SSLError(_LOCKED)


def _cause(certificate: Path, key: Path, error: OSError) -> str:
    """Return which file is wrong, and why. OpenSSL names neither."""
    for what, path, mark in (
        ("certificate", certificate, b"-----BEGIN CERTIFICATE-----"),
        ("private key", key, b"PRIVATE KEY-----"),
    ):
        try:
            with open(path, "rb") as file:
                text = file.read(FILE_BYTES_MAX)
        except OSError as unread:
            return f"the {what} {path} cannot be read: {unread.strerror}"
        if mark not in text:
            return f"{path} has no {what} in PEM form (a line {_BEGINS[what]!r})"
    if _LOCKED in str(error):
        return f"the private key {key} is protected by a password; remove it: openssl pkey"
    if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
        return f"the private key {key} does not belong to the certificate {certificate}"
    return f"the certificate {certificate} or the private key {key} is damaged: {error}"
