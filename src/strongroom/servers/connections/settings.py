"""The limits and timeouts of accepting connections.

Lives here: what holds before the first byte of a protocol is read. Must not live here: settings of
a protocol (http/settings.py, smb/state/settings.py).
"""

from __future__ import annotations

import msgspec


class AcceptSettings(msgspec.Struct, frozen=True):
    """Limits and timeouts of accepting; the defaults suit the internet and loopback alike.

    Attributes:
        connections_max: how many connections may be served at once.
        backlog: how many connections the kernel keeps until they are accepted.
        head_timeout_s: how long a client may take to its first byte, and to a whole request head.
    """

    connections_max: int = 8192
    backlog: int = 1024
    head_timeout_s: float = 30.0
    tls_handshake_timeout_s: float = 15.0
    tls_shutdown_timeout_s: float = 1.0
