"""Snapshot Blob and Delete Blob, with the effects of snapshots and versions on a deletion.

Lives here: the decisions, and the list of snapshots that a deletion includes. Source: "Snapshot
Blob", "Delete Blob"; reference section 9.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from strongroom.engines.base import Partition, Ref
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import CONDITION_NOT_MET, StorageError, invalid_query
from strongroom.semantics.blob.immutability import Attempt
from strongroom.semantics.blob.snapshots import (
    DELETE_TYPE,
    PERMANENT,
    DeleteSnapshots,
    check_delete_target,
    deletion,
)
from strongroom.semantics.core.conditions import modified_since
from strongroom.services.blob.decisions import changing
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.states.displaced import (
    delete_head,
    delete_past,
    drop_past,
    head_to_modify,
    new_version,
    require_deletable,
    without_snapshots,
    without_version,
)
from strongroom.services.blob.states.heads import (
    refuse_archived,
    refuse_incremental,
    refuse_pending_copy,
)
from strongroom.services.blob.states.immutability import refuse, refuse_by_container
from strongroom.services.blob.states.retention import PAST_PER_COMMIT, drop_bodies, find_snapshots
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import UNDECODED, ReadAll, Reads
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.kinds import read_with
from strongroom.store.core import keys
from strongroom.store.core.keys import Past
from strongroom.values import Etag, Metadata


class SnapshotBlob(msgspec.Struct, frozen=True):
    """The snapshot's own metadata; empty = the blob's."""

    metadata: Metadata = ()


class SnapshotCreated(msgspec.Struct, frozen=True):
    """The snapshot's time in ticks, its ETag and Last-Modified. `version` is the new version id of
    the blob; 0 = it is no version."""

    snapshot: int
    etag: Etag
    modified: int
    version: int = 0


async def snapshot_blob(services: Services, call: Call[SnapshotBlob]) -> SnapshotCreated:
    """The snapshot shares the content of the blob, whose ETag stays. With versioning on, the blob
    becomes a new version."""
    partition, reads = keys.blob(generation_of(call), call.target.blob), Reads()
    body = reads.add_all([Ref(partition, key) for key in read_with(None)], UNDECODED)
    return await changing.change_blob(
        services,
        call,
        lambda state, change: _create_snapshot(call.input, body, state, change),
        reads,
    )


def _create_snapshot(
    request: SnapshotBlob, body_reads: ReadAll[bytes], state: BlobState, change: BlobChange
) -> SnapshotCreated:
    head = state.head
    assert head is not None
    refuse_pending_copy(head)
    refuse_archived(head)
    refuse_incremental(head)
    refuse_by_container(head, Attempt.CHANGE, state)
    if state.is_versioned:
        head = head_to_modify(head, state, change)
    # Otherwise the head stays the version that it is, if it is one. Its ETag stays: as no version,
    # it would later become one of the same id.
    taken = msgspec.structs.replace(
        head, lease=None, snapshots=0, version=0, versions=0, tagged=0, immutability=None
    )
    if request.metadata:
        taken = msgspec.structs.replace(
            taken, metadata=request.metadata, etag=change.stamp, modified=change.stamp
        )
    past = Past(change.stamp)
    change.put(keys.past(past), blob_records.BLOB.encode(taken))
    body = head.body.snapshot(change, state.found.records(body_reads), past)
    change.put_head(msgspec.structs.replace(head, body=body, snapshots=head.snapshots + 1))
    version = new_version(state, change)
    return SnapshotCreated(change.stamp, taken.shown_etag, taken.modified, version)


class DeleteBlob(msgspec.Struct, frozen=True):
    """The dates are in ticks: the tier must have been changed since, or must not."""

    snapshots: DeleteSnapshots | None = None
    tier_modified_since: int | None = None
    tier_unmodified_since: int | None = None

    def require_tier(self, record: BlobRecord) -> None:
        """A tier that was never changed counts from the creation."""
        changed = record.tier_changed or record.created
        since, until = self.tier_modified_since, self.tier_unmodified_since
        if since is not None and not modified_since(changed, since):
            raise StorageError(CONDITION_NOT_MET)
        if until is not None and modified_since(changed, until):
            raise StorageError(CONDITION_NOT_MET)


class Deleted(msgspec.Struct, frozen=True):
    is_permanent: bool


class _Stale(Exception):
    """Snapshots were taken or deleted since they were listed."""


async def delete_blob(services: Services, call: Call[DeleteBlob]) -> Deleted:
    """Delete the base blob, its snapshots, both, one snapshot, or one previous version.

    Base and snapshots are deleted in one commit. Of more than PAST_PER_COMMIT snapshots the oldest
    are deleted in earlier commits, each checked like the last. The first one also refuses what is
    protected among all that go. A later commit may be refused because the blob was written, leased
    or protected meanwhile. The earlier ones stay in effect.

    Module displaced.py decides whether a deleted state is kept.
    """
    option, target = call.input.snapshots, call.target
    check_delete_target(option, target.snapshot is not None, target.version is not None)
    if target.snapshot is not None or target.version is not None:
        one = functools.partial(_delete_one, call.input)
        return await changing.change_blob(services, call, one)
    if option is None:
        return await changing.change_blob(
            services, call, lambda state, change: _delete(call.input, (), state, change)
        )
    return await _delete_all(services, call)


def _delete_one(request: DeleteBlob, state: BlobState, change: BlobChange) -> Deleted:
    past, head, named = state.past, state.head, state.named
    assert named is not None
    if past is None:
        raise StorageError(blob_errors.OPERATION_NOT_ALLOWED_ON_ROOT_BLOB)
    request.require_tier(named)
    delete_past(past, named, state, change)
    stored_head = head or state.deleted_head
    if stored_head is not None and past.is_version:
        change.put_head(without_version(stored_head, named, state))
    elif head is not None:
        change.put_head(without_snapshots(head, [named], state))
    return Deleted(not state.retention_days)


async def _delete_all(services: Services, call: Call[DeleteBlob]) -> Deleted:
    is_first = True
    while True:
        listed = await _listed(services, call, with_protected=is_first)
        try:
            decide = _DeleteListed(call.input, listed).decide
            deleted = await changing.change_blob(services, call, decide)
        except _Stale:
            # The commit that changed the head has happened, so some request makes progress.
            continue
        if listed.is_all:
            return deleted
        is_first = False


class _Listed(NamedTuple):
    """The head's version, the oldest snapshots, and whether these are all. `protected` are some
    snapshots with a protection of their own, and those that a container's policy protects longest.
    They are listed if they were requested and the oldest are not all.

    Snapshots that are taken or deleted later give the head another version.
    """

    version: int | None
    snapshots: Sequence[tuple[Past, BlobRecord]]
    is_all: bool
    protected: Sequence[BlobRecord]


class _DeleteListed(msgspec.Struct, frozen=True):
    """Delete the listed snapshots and, when they are all, what else `given` says."""

    given: DeleteBlob
    listed: _Listed

    def decide(self, state: BlobState, change: BlobChange) -> Deleted:
        """Raises: _Stale when the list is out of date."""
        if state.head_version != self.listed.version:
            raise _Stale
        if self.listed.is_all:
            return _delete(self.given, self.listed.snapshots, state, change)
        for snapshot in self.listed.protected:
            refuse(snapshot, Attempt.DELETE, state)
        _delete_some(self.given, self.listed.snapshots, state, change)
        return Deleted(not state.retention_days)


async def _listed(services: Services, call: Call[Any], *, with_protected: bool) -> _Listed:
    partition = keys.blob(generation_of(call), call.target.blob)
    (head,) = await services.store.read([Ref(partition, keys.HEAD_KEY)])
    most = PAST_PER_COMMIT
    snapshots = await find_snapshots(
        services.store, partition, most + 1, lambda one: one.deletion is None
    )
    version = None if head is None else head.version
    is_all = len(snapshots) <= most
    protected: Sequence[BlobRecord] = ()
    if with_protected and not is_all:
        protected = await _protected(services, partition)
    return _Listed(version, snapshots[:most], is_all, protected)


async def _protected(services: Services, partition: Partition) -> Sequence[BlobRecord]:
    """A container's policy counts from the creation of a state, or from its last change."""
    newest: list[BlobRecord] = []

    def is_guarded(snapshot: BlobRecord) -> bool:
        if snapshot.deletion is not None:
            return False
        created = max((*newest[:1], snapshot), key=lambda one: one.created)
        newest[:] = created, max((*newest[1:], snapshot), key=lambda one: one.modified)
        return snapshot.immutability is not None

    guarded = await find_snapshots(services.store, partition, PAST_PER_COMMIT, is_guarded)
    return [*newest, *(snapshot for _, snapshot in guarded)]


def _delete_some(
    request: DeleteBlob,
    snapshots: Sequence[tuple[Past, BlobRecord]],
    state: BlobState,
    change: BlobChange,
) -> None:
    head = state.head
    assert head is not None
    request.require_tier(head)
    refuse_pending_copy(head)
    if deletion(request.snapshots, has_snapshots=True).base:
        require_deletable(head, state)
    for past, snapshot in snapshots:
        delete_past(past, snapshot, state, change)
    change.put_head(without_snapshots(head, [snapshot for _, snapshot in snapshots], state))


def _delete(
    request: DeleteBlob,
    snapshots: Sequence[tuple[Past, BlobRecord]],
    state: BlobState,
    change: BlobChange,
) -> Deleted:
    """Make the last commit. `snapshots` are all of the blob's, if `given` deletes them."""
    head = state.head
    assert head is not None
    request.require_tier(head)
    refuse_pending_copy(head)
    going = deletion(request.snapshots, head.snapshots > 0)
    if going.snapshots:
        for past, snapshot in snapshots:
            delete_past(past, snapshot, state, change)
    if going.base:
        change.end_upload()
        return Deleted(delete_head(head, state, change))
    if going.snapshots:
        change.put_head(without_snapshots(head, [snapshot for _, snapshot in snapshots], state))
    return Deleted(not state.retention_days)


async def delete_permanently(services: Services, call: Call[DeleteBlob]) -> Deleted:
    """With `deletetype=permanent`: only a soft-deleted snapshot or version."""
    request, target = call.input, call.target
    check_delete_target(request.snapshots, target.snapshot is not None, target.version is not None)
    if target.snapshot is None and target.version is None:
        raise _not_permanent("Only a snapshot or a version can be deleted permanently.")
    return await changing.change_blob(services, call, functools.partial(_delete_for_good, request))


def _delete_for_good(request: DeleteBlob, state: BlobState, change: BlobChange) -> Deleted:
    record, past = state.named, state.past
    head = state.head or state.deleted_head
    assert record is not None
    if past is None:
        raise StorageError(blob_errors.OPERATION_NOT_ALLOWED_ON_ROOT_BLOB)
    request.require_tier(record)
    if record.deletion is None:
        raise _not_permanent("It is not deleted yet: delete it without deletetype first.")
    if record.deletion.until <= state.now:
        raise StorageError(blob_errors.BLOB_NOT_FOUND)
    if not state.permits_permanent:
        text = "The account does not permit it: set AllowPermanentDelete in DeleteRetentionPolicy."
        raise _not_permanent(text)
    refuse(record, Attempt.DELETE, state)
    drop_past(past, record, change)
    if head is not None:
        drop_bodies(head, [record], change)
    return Deleted(is_permanent=True)


def _not_permanent(reason: str) -> StorageError:
    return invalid_query(DELETE_TYPE, PERMANENT, reason)
