"""The limit on the memory of large answers, over all connections of a server.

Lives here: which answers are aborted above the limit. Must not live here: how an answer is sent
(http/send.py).
"""

from __future__ import annotations

from typing import Protocol


class Abandonable(Protocol):
    """A connection that sends a large answer."""

    def give_up(self) -> None:
        """Stop writing the answer."""
        ...


class LargeAnswerBudget:
    """The large answers of one server. It is used on the event loop.

    Arguments:
        bytes_max: the limit of their sum; a single answer may be longer.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._reserved: dict[Abandonable, int] = {}  # the oldest first
        self._reserved_bytes = 0

    def reserve(self, connection: Abandonable, size_bytes: int) -> None:
        """Count a large answer that begins to be sent; above the limit, abort the oldest ones."""
        self._reserved[connection] = size_bytes
        self._reserved_bytes += size_bytes
        while self._reserved_bytes > self._bytes_max and len(self._reserved) > 1:
            oldest = next(iter(self._reserved))
            self.release(oldest)
            oldest.give_up()

    def release(self, connection: Abandonable) -> None:
        """Forget an answer that was sent or aborted. Idempotent."""
        self._reserved_bytes -= self._reserved.pop(connection, 0)
