"""Bounds and time-outs of SMB connections.

Lives here: the settings of a listener. Must not live here: bounds of one session (sessions.py).
Source: smb.md 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Encryption and signatures of more bytes than this run in a thread.
ON_LOOP_BYTES_MAX: Final = 64 * 1024
# A frame: the payload, and room for headers, fixed parts and contexts.
FRAME_EXTRA_BYTES: Final = 256 + 52 + 64


@dataclass(frozen=True, slots=True)
class SmbSettings:
    """Bounds and time-outs.

    Attributes:
        requires_encryption: whether sessions must encrypt; else they must sign.
        connections_per_address_max: from one address; loopback counts as one.
        first_frames_bytes_max: the size of a frame before a session is authenticated.
        io_bytes_max: MaxTransactSize, MaxReadSize and MaxWriteSize.
        authenticate_s: how long a connection may take until its first session is authenticated.
        stalled_s: how long a frame that has begun, or an answer, may make no progress.
        busy_bytes_max: the memory of one connection's requests in progress; above it, reading
            pauses.
        buffered_bytes_max: the same for all connections together.
        server_name: the server's name in its answers.
    """

    requires_encryption: bool = True
    connections_max: int = 1024
    connections_per_address_max: int = 256
    sessions_max: int = 64
    pending_max: int = 512
    first_frames_bytes_max: int = 64 * 1024
    io_bytes_max: int = 1024 * 1024
    authenticate_s: float = 45.0
    stalled_s: float = 60.0
    sweep_interval_s: float = 1.0
    busy_bytes_max: int = 32 * 1024 * 1024
    buffered_bytes_max: int = 256 * 1024 * 1024
    server_name: str = "STRONGROOM"

    @property
    def frames_bytes_max(self) -> int:
        """The size of a frame once a session is authenticated."""
        return self.io_bytes_max + FRAME_EXTRA_BYTES
