"""Long reads: in time slices on the event loop, each over one snapshot, so that other work can run.

Lives here: the connections that they read from, and how many run at once. Must not live here: SQL
(records/sqlite.py).

They do not run in threads, because SQLite's binding releases the interpreter's lock at every row.
Beside a busy loop, a thousand rows would cost about five hundred switches between threads.
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

_CONCURRENT_MAX: Final = 4


class Scans:
    """Long reads, each on a connection of its own: a pause must not delay what others see.

    Arguments:
        connect: opens a connection.
        turns: the time slices of the loop.
    """

    def __init__(self, connect: Callable[[], Reader], turns: SliceTurns) -> None:
        self._connect = connect
        self._turns = turns
        self._idle: list[Reader] = []
        self._ended = False
        self._slots = asyncio.Semaphore(_CONCURRENT_MAX)

    async def read(self, ask: Callable[[Reader], Steps[T]]) -> T:
        """Run a query slice by slice, and return its result. Raises apsw.Error; Unavailable when
        `end` is called first."""
        async with self._slots:
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
        """Make every read fail at its next slice, and wait until all have ended."""
        self._ended = True
        for _ in range(_CONCURRENT_MAX):
            await self._slots.acquire()

    def close(self) -> None:
        """Close the connections; after `end`. Raises apsw.Error."""
        while self._idle:
            self._idle.pop().close()
