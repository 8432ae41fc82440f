"""Long readings: in slices on the loop, each over one snapshot, with turns for others in between.

Lives here: the connections that they read from, and how many at once. Must not live here: SQL
(records/sqlite.py).

They do not run in threads, because SQLite's binding gives the interpreter's lock up at every row.
Beside a busy loop, a thousand rows would cost some five hundred hand-overs of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from strongroom.engines.base import Unavailable
from strongroom.engines.embedded.records.face_scan import Slices
from strongroom.engines.embedded.records.sqlite import Reader

T = TypeVar("T")

_AT_ONCE: Final = 4


def at_once(slices: Slices[T]) -> T:
    """Read all slices without a pause. Raises apsw.Error."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result


class Scans:
    """Readings on connections of their own, since a pause must not hold up what others see.

    Arguments:
        connect: opens a connection.
    """

    def __init__(self, connect: Callable[[], Reader]) -> None:
        self._connect = connect
        self._idle: list[Reader] = []
        self._ended = False
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def read(self, ask: Callable[[Reader], Slices[T]]) -> T:
        """Read slice by slice. Raises apsw.Error; Unavailable when `end` comes first."""
        async with self._room:
            self._check()
            reader = self._idle.pop() if self._idle else self._connect()
            slices = ask(reader)
            try:
                while True:
                    try:
                        next(slices)
                    except StopIteration as end:
                        result: T = end.value
                        return result
                    await asyncio.sleep(0)
                    self._check()
            finally:
                slices.close()
                self._idle.append(reader)

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
