"""Pending copies to files: the work that continues after Copy File was answered, and after a
restart.

Lives here: moving the bytes in commits of bounded size, and the last commit. Only a copy that is
still pending may commit, so an abort always wins. Must not live here: the requests
(copies/copying.py), the frame of every pending copy (services/core/copies/pending.py). Source:
"Copy File", "Remarks".

Copied bytes lie beyond the file's length, which is 0 until the last commit. Nobody else changes the
file meanwhile. A piece of zeros is not written: it stays a hole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines.base import Commit, Step, Write
from strongroom.errors import core as errors
from strongroom.semantics.core import copies
from strongroom.semantics.core.copies import Copy
from strongroom.services.core.copies.pending import NotPending, PendingCopy, run_pending
from strongroom.services.core.copies.sources import OpenSource, SourceBroken
from strongroom.services.core.decisions import UNDECODED, Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.reading import OWN, FileSource, OpenFile
from strongroom.services.file.node_writes import LengthReads, recounted
from strongroom.services.file.past_states import with_past_states
from strongroom.services.file.past_sweep import living_snapshots
from strongroom.services.file.paths import PathChanged
from strongroom.services.file.readers import FileReaders, pins_of
from strongroom.services.file.sweep import sweep_bytes, sweep_step
from strongroom.store.core import extents, keys, records
from strongroom.store.core.extents import Backlog, Draft, MapPlace, Mutation, Outdated, Pins
from strongroom.store.core.records import DeletedShare, Job, ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.values import Purpose

# The bytes of one commit; the map takes up to twice as many.
_PIECE_BYTES: Final = 4 * limits.MIB
_SWEEP_S: Final = 0.05
_Edit = Callable[[FileRecord, Copy, int], FileRecord]
"""Returns the new attributes, from the attributes, the pending copy and the stamp. It is pure."""


async def run_copy(services: Services, job: Job) -> None:
    """Carry a pending copy out until it succeeds or fails. The job can be deleted afterwards.

    Raises: the engine's errors (the job is then tried again).
    """
    assert job.order is not None
    destination, _, name = job.order.destination.rpartition("/")
    held = msgspec.structs.replace(
        job, order=msgspec.structs.replace(job.order, destination=destination)
    )
    await run_pending(services, held, name, _PendingFile(services, job), OWN)


class _PendingFile(PendingCopy):
    """The pending copy to a file."""

    def __init__(self, services: Services, job: Job) -> None:
        assert job.order is not None
        self._services = services
        self._job = job
        self._order = job.order
        self._place = MapPlace(keys.file(job.generation, int(job.blob)), int(job.blob))

    async def begin(self) -> None:
        """See PendingCopy.begin."""
        if await self._copy() is None:
            raise NotPending

    async def copy(self, source: OpenSource) -> None:
        """See PendingCopy.copy."""
        first = await self._first(source)
        end = first
        file = source.file if isinstance(source, OpenFile) else None
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
        """Return the offset where the copy continues. Content of another server may have changed:
        it is read from its start again, and the bytes copied before are deleted."""
        copy = await self._copy()
        if copy is None:
            raise NotPending
        if not copy.copied_bytes or not self._order.url:
            return copy.copied_bytes
        await self._change(lambda record, copy, stamp: record, self._emptied)
        return 0

    async def _put(self, offset: int, data: bytes) -> None:
        """Commit a piece, and the progress that the copy makes by it."""

        def advance(record: FileRecord, copy: Copy, stamp: int) -> FileRecord:
            known = max(copy.total_bytes, offset + len(data))
            advanced = copies.advanced(
                msgspec.structs.replace(copy, total_bytes=known), offset + len(data)
            )
            return msgspec.structs.replace(record, copy=advanced)

        if data.count(0) == len(data):
            await self._change(advance)
            return
        store = self._services.store
        draft = await extents.received(store, self._place, offset, data)
        await self._change(advance, lambda: draft)

    async def _complete(self, source: OpenSource, size_bytes: int) -> None:
        metadata = self._order.metadata

        def complete(record: FileRecord, copy: Copy, stamp: int) -> FileRecord:
            done = msgspec.structs.replace(copy, total_bytes=size_bytes)
            # The source may have been replaced before a restart. Bytes, properties and metadata
            # that were read together belong together.
            return msgspec.structs.replace(
                record,
                etag=stamp,
                modified=stamp,
                size_bytes=size_bytes,
                properties=source.properties,
                metadata=source.metadata if metadata is None else metadata,
                copy=copies.succeeded(done, stamp),
            )

        await self._change(complete)

    async def fail(self, reason: str) -> None:
        """See PendingCopy.fail."""

        def give_up(record: FileRecord, copy: Copy, stamp: int) -> FileRecord:
            ended = copies.failed(copy, reason, stamp)
            return msgspec.structs.replace(record, etag=stamp, modified=stamp, copy=ended)

        await self._change(give_up, self._emptied)

    def _emptied(self) -> Draft:
        return extents.clear(self._services.store, self._place, 0, limits.FILE_BYTES_MAX)

    async def _copy(self) -> Copy | None:
        """Return the job's copy; None = it is not pending any more."""
        ref = keys.file_attributes(self._job.generation, self._place.number)
        (found,) = await self._services.store.read([ref])
        return _pending(file_records.FILE.of(found), self._job.token)

    async def _change(self, edit: _Edit, draft_of: Callable[[], Draft] | None = None) -> None:
        """Commit a change of the file while its record says that this very copy is pending.

        Arguments:
            draft_of: the change of its bytes, if there is one.

        Raises: NotPending.
        """
        services, place = self._services, self._place
        maps = services.held.of(FileReaders).maps
        if draft_of is None:
            try:
                await services.commit(self._decision(edit, None))
            except PathChanged:
                raise NotPending from None  # its name is gone
            return
        async with draft_of() as draft:
            while True:
                mutation = await draft.prepare(await self._newest())
                try:
                    with maps.mutating(place.partition):
                        await services.commit(self._decision(edit, mutation))
                except Outdated:
                    continue
                except Backlog:
                    if not await sweep_bytes(services, place.partition, place.number):
                        await asyncio.sleep(_SWEEP_S)
                    continue
                break
        services.work.set()

    async def _newest(self) -> int:
        """Return the stamp of the share's newest snapshot; 0 = it has none."""
        living = await living_snapshots(self._services, self._job.generation)
        return max(living, default=0)

    def _decision(self, edit: _Edit, mutation: Mutation | None) -> _Change:
        services, place = self._services, self._place
        account, share, _ = self._order.destination.split("/", 2)
        ref, generation, reads = keys.share(account, share), self._job.generation, Reads()
        attributes = keys.file_attributes(generation, place.number)

        def pins(share: ShareRecord, stamp: int) -> Pins:
            return pins_of(services, share, place.partition, stamp)

        return _Change(
            place.partition,
            reads.refs,
            Purpose.GROWTH,
            job=self._job,
            edit=edit,
            mutation=mutation,
            pins=pins,
            share=reads.add(ref, records.SHARE),
            kept=reads.add(keys.deleted_place(ref, generation), records.DELETED_SHARE),
            attributes=reads.add(attributes, file_records.FILE),
            length=LengthReads.of(reads, generation, place.number),
            leaves=reads.add_all(() if mutation is None else mutation.reads, UNDECODED),
        )


class _Change(Decision[None], frozen=True):
    """The decision that changes the destination file of a pending copy.

    Attributes:
        mutation: the change of the file's bytes, if there is one.
        pins: (the share, the commit's stamp) -> the snapshots and readers that may read earlier
            states.
        kept: the share, if it is soft-deleted.
        leaves: the reads of `mutation`.
    """

    job: Job
    edit: _Edit
    mutation: Mutation | None
    pins: Callable[[ShareRecord, int], Pins]
    share: ReadOne[ShareRecord]
    kept: ReadOne[DeletedShare]
    attributes: ReadOne[FileRecord]
    length: LengthReads
    leaves: ReadAll[bytes]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        """See Decision.decide. Raises: NotPending, Outdated, Backlog."""
        share, record = self._share(found), found[self.attributes]
        copy = _pending(record, self.job.token)
        if record is None or copy is None:
            raise NotPending
        after = self.edit(record, copy, stamp)
        own = Write(keys.FILE_KEY, file_records.FILE.encode(after))
        if self.mutation is None:
            counted = recounted(share, found, self.length, after.size_bytes)
            made = Commit(None, (*counted, Step(self.partition, (own,))))
            return with_past_states(share, self.reads, found, made, stamp)
        pins = self.pins(share, stamp)
        changed = self.mutation.decide(found.records(self.leaves), stamp, pins)
        step = Step(self.partition, (own, *changed.writes), changed.adopt, changed.drop)
        steps: tuple[Step, ...] = (step,)
        if changed.has_garbage:
            steps = (sweep_step(self.job.generation, int(self.job.blob), stamp), step)
        return with_past_states(share, self.reads, found, Commit(None, steps), stamp)

    def _share(self, found: Found) -> ShareRecord:
        """Return the share. A soft-deleted share counts too, so that its copy is not pending for
        ever after it is restored. Raises: NotPending."""
        share, kept = found[self.share], found[self.kept]
        if share is not None and share.generation == self.job.generation:
            return share
        if kept is None:
            raise NotPending
        return kept.record


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
    """Yield (offset, bytes) of a source in pieces of one size. Pieces before `first` are left out.

    Raises: SourceBroken, also for a source that is longer than it announced.
    """
    offset, waiting = 0, bytearray()
    async for chunk in source:
        waiting += chunk
        if source.size_bytes is not None and offset + len(waiting) > source.size_bytes:
            raise SourceBroken("The copy source sent more than it announced.")
        while len(waiting) >= _PIECE_BYTES:
            piece = bytes(waiting[:_PIECE_BYTES])
            del waiting[:_PIECE_BYTES]
            if offset >= first:
                yield offset, piece
            offset += len(piece)
    if waiting and offset >= first:
        yield offset, bytes(waiting)
