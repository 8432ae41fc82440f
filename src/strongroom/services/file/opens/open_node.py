"""What this process keeps for one file or directory that is open.

Must not live here: rules (semantics/file/opens.py), all open files together (opens.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from strongroom.semantics.file.opens import OpenTable
from strongroom.services.file.opens.caches import BreakTimers

EMPTY_TABLE: Final = OpenTable()

Removal = Callable[[tuple[str, ...]], Coroutine[Any, Any, None]]
"""Removes the name of a file when its last open has left and its deletion is pending. The argument
is the path."""


class _WriteUnderWay(NamedTuple):
    offset: int
    length: int
    over: asyncio.Future[None]


class OpenNode:
    """A file or directory, from its first open until its table is empty again.

    Attributes:
        path: the present path of its handles.
        removal: None = no handle was opened yet.
        reserved_bytes: bytes reserved behind the file's end.
        timers: of the notices that wait for an answer.
    """

    __slots__ = ("_changes", "_closing", "_lock_waits", "_table", "_writes", "path",
                 "removal", "reserved_bytes", "timers")  # fmt: skip

    def __init__(self) -> None:
        self.path: tuple[str, ...] = ()
        self.removal: Removal | None = None
        self.reserved_bytes = 0
        self.timers = BreakTimers()
        self._table = EMPTY_TABLE
        self._changes: list[asyncio.Future[None]] = []
        self._closing: asyncio.Task[None] | None = None
        self._lock_waits: dict[int, asyncio.Future[None]] = {}
        self._writes: list[_WriteUnderWay] = []

    @property
    def table(self) -> OpenTable:
        return self._table

    def put(self, table: OpenTable, granted: Sequence[int] = ()) -> None:
        """Store a table that a rule has changed, and wake those who wait for it. Only `Opens.put`
        calls this, since it also keeps the counts of all files. `granted`: the lock requests that
        are granted by the change."""
        self._table = table
        self.timers.keep(table.holders)
        changes, self._changes = self._changes, []
        for waiter in changes:
            _wake(waiter)
        for wait_id in granted:
            if wait_id in self._lock_waits:
                _wake(self._lock_waits[wait_id])

    def change(self) -> asyncio.Future[None]:
        """Return a future that is done once the table has changed. Call this before anything is
        awaited.

        While a disconnected handle is being closed, the future is done once it is closed. The file
        may be deleted with it.
        """
        if self._closing is not None:
            return self._closing
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changes = [*(one for one in self._changes if not one.done()), waiter]
        return waiter

    def close_by(self, closing: asyncio.Task[None]) -> None:
        """Register the task that closes a disconnected handle."""
        self._closing = closing
        closing.add_done_callback(self._closed)

    def _closed(self, closing: asyncio.Task[None]) -> None:
        if self._closing is closing:
            self._closing = None

    @contextmanager
    def lock_wait(self, wait_id: int) -> Iterator[asyncio.Future[None]]:
        """Register a lock request while the block runs; the future is done once it is granted."""
        granted = self._lock_waits[wait_id] = asyncio.get_running_loop().create_future()
        try:
            yield granted
        finally:
            del self._lock_waits[wait_id]

    @contextmanager
    def writing(self, offset: int, length: int) -> Iterator[None]:
        """Register a write while the block runs: a lock of these bytes waits for its end."""
        write = _WriteUnderWay(offset, length, asyncio.get_running_loop().create_future())
        self._writes.append(write)
        try:
            yield
        finally:
            write.over.set_result(None)
            self._writes.remove(write)

    def write_over(self, ranges: Sequence[tuple[int, int]]) -> asyncio.Future[None] | None:
        """The end of a write under way in one of these (offset, length) ranges; None = there is
        none."""
        for write in self._writes:
            for offset, length in ranges:
                if offset < write.offset + write.length and write.offset < offset + length:
                    return write.over
        return None


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
