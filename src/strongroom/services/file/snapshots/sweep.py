"""Removing what no name leads to any more: deleted files, deleted shares, bytes that were replaced.

Lives here: the work of the two jobs, and the step that orders a file's sweep. Must not live here:
when jobs run (services/sweeper.py).

A file is dead when it has no node, since a deletion removes the node with the name. A job begins
only when every older commit has been completed or ruled out. So a file that is dead then stays
dead.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Key, Partition, Position, Ref, Step, Write
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.services.core.background import RemovalBatch
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.core.soft_deleted_places import SoftDeleteKind
from strongroom.services.file.opens.share_holds import ShareHolds
from strongroom.services.file.snapshots.past_sweep import record_pages, remove_file, sweep_node
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import DeletedShare, Job, JobKind
from strongroom.values import Purpose

_PAGE_RECORDS: Final = 200
_START: Final = Position(b"", b"")
DELETED_NAME_HEADER: Final = "x-ms-deleted-share-name"
DELETED_VERSION_HEADER: Final = "x-ms-deleted-share-version"
KEPT_SHARES: Final = SoftDeleteKind(
    noun="share",
    place=records.SHARE,
    kept=records.DELETED_SHARE,
    sweep_job=JobKind.SWEEP_SHARE,
    expiry_job=JobKind.EXPIRE_SHARE,
    missing=errors.SHARE_NOT_FOUND,
    exists=file_errors.SHARE_ALREADY_EXISTS,
    name_header=DELETED_NAME_HEADER,
)
"""The rules for keeping deleted shares (services/core/soft_deleted_places.py)."""


def sweep_step(generation: int, file_id: int, stamp: int) -> Step:
    """The step that stores a file's sweep job. It comes before the step that makes the sweep
    necessary."""
    ref = keys.job(stamp, stamp, JobKind.SWEEP_FILE)
    job = Job(JobKind.SWEEP_FILE, generation, str(file_id))
    return Step(ref.partition, (Write(ref.key, records.JOB.encode(job)),))


async def sweep_file(services: Services, removal: RemovalBatch, job: Job, ordered: int) -> bool:
    """Remove a dead file, or sweep the replaced bytes of a living one. `ordered`: the stamp of the
    commit that ordered the job. Returns whether it is done; False when it must wait for readers."""
    partition = keys.file(job.generation, int(job.blob))
    return await sweep_node(services, removal, partition, ordered)


async def sweep_share(services: Services, removal: RemovalBatch, job: Job, deleted: int) -> bool:
    """Remove all records and bytes of a share that was deleted at this stamp. Returns whether
    nothing is left."""
    account, name = job.token.split("/")
    place = await services.place(Service.FILE, account, name)
    if place is not None and place.generation == job.generation:
        return True  # the job was stored, but the deletion was never committed
    if await services.store.read([_kept(job)]) != [None]:
        return True  # soft-deleted by a later request, which has a job of its own
    is_done = await _remove_share(services, removal, job, deleted)
    if is_done:
        services.held.of(ShareHolds).release(job.generation)
    return is_done


async def expire_share(services: Services, job: Job, deleted: int) -> None:
    """Order the sweep of a soft-deleted share whose retention has ended, unless it was restored.
    Until that commit, the share is complete. `deleted`: the stamp of the deletion that ordered the
    job."""
    ref, reads = _kept(job), Reads()
    kept = reads.add(ref, records.DELETED_SHARE)
    await services.commit(_Expire(ref.partition, reads.refs, Purpose.FREEING, kept, job, deleted))
    services.work.set()


class _Expire(Decision[None], frozen=True):
    """A share that was restored and deleted again has another `deleted` stamp, so it is left
    alone."""

    kept: ReadOne[DeletedShare]
    job: Job
    deleted: int

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        kept = found[self.kept]
        if kept is None or kept.deleted != self.deleted:
            return Commit(None)
        ref = keys.job(stamp, stamp, JobKind.SWEEP_SHARE)
        job = msgspec.structs.replace(self.job, kind=JobKind.SWEEP_SHARE)
        order = Step(ref.partition, (Write(ref.key, records.JOB.encode(job)),))
        gone = [
            Write(share_keys.snapshot_key(kept.record.generation, one), None)
            for one in kept.record.snapshots
        ]
        ended = Step(self.partition, (Write(self.kept.ref.key, None), *gone))
        return Commit(None, (order, ended))


def _kept(job: Job) -> Ref:
    """The record of a soft-deleted share."""
    account, name = job.token.split("/")
    return keys.deleted_place(keys.share(account, name), job.generation)


async def _remove_share(services: Services, removal: RemovalBatch, job: Job, deleted: int) -> bool:
    is_done = True
    swept: Partition | None = None
    position: Position | None = _START
    while position is not None:
        page = await services.store.scan(keys.files(job.generation), position, None, _PAGE_RECORDS)
        position = page.resume
        for face in page.faces():
            partition = Partition(keys.files(job.generation), face.partition)
            if partition != swept:
                swept = partition
                is_done &= await remove_file(services, removal, partition, deleted)
    if is_done:
        await _remove_names(services, removal, keys.file_names(job.generation))
        await _remove_names(services, removal, keys.permissions(job.generation))
    await removal.commit()
    return is_done


async def _remove_names(services: Services, removal: RemovalBatch, partition: Partition) -> None:
    for hidden in (False, True):
        async for page in record_pages(services, partition, hidden):
            await removal.add(partition, [Key(hidden, item.name) for item in page])
