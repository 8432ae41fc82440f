"""The work of an incremental copy: from the changes of a snapshot to a snapshot of the destination.

Lives here: which pages are written and cleared, in commits of bounded size, and the last commit,
which takes the snapshot. Source: "Incremental Copy Blob".

The destination itself cannot be read, so its intermediate states are invisible. Its snapshot is
taken when the copy is complete. A copy that starts again repeats the same writes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from strongroom import limits
from strongroom.engines.base import Commit, Ref
from strongroom.semantics.blob.pages import IncrementalCopy
from strongroom.semantics.core import copies
from strongroom.semantics.core.copies import Copy
from strongroom.services.blob.copies.sources import OpenBlob, PageSource
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.sweep import sweep_head_body
from strongroom.services.core.copies.pending import NotPending
from strongroom.services.core.decisions import UNDECODED, Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import Body
from strongroom.store.blob.bodies.pages import (
    are_of_one_map,
    changed,
    emptied,
    list_to_copy,
    map_of,
    newest_snapshot,
    read_pages,
    take_change,
)
from strongroom.store.blob.bodies.readers import Readers
from strongroom.store.core import extents, keys, records
from strongroom.store.core.extents import Backlog, Draft, Mutation, Outdated, Pins, Range
from strongroom.store.core.keys import Past
from strongroom.store.core.records import ContainerRecord, Job
from strongroom.values import Purpose

_Edit = Callable[[BlobRecord, Copy, BlobChange], BlobRecord]


async def run_incremental(services: Services, job: Job, source: OpenBlob) -> None:
    """Run a pending copy to its end. `source` is the snapshot, with a registered reader."""
    run = _IncrementalCopyRun(services, services.held.of(Readers), job, source)
    async with run.previous() as before:
        if before is None:
            # The present content of the destination is unknown: start with a new map and copy all
            # of the source.
            await run.edit(_emptied)
        await run.write_changes(before)
    await run.resize()
    await run.edit(run.finished)


def _emptied(head: BlobRecord, copy: Copy, change: BlobChange) -> BlobRecord:
    return msgspec.structs.replace(head, size_bytes=0, body=emptied(head.body, change))


class _IncrementalCopyRun:
    def __init__(self, services: Services, readers: Readers, job: Job, source: OpenBlob) -> None:
        assert source.page is not None and job.order is not None
        self._services = services
        self._readers = readers
        self._job = job
        self._order = job.order
        self._source = source
        self._page: PageSource = source.page
        self._size_bytes = source.size_bytes or 0
        self._partition = keys.blob(job.generation, job.blob)

    @asynccontextmanager
    async def previous(self) -> AsyncIterator[Body | None]:
        """Yield the body of the source snapshot that was copied last, with a registered reader.

        None = that snapshot is gone, or there was none.
        """
        services, partition = self._services, self._page.place.partition
        reading = self._readers.begin(partition, services.store.gateways)
        try:
            await reading.wait_for_mutations()
            copied = _incremental(await self._head()).copied
            refs = [Ref(partition, keys.snapshot(copied))]
            (record,) = await services.store.read(refs) if copied else [None]
            before = blob_records.BLOB.of(record)
            body = None if before is None or before.page is None else before.body
            if body is not None and not are_of_one_map(body, self._page.body):
                body = None
            reading.set_position(0 if body is None else body.position)
            yield body
        finally:
            reading.end()

    async def _head(self) -> BlobRecord:
        (record,) = await self._services.store.read([Ref(self._partition, keys.HEAD_KEY)])
        head = blob_records.BLOB.of(record)
        if head is None or head.copy is None or head.copy.id != self._job.token:
            raise NotPending
        return head

    async def write_changes(self, before: Body | None) -> None:
        """Write and clear the pages that have changed in the source."""
        resume: int | None = 0
        while resume is not None:
            part = await list_to_copy(
                self._page.place, before, self._page.body, resume, self._size_bytes
            )
            for one in part.ranges:
                await self._copy_range(one)
            resume = part.resume

    async def _copy_range(self, one: Range) -> None:
        store = self._services.store
        place = map_of((await self._head()).body, self._partition)
        if one.is_clear:
            await self._apply(extents.clear(store, place, one.start, one.end - one.start))
            return
        start = one.start
        while start < one.end:
            length = min(extents.WRITE_BYTES_MAX, one.end - start)
            pieces = read_pages(self._page.place, self._page.body, start, length)
            await self._apply(await extents.receive(store, place, start, pieces, length))
            start += length

    async def resize(self) -> None:
        """Clear all pages beyond the source's end. A copy of a longer snapshot that did not end may
        have written some beyond the end of the destination too."""
        place = map_of((await self._head()).body, self._partition)
        most = limits.PAGE_BLOB_BYTES_MAX
        await self._apply(extents.resize(self._services.store, place, most, self._size_bytes))

    async def _apply(self, draft: Draft) -> None:
        async with draft:
            while True:
                newest = newest_snapshot((await self._head()).body)
                try:
                    await self._commit(await draft.prepare(newest), _unchanged)
                    return
                except Outdated:
                    continue
                except Backlog:
                    await sweep_head_body(self._services, self._partition)

    async def edit(self, edit: _Edit) -> None:
        """Change the head while the copy is pending. Raises: NotPending."""
        await self._commit(None, edit)

    async def _commit(self, mutation: Mutation | None, edit: _Edit) -> None:
        services, order = self._services, self._order
        maps, reads = self._readers.maps, Reads()

        def reader(stamp: int) -> int:
            if services.store.gateways.is_alone:
                return maps.pins(self._partition, 0).reader
            return stamp

        decision = _Decided(
            self._partition,
            reads.refs,
            Purpose.GROWTH,
            job=self._job,
            head=reads.add(Ref(self._partition, keys.HEAD_KEY), blob_records.BLOB),
            place=reads.add(keys.container(*order.destination.split("/")), records.CONTAINER),
            leaves=reads.add_all(() if mutation is None else mutation.reads, UNDECODED),
            mutation=mutation,
            edit=edit,
            reader=reader,
        )
        with maps.mutating(self._partition):
            await services.commit(decision)

    def finished(self, head: BlobRecord, copy: Copy, change: BlobChange) -> BlobRecord:
        """Return the head of the completed copy. A snapshot of it is taken in the same commit."""
        source, order = self._source, self._order
        assert head.page is not None and order.snapshot is not None
        made = msgspec.structs.replace(
            _incremental(head), snapshot=change.stamp, copied=order.snapshot
        )
        number = self._page.state.sequence_number
        page = msgspec.structs.replace(head.page, sequence_number=number, incremental=made)
        done = msgspec.structs.replace(copy, total_bytes=self._size_bytes)
        ended = msgspec.structs.replace(
            head,
            etag=change.stamp,
            modified=change.stamp,
            size_bytes=self._size_bytes,
            properties=source.properties,
            metadata=source.metadata,
            copy=copies.succeeded(done, change.stamp),
            page=page,
        )
        taken = msgspec.structs.replace(
            ended, lease=None, snapshots=0, version=0, versions=0, immutability=None
        )
        past = Past(change.stamp)
        change.put(keys.past(past), blob_records.BLOB.encode(taken))
        body = head.body.snapshot(change, (), past)
        return msgspec.structs.replace(ended, body=body, snapshots=head.snapshots + 1)


def _unchanged(head: BlobRecord, copy: Copy, change: BlobChange) -> BlobRecord:
    return head


def _incremental(head: BlobRecord) -> IncrementalCopy:
    if head.page is None or head.page.incremental is None:
        raise NotPending
    return head.page.incremental


class _Decided(Decision[None], frozen=True):
    """One commit of a copy that is still pending in an existing container; `leaves` are the reads
    of the mutation."""

    job: Job
    head: ReadOne[BlobRecord]
    place: ReadOne[ContainerRecord]
    leaves: ReadAll[bytes]
    mutation: Mutation | None
    edit: _Edit
    reader: Callable[[int], int]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        """Raises: NotPending, Outdated, Backlog."""
        head, place = found[self.head], found[self.place]
        if place is None or place.generation != self.job.generation:
            raise NotPending
        if head is None or head.copy is None or head.copy.id != self.job.token:
            raise NotPending
        if not copies.is_pending(head.copy):
            raise NotPending
        job = self.job
        change = BlobChange(self.partition, job.generation, job.blob, stamp, head, None)
        if self.mutation is not None:
            pins = Pins(head.snapshots or int(head.shares), self.reader(stamp))
            leaves = found.records(self.leaves)
            body, written = changed(head.body, self.mutation, leaves, stamp, pins)
            take_change(change, written)
            if written.has_garbage:
                change.sweep()
            head = msgspec.structs.replace(head, body=body)
        assert head.copy is not None
        change.put_head(self.edit(head, head.copy, change))
        return Commit(None, change.steps())
