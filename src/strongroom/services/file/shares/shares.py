"""Create, read, change and delete a share: its properties, metadata and stored access policies.

Lives here: the operations on a share's own record but for its lease (rest/leasing.py). Source:
"Operations on shares" of the REST reference; reference file.md 2, leases.md 7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from strongroom.engines.base import Commit
from strongroom.errors import file as file_errors
from strongroom.semantics.core import lease as leases
from strongroom.semantics.file import names, shares
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.place_records import SetPlaceMetadata, create_place, written
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.core.soft_deleted_places import RestorePlace, restore_place
from strongroom.services.file.names.node_writes import usage_bytes
from strongroom.services.file.shares.share_snapshots import snapshot_ref
from strongroom.services.file.snapshots.past_states import require_snapshot
from strongroom.services.file.snapshots.sweep import KEPT_SHARES
from strongroom.store.core import records, share_keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.values import AccessPolicy, Metadata

T = TypeVar("T")

ShareDecision = Callable[[ShareRecord, int], tuple[T, ShareRecord | None]]
"""Returns (result, the new share; None = unchanged), from the share and the stamp."""


class CreateShare(msgspec.Struct, frozen=True):
    metadata: Metadata = ()
    quota_gib: int = shares.DEFAULT_QUOTA_GIB
    tier: str = shares.DEFAULT_TIER

    def record(self, stamp: int) -> ShareRecord:
        return ShareRecord(
            stamp,
            stamp,
            stamp,
            quota_gib=self.quota_gib,
            tier=self.tier,
            tier_changed=stamp,
            fold_version=names.FOLD_VERSION,
            metadata=self.metadata,
        )


class SetShareProperties(msgspec.Struct, frozen=True):
    """A property that is None is not changed."""

    quota_gib: int | None = None
    tier: str | None = None


class SetShareAcl(msgspec.Struct, frozen=True):
    """All policies, which replace the present ones."""

    policies: tuple[AccessPolicy, ...] = ()


class ShareWritten(msgspec.Struct, frozen=True):
    """ETag and Last-Modified as stamps."""

    etag: int
    modified: int


class ShareView(msgspec.Struct, frozen=True):
    """A committed share; `now` is the store time at which its lease is to be judged."""

    record: ShareRecord
    now: int


async def create_share(services: Services, call: Call[CreateShare]) -> ShareWritten:
    """The commit's stamp is the share's generation, so a deleted share of the same name has another
    one. The files of that deleted share stay invisible, and writes in flight to them do not reach
    the new share."""
    stamp = await create_place(services, call, place_ref(call), KEPT_SHARES, call.input)
    return ShareWritten(stamp, stamp)


async def get_share(services: Services, call: Call[Any]) -> ShareView:
    """For Get Share Properties, Get Share Metadata and Get Share ACL."""
    # Read the time first: a lease must not be judged by its old record at a later time.
    now = await services.store.now()
    reads = Reads()
    read = _ShareReads.of(call, reads)
    found = await services.read(reads)
    share = read.named(call, found)
    now = max(now, found.version(read.changed) or 0)
    leases.guard(share.lease, call.terms.lease_id, call.rule.lease, now)
    return ShareView(share, now)


async def set_properties(services: Services, call: Call[SetShareProperties]) -> ShareWritten:
    """Set quota and tier. A quota below the share's present size is accepted."""
    request = call.input

    def decide(share: ShareRecord, stamp: int) -> tuple[ShareWritten, ShareRecord]:
        tier = request.tier or share.tier
        return _modified(
            share,
            stamp,
            quota_gib=request.quota_gib or share.quota_gib,
            tier=tier,
            tier_changed=share.tier_changed if tier == share.tier else stamp,
        )

    return await change_share(services, call, decide)


async def set_metadata(services: Services, call: Call[SetPlaceMetadata]) -> ShareWritten:
    metadata = call.input.metadata
    return await change_share(
        services, call, lambda share, stamp: _modified(share, stamp, metadata=metadata)
    )


async def set_acl(services: Services, call: Call[SetShareAcl]) -> ShareWritten:
    """The policies are in effect when this is answered: every later decision sees a new version of
    the share's record and is authorized again."""
    policies = call.input.policies
    return await change_share(
        services, call, lambda share, stamp: _modified(share, stamp, policies=policies)
    )


def _modified(share: ShareRecord, stamp: int, **changes: Any) -> tuple[ShareWritten, ShareRecord]:
    changed = msgspec.structs.replace(share, etag=stamp, modified=stamp, **changes)
    return ShareWritten(stamp, stamp), changed


async def restore_share(services: Services, call: Call[RestorePlace]) -> ShareWritten:
    """Restore a soft-deleted share with its files. The share has no lease afterwards.
    InvalidHeaderValue for another name than the share's; ShareNotFound also when its retention has
    ended."""
    share: ShareRecord = await restore_place(services, call, KEPT_SHARES)
    return ShareWritten(share.etag, share.modified)


async def get_stats(services: Services, call: Call[Any]) -> int:
    """The sum of the lengths of all files, holes included."""
    share = (await get_share(services, call)).record
    (stored,) = await services.store.read([share_keys.share_usage(share.generation)])
    return usage_bytes(file_records.USAGE.of(stored))


async def change_share(services: Services, call: Call[Any], decide: ShareDecision[T]) -> T:
    """Decide on a share's own record, or on that of the snapshot that the request names."""
    reads = Reads()
    read = _ShareReads.of(call, reads)
    purpose, call = call.rule.purpose, call.with_pure_authorization()
    decision = _OfShare(read.share.ref.partition, reads.refs, purpose, call, read, decide)
    return await services.commit(decision, call.turn)


class _ShareReads(NamedTuple):
    """`snapshot`: the one that the request names; None = it names none."""

    share: ReadOne[ShareRecord]
    snapshot: ReadOne[ShareRecord] | None

    @classmethod
    def of(cls, call: Call[Any], reads: Reads) -> _ShareReads:
        share, snapshot = reads.add(place_ref(call), records.SHARE), call.target.snapshot
        if snapshot is None:
            return cls(share, None)
        return cls(share, reads.add(snapshot_ref(call, snapshot), records.SHARE))

    @property
    def changed(self) -> ReadOne[ShareRecord]:
        """The record that the request reads or changes."""
        return self.share if self.snapshot is None else self.snapshot

    def named(self, call: Call[Any], found: Found) -> ShareRecord:
        if self.snapshot is None:
            return place_in(call, found, self.share)
        require_snapshot(call, found.record(self.share))
        return found.require(self.snapshot, file_errors.SHARE_SNAPSHOT_NOT_FOUND)


class _OfShare(Decision[T], Generic[T], frozen=True):
    """It first checks that its caller is still authorized."""

    call: Call[Any]
    read: _ShareReads
    change: ShareDecision[T]

    def decide(self, found: Found, stamp: int) -> Commit[T]:
        share = self.read.named(self.call, found)
        leases.guard(share.lease, self.call.terms.lease_id, self.call.rule.lease, stamp)
        result, changed = self.change(share, stamp)
        if changed is None:
            return Commit(result)
        return Commit(result, (written(self.read.changed.ref, records.SHARE, changed),))
