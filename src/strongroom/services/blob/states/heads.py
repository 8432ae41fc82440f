"""The common part of all operations that create or replace a blob's head.

Lives here: the rules shared by Put Blob, Put Block List and the copies. They say who may overwrite,
what is kept (lease, snapshots) and what is dropped (body, staged blocks). Source: reference
sections 2 (Put Blob, 201) and 8.
"""

from __future__ import annotations

from typing import Any

import msgspec

from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import pages, tiers
from strongroom.semantics.blob.immutability import Immutability
from strongroom.semantics.blob.pages import PageState
from strongroom.semantics.core import copies
from strongroom.semantics.core import lease as leases
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.decisions.guard import scope_of_new
from strongroom.services.blob.states.displaced import displace_head, new_version
from strongroom.services.blob.states.immutability import (
    check_new_blob_allowed,
    check_requested_protection,
)
from strongroom.services.core.calls import Call
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import NewBody
from strongroom.values import BlobKind, ContentProperties, Lease, Metadata


def refuse_pending_copy(head: BlobRecord | None) -> None:
    """Refuse with 409 PendingCopyOperation while a copy to the blob is pending."""
    copies.require_none_pending(None if head is None else head.copy)


def refuse_archived(head: BlobRecord | None) -> None:
    """Refuse with 409 BlobArchived an operation that changes only a part of an archived blob."""
    tiers.require_online(None if head is None else head.tier)


def refuse_incremental(head: BlobRecord | None) -> None:
    """Refuse with 409 OperationNotAllowedOnIncrementalCopyBlob for an incremental copy blob."""
    if head is not None and head.page is not None:
        pages.require_not_incremental_copy(head.page)


def refuse_overwrite(call: Call[Any], head: BlobRecord | None) -> None:
    """Refuse with 403 UnauthorizedBlobOverwrite a caller who may create blobs but not overwrite."""
    if head is not None and head.committed and not call.caller.grant.may_overwrite:
        raise StorageError(blob_errors.UNAUTHORIZED_BLOB_OVERWRITE)


def refuse_tags(call: Call[Any]) -> None:
    """Refuse with 403 AuthorizationPermissionMismatch a caller who may not read or write tags."""
    if not call.caller.grant.may_tag:
        row = errors.AUTHORIZATION_PERMISSION_MISMATCH
        raise StorageError(row, f"{row.message} Tags need the permission t.")


def kept_lease(head: BlobRecord | None, now: int) -> Lease | None:
    """Return the lease after a write: an active one stays, a broken or expired one is cleared."""
    return None if head is None else leases.after_write(head.lease, now)


def replace_head(
    call: Call[Any],
    state: BlobState,
    change: BlobChange,
    *,
    new: NewBody,
    properties: ContentProperties,
    metadata: Metadata,
    tier: str | None = None,
    copy: copies.Copy | None = None,
    tags: Metadata = (),
    kind: BlobKind = BlobKind.BLOCK,
    sealed: bool = False,
    shares: bool = False,
    page: PageState | None = None,
    immutability: Immutability | None = None,
    rehydration: tiers.Rehydration | None = None,
) -> BlobRecord:
    """Write a new head over the present one, which becomes a version where versioning is on.

    It drops the old body, takes the new one, ends the upload, keeps the lease and the snapshots.

    Arguments:
        shares: another state of the blob may have the same body.
        page: the state of a page blob; None for any other.
        rehydration: for an archived blob that gets `tier` when the rehydration ends.
    """
    before, kind = state.head, kind if page is None else BlobKind.PAGE
    _refuse_replacement(call, state, kind)
    if tags:
        refuse_tags(call)
    if immutability is not None:
        immutability = check_requested_protection(call, state, immutability)
    if before is not None or state.deleted_head is not None:
        displace_head(state, change)
    change.end_upload()
    # A pending copy is still empty, but will have the length of its source.
    kept = _kept_tier(before, kind, new.size_bytes if copy is None else copy.total_bytes)
    tier, tier_changed = kept if tier is None else (tier, change.stamp)
    if rehydration is not None:
        tier = tiers.ARCHIVE
    head = BlobRecord(
        kind=kind,
        committed=True,
        etag=change.stamp,
        modified=change.stamp,
        created=change.stamp,
        size_bytes=new.size_bytes,
        body=new.take(change),
        properties=properties,
        metadata=metadata,
        lease=kept_lease(before, state.now),
        copy=copy,
        snapshots=0 if before is None else before.snapshots,
        tier=tier,
        tier_changed=tier_changed,
        tags=tags,
        sealed=sealed,
        shares=shares,
        page=page,
        version=new_version(state, change),
        immutability=immutability,
        rehydration=rehydration,
        scope=scope_of_new(call),
        accessed=change.stamp if state.switches.last_access else 0,
    )
    change.put_head(head)
    return head


def _refuse_replacement(call: Call[Any], state: BlobState, kind: BlobKind) -> None:
    before = state.head
    check_new_blob_allowed(state)
    refuse_pending_copy(before)
    refuse_incremental(before)
    if before is not None and before.kind is not kind and before.snapshots:
        raise StorageError(blob_errors.SNAPSHOTS_PRESENT)
    refuse_overwrite(call, before)


def _kept_tier(
    before: BlobRecord | None, kind: BlobKind, size_bytes: int
) -> tuple[str | None, int]:
    """Return the tier that a new head of this length inherits, and when that tier was set."""
    if before is None or before.kind is not kind:
        return None, 0
    kept = tiers.inherited(before.tier, size_bytes)
    return kept, before.tier_changed if kept else 0


def modified_head(head: BlobRecord, stamp: int, **changes: Any) -> BlobRecord:
    """With a new ETag and Last-Modified; the lease is the one after a write."""
    lease = kept_lease(head, stamp)
    return msgspec.structs.replace(head, etag=stamp, modified=stamp, lease=lease, **changes)
