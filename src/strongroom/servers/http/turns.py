"""When requests run, and when their answers leave.

Lives here: the policy. Must not live here: what a request does, how an answer is written
(http/send.py). Each request runs in a task of its own, which the event loop starts in its next
turn. So all requests that arrive in one turn are read before any of them is handled, and one that
is alone waits for nobody.

A client that reads its answer wakes up, and the kernel's way through a connection pushes what the
handlers need out of the processor's caches. So the small answers of one turn leave together, after
the last of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Beyond that the first answer would wait for too many others.
WAITING_MAX: Final = 32


class RequestTurns:
    """The requests that one server is handling, and their answers that are about to leave. On the
    event loop.

    Arguments:
        call_soon: has something called in the next turn of the loop.
    """

    __slots__ = ("_call_soon", "_running", "_waiting")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._running = 0
        self._waiting: list[tuple[Callable[[bytes], None], bytes]] = []

    def begin(self) -> None:
        """A request is here; `end` follows when it has been answered, or given up."""
        self._running += 1

    def end(self) -> None:
        """A request is over. The last one lets all answers leave."""
        self._running -= 1
        if self._running == 0 and self._waiting:
            self.empty()

    @property
    def is_alone(self) -> bool:
        """Whether the request that asks is the only one, so that its answer need not wait."""
        return self._running <= 1

    def put(self, write: Callable[[bytes], None], data: bytes) -> None:
        """Have `write(data)` called within a turn of the loop, in the order of the calls."""
        waiting = self._waiting
        waiting.append((write, data))
        if len(waiting) >= WAITING_MAX:
            self.empty()
        elif len(waiting) == 1:
            self._call_soon(self.empty)

    def empty(self) -> None:
        """Let all answers leave. Idempotent."""
        waiting, self._waiting = self._waiting, []
        for write, data in waiting:
            write(data)
