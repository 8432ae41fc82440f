"""Long readings: in slices on the loop, each over one snapshot, with turns for others in between.

Lives here: the connections that they read from, and how many at once. Must not live here: SQL
(records/sqlite.py).

They do not run in threads, because SQLite's binding gives the interpreter's lock up at every row.
Beside a busy loop, a thousand rows would cost some five hundred hand-overs of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Final, TypeVar

from strongroom.engines.base import Unavailable
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.slices import SliceTurns, Steps

T = TypeVar("T")

_AT_ONCE: Final = 4


class Scans:
    """Readings on connections of their own, since a pause must not hold up what others see.

    Arguments:
        connect: opens a connection.
        turns: of the loop.
    """

    def __init__(self, connect: Callable[[], Reader], turns: SliceTurns) -> None:
        self._connect = connect
        self._turns = turns
        self._idle: list[Reader] = []
        self._ended = False
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def read(self, ask: Callable[[Reader], Steps[T]]) -> T:
        """Read slice by slice. Raises apsw.Error; Unavailable when `end` comes first."""
        async with self._room:
            self._check()
            reader = self._idle.pop() if self._idle else self._connect()
            try:
                return await self._turns.run(self._checked(ask(reader)))
            finally:
                self._idle.append(reader)

    def _checked(self, steps: Steps[T]) -> Steps[T]:
        with closing(steps):
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    result: T = end.value
                    return result
                yield
                self._check()

    def _check(self) -> None:
        if self._ended:
            raise Unavailable("the store is closed")

    async def end(self) -> None:
        """Have every reading fail at its next slice, and wait for that."""
        self._ended = True
        for _ in range(_AT_ONCE):
            await self._room.acquire()

    def close(self) -> None:
        """Close the connections; after `end`. Raises apsw.Error."""
        while self._idle:
            self._idle.pop().close()
