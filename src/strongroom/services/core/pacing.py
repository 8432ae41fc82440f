"""Long work in slices: one slice a turn of the event loop, over all requests.

Lives here: who goes on next. Must not live here: what a slice is. Each kind of long work has its
own count of rows, which take some tenths of a millisecond.

A request that only gives others a turn after each slice shares the turn with all others that do the
same. Eight of them would hold a small request up for eight slices. Here they wait for each other,
first come, first served.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")

_LONG_PIECE_BYTES: Final = 16 * 1024


class SliceTurns:
    """The turns of one event loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Wait for the turn of the next slice. At most one caller goes on in a turn of the loop."""
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        self._waiting.append(mine)
        if len(self._waiting) == 1:
            loop.call_soon(self._next)
        await mine

    def _next(self) -> None:
        """Once a turn, as long as somebody waits."""
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():  # its task was cancelled
                first.set_result(None)
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)

    async def slices(self, rows: Iterable[T], count: int) -> AsyncIterator[list[T]]:
        """The rows in lists of `count`, each behind a turn. The first list does not wait if there
        is no other: most work is short."""
        left: Iterator[T] = iter(rows)
        part = list(islice(left, count))
        while part:
            yield part
            if len(part) < count:
                return
            await self.turn()
            part = list(islice(left, count))

    async def joined(self, pieces: Iterable[bytes]) -> bytes:
        """A document whose pieces are made one by one, with a turn behind each long one."""
        found: list[bytes] = []
        for piece in pieces:
            found.append(piece)
            if len(piece) >= _LONG_PIECE_BYTES:
                await self.turn()
        return b"".join(found)
