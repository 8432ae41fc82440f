"""Long reads: in time slices on the event loop, each over one snapshot, so that other work can run.

Lives here: the connections that they read from, and how many run at once; short queries too, which
need neither. Must not live here: SQL (records/sqlite.py).

They do not run in threads, because SQLite's binding releases the interpreter's lock at every row.
Beside a busy loop, a thousand rows would cost about five hundred switches between threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Final, TypeVar

import apsw

from strongroom.engines.base import Unavailable
from strongroom.engines.embedded.records.checksummed_pages import unreadable
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.slices import SliceTurns, Steps, run_to_completion

T = TypeVar("T")

_CONCURRENT_MAX: Final = 4


class Scans:
    """Long reads, each on a connection of its own: a pause must not delay what others see.

    Arguments:
        reader: of short reads.
        hold: lets it keep a snapshot for later reads, if it may.
        turns: the time slices of the loop.
    """

    def __init__(self, reader: Reader, hold: Callable[[], None], turns: SliceTurns) -> None:
        self._reader = reader
        self._hold = hold
        self._turns = turns
        self._idle: list[Reader] = []
        self._ended = False
        self._slots = asyncio.Semaphore(_CONCURRENT_MAX)

    async def query(self, ask: Callable[[Reader], Steps[T]], *, inline: bool) -> T:
        """Raises: DataDamaged; Unavailable when `end` is called first.

        Arguments:
            inline: whether it is known to be short. All others run slice by slice.
        """
        try:
            if not inline:
                return await self._read(ask)
            self._hold()
            return run_to_completion(ask(self._reader))
        except apsw.Error as error:
            raise unreadable(error) from error

    async def _read(self, ask: Callable[[Reader], Steps[T]]) -> T:
        async with self._slots:
            self._check()
            reader = self._idle.pop() if self._idle else self._reader.scanner()
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
        """Every read fails at its next slice. Wait until all have ended."""
        self._ended = True
        for _ in range(_CONCURRENT_MAX):
            await self._slots.acquire()

    def close(self) -> None:
        """After `end`. Raises apsw.Error."""
        while self._idle:
            self._idle.pop().close()
