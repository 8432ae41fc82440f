"""Snapshot Share, and the deletion of snapshots and of shares that have some.

Must not live here: what a commit keeps for snapshots, and how they are read
(snapshots/past_states.py). Source: "Snapshot Share", "Delete Share"; reference file.md 2.

A snapshot is identified by the stamp of its commit. The stamp is in the share's record, and in a
record of the snapshot's own beside it. That record holds the values of Get Share Properties, and
the snapshot's lease. Both records change together. A further record, among the share's names, says
which share has this generation, so that a sweep finds the snapshots.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from strongroom.engines.base import Commit, Ref, Step, Write
from strongroom.engines.endings import to_its_end
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError, invalid_query
from strongroom.semantics.core import lease as leases
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.places import generation_of, place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.core.soft_deleted_places import PlaceDeletion
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.opens.share_holds import require_share
from strongroom.services.file.snapshots.past_states import require_snapshot
from strongroom.services.file.snapshots.sweep import KEPT_SHARES
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import DeletedShare, Job, JobKind, ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import NamedRecord
from strongroom.values import Metadata

SNAPSHOTS_MAX: Final = 200


class DeletedSnapshots(enum.Enum):
    """The values of x-ms-delete-snapshots."""

    INCLUDE = "include"
    INCLUDE_LEASED = "include-leased"


class SnapshotShare(msgspec.Struct, frozen=True):
    """Without metadata the snapshot has the share's."""

    metadata: Metadata = ()


class DeleteShare(msgspec.Struct, frozen=True):
    """`snapshots` None: x-ms-delete-snapshots is not given, so the share must have no snapshots, or
    the request names one."""

    snapshots: DeletedSnapshots | None = None


class ShareSnapshotTaken(msgspec.Struct, frozen=True):
    """`etag` and `modified` are stamps; `snapshot` is its time in ticks."""

    etag: int
    modified: int
    snapshot: int


def snapshot_ref(call: Call[Any], stamp: int) -> Ref:
    """The address of a snapshot's record, for the share that a request names."""
    target, generation = call.target, 0 if call.place is None else call.place.generation
    return share_keys.share_snapshot(target.account, target.container, generation, stamp)


async def snapshot_share(services: Services, call: Call[SnapshotShare]) -> ShareSnapshotTaken:
    """Preserve the present state of the share's files, by one commit. ServerBusy when another
    gateway serves the share: its commits and the snapshot would have no order."""
    await require_share(services, generation_of(call))
    reads = Reads()
    share = reads.add(place_ref(call), records.SHARE)
    purpose, call = call.rule.purpose, call.with_pure_authorization()
    decision = _Snapshot(share.ref.partition, reads.refs, purpose, call, share)
    # The share may not move to another gateway before.
    return await to_its_end(services.commit(decision))


class _Snapshot(Decision[ShareSnapshotTaken], frozen=True):
    call: Call[SnapshotShare]
    share: ReadOne[ShareRecord]

    def decide(self, found: Found, stamp: int) -> Commit[ShareSnapshotTaken]:
        share, metadata = place_in(self.call, found, self.share), self.call.input.metadata
        if len(share.snapshots) >= SNAPSHOTS_MAX:
            raise StorageError(file_errors.SHARE_SNAPSHOT_COUNT_EXCEEDED)
        taken = msgspec.structs.replace(share, snapshots=(), lost=0, lease=None, policies=())
        if metadata:
            taken = msgspec.structs.replace(taken, metadata=metadata, etag=stamp, modified=stamp)
        after = msgspec.structs.replace(share, snapshots=(*share.snapshots, stamp))
        target = self.call.target
        named = NamedRecord(target.account, target.container)
        name = share_keys.share_named(share.generation)
        steps = (
            Step(name.partition, (Write(name.key, file_records.NAMED.encode(named)),)),
            Step(
                self.partition,
                (
                    Write(self.share.ref.key, records.SHARE.encode(after)),
                    Write(
                        share_keys.snapshot_key(share.generation, stamp),
                        records.SHARE.encode(taken),
                    ),
                ),
            ),
        )
        return Commit(ShareSnapshotTaken(taken.etag, taken.modified, stamp), steps)


async def delete_share(services: Services, call: Call[DeleteShare]) -> None:
    """Delete a share, or a snapshot of it. One record is removed, and with it all files become
    invisible; a job sweeps their bytes.

    With soft delete, the share is retained for a while; see services/core/soft_deleted_places.py.
    InvalidQueryParameterValue for snapshots of a snapshot.
    """
    stamp = call.target.snapshot
    if stamp is not None:
        if call.input.snapshots is not None:
            reason = "x-ms-delete-snapshots is for the share itself."
            raise invalid_query("sharesnapshot", "", reason)
        reads = Reads()
        share = reads.add(place_ref(call), records.SHARE)
        taken = reads.add(snapshot_ref(call, stamp), records.SHARE)
        partition, purpose = share.ref.partition, call.rule.purpose
        call = call.with_pure_authorization()
        await services.commit(
            _DeleteSnapshot(partition, reads.refs, purpose, call, share, taken, stamp)
        )
    else:
        await _delete_share(services, call)
    services.work.set()


class _DeleteSnapshot(Decision[None], frozen=True):
    call: Call[DeleteShare]
    share: ReadOne[ShareRecord]
    taken: ReadOne[ShareRecord]
    snapshot: int

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        call, snapshot = self.call, self.snapshot
        share, taken = require_snapshot(call, found.record(self.share)), found[self.taken]
        if taken is not None:
            leases.guard(taken.lease, call.terms.lease_id, call.rule.lease, stamp)
        left = tuple(one for one in share.snapshots if one != snapshot)
        after = msgspec.structs.replace(share, snapshots=left, lost=max(share.lost, snapshot))
        job = keys.job(stamp, stamp, JobKind.SWEEP_SNAPSHOT)
        order = Job(JobKind.SWEEP_SNAPSHOT, share.generation)
        return Commit(
            None,
            (
                # The job comes first: after a crash in between, it finds all snapshots living.
                Step(job.partition, (Write(job.key, records.JOB.encode(order)),)),
                Step(
                    self.partition,
                    (
                        Write(self.share.ref.key, records.SHARE.encode(after)),
                        Write(self.taken.ref.key, None),
                    ),
                ),
            ),
        )


class _SnapshotsChanged(Exception):
    """Snapshots were taken or deleted since the share was read."""


async def _delete_share(services: Services, call: Call[DeleteShare]) -> None:
    days = services.switches(call.target.account).share_retention_days
    deletion = PlaceDeletion(KEPT_SHARES, call, days)
    while True:
        reads = Reads()
        share = reads.add(place_ref(call), records.SHARE)
        seen = place_in(call, await services.read(reads), share)
        snapshots = [snapshot_ref(call, one) for one in seen.snapshots]
        decision = _DeleteShare(
            share.ref.partition,
            reads.refs,
            call.rule.purpose,
            call=call.with_pure_authorization(),
            share=share,
            taken=reads.add_all(snapshots, records.SHARE),
            snapshots=seen.snapshots,
            deletion=deletion,
            is_kept=days > 0,
        )
        try:
            await services.commit(decision)
        except _SnapshotsChanged:
            continue
        # Nobody can connect to a deleted share, so clients of durable handles cannot reconnect.
        services.held.of(Opens).durable.close_disconnected_in_share(seen.generation)
        return


class _DeleteShare(Decision[None], frozen=True):
    """The snapshots are deleted too. `is_kept`: the share is soft-deleted, so that it can be
    restored with its snapshots."""

    call: Call[DeleteShare]
    share: ReadOne[ShareRecord]
    taken: ReadAll[ShareRecord]
    snapshots: tuple[int, ...]
    deletion: PlaceDeletion
    is_kept: bool

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        call, share = self.call, place_in(self.call, found, self.share)
        leases.guard(share.lease, call.terms.lease_id, call.rule.lease, stamp)
        if share.snapshots != self.snapshots:
            raise _SnapshotsChanged
        if share.snapshots and call.input.snapshots is None:
            raise StorageError(file_errors.SHARE_HAS_SNAPSHOTS)
        if call.input.snapshots is not DeletedSnapshots.INCLUDE_LEASED:
            _refuse_leased(found[self.taken], stamp)
        unleased = msgspec.structs.replace(share, lease=None)

        def kept(until: int) -> DeletedShare:
            return DeletedShare(unleased, stamp, until)

        gone = () if self.is_kept else snapshots_gone(share)
        return Commit(None, self.deletion.steps(share.generation, kept, stamp, *gone))


def _refuse_leased(snapshots: Iterable[ShareRecord | None], now: int) -> None:
    for taken in snapshots:
        if taken is not None and leases.status(taken.lease, now) == "locked":
            raise StorageError(file_errors.DELETE_SHARE_WHEN_SNAPSHOT_LEASED)


def snapshots_gone(share: ShareRecord) -> tuple[Write, ...]:
    """The writes that remove the records of all snapshots of a share."""
    return tuple(
        Write(share_keys.snapshot_key(share.generation, one), None) for one in share.snapshots
    )
