"""A file of this server as the source of a copy: one state of it, whatever is written meanwhile.

Lives here: the registered read of a file that a copy reads, and the stream of its bytes. Must not
live here: who may read it (the locator that the program is composed with), where bytes lie
(store/core/extents). Source: "Copy File", "Put Range from URL", header x-ms-copy-source.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import msgspec

from strongroom.auth.request import Service
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import conditions as conditional
from strongroom.semantics.file.accesses import FileOperation
from strongroom.services.core.copies.sources import (
    LocalSource,
    Opener,
    OpenSource,
    SourceRequest,
    require_part,
    source_missing,
)
from strongroom.services.core.decisions import Reads
from strongroom.services.core.runner import Services
from strongroom.services.file import paths
from strongroom.services.file.admission import enter, facts_of
from strongroom.services.file.held.share_holds import require_share
from strongroom.services.file.past_states import attributes_at
from strongroom.services.file.paths import PathChanged, Where
from strongroom.services.file.permissions import DEFAULT_KEY, DEFAULT_TEXT
from strongroom.services.file.readers import FileReaders
from strongroom.store.core import extents, keys, records
from strongroom.store.core.extents import MapPlace, RangeQuery
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.values import etag_text

_RANGES_MAX: Final = 1000


class FileSource(msgspec.Struct, frozen=True):
    """A file that is copied: its attributes and permission, and where its bytes lie.

    `version` is that of its record, or the stamp of the share's snapshot that it is in. The reader
    is registered at this version.
    """

    where: Where
    record: FileRecord
    version: int
    permission: str
    is_past: bool = False

    async def written(self, services: Services, first: int) -> AsyncIterator[tuple[int, int]]:
        """Yield (offset, length) of the allocated ranges from `first` on, in order."""
        place, size_bytes = self.place, self.record.size_bytes
        resume: int | None = first
        while resume is not None and resume < size_bytes:
            query = RangeQuery(resume, size_bytes, _RANGES_MAX)
            page = await extents.list_ranges(services.store, place, self.version, query)
            for one in page.ranges:
                yield one.start, one.end - one.start
            resume = page.resume

    def read(self, services: Services, offset: int, length: int) -> AsyncIterator[bytes]:
        """Yield the bytes of a range."""
        return extents.read(services.store, self.place, self.version, offset, length)

    @property
    def place(self) -> MapPlace:
        """The place of its bytes."""
        return MapPlace(self.where.partition, self.where.id)


@dataclass(slots=True, eq=False)
class OpenFile(OpenSource):
    """An open source that is a file of this server."""

    file: FileSource | None = None


async def open_file(services: Services, source: LocalSource, wanted: SourceRequest) -> OpenFile:
    """Open a file of this server as a source.

    Raises: StorageError CannotVerifyCopySource (missing, or it is a directory), InvalidRange, what
        the conditions of `wanted` refuse, what admission refuses. DataDamaged, also while it is
        read.
    """
    with ExitStack() as stack:
        file = await _enter_and_read(services, source, stack)
        _judge(wanted, file.record)
        offset, length = 0, file.record.size_bytes
        if wanted.range is not None:
            offset, length = require_part(wanted.range, length)
        pieces = file.read(services, offset, length) if length else _nothing()
        return OpenFile(
            length,
            pieces,
            stack.pop_all().close,
            file.record.properties,
            file.record.metadata,
            etag_text(file.record.etag),
            file=file,
        )


OWN: Final = Opener(Service.FILE, open_file)
"""Opens copy sources that are files of this server."""


def _judge(wanted: SourceRequest, record: FileRecord) -> None:
    check = conditional.check_read_source if wanted.is_read else conditional.check_source
    check(wanted.conditions, record.etag, record.modified, {})


async def _enter_and_read(services: Services, source: LocalSource, stack: ExitStack) -> FileSource:
    """Return the file, entered, with a registered reader that ends with `stack`."""
    readers = services.held.of(FileReaders).maps
    while True:
        where = await _find(services, source)
        try:
            facts = facts_of((await _read(services, source, where)).record)
        except PathChanged:
            continue
        with ExitStack() as attempt:
            # Enter before the second read: a client sends its cached writes while this waits.
            # A snapshot needs no entry: nobody has one open for writing.
            if source.snapshot is None:
                attempt.enter_context(
                    await enter(services, where.partition, FileOperation.COPY_SOURCE, facts)
                )
            reading = readers.begin(where.partition)
            attempt.callback(reading.end)
            attempt.callback(services.store.gateways.begin_reading().end)
            await reading.wait_for_mutations()
            try:
                file = await _read(services, source, where)
            except PathChanged:
                continue
            if facts_of(file.record) != facts:
                continue
            reading.set_position(file.version)
            stack.push(attempt.pop_all())
            return file


async def _find(services: Services, source: LocalSource) -> Where:
    await _check_share(services, source)
    await require_share(services, source.generation)
    try:
        path = paths.components(source.blob, trailing_dots=source.trailing_dots)
        where = await paths.walk(services, source.generation, path, source.snapshot)
    except StorageError as refusal:
        raise source_missing(refusal.row) from None
    if where.entry is None or where.is_directory:
        raise source_missing(errors.RESOURCE_NOT_FOUND)
    return where


async def _check_share(services: Services, source: LocalSource) -> None:
    """Check that the share, and its snapshot, exist. Raises: StorageError
    CannotVerifyCopySource."""
    (share,) = await services.store.read([keys.share(source.account, source.container)])
    found = records.SHARE.of(share)
    if found is None or found.generation != source.generation:
        raise source_missing(errors.SHARE_NOT_FOUND)
    if source.snapshot is not None and source.snapshot not in found.snapshots:
        raise source_missing(file_errors.SHARE_SNAPSHOT_NOT_FOUND)


async def _read(services: Services, source: LocalSource, where: Where) -> FileSource:
    """Return the attributes, and the permission that they name. Raises: PathChanged."""
    at = source.snapshot
    if at is None:
        reads = Reads()
        attributes = reads.add(keys.file_attributes(where.generation, where.id), file_records.FILE)
        on_path = where.read(reads)
        seen = await services.read(reads)
        where.check(seen, on_path)
        found = seen.record(attributes)
    else:
        found = await attributes_at(services.store, where.partition, at)
        # This comes last: a snapshot that exists now existed when its records were read.
        await _check_share(services, source)
    record = file_records.FILE.of(found)
    if found is None or record is None:
        raise PathChanged
    text = DEFAULT_TEXT
    if record.permission != DEFAULT_KEY:
        ref = keys.permission(where.generation, record.permission)
        (kept,) = await services.store.read([ref])
        permission = file_records.PERMISSION.of(kept)
        text = DEFAULT_TEXT if permission is None else permission.text
    version = found.version if at is None else at
    return FileSource(where, record, version, text, is_past=at is not None)


async def _nothing() -> AsyncIterator[bytes]:
    pieces: tuple[bytes, ...] = ()
    for piece in pieces:
        yield piece
