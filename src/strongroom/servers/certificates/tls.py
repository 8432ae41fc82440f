"""TLS: the context of a server.

Lives here: loading of certificate and key. Must not live here: making them (self_signed.py),
sockets. Source: RFC 9325 section 3.1.1 (TLS versions).
"""

from __future__ import annotations

import ssl
from pathlib import Path


def load_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return a server's TLS context: TLS 1.2 or later, HTTP/1.1.

    Arguments:
        certificate: PEM file, the server's certificate first.
        key: PEM file of its private key, without a password.

    Raises: OSError: a file cannot be read. ssl.SSLError: the files are not PEM or do not match.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key, password=_no_password)
    return context


def _no_password() -> str:
    # Without this, OpenSSL would ask on the terminal and the server would hang.
    raise ssl.SSLError("the private key is protected by a password")
