"""Soft-deleted blobs, snapshots and versions: Undelete Blob, and the end of retention.

Lives here: the restore, and the job that drops states whose retention has ended. Source: "Undelete
Blob", "Soft delete for blobs", "Blob versioning"; reference section 9.

Both handle many snapshots and versions in several commits. Each commit reads the records that it
changes again, so both may run concurrently with each other and with all other writes. Nothing that
was restored is dropped. Nothing is restored after its retention has ended. The job starts when no
older commit can happen any more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from strongroom.engines.base import Engine, Partition, Ref
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError
from strongroom.services.blob.decisions import changing
from strongroom.services.blob.decisions.background_changes import change_in_background
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.states.displaced import body_without, drop_past
from strongroom.services.blob.states.immutability import check_new_blob_allowed
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import ReadAll, Reads
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import HEAD
from strongroom.store.core import keys
from strongroom.store.core.keys import Past
from strongroom.store.core.records import Job
from strongroom.values import Purpose

# Each takes up to two writes of a commit, and space in its single record of retired bodies.
PAST_PER_COMMIT: Final = 200
_PAGE_RECORDS: Final = 500


IsWanted = Callable[[BlobRecord], bool]
Found = list[tuple[Past, BlobRecord]]


async def find_snapshots(
    store: Engine, partition: Partition, most: int, is_wanted: IsWanted, newer_than: int = 0
) -> Found:
    """Return the oldest snapshots of a blob that match `is_wanted`, at most `most`. They are
    younger than `newer_than` (ticks)."""
    first, until = keys.snapshot_range()
    if newer_than:
        first = keys.snapshot(newer_than).name + b"\0"
    return await _find(store, partition, first, until, most, is_wanted)


async def find_versions(
    store: Engine, partition: Partition, most: int, is_wanted: IsWanted, newer_than: int = 0
) -> Found:
    """Return the oldest previous versions of a blob that match; see `find_snapshots`."""
    first, until = keys.version_range(newer_than + 1)
    return await _find(store, partition, first, until, most, is_wanted)


async def _find(
    store: Engine, partition: Partition, first: bytes, until: bytes, most: int, is_wanted: IsWanted
) -> Found:
    hidden = first[:1] == keys.VERSION
    states: Found = []
    while len(states) < most:
        page = await store.read_range(partition, hidden, first, until, _PAGE_RECORDS)
        for item in page:
            past, record = keys.past_of(item.name), blob_records.BLOB.decode(item.value)
            if past is not None and is_wanted(record):
                states.append((past, record))
        if len(page) < _PAGE_RECORDS:
            break
        first = page[-1].name + b"\0"
    return states[:most]


async def undelete_blob(services: Services, call: Call[Any]) -> None:
    """Restore the blob, if it is deleted, and its deleted snapshots and versions.

    Previous versions are restored even without a blob, snapshots are not. The blob is restored
    first, then its snapshots and versions, the oldest first. Another attempt completes one that was
    interrupted.
    """
    await changing.change_blob(services, call, _restore_head)
    partition = keys.blob(generation_of(call), call.target.blob)
    for find in (find_snapshots, find_versions):
        newer_than = 0
        while states := await find(
            services.store, partition, PAST_PER_COMMIT, _is_kept, newer_than
        ):
            newer_than = states[-1][0].ticks
            reads = Reads()
            restore = functools.partial(_restore, _add_states(reads, partition, states))
            await changing.change_blob(services, call, restore, reads)


def _is_kept(record: BlobRecord) -> bool:
    return record.deletion is not None


def _restore_head(state: BlobState, change: BlobChange) -> None:
    if state.head is not None and state.head.committed:
        return
    check_new_blob_allowed(state)
    deleted_head = state.deleted_head
    if (
        deleted_head is None
        or deleted_head.deletion is None
        or deleted_head.deletion.until <= state.now
    ):
        if state.versions:
            return
        raise StorageError(blob_errors.BLOB_NOT_FOUND)
    change.put_head(
        msgspec.structs.replace(
            deleted_head, deletion=None, etag=change.stamp, modified=change.stamp
        )
    )


def _add_states(reads: Reads, partition: Partition, states: Found) -> ReadAll[BlobRecord]:
    return reads.add_all([Ref(partition, keys.past(past)) for past, _ in states], blob_records.BLOB)


def _restore(states: ReadAll[BlobRecord], state: BlobState, change: BlobChange) -> None:
    check_new_blob_allowed(state)
    head, count = state.head, 0
    for past, record in _kept(states, state):
        assert record.deletion is not None
        if record.deletion.until <= state.now or (head is None and not past.is_version):
            continue
        change.put_state(past, record, msgspec.structs.replace(record, deletion=None))
        count += not past.is_version
    if count and head is not None:
        change.put_head(msgspec.structs.replace(head, snapshots=head.snapshots + count))


def _kept(states: ReadAll[BlobRecord], state: BlobState) -> Iterator[tuple[Past, BlobRecord]]:
    """Yield those of the snapshots and versions that are soft-deleted."""
    for ref, record in zip(states.refs, state.found[states], strict=True):
        past = keys.past_of(ref.key.name)
        if record is not None and past is not None and record.deletion is not None:
            yield past, record


async def expire_blob(services: Services, job: Job, due: int) -> None:
    """Drop the soft-deleted states of a blob whose retention ends at `due` or before."""
    partition = keys.blob(job.generation, job.blob)

    def is_over(one: BlobRecord) -> bool:
        return one.deletion is not None and one.deletion.until <= due

    for find in (find_snapshots, find_versions):
        states: Found = []
        while not states or len(states) == PAST_PER_COMMIT:
            states = await find(services.store, partition, PAST_PER_COMMIT, is_over)
            reads = Reads()
            drop = functools.partial(_drop, _add_states(reads, partition, states), is_over)
            await change_in_background(
                services, job.generation, job.blob, drop, purpose=Purpose.FREEING, further=reads
            )
            if not states:
                break
    services.work.set()


def _drop(
    states: ReadAll[BlobRecord], is_over: IsWanted, state: BlobState, change: BlobChange
) -> None:
    """Drop the deleted head, and those of the snapshots and versions, that have expired."""
    deleted_head, dropped = state.deleted_head, list[BlobRecord]()
    head = state.head or deleted_head
    for past, record in _kept(states, state):
        if is_over(record):
            drop_past(past, record, change)
            dropped.append(record)
    if deleted_head is not None and is_over(deleted_head):
        change.remove_head()
        deleted_head.body.release(change, HEAD, alone=False)
    elif head is not None:
        drop_bodies(head, dropped, change)


def drop_bodies(head: BlobRecord, dropped: Sequence[BlobRecord], change: BlobChange) -> None:
    """Write the head, which may be a soft-deleted one, with its body adjusted to the loss of these
    snapshots and versions."""
    body = body_without(head, dropped)
    if body != head.body:
        change.put_head(msgspec.structs.replace(head, body=body))
