"""Blobs and snapshots that were deleted and are kept: Undelete Blob, and the end of retention.

Lives here: the way back, and the job that drops what nobody asked for in time. Must not live here:
how a state comes to be kept (displaced.py), listings. Source: "Undelete Blob", "Soft delete for
blobs"; reference section 9.

Both handle many snapshots in several commits. A commit reads each record again that it changes, so
the two, and all other writes, may go on side by side. Nothing that was restored is dropped. From
the end of its retention on, nothing is restored. The job begins when no older commit can happen.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from strongroom import blob_errors
from strongroom.engines.base import Engine, Key, Partition
from strongroom.errors import StorageError
from strongroom.services.blob import access
from strongroom.services.blob.access import BlobState
from strongroom.services.blob.changes import BlobChange
from strongroom.services.blob.displaced import body_without
from strongroom.services.core.calls import Call
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.core import keys
from strongroom.store.core.records import Job
from strongroom.values import Purpose

# Each takes up to two writes of a commit, and room in its one record of what is retired.
SNAPSHOTS_PER_COMMIT: Final = 200
_PAGE_RECORDS: Final = 500


async def find_snapshots(
    store: Engine,
    partition: Partition,
    most: int,
    is_wanted: Callable[[BlobRecord], bool],
    behind: int = 0,
) -> list[tuple[int, BlobRecord]]:
    """The oldest snapshots of a blob that are wanted, by their ticks, at most `most`.

    Arguments:
        behind: only those that are younger than these ticks.
    """
    first, until = keys.snapshot_range()
    if behind:
        first = keys.snapshot(behind).name + b"\0"
    found: list[tuple[int, BlobRecord]] = []
    while len(found) < most:
        page = await store.read_range(partition, False, first, until, _PAGE_RECORDS)
        for item in page:
            ticks, snapshot = keys.snapshot_ticks(item.name), blob_records.BLOB.decode(item.value)
            if ticks is not None and is_wanted(snapshot):
                found.append((ticks, snapshot))
        if len(page) < _PAGE_RECORDS:
            break
        first = page[-1].name + b"\0"
    return found[:most]


async def undelete_blob(services: Services, call: Call[Any]) -> None:
    """Undelete Blob: the blob, if it is deleted, and all its deleted snapshots come back.

    The blob comes back first, then its snapshots, the oldest first: an attempt that was cut off is
    made complete by another one.

    Raises: StorageError BlobNotFound where neither the blob nor a deleted one is there.
    """
    await access.change_blob(services, call, _restore_head)
    partition, behind = keys.blob(generation_of(call), call.target.blob), 0
    most = SNAPSHOTS_PER_COMMIT
    while found := await find_snapshots(services.store, partition, most, _is_kept, behind):
        behind = found[-1][0]
        wanted = tuple(keys.snapshot(ticks) for ticks, _ in found)
        restore = functools.partial(_restore_snapshots, wanted)
        await access.change_blob(services, call, restore, wanted)


def _is_kept(snapshot: BlobRecord) -> bool:
    return snapshot.deletion is not None


def _restore_head(state: BlobState, change: BlobChange) -> None:
    if state.head is not None and state.head.committed:
        return
    gone = state.gone
    if gone is None or gone.deletion is None or gone.deletion.until <= state.now:
        raise StorageError(blob_errors.BLOB_NOT_FOUND)
    change.put_head(
        msgspec.structs.replace(gone, deletion=None, etag=change.stamp, modified=change.stamp)
    )


def _restore_snapshots(wanted: tuple[Key, ...], state: BlobState, change: BlobChange) -> None:
    if state.head is None:
        return  # deleted again meanwhile
    count = 0
    for key, _, snapshot in _kept(wanted, state):
        assert snapshot.deletion is not None
        if snapshot.deletion.until > state.now:
            restored = msgspec.structs.replace(snapshot, deletion=None)
            change.put(key, blob_records.BLOB.encode(restored))
            count += 1
    if count:
        head = state.head
        change.put_head(msgspec.structs.replace(head, snapshots=head.snapshots + count))


def _kept(wanted: tuple[Key, ...], state: BlobState) -> Iterator[tuple[Key, int, BlobRecord]]:
    """Those of the snapshots `wanted`, which were read, that are deleted and kept."""
    for key, record in zip(wanted, state.extra, strict=True):
        snapshot, ticks = blob_records.BLOB.of(record), keys.snapshot_ticks(key.name)
        if snapshot is not None and ticks is not None and snapshot.deletion is not None:
            yield key, ticks, snapshot


async def expire_blob(services: Services, job: Job, due: int) -> None:
    """Give up what of a blob is kept no longer than to `due`."""
    partition = keys.blob(job.generation, job.blob)

    def is_over(one: BlobRecord) -> bool:
        return one.deletion is not None and one.deletion.until <= due

    while True:
        found = await find_snapshots(services.store, partition, SNAPSHOTS_PER_COMMIT, is_over)
        wanted = tuple(keys.snapshot(ticks) for ticks, _ in found)

        def decide(state: BlobState, change: BlobChange, wanted: tuple[Key, ...] = wanted) -> None:
            if state.gone is not None and is_over(state.gone):
                change.put(keys.HEAD_KEY, None)
                state.gone.body.release(change, 0, alone=False)
            dropped: list[BlobRecord] = []
            for key, ticks, snapshot in _kept(wanted, state):
                if is_over(snapshot):
                    change.put(key, None)
                    snapshot.body.release(change, ticks, alone=False)
                    dropped.append(snapshot)
            if state.head is not None:
                body = body_without(state.head, dropped)
                if body != state.head.body:
                    change.put_head(msgspec.structs.replace(state.head, body=body))

        await access.change_unattended(
            services, job.generation, job.blob, decide, purpose=Purpose.FREEING, extra=wanted
        )
        if len(found) < SNAPSHOTS_PER_COMMIT:
            break
    services.work.set()
