"""A data directory that no server has open, or a backup, as the source of a copy to any engine.

Lives here: reading in the order of the contract (engines/transfer.py). Must not live here: copies
of the same form, which are made beside a server (upkeep/backup.py).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, BinaryIO, Final

import apsw

from strongroom.engines.base import Record, Ref
from strongroom.engines.embedded.disk.directory import (
    DirectoryInUse,
    DirectoryLayout,
    FileLock,
    Format,
    ServerLock,
)
from strongroom.engines.embedded.log.gate import refuse_damaged_log
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES as SQLITE_PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import (
    connect,
    record_name,
    unreadable,
)
from strongroom.engines.embedded.records.record_walk import Walked, WalkPosition, walk_from
from strongroom.engines.embedded.records.sqlite import Location, location_of
from strongroom.engines.embedded.upkeep.upgrade.steps import lock_backup, settled_format
from strongroom.engines.transfer import (
    CONTENTS_MAX,
    PAGE_BYTES,
    ContentSum,
    SourceDamaged,
    SourceState,
    StoredRecord,
    StoreTraits,
)
from strongroom.platform.files import open_reader, pread

_CACHE_KIB: Final = 2 * 1024
_LOCATED: Final = "SELECT id, segment, offset, length, crc64 FROM contents WHERE "
_AFTER: Final = _LOCATED + "id > ? ORDER BY id LIMIT ?"
_BETWEEN: Final = _LOCATED + "id BETWEEN ? AND ? ORDER BY id"
_FIRST: Final = (b"", b"", b"")


class EmbeddedSource:
    """See TransferSource.

    Arguments:
        stamp: the format of a directory that is being written, so that no lock is taken.

    Raises: DirectoryInUse, NotADataDirectory, UnknownFormat, Damaged, DataDamaged, Unavailable,
        OSError.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        vfs: str | None = None,
        stamp: Format | None = None,
    ) -> None:
        self._layout = DirectoryLayout(os.path.abspath(directory))
        self._vfs = vfs
        self._lock = ServerLock(self._layout)
        self._readers = FileLock(self._layout.backup_lock)
        self._segment: tuple[int, BinaryIO] | None = None
        try:
            self._format = stamp or self._locked_format()
            self._connection = self._connect()
            self.traits = self._traits()
            self.state = self._state()
        except apsw.Error as error:
            self._release()
            raise unreadable(error, self._layout.records) from error
        except BaseException:
            self._release()
            raise

    async def size_bytes(self) -> tuple[int, int]:
        bodies = self._one("SELECT ifnull(sum(length), 0) FROM contents")
        pages = self._one("PRAGMA page_count") - self._one("PRAGMA freelist_count")
        return bodies, pages * SQLITE_PAGE_BYTES

    async def records(self, after: Ref | None) -> AsyncIterator[Sequence[StoredRecord]]:
        page: list[StoredRecord] = []
        size_bytes = 0
        for ref, record in self._walked(after):
            if record is None:
                raise self._damage(f"the {record_name(ref)} lies on a damaged page")
            page.append(StoredRecord(ref, *record))
            size_bytes += _length(ref, record)
            if size_bytes >= PAGE_BYTES:
                yield page
                await asyncio.sleep(0)
                page, size_bytes = [], 0
        if page:
            yield page

    async def contents(self, after: int) -> AsyncIterator[Sequence[ContentSum]]:
        while rows := self._located(_AFTER, (after, CONTENTS_MAX)):
            yield [ContentSum(one, at.length, at.crc64) for one, at in rows]
            await asyncio.sleep(0)
            after = rows[-1][0]

    async def bodies(self, contents: Sequence[ContentSum]) -> Sequence[bytes]:
        rows = self._located(_BETWEEN, (contents[0].id, contents[-1].id))
        return [self._read(at, 0, at.length) for _, at in rows]

    async def chunks(self, content: ContentSum) -> AsyncIterator[bytes]:
        for _, at in self._located(_BETWEEN, (content.id, content.id)):
            for offset in range(0, at.length, PAGE_BYTES):
                yield self._read(at, offset, min(PAGE_BYTES, at.length - offset))
                await asyncio.sleep(0)

    async def ensure_unchanged(self) -> None:
        """The lock of the server is held; nobody opens a backup."""

    async def close(self) -> None:
        if self._segment is not None:
            self._segment[1].close()
            self._segment = None
        self._connection.close()
        self._release()

    def _release(self) -> None:
        self._lock.release()
        self._readers.release()

    def _locked_format(self) -> Format:
        found = settled_format(self._layout)
        if found.backup:
            found = lock_backup(self._layout, self._readers)
        else:
            if not self._lock.acquire():
                raise DirectoryInUse(
                    f"a server has {self._layout.path} open; stop it first, or copy a backup: "
                    f"strongroom backup {self._layout.path} BACKUP"
                )
            found = self._layout.read_format()
        refuse_damaged_log(self._layout)
        return found

    def _connect(self) -> apsw.Connection:
        is_bound = self._format.is_current
        return connect(self._layout.records, self._vfs, _CACHE_KIB, is_bound=is_bound)

    def _traits(self) -> StoreTraits:
        return StoreTraits(
            self._one("SELECT value FROM meta WHERE name = 'ceiling'"),
            test_clock=self._format.test_clock,
            allows_reset=self._format.allow_reset,
            foreign_etags=self._format.foreign_etags,
        )

    def _state(self) -> SourceState:
        """The ceiling rises with each run of a server."""
        last = self._one("SELECT ifnull(max(id), 0) FROM contents")
        return SourceState(f"directory {self.traits.ceiling} {last}", self._layout.path)

    def _one(self, statement: str) -> int:
        try:
            return int(self._connection.execute(statement).get)
        except apsw.Error as error:
            raise unreadable(error, self._layout.records) from error

    def _walked(self, after: Ref | None) -> Iterator[Walked]:
        if after is None or not after.key.hidden:
            yield from self._walk(False, _FIRST if after is None else _next(after))
        is_behind = after is not None and after.key.hidden
        yield from self._walk(True, _next(after) if after is not None and is_behind else _FIRST)

    def _walk(self, hidden: bool, position: WalkPosition) -> Iterator[Walked]:
        try:
            yield from walk_from(self._connection, self._connect, hidden, position)
        except apsw.Error as error:
            raise unreadable(error, self._layout.records) from error

    def _located(self, statement: str, values: tuple[int, int]) -> list[tuple[int, Location]]:
        try:
            rows: list[Any] = self._connection.execute(statement, values).fetchall()
        except apsw.Error as error:
            raise unreadable(error, f"{self._layout.records}, places of contents") from error
        return [(row[0], location_of(row[1:])) for row in rows]

    def _read(self, at: Location, offset: int, length: int) -> bytes:
        """Fewer bytes than asked for if the segment ends before."""
        if not length:
            return b""
        if self._segment is None or self._segment[0] != at.segment:
            self._open_segment(at.segment)
        assert self._segment is not None
        return pread(self._segment[1].fileno(), length, at.offset + offset)

    def _open_segment(self, segment: int) -> None:
        if self._segment is not None:
            self._segment[1].close()
            self._segment = None
        try:
            self._segment = (segment, open_reader(self._layout.segment(segment)))
        except FileNotFoundError:
            raise self._damage(f"segment {segment:016x} is missing") from None

    def _damage(self, what: str) -> SourceDamaged:
        return SourceDamaged(f"{self._layout.path} is damaged: {what}")


def _next(ref: Ref) -> WalkPosition:
    (keyspace, partition), (_, name) = ref
    return keyspace, partition, name + b"\0"


def _length(ref: Ref, record: Record) -> int:
    (keyspace, partition), (_, name) = ref
    return len(keyspace) + len(partition) + len(name) + len(record.value)
