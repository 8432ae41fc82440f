"""How much of the bodies that arrive may wait in memory for their handlers.

Lives here: the share of each body in what all bodies of one server have together. Must not live
here: bodies themselves (http_body.py), documents that are read whole (http_documents.py). A body
whose handler waits for the disk holds what has arrived meanwhile. Few bodies may hold much, so that
they go on quickly. In a crowd each holds little, and is read from its socket in smaller pieces.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from strongroom.limits import KIB

# A body can always go on with so much.
SHARE_BYTES_MIN: Final = 16 * KIB
_LOW_DIVISOR: Final = 4


@dataclass(frozen=True, slots=True)
class Share:
    """What one body may hold: reading pauses above `high_bytes` and goes on below `low_bytes`."""

    high_bytes: int
    low_bytes: int


class BodyBuffers:
    """Counts the bodies that arrive on one server. On its event loop.

    Arguments:
        share_bytes_max: no body holds more.
        total_bytes: what all bodies hold together, while each may hold SHARE_BYTES_MIN.
    """

    def __init__(self, share_bytes_max: int, total_bytes: int) -> None:
        self._share_bytes_max = share_bytes_max
        self._total_bytes = total_bytes
        self._bodies = 0

    def begin(self, transport: asyncio.BaseTransport) -> Share:
        """A body begins to arrive.

        Arguments:
            transport: where it comes from. One read takes no more than the share from now on.
        """
        self._bodies += 1
        share_bytes = min(self._share_bytes_max, self._total_bytes // self._bodies)
        share_bytes = max(SHARE_BYTES_MIN, share_bytes)
        # Of asyncio's own transports; one that encrypts reads through a buffer of its own.
        if hasattr(transport, "max_size"):
            transport.max_size = share_bytes
        return Share(share_bytes, share_bytes // _LOW_DIVISOR)

    def end(self) -> None:
        """The handler of a body is over."""
        self._bodies -= 1
