"""A file of this server as the source of a copy: one state of it, whatever is written meanwhile.

Lives here: the registered read of a file that a copy reads, and the stream of its bytes. Who may
read it is for the locator that the program is composed with. Source: "Copy File", "Put Range from
URL", header x-ms-copy-source.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import msgspec

from strongroom.auth.request import Service
from strongroom.engines.base import DataDamaged, EngineError, Ref
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
from strongroom.services.core.decisions import Found, ReadOne
from strongroom.services.core.runner import Services
from strongroom.services.file.names import paths
from strongroom.services.file.names.permissions import DEFAULT_KEY, DEFAULT_TEXT
from strongroom.services.file.node.access import ByPath, share_of
from strongroom.services.file.node.origins import ShareOrigin
from strongroom.services.file.node.reading import entered_for_reading
from strongroom.services.file.opens.share_holds import require_share
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import extents, keys
from strongroom.store.core.extents import MapPlace, RangeQuery
from strongroom.store.core.records import DamagedRecord, ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.values import etag_text

_RANGES_MAX: Final = 1000
_DAMAGED: Final = "a file that another gateway copies is damaged: %s"
_log: Final = logging.getLogger(__name__)


class FileSource(msgspec.Struct, frozen=True):
    """A file that is copied. `version` is that of its record, or the stamp of the share's snapshot
    that it is in. The reader is registered at this version. If the file `is_elsewhere`, it is
    registered at the gateway that serves its share, and its bytes come from there."""

    where: Where
    record: FileRecord
    version: int
    permission: str
    is_past: bool = False
    is_elsewhere: bool = False

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
        return extents.read(services.store, self.place, self.version, offset, length)

    @property
    def place(self) -> MapPlace:
        return MapPlace(self.where.partition, self.where.id)


@dataclass(slots=True, eq=False)
class OpenFile(OpenSource):
    file: FileSource | None = None


OpenElsewhere = Callable[[LocalSource, SourceRequest], Awaitable[OpenFile | None]]
"""open(source, wanted) -> the file, open at the gateway that serves its share; None = this one
does. Raises: as open_file."""


class OtherGateways:
    """How files are read whose shares other gateways serve; None = no other one serves the
    store."""

    def __init__(self) -> None:
        self.open: OpenElsewhere | None = None


async def open_file(services: Services, source: LocalSource, wanted: SourceRequest) -> OpenFile:
    """CannotVerifyCopySource when the file is missing, or is a directory. DataDamaged, also while
    it is read."""
    elsewhere = services.held.of(OtherGateways).open
    found = None if elsewhere is None else await elsewhere(source, wanted)
    return found or await open_here(services, source, wanted)


async def open_here(services: Services, source: LocalSource, wanted: SourceRequest) -> OpenFile:
    """As open_file. ServerBusy when another gateway serves the share."""
    with ExitStack() as stack:
        file = await _enter_and_read(services, source, stack)
        check = conditional.check_read_source if wanted.is_read else conditional.check_source
        check(wanted.conditions, file.record.etag, file.record.modified, {})
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


async def open_for_another(
    services: Services, source: LocalSource, wanted: SourceRequest
) -> OpenFile:
    """As open_here, for a gateway to which only a StorageError can be told: InternalError for
    damage, ServerBusy for what may be better soon. At damage that is met later the bytes end, so
    fewer come than were announced."""
    try:
        opened = await open_here(services, source, wanted)
    except (DataDamaged, DamagedRecord) as damaged:
        _log.error(_DAMAGED, damaged)
        raise StorageError(errors.INTERNAL_ERROR) from None
    except EngineError as error:
        _log.warning("a file that another gateway copies cannot be opened now: %s", error)
        raise StorageError(errors.SERVER_BUSY) from None
    opened.chunks = _until_damage(opened.chunks)
    return opened


async def _until_damage(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for chunk in chunks:
            yield chunk
    except DataDamaged as damaged:
        _log.error(_DAMAGED, damaged)
    finally:
        closing = getattr(chunks, "aclose", None)
        if closing is not None:
            await closing()


OWN: Final = Opener(Service.FILE, open_file)
"""Opens copy sources that are files of this server."""


class SourceOrigin(ShareOrigin, frozen=True):
    """A copy that reads a file, whose reader is authorized. No lease guards a read."""

    source: LocalSource

    @property
    def share_ref(self) -> Ref:
        return keys.share(self.source.account, self.source.container)

    @property
    def generation(self) -> int:
        return self.source.generation

    @property
    def snapshot(self) -> int | None:
        return self.source.snapshot

    def share_in(self, found: Found, share: ReadOne[ShareRecord]) -> ShareRecord:
        record = found[share]
        if record is None or record.generation != self.generation:
            raise source_missing(errors.SHARE_NOT_FOUND)
        if self.snapshot is not None and self.snapshot not in record.snapshots:
            raise source_missing(file_errors.SHARE_SNAPSHOT_NOT_FOUND)
        return record


async def _enter_and_read(services: Services, source: LocalSource, stack: ExitStack) -> FileSource:
    """The registered reader ends with `stack`."""
    origin = SourceOrigin(source)
    while True:
        where = await _find(services, origin)
        try:
            seen = await entered_for_reading(
                services, ByPath(origin, where), FileOperation.COPY_SOURCE, stack
            )
        except PathChanged:
            continue
        text = await _permission(services, where.generation, seen.record.permission)
        is_past = source.snapshot is not None
        return FileSource(where, seen.record, seen.version, text, is_past)


async def _find(services: Services, origin: SourceOrigin) -> Where:
    source = origin.source
    await require_share(services, source.generation)
    try:
        path = paths.components(source.blob, trailing_dots=source.trailing_dots)
        where = await paths.walk(services, source.generation, path, source.snapshot)
        if where.entry is None or where.is_directory:
            raise StorageError(errors.RESOURCE_NOT_FOUND)
    except StorageError as refusal:
        # Names that are gone with their share, or with its snapshot, are not what is missing.
        await share_of(services, origin)
        raise source_missing(refusal.row) from None
    return where


async def _permission(services: Services, generation: int, key: str) -> str:
    if key == DEFAULT_KEY:
        return DEFAULT_TEXT
    (kept,) = await services.store.read([keys.permission(generation, key)])
    permission = file_records.PERMISSION.of(kept)
    return DEFAULT_TEXT if permission is None else permission.text


async def _nothing() -> AsyncIterator[bytes]:
    pieces: tuple[bytes, ...] = ()
    for piece in pieces:
        yield piece
