"""Creations, renames and writes under way, and the futures of those who wait for their end.

Lives here: held state without rules; waiters are woken at the end of the operation. Must not live
here: the tables of opens (opens.py), locks (semantics/file/byte_ranges.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from strongroom.engines.base import Partition


class Barriers:
    """Names that are being created, and files and directories that are being renamed."""

    def __init__(self) -> None:
        self._barriers: dict[Hashable, asyncio.Future[None]] = {}

    def blocking(self, keys: Sequence[Hashable]) -> asyncio.Future[None] | None:
        """Return the end of a creation or rename of one of these keys; None = an open need not
        wait."""
        return next((self._barriers[key] for key in keys if key in self._barriers), None)

    def block(self, key: Hashable) -> Callable[[], None]:
        """Make opens wait until the returned function is called."""
        assert key not in self._barriers, "ask blocking() first"
        barrier = self._barriers[key] = asyncio.get_running_loop().create_future()

        def lift() -> None:
            del self._barriers[key]
            barrier.set_result(None)

        return lift


class _WriteUnderWay(NamedTuple):
    offset: int
    length: int
    over: asyncio.Future[None]


class WritesUnderWay:
    """Byte ranges that are being written, on which no lock is granted."""

    def __init__(self) -> None:
        self._writes: dict[Partition, list[_WriteUnderWay]] = {}

    @contextmanager
    def changing(self, file: Partition, offset: int, length: int) -> Iterator[None]:
        """Register a write while the block runs: a lock of these bytes waits for its end."""
        write = _WriteUnderWay(offset, length, asyncio.get_running_loop().create_future())
        writes = self._writes.setdefault(file, [])
        writes.append(write)
        try:
            yield
        finally:
            write.over.set_result(None)
            writes.remove(write)
            if not writes:
                del self._writes[file]

    def over(
        self, file: Partition, ranges: Sequence[tuple[int, int]]
    ) -> asyncio.Future[None] | None:
        """Return the end of a write under way in one of these (offset, length) ranges; None = there
        is none."""
        for write in self._writes.get(file, ()):
            for offset, length in ranges:
                if offset < write.offset + write.length and write.offset < offset + length:
                    return write.over
        return None
