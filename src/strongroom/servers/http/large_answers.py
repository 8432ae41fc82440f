"""The limit on the memory of large answers, over all connections of a server.

Lives here: which answers are aborted above the limit. Must not live here: how an answer is sent
(http/send.py).
"""

from __future__ import annotations

from typing import Protocol


class GivesUp(Protocol):
    """A connection that sends a large answer."""

    def give_up(self) -> None:
        """Stop writing the answer."""
        ...


class LargeAnswers:
    """The large answers of one server. It is used on the event loop.

    Arguments:
        bytes_max: the limit of their sum; a single answer may be longer.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[GivesUp, int] = {}  # the oldest first
        self._held_bytes = 0

    def hold(self, connection: GivesUp, size_bytes: int) -> None:
        """Count a large answer that begins to be sent; above the limit, abort the oldest ones."""
        self._held[connection] = size_bytes
        self._held_bytes += size_bytes
        while self._held_bytes > self._bytes_max and len(self._held) > 1:
            oldest = next(iter(self._held))
            self.let_go(oldest)
            oldest.give_up()

    def let_go(self, connection: GivesUp) -> None:
        """Forget an answer that was sent or aborted. Idempotent."""
        self._held_bytes -= self._held.pop(connection, 0)
