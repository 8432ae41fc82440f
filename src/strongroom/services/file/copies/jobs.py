"""Pending copies to files: the work that continues after Copy File was answered, and after a
restart.

Lives here: moving the bytes in commits of bounded size, and the last commit. Only a copy that is
still pending may commit, so an abort always wins. Must not live here: the requests (copying.py),
the frame of every pending copy (services/core/copies/pending.py). Source: "Copy File", "Remarks".

Copied bytes lie beyond the file's length, which is 0 until the last commit. Nobody else changes the
file meanwhile. A piece of zeros is not written: it stays a hole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines.base import Ref
from strongroom.errors import core as errors
from strongroom.semantics.core import copies
from strongroom.semantics.core.copies import Copy
from strongroom.services.core.copies.pending import NotPending, PendingCopy, run_pending
from strongroom.services.core.copies.sources import OpenSource, SourceBroken
from strongroom.services.core.decisions import Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.reading import OWN, FileSource, OpenFile
from strongroom.services.file.node.access import AccessReads, NodeAccess
from strongroom.services.file.node.changing import (
    AdmittedAccess,
    Arrived,
    BytesChange,
    Cleared,
    NewBytes,
    change_bytes,
)
from strongroom.services.file.node.deciding import AdmittedNode, Applied, Edit, Edited, commit
from strongroom.services.file.node.origins import ShareOrigin
from strongroom.services.tree.paths import PathChanged
from strongroom.store.core import extents, keys, records
from strongroom.store.core.records import DeletedShare, Job, ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.values import ContentProperties, Metadata, Purpose

# The bytes of one commit; the map takes up to twice as many.
_PIECE_BYTES: Final = 4 * limits.MIB
_EVERYTHING: Final = Cleared(0, limits.FILE_BYTES_MAX)


async def run_copy(services: Services, job: Job) -> None:
    """Carry a pending copy out until it succeeds or fails. The job can be deleted afterwards. After
    the engine's errors it is tried again."""
    assert job.order is not None
    destination, _, name = job.order.destination.rpartition("/")
    held = msgspec.structs.replace(
        job, order=msgspec.structs.replace(job.order, destination=destination)
    )
    await run_pending(services, held, name, _PendingFile(services, job), OWN)


class _PendingFile(PendingCopy):
    def __init__(self, services: Services, job: Job) -> None:
        assert job.order is not None
        self._services = services
        self._job = job
        self._order = job.order
        self._access = _ByJob(JobOrigin(job))

    async def begin(self) -> None:
        if await self._copy() is None:
            raise NotPending

    async def copy(self, source: OpenSource) -> None:
        first = await self._first(source)
        end = first
        file = source.file if isinstance(source, OpenFile) else None
        if file is not None and file.is_elsewhere:
            file = None
        pieces = (
            _of_stream(source, first) if file is None else _of_file(self._services, file, first)
        )
        async for offset, data in pieces:
            end = offset + len(data)
            if end > limits.FILE_BYTES_MAX:
                raise errors.body_too_large(limits.FILE_BYTES_MAX)
            await self._put(offset, data)
        size_bytes = end if source.size_bytes is None else source.size_bytes
        if file is None and end != size_bytes:
            raise SourceBroken("The copy source ended early.")
        await self._complete(source, size_bytes)

    async def _first(self, source: OpenSource) -> int:
        """The offset where the copy continues. Content of another server may have changed: it is
        read from its start again, and the bytes copied before are deleted."""
        copy = await self._copy()
        if copy is None:
            raise NotPending
        if not copy.copied_bytes or not self._order.url:
            return copy.copied_bytes
        await self._change(_Nothing(self._job), _EVERYTHING)
        return 0

    async def _put(self, offset: int, data: bytes) -> None:
        """Commit a piece, and the progress that the copy makes by it."""

        edit = _Advance(self._job, offset + len(data))
        if data.count(0) == len(data):
            await self._change(edit)
            return
        draft = await extents.received(self._services.store, self._access.map, offset, data)
        async with draft:
            await self._change(edit, Arrived(draft))

    async def _complete(self, source: OpenSource, size_bytes: int) -> None:
        metadata = self._order.metadata
        if metadata is None:
            metadata = source.metadata
        await self._change(_Complete(self._job, size_bytes, source.properties, metadata))

    async def fail(self, reason: str) -> None:
        await self._change(_GiveUp(self._job, reason), _EVERYTHING)

    async def _copy(self) -> Copy | None:
        """None = it is not pending any more."""
        (stored,) = await self._services.store.read([self._access.attributes_ref])
        return _pending(file_records.FILE.of(stored), self._job.token)

    async def _change(self, edit: _OfPending, new_bytes: NewBytes | None = None) -> None:
        """Commit a change of the file while its record says that this very copy is pending, else
        NotPending is raised."""
        if new_bytes is not None:
            written = BytesChange(new_bytes, edit, is_patient=True)
            await change_bytes(self._services, AdmittedAccess(self._access), written)
            self._services.work.set()
            return
        try:
            await commit(self._services, self._access, Edited(edit))
        except PathChanged:
            raise NotPending from None  # its name is gone


class JobOrigin(ShareOrigin, frozen=True):
    """The job of a pending copy. It has no client any more."""

    job: Job

    @property
    def share_ref(self) -> Ref:
        assert self.job.order is not None
        account, share, _ = self.job.order.destination.split("/", 2)
        return keys.share(account, share)

    @property
    def generation(self) -> int:
        return self.job.generation

    @property
    def snapshot(self) -> int | None:
        return None


class _ByJob(NodeAccess, frozen=True):
    """The access of a job to the destination of its copy, as long as that is pending."""

    origin: JobOrigin

    @property
    def id(self) -> int:
        return int(self.origin.job.blob)

    @property
    def purpose(self) -> Purpose:
        return Purpose.GROWTH

    def at_serial_point(self) -> _ByJob:
        return self

    def add(self, reads: Reads) -> _JobReads:
        share = self.origin.share_ref
        return _JobReads(
            reads.add(share, records.SHARE),
            reads.add(self.attributes_ref, file_records.FILE),
            self.origin.job,
            reads.add(keys.deleted_place(share, self.generation), records.DELETED_SHARE),
        )


class _JobReads(AccessReads, frozen=True):
    """`kept`: the share, if it is soft-deleted. It counts too, so that its copy is not pending for
    ever after it is restored."""

    job: Job
    kept: ReadOne[DeletedShare]

    def admit(self, found: Found, stamp: int) -> tuple[ShareRecord, FileRecord]:
        share, kept, record = found[self.share], found[self.kept], found[self.attributes]
        if share is None or share.generation != self.job.generation:
            if kept is None:
                raise NotPending
            share = kept.record
        if record is None or _pending(record, self.job.token) is None:
            raise NotPending
        return share, record


class _OfPending(Edit, frozen=True):
    """What a pending copy does to the attributes of its destination. NotPending when it is not
    pending any more."""

    job: Job

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        copy = _pending(node.record, self.job.token)
        if copy is None:
            raise NotPending
        return self.edited(node.record, copy, stamp), ()

    def edited(self, record: FileRecord, copy: Copy, stamp: int) -> FileRecord:
        """`copy` is the pending one."""
        raise NotImplementedError


class _Nothing(_OfPending, frozen=True):
    """The attributes stay as they are, while the bytes change."""

    def edited(self, record: FileRecord, copy: Copy, stamp: int) -> FileRecord:
        return record


class _Advance(_OfPending, frozen=True):
    """The bytes of the copy have arrived up to `end`."""

    end: int

    def edited(self, record: FileRecord, copy: Copy, stamp: int) -> FileRecord:
        known = msgspec.structs.replace(copy, total_bytes=max(copy.total_bytes, self.end))
        return msgspec.structs.replace(record, copy=copies.advanced(known, self.end))


class _Complete(_OfPending, frozen=True):
    """The source may have been replaced before a restart. Bytes, properties and metadata that were
    read together belong together."""

    size_bytes: int
    properties: ContentProperties
    metadata: Metadata

    def edited(self, record: FileRecord, copy: Copy, stamp: int) -> FileRecord:
        done = msgspec.structs.replace(copy, total_bytes=self.size_bytes)
        return msgspec.structs.replace(
            record,
            etag=stamp,
            modified=stamp,
            size_bytes=self.size_bytes,
            properties=self.properties,
            metadata=self.metadata,
            copy=copies.succeeded(done, stamp),
        )


class _GiveUp(_OfPending, frozen=True):
    reason: str

    def edited(self, record: FileRecord, copy: Copy, stamp: int) -> FileRecord:
        ended = copies.failed(copy, self.reason, stamp)
        return msgspec.structs.replace(record, etag=stamp, modified=stamp, copy=ended)


def _pending(record: FileRecord | None, copy_id: str) -> Copy | None:
    copy = None if record is None else record.copy
    if copy is None or copy.id != copy_id or not copies.is_pending(copy):
        return None
    return copy


async def _of_file(
    services: Services, file: FileSource, first: int
) -> AsyncIterator[tuple[int, bytes]]:
    """Yield (offset, bytes) of the allocated ranges of a file of this server, from `first` on."""
    async for start, length in file.written(services, first):
        for offset in range(start, start + length, _PIECE_BYTES):
            size_bytes = min(_PIECE_BYTES, start + length - offset)
            chunks = [bytes(one) async for one in file.read(services, offset, size_bytes)]
            yield offset, b"".join(chunks)


async def _of_stream(source: OpenSource, first: int) -> AsyncIterator[tuple[int, bytes]]:
    """Yield (offset, bytes) of a source in pieces of one size, from `first` on. Pieces that were
    copied before may have ended anywhere. SourceBroken also for a source that is longer than it
    announced."""
    offset, waiting = 0, bytearray()
    async for chunk in source:
        skipped = min(len(chunk), max(0, first - offset))
        offset += skipped
        waiting += memoryview(chunk)[skipped:]
        if source.size_bytes is not None and offset + len(waiting) > source.size_bytes:
            raise SourceBroken("The copy source sent more than it announced.")
        while len(waiting) >= _PIECE_BYTES:
            piece = bytes(waiting[:_PIECE_BYTES])
            del waiting[:_PIECE_BYTES]
            yield offset, piece
            offset += len(piece)
    if waiting:
        yield offset, bytes(waiting)
