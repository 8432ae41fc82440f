"""A new data directory as the target of a copy from any engine.

Lives here: writing records and segments without a server, so that versions and ids are kept
(engines/transfer.py). Must not live here: how an unfinished directory is marked (copy_target.py).

A row of `meta` names the source until the end. It is written with the tables, so a directory that
has it can be gone on with. Each batch is one transaction; its bodies are synced before. What lies
in a segment behind the last row was not completed, and is overwritten.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from typing import Final

import apsw

from strongroom.engines.base import EngineError, Key, Partition, Record, Ref, Unavailable
from strongroom.engines.embedded.bodies.segments import SEGMENT_BYTES
from strongroom.engines.embedded.disk.directory import DirectoryLayout, Format
from strongroom.engines.embedded.disk.files import Files, OsFiles, is_no_space
from strongroom.engines.embedded.records.checksummed_pages import connect, is_full, reason
from strongroom.engines.embedded.records.sqlite import SCHEMA, Location, Writer
from strongroom.engines.embedded.upkeep.copy_target import PRIVATE_NAMES, CopyTarget
from strongroom.engines.embedded.upkeep.segment_tail import SegmentTail
from strongroom.engines.embedded.upkeep.transfer_source import EmbeddedSource
from strongroom.engines.transfer import (
    ContentSum,
    CopyPlace,
    CopyRefused,
    SourceState,
    StoredRecord,
    StoreTraits,
    TransferSource,
)

_MARK: Final = "SELECT value FROM meta WHERE name = 'transfer'"
_MARKED: Final = "INSERT INTO meta VALUES ('transfer', {});"
_UNMARKED: Final = "DELETE FROM meta WHERE name = 'transfer'"
_LAST: Final = (
    "SELECT keyspace, partition, key FROM {} ORDER BY keyspace DESC, partition DESC, key DESC "
    "LIMIT 1"
)
_LOG_BYTES: Final = 32 * 1024 * 1024
_CACHE_KIB: Final = 1024


class EmbeddedTarget:
    """See TransferTarget.

    Arguments:
        directory: it does not exist, is empty, or holds the rest of a copy; keys and roles may be
            there.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        files: Files | None = None,
        vfs: str | None = None,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.shown = os.path.abspath(directory)
        self._files = files or OsFiles()
        self._vfs = vfs
        self._segment_bytes = segment_bytes
        self._resources = ExitStack()
        self._logged_bytes = 0

    async def begin(self, source: SourceState, traits: StoreTraits) -> CopyPlace:
        self._stamp = Format(
            test_clock=traits.test_clock,
            allow_reset=traits.allows_reset,
            foreign_etags=traits.foreign_etags,
        )
        mark = int.from_bytes(blake2b(source.mark.encode(), digest_size=7).digest(), "big")
        with self._explaining():
            self._making = self._resources.enter_context(self._copy_target(mark))
            layout = self._making.layout
            if not self._making.is_resumed:
                self._files.close(self._files.create(layout.records))
                schema = SCHEMA + _MARKED.format(mark)
                connect(layout.records, self._vfs, _CACHE_KIB, schema).close()
                self._files.sync_directory(layout.path)
            self._writer = Writer(layout.records, self._vfs, create=False)
            self._resources.callback(self._close_writer)
            self._tail = SegmentTail(layout, self._files, self._segment_bytes)
            self._resources.callback(self._tail.close)
            self._tail.resume(self._writer.segments())
            return CopyPlace(self._writer.last_content(), self._last_record())

    async def put_bodies(self, contents: Sequence[tuple[ContentSum, bytes]]) -> None:
        with self._explaining():
            segment, offset = self._tail.ready(contents[0][0].id)
            adopted = []
            for content, body in contents:
                adopted.append((content.id, _location(segment, offset, content)))
                offset += len(body)
            self._tail.append(b"".join(body for _, body in contents))
            self._adopt(adopted)

    async def put_long(self, content: ContentSum, chunks: AsyncIterator[bytes]) -> None:
        with self._explaining():
            segment, offset = self._tail.ready(content.id)
        try:
            async for chunk in chunks:
                with self._explaining():
                    self._tail.append(chunk)
        except BaseException:
            self._tail.end = offset
            raise
        with self._explaining():
            self._adopt([(content.id, _location(segment, offset, content))])

    def _adopt(self, contents: Sequence[tuple[int, Location]]) -> None:
        self._tail.sync()
        sealed = self._tail.take_sealed()

        def write() -> None:
            for segment in sealed:
                self._writer.seal(segment)
            self._writer.adopt(contents)
            self._writer.count_live([(at.segment, at.length) for _, at in contents])

        self._commit(write)

    async def put_records(self, records: Sequence[StoredRecord]) -> None:
        changes: dict[Ref, Record | None] = {
            one.ref: Record(one.value, one.version) for one in records
        }
        self._logged_bytes += sum(len(one.value) for one in records)
        with self._explaining():
            self._commit(lambda: self._writer.put_all(changes))

    async def written(self) -> TransferSource:
        return EmbeddedSource(self.shown, self._vfs, self._stamp)

    async def finish(self, ceiling: int) -> None:
        def write() -> None:
            self._writer.raise_ceiling(ceiling)
            self._writer.connection.execute(_UNMARKED)

        with self._explaining():
            self._commit(write)
            self._writer.truncate_log(timeout_ms=0)
            self._writer.close()
            self._making.finish()

    async def close(self) -> None:
        self._resources.close()

    def _copy_target(self, mark: int) -> CopyTarget:
        """Raises: CopyRefused."""
        private = [
            name for name in PRIVATE_NAMES if os.path.lexists(os.path.join(self.shown, name))
        ]
        try:
            return CopyTarget(
                self.shown, self._stamp, private, goes_on=lambda layout: self._goes_on(layout, mark)
            )
        except FileExistsError as error:
            raise CopyRefused(f"{error}; name a new directory for the copy") from None

    def _goes_on(self, layout: DirectoryLayout, mark: int) -> bool:
        """Return whether the directory is the rest of a copy from this source."""
        found = _mark_of(layout, self._vfs)
        if found is not None and found != mark:
            raise CopyRefused(
                f"{layout.path} holds an unfinished copy from another store, or from this one "
                "before a server opened it again; delete it, or name a new directory"
            )
        return found is not None

    def _last_record(self) -> Ref | None:
        for hidden, table in ((True, "hidden"), (False, "face")):
            row = self._writer.connection.execute(_LAST.format(table)).fetchone()
            if row is not None:
                return Ref(Partition(*row[:2]), Key(hidden, row[2]))
        return None

    def _commit(self, write: Callable[[], None]) -> None:
        self._writer.begin()
        try:
            write()
            self._writer.commit()
        except BaseException:
            self._writer.rollback()
            raise
        self._logged_bytes += 256 * 1024  # pages of indexes
        if self._logged_bytes > _LOG_BYTES and self._writer.truncate_log(timeout_ms=0):
            self._logged_bytes = 0

    def _close_writer(self) -> None:
        with suppress(apsw.Error):  # what was committed is in the log
            self._writer.close()

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not is_no_space(error):
                raise
            raise CopyRefused(self._full_text()) from error
        except apsw.Error as error:
            if is_full(error):
                raise CopyRefused(self._full_text()) from error
            raise Unavailable(f"{self.shown} cannot be written: {reason(error)}") from error

    def _full_text(self) -> str:
        return (
            f"the disk of {self.shown} is full. Free some space there, and run the same command "
            "again: it goes on where it was cut"
        )


def _location(segment: int, offset: int, content: ContentSum) -> Location:
    at = offset if content.size_bytes else 0
    return Location(segment, at, content.size_bytes, content.crc64)


def _mark_of(layout: DirectoryLayout, vfs: str | None) -> int | None:
    """Which source an unfinished directory is copied from; None if it is no such copy."""
    try:
        connection = connect(layout.records, vfs, _CACHE_KIB)
    except (apsw.Error, EngineError):
        return None
    try:
        found = connection.execute(_MARK).get
    except apsw.Error:
        return None
    finally:
        connection.close()
    return None if found is None else int(found)
