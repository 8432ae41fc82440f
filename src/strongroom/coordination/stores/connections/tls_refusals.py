"""Which TLS failures are final, such as a refused certificate (the server's or the client's).

Lives here: the rule for every store that speaks TLS. A refusal comes as an alert. In TLS 1.3 the
server may send it after the client has finished its handshake. The alert then appears in the first
read, or can be read after a write failed because the server closed the connection. A server that
refuses never reads a request, so nothing was done. Source: RFC 8446, section 6.2; OpenSSL's names
of reasons.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final

_ALERT_WAIT_S: Final = 0.2
_FINAL: Final = (
    "ALERT_HANDSHAKE_FAILURE",  # TLS 1.2: also for a client certificate that is missing
    "ALERT_BAD_CERTIFICATE",
    "ALERT_UNSUPPORTED_CERTIFICATE",
    "ALERT_CERTIFICATE_REVOKED",
    "ALERT_CERTIFICATE_EXPIRED",
    "ALERT_CERTIFICATE_UNKNOWN",
    "ALERT_UNKNOWN_CA",
    "ALERT_ACCESS_DENIED",
    "ALERT_DECRYPT_ERROR",
    "ALERT_PROTOCOL_VERSION",
    "ALERT_INSUFFICIENT_SECURITY",
    "ALERT_CERTIFICATE_REQUIRED",
    "CERTIFICATE_VERIFY_FAILED",
    "WRONG_VERSION_NUMBER",  # the server does not speak TLS
    "UNSUPPORTED_PROTOCOL",
    "NO_PROTOCOLS_AVAILABLE",
)
_NO_COMMON_PROTOCOL: Final = ("PROTOCOL_VERSION", "INSUFFICIENT_SECURITY")


def refusal_of(error: Exception) -> str:
    """Return why a TLS connection can never be made, in words; empty if a retry may succeed."""
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    if not reason or not reason.endswith(_FINAL):
        return ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return str(error)
    words = reason.lower().replace("_", " ")
    if "ALERT" not in reason or reason.endswith(_NO_COMMON_PROTOCOL):
        return f"no TLS connection can be made: {words}"
    return f"the server requires a client certificate, or refuses the one given ({words})"


def tls_alert_of(sock: socket.socket, error: OSError) -> OSError:
    """Return the TLS alert that explains why a connection broke, if one came; else `error`.

    Arguments:
        sock: the connection that broke; it cannot be used any more.
        error: the error that showed that it broke.
    """
    if not isinstance(sock, ssl.SSLSocket) or isinstance(error, TimeoutError):
        return error
    try:
        sock.settimeout(_ALERT_WAIT_S)
        sock.recv(1)
    except ssl.SSLError as alert:
        return alert
    except OSError:
        pass  # the connection ended without an alert
    return error
