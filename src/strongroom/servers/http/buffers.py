"""The limit on the bytes of arriving bodies that are buffered for their handlers.

Lives here: how all bodies of one server share this memory. Must not live here: bodies themselves
(http/body.py), documents that are read whole (http/documents.py). While a handler waits for the
disk, its body buffers the bytes that arrive. If few bodies arrive, each may buffer much, which is
fast. If many arrive, each buffers little and is read from its socket in smaller pieces.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from strongroom.limits import KIB

# Every body may buffer at least this much.
SHARE_BYTES_MIN: Final = 16 * KIB
_LOW_DIVISOR: Final = 4


def limit_reads(transport: asyncio.BaseTransport, size_bytes: int) -> None:
    """Limit each further read of a connection to `size_bytes`."""
    # Plain asyncio transports have this attribute; a TLS transport reads through its own buffer.
    if hasattr(transport, "max_size"):
        transport.max_size = size_bytes


class Share(msgspec.Struct, frozen=True):
    """The bytes that one body may buffer: reading pauses above `high_bytes` and resumes below
    `low_bytes`."""

    high_bytes: int
    low_bytes: int


class BodyBuffers:
    """Counts the bodies that arrive on one server. It is used on the event loop.

    Arguments:
        share_bytes_max: the largest share of one body.
        total_bytes: the sum of all shares, except that no share is below SHARE_BYTES_MIN.
    """

    def __init__(self, share_bytes_max: int, total_bytes: int) -> None:
        self._share_bytes_max = share_bytes_max
        self._total_bytes = total_bytes
        self._bodies = 0

    def begin(self, transport: asyncio.BaseTransport) -> Share:
        """Count a body that begins to arrive, and return its share. From now on, one read of its
        connection takes at most the share."""
        self._bodies += 1
        share_bytes = min(self._share_bytes_max, self._total_bytes // self._bodies)
        share_bytes = max(SHARE_BYTES_MIN, share_bytes)
        limit_reads(transport, share_bytes)
        return Share(share_bytes, share_bytes // _LOW_DIVISOR)

    def end(self) -> None:
        """Forget a body whose handler has ended."""
        self._bodies -= 1
