"""The limit on the memory of the bodies that are read whole.

Lives here: the sum over all connections of one server, and the choice of the body that is refused
above the limit. Must not live here: bodies themselves (http/body.py). A body that is processed as
it arrives is limited by its connection's buffer. So is a whole body that fits there. Only bodies
that grow larger count here.
"""

from __future__ import annotations

from typing import Protocol

from strongroom.errors.core import SERVER_BUSY, StorageError


class Growing(Protocol):
    """A body that is being read whole."""

    ended: bool

    def fail(self, error: StorageError) -> None:
        """Refuse the body's reader with `error`."""


class DocumentBudget:
    """The large bodies that the handlers of one server hold in memory, complete or still arriving.

    Arguments:
        bytes_max: above this sum, the oldest body that is still arriving is refused.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._reserved: dict[Growing, int] = {}  # the oldest first
        self._bytes = 0

    def reserve(self, body: Growing, size_bytes: int) -> None:
        """Count `size_bytes` more bytes of a body.

        Raises: StorageError ServerBusy if all other bodies are complete and leave no room.
        """
        while self._bytes + size_bytes > self._bytes_max:
            slowest = next(
                (one for one in self._reserved if not one.ended and one is not body), None
            )
            if slowest is None:
                raise StorageError(SERVER_BUSY)
            slowest.fail(StorageError(SERVER_BUSY))
            self.release(slowest)
        self._reserved[body] = self._reserved.get(body, 0) + size_bytes
        self._bytes += size_bytes

    def release(self, body: Growing) -> None:
        """Forget a body that is no longer in memory. Idempotent."""
        self._bytes -= self._reserved.pop(body, 0)
