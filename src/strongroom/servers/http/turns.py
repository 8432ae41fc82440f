"""The scheduling of requests and of their small answers in the turns of the event loop.

Lives here: the policy. Must not live here: how an answer is written (http/send.py). Each request
runs in a task of its own, which the event loop starts in its next turn. So all requests that arrive
in one turn are parsed before any of them is handled. A single request does not wait.

Each write wakes a client and runs the kernel's network code. That would evict the handlers' data
from the processor's caches. So the small answers of one turn are written together, after the last
of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# With more, the first answer would wait too long for the others.
WAITING_MAX: Final = 32


class RequestTurns:
    """The requests in progress of one server, and their answers that wait to be written. It is used
    on the event loop.

    Arguments:
        call_soon: calls a function in the next turn of the loop.
    """

    __slots__ = ("_call_soon", "_running", "_waiting")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._running = 0
        self._waiting: list[tuple[Callable[[bytes], None], bytes]] = []

    def begin(self) -> None:
        """Count a new request; `end` follows when it has been answered or given up."""
        self._running += 1

    def end(self) -> None:
        """Count the end of a request. The last one writes all waiting answers."""
        self._running -= 1
        if self._running == 0 and self._waiting:
            self.write_deferred()

    @property
    def is_alone(self) -> bool:
        """Whether at most one request is in progress, so that its answer need not wait."""
        return self._running <= 1

    def defer_write(self, write: Callable[[bytes], None], data: bytes) -> None:
        """Call `write(data)` within a turn of the loop, in the order of the calls."""
        waiting = self._waiting
        waiting.append((write, data))
        if len(waiting) >= WAITING_MAX:
            self.write_deferred()
        elif len(waiting) == 1:
            self._call_soon(self.write_deferred)

    def write_deferred(self) -> None:
        """Write all waiting answers. Idempotent."""
        waiting, self._waiting = self._waiting, []
        for write, data in waiting:
            write(data)
