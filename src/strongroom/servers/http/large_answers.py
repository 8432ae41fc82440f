"""Large answers that are sent from memory: a bounded number of bytes for all connections.

Lives here: which of them end when there are too many. Must not live here: how one is sent
(http/send.py).
"""

from __future__ import annotations

from typing import Protocol


class GivesUp(Protocol):
    """A connection that sends such an answer."""

    def give_up(self) -> None:
        """Stop writing it."""
        ...


class LargeAnswers:
    """Those of one server. On the event loop.

    Arguments:
        bytes_max: of all of them; a single one may be longer.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[GivesUp, int] = {}  # the oldest first
        self._held_bytes = 0

    def hold(self, connection: GivesUp, size_bytes: int) -> None:
        """A large answer begins to be sent from memory; too many of them end the oldest."""
        self._held[connection] = size_bytes
        self._held_bytes += size_bytes
        while self._held_bytes > self._bytes_max and len(self._held) > 1:
            oldest = next(iter(self._held))
            self.let_go(oldest)
            oldest.give_up()

    def let_go(self, connection: GivesUp) -> None:
        """It has been sent, or given up. Idempotent."""
        self._held_bytes -= self._held.pop(connection, 0)
