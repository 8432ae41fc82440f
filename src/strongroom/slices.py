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
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from strongroom.clock import elapsed_s

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Long work that pauses after each step, and returns its result."""

SLICE_S: Final = 0.002


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
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._began_s = 0.0  # when the present turn began, while turns are measured
        self._is_measured = False
        self._is_used = False  # in the present turn

    async def run(self, steps: Steps[T]) -> T:
        """The result of `steps`. Short work does not suspend, unless others have just worked for
        long."""
        try:
            if self._is_measured:
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
        self._is_used = True
        if not self._is_measured:
            self._is_measured = True
            self._began_s = self._now_s()
            asyncio.get_running_loop().call_soon(self._begin)
        elif self._now_s() - self._began_s >= self._slice_s:
            await self._turn()

    async def _turn(self) -> None:
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        await mine

    def _begin(self) -> None:
        """A turn of the loop begins. One of those that wait goes on, in the next turn, which it
        then has for itself. So the next turn must be measured before that."""
        self._began_s = self._now_s()
        self._is_measured, self._is_used = bool(self._is_used or self._waiting), False
        if not self._is_measured:
            return
        asyncio.get_running_loop().call_soon(self._begin)
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():  # its task was cancelled
                first.set_result(None)
                break


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
