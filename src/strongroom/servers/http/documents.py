"""How much of the bodies that are read whole may be in memory at the same time.

Lives here: the sum over all connections of one server, and who is broken off when it is too much.
Must not live here: bodies themselves (http/body.py). A body that is taken in as it comes is bounded
by its connection's buffer, and so is one that fits there. Only what grows beyond counts here.
"""

from __future__ import annotations

from typing import Protocol

from strongroom.errors import SERVER_BUSY, StorageError


class Growing(Protocol):
    """A body that is being read whole."""

    ended: bool

    def fail(self, error: StorageError) -> None:
        """Its reader is refused."""


class Documents:
    """The bodies that handlers of one server have in memory, or read into it.

    Arguments:
        bytes_max: beyond it the one that has taken longest, and has not arrived yet, is refused.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept: dict[Growing, int] = {}  # the oldest first
        self._bytes = 0

    def keep(self, body: Growing, size_bytes: int) -> None:
        """So many bytes more are kept of a body.

        Raises: StorageError ServerBusy when all others have arrived, and leave no room.
        """
        while self._bytes + size_bytes > self._bytes_max:
            slowest = next((one for one in self._kept if not one.ended and one is not body), None)
            if slowest is None:
                raise StorageError(SERVER_BUSY)
            slowest.fail(StorageError(SERVER_BUSY))
            self.drop(slowest)
        self._kept[body] = self._kept.get(body, 0) + size_bytes
        self._bytes += size_bytes

    def drop(self, body: Growing) -> None:
        """Nobody has it any more. Idempotent."""
        self._bytes -= self._kept.pop(body, 0)
