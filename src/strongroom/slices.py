"""Long work in slices: about two milliseconds of it in a turn of the event loop, over all requests.

Lives here: who goes on next, and for how long. Must not live here: what the work is.

Long work is a generator that pauses after each step. A step takes some tenths of a millisecond, a
millisecond at most. So parsers and encoders stay pure: they say where they can pause, and this
module decides whether they do. A coroutine that may never suspend says where it can by `pause`.

A request that only gave others a turn after each step would share the turn with all others that do
the same. Eight of them would hold a small request up for eight steps. Here the length of the whole
turn counts, and those that give way wait for each other, first come, first served.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from strongroom.clock import elapsed_s

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Long work that pauses after each step, and returns its result."""

SLICE_S: Final = 0.002
# Those that are woken in vain cost a few microseconds each.
_WOKEN_MAX: Final = 16


class SliceTurns:
    """The turns of one event loop.

    Arguments:
        now_s: the time that turns are measured by, in seconds.
        slice_s: how long a turn of the loop may take before long work gives way. The last step of
            a turn may exceed it.
    """

    def __init__(self, now_s: Callable[[], float] = elapsed_s, slice_s: float = SLICE_S) -> None:
        self._now_s = now_s
        self._slice_s = slice_s
        self._waiting: list[tuple[int, asyncio.Future[bool]]] = []  # a heap
        self._tickets = itertools.count()
        self._began_s = 0.0  # when the present turn began, while turns are measured
        self._measured: asyncio.AbstractEventLoop | None = None  # whose turns are
        self._is_used = False  # in the present turn

    async def run(self, steps: Steps[T]) -> T:
        """The result of `steps`. Short work does not suspend, unless others have just worked for
        long."""
        try:
            if self._measured is not None:
                await self.pause()
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    result: T = end.value
                    return result
                await self.pause()
        finally:
            steps.close()

    async def pause(self) -> None:
        """Give way if the present turn has lasted long enough."""
        loop = asyncio.get_running_loop()
        self._is_used = True
        if self._measured is not loop:
            self._measured = loop
            self._began_s = self._now_s()
            loop.call_soon(self._begin, loop)
        elif self._is_over():
            await self._wait()

    def _is_over(self) -> bool:
        return self._now_s() - self._began_s >= self._slice_s

    async def _wait(self) -> None:
        """Wait for a turn that is not over. One that is woken in vain keeps its place."""
        loop, ticket = asyncio.get_running_loop(), next(self._tickets)
        while True:
            mine: asyncio.Future[bool] = loop.create_future()
            heapq.heappush(self._waiting, (ticket, mine))
            is_first = await mine
            if is_first or not self._is_over():
                return

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """A turn of the loop begins. Those that wait go on in the next one, behind the measuring of
        it. One of them goes on in any case, the others as long as that turn is not over."""
        self._began_s = self._now_s()
        if not self._is_used and not self._waiting:
            self._measured = None
            return
        loop.call_soon(self._begin, loop)
        woken = 0
        while self._waiting and woken < _WOKEN_MAX:
            _, first = heapq.heappop(self._waiting)
            if not first.done():  # else its task was cancelled
                first.set_result(woken == 0)
                woken += 1
        # They may wait again in the next turn, which must then lead to another one.
        self._is_used = woken > 0


def at_once(steps: Steps[T]) -> T:
    """The result of `steps`, without a pause: for work that is known to be short, and for code
    outside of the loop."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def parts(rows: Iterable[T], count: int) -> Iterator[list[T]]:
    """The rows in lists of `count`; the last may be shorter. Each row is made when its list is."""
    left = iter(rows)
    while part := list(islice(left, count)):
        yield part


def joined(pieces: Iterable[bytes]) -> Steps[bytes]:
    """A document whose pieces are made one by one, with a pause behind each."""
    found: list[bytes] = []
    for piece in pieces:
        found.append(piece)
        yield
    return b"".join(found)
