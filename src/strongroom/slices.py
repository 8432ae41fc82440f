"""Runs long work in slices of about two milliseconds per turn of the event loop, over all requests.

Lives here: the order and the length of the slices. Must not live here: the work itself.

Long work is a generator that pauses after each step. A step takes some tenths of a millisecond, a
millisecond at most. So parsers and encoders stay pure: they mark where they can pause, and this
module decides whether they do. A coroutine marks such a point by awaiting `pause`.

If each request only yielded after each step, the steps of all long requests would run in the same
turn. Eight of them would delay a small request by eight steps. Here the length of the whole turn is
limited, and long requests wait for each other in the order of their arrival.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator
from io import BytesIO
from itertools import islice
from typing import Final, TypeVar

from strongroom.clock import elapsed_s

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Long work that pauses after each step, and returns its result."""

SLICE_S: Final = 0.002
# Each task that is woken in vain costs a few microseconds.
_WOKEN_MAX: Final = 16


class SliceTurns:
    """The turns of one event loop.

    Arguments:
        now_s: the clock that measures turns, in seconds.
        slice_s: how long a turn of the loop may take before long work yields. The last step of a
            turn may exceed it.
    """

    def __init__(self, now_s: Callable[[], float] = elapsed_s, slice_s: float = SLICE_S) -> None:
        self._now_s = now_s
        self._slice_s = slice_s
        self._waiting: list[tuple[int, asyncio.Future[bool]]] = []  # a heap
        self._tickets = itertools.count()
        self._began_s = 0.0  # start of the current turn, while turns are measured
        self._measured: asyncio.AbstractEventLoop | None = None  # the loop whose turns are measured
        self._is_used = False  # whether `pause` was called in the current turn

    async def run(self, steps: Steps[T]) -> T:
        """Return the result of `steps`, run in slices.

        Short work does not suspend, unless other tasks have just worked for long.
        """
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
        """Yield to the loop if the current turn has lasted long enough."""
        loop = asyncio.get_running_loop()
        self._is_used = True
        if self._measured is not loop:
            self._measured = loop
            self._began_s = self._now_s()
            loop.call_soon(self._begin, loop)
        elif self._is_over():
            await self._wait()

    @property
    def is_over(self) -> bool:
        """Whether long work has used up the current turn. It is False while there is none."""
        return self._measured is not None and self._is_over()

    def _is_over(self) -> bool:
        return self._now_s() - self._began_s >= self._slice_s

    async def _wait(self) -> None:
        """Wait for a turn that is not over. A task that is woken in vain keeps its place."""
        loop, ticket = asyncio.get_running_loop(), next(self._tickets)
        while True:
            mine: asyncio.Future[bool] = loop.create_future()
            heapq.heappush(self._waiting, (ticket, mine))
            is_first = await mine
            if is_first or not self._is_over():
                return

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a turn of the loop, and wake waiting tasks for the next turn.

        They run after the next call of this method. The first task may then run in any case, the
        others only while that turn is not over.
        """
        self._began_s = self._now_s()
        if not self._is_used and not self._waiting:
            self._measured = None
            return
        loop.call_soon(self._begin, loop)
        woken = 0
        while self._waiting and woken < _WOKEN_MAX:
            _, first = heapq.heappop(self._waiting)
            if not first.done():  # otherwise its task was cancelled
                first.set_result(woken == 0)
                woken += 1
        # The woken tasks may wait again, so the next turn must be measured too.
        self._is_used = woken > 0


def run_to_completion(steps: Steps[T]) -> T:
    """Return the result of `steps` without a pause.

    It is for work that is known to be short, and for code outside of the loop.
    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def parts(rows: Iterable[T], count: int) -> Iterator[list[T]]:
    """Yield the rows in lists of `count`; the last list may be shorter. Each row is made with its
    list."""
    left = iter(rows)
    while part := list(islice(left, count)):
        yield part


def joined(pieces: Iterable[bytes]) -> Steps[bytes]:
    """Join the pieces of a document, with a pause after each piece.

    Each piece is copied in its own step. So no step copies the whole document, and memory holds it
    once.
    """
    document = BytesIO()
    for piece in pieces:
        document.write(piece)
        yield
    return document.getvalue()  # the buffer itself, without a copy
