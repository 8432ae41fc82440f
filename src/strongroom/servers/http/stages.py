"""When a request begins: at once, or in step with a crowd of others, stretch by stretch.

Lives here: who begins when, where a stretch ends, and who is in step. Must not live here: what a
stretch does, how one begins (http/early_start.py).

The whole path of a request does not fit into a processor's first cache, but one stretch of it does.
So requests take a quarter less time in step than one after the other.
"""

from __future__ import annotations

import asyncio
import operator
import types
from collections.abc import Callable, Collection, Generator, Sequence
from typing import Final, Protocol, TypeVar

from strongroom.servers.http.outbox import Outbox

# Beyond that the first would wait for too many.
IN_STEP_MAX: Final = 32
# More than there are ends of stretches on any way: what asks for more turns waits for its task.
_STRETCHES: Final = 4

_START: Final = operator.methodcaller("start")

T = TypeVar("T")
_crowds: Final[list[object]] = []


@types.coroutine
def stretch_ends() -> Generator[None, None, None]:
    """Let those who are in step with this request, if any, come as far as this."""
    if _crowds:
        yield


def go_in_step(crowd: Collection[T], go: Callable[[T], bool]) -> list[T]:
    """Have all of `crowd` go, stretch by stretch.

    Arguments:
        go: goes as far as it can; whether it has come to the end of a stretch.

    Returns: those who are at the end of a stretch still.
    """
    left = list(crowd)
    if len(left) > 1:
        _crowds.append(crowd)
    try:
        for _ in range(_STRETCHES):
            left = [one for one in left if go(one)]
    finally:
        _crowds.clear()
    return left


class Startable(Protocol):
    """The work of one connection, with a request that is here (http/early_start.py)."""

    def start(self) -> bool:
        """Begin or go on; whether it only lets others come first."""
        ...

    def wake(self) -> None:
        """Leave it to its task."""
        ...


class Scheduler:
    """Decides when the connections of one server begin with their requests. On the event loop.

    Attributes:
        outbox: where the small answers to a crowd wait for each other.
    """

    def __init__(self) -> None:
        self.outbox = Outbox(_at_end_of_turn)
        self._served_last: Startable | None = None
        self._starting: list[Startable] = []

    def take_up(self, work: Startable) -> None:
        """A request is here: decide when its connection begins with it.

        At once if its connection is served alone: that saves turns of the loop. Where many come,
        all are read before any is handled: larger groups are cheaper for all, and so is doing one
        thing many times.
        """
        is_alone = self._served_last is work
        self._served_last = work
        self.outbox.is_crowd = not is_alone
        if is_alone and asyncio.current_task() is None:
            if work.start():
                work.wake()
        else:
            if not self._starting:
                _at_end_of_turn(self._start_all)
            self._starting.append(work)

    def forget(self, work: Startable) -> None:
        """Its connection is over."""
        if self._served_last is work:
            self._served_last = None

    def _start_all(self) -> None:
        starting, self._starting = self._starting, []
        at_work: Sequence[Startable] = starting
        try:
            for first in range(0, len(starting), IN_STEP_MAX):
                at_work = starting[first:]
                left = go_in_step(at_work[:IN_STEP_MAX], _START)
                for work in left:
                    work.wake()
            at_work = ()
        finally:
            # Where one could not begin, and nobody is to wait for ever because of another.
            for work in at_work:
                work.wake()


def _at_end_of_turn(callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(callback)
