"""Small answers that wait for each other, to leave together.

Lives here: how long they wait. Must not live here: what they are (http/send.py), whose they are.

Between two answers to a crowd, a client on this machine has read the first and gone to sleep. To
wake it costs a tenth of a small request. The kernel's way through a connection also pushes what the
handlers need out of the processor's caches. So what is answered in one turn of the loop leaves at
its end, or as soon as it is `WAITING_MAX` answers. Who is served alone never waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

WAITING_MAX: Final = 32


class Outbox:
    """The answers of one server that are about to leave. On the event loop.

    Arguments:
        call_soon: has something called at the end of the loop's turn.

    Attributes:
        is_crowd: whether several connections are busy; else nothing is to wait here.
    """

    __slots__ = ("_call_soon", "_waiting", "is_crowd")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self.is_crowd = False
        self._waiting: list[tuple[Callable[[bytes], None], bytes]] = []

    def put(self, write: Callable[[bytes], None], data: bytes) -> None:
        """Have `write(data)` called soon, in the order of the calls."""
        waiting = self._waiting
        waiting.append((write, data))
        if len(waiting) >= WAITING_MAX:
            self.empty()
        elif len(waiting) == 1:
            self._call_soon(self.empty)

    def empty(self) -> None:
        """Let all of them leave. Idempotent."""
        waiting, self._waiting = self._waiting, []
        for write, data in waiting:
            write(data)
