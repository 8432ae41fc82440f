"""The XML documents of answers: lists, access control lists.

Source: response bodies of "List Blobs", "List Containers", "Get Container ACL", "Get Blob Service
Properties".
"""

from __future__ import annotations

from typing import Any, Final

from strongroom.operations.core.answers import document, long_document
from strongroom.operations.core.listing_fields import page_request
from strongroom.operations.core.spec import Content, Origin
from strongroom.semantics.blob import tiers
from strongroom.semantics.blob.container_protection import NOTHING
from strongroom.semantics.blob.immutability import Immutability
from strongroom.semantics.blob.pages import PageState
from strongroom.semantics.core import copies, listing
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.copies import Copy
from strongroom.semantics.core.listing import Prefix
from strongroom.semantics.core.retention import remaining_days
from strongroom.services.blob import list_blobs
from strongroom.services.blob.containers import list_containers
from strongroom.services.blob.containers.containers import ContainerView
from strongroom.services.blob.containers.list_containers import (
    ContainerPage,
    ContainerRow,
    ListContainers,
)
from strongroom.services.blob.list_blobs import BlobPage, BlobRow, ListBlobs
from strongroom.services.core.calls import Call
from strongroom.services.core.soft_deleted_places import generation_version
from strongroom.values import ACCOUNT_SCOPE, Lease, iso7, rfc1123
from strongroom.wire.blob import list_blobs as blobs_xml
from strongroom.wire.blob import list_containers as containers_xml
from strongroom.wire.blob.list_blobs import (
    BlobDetails,
    BlobItem,
    BlobPrefix,
    CopyItem,
    LeaseItem,
    ListQuery,
    TierItem,
)
from strongroom.wire.blob.list_containers import ContainerItem
from strongroom.wire.core.deleted_places import DeletedItem
from strongroom.wire.core.signed_identifiers import write_signed_identifiers

_FREE: Final[LeaseItem | None] = LeaseItem("unlocked", "available")
_INFERRED: Final = TierItem(tiers.ACCOUNT_TIER, is_inferred=True)

Pairs = tuple[tuple[str, str], ...]


def blobs(page: BlobPage, call: Call[ListBlobs], origin: Origin) -> Content:
    request, include = page_request(origin, call.input.max_results), call.input.include
    query = ListQuery(request, call.target.container, origin.query.get("delimiter"))
    items = (
        BlobPrefix(str(item)) if isinstance(item, Prefix) else _blob(item, page.now, include)
        for item in page.items
    )
    return long_document(blobs_xml.write_blobs(query, items, listing.encode_marker(page.marker)))


def _blob(row: BlobRow, now: int, include: frozenset[str]) -> BlobItem:
    """A row is judged at `now`, or at its version if that is later."""
    blob, lease = row.blob, _FREE
    is_current = row.past is None and blob.deletion is None and not blob.vacant
    if not is_current:
        lease = None
    elif blob.lease is not None:
        lease = _lease(blob.lease, max(now, row.version))
    if not blob.committed:
        return BlobItem(row.name, blob, lease)
    tier = _INFERRED if blob.page is None else None
    if blob.tier is not None:
        tier = TierItem(blob.tier)
    more = _more_properties(row, now, include) if _has_more_properties(row) else ()
    if is_current and not (include or more or blob.version):
        return BlobItem(row.name, blob, lease, tier)
    details = BlobDetails(
        row.snapshot,
        blob.version,
        is_current,
        blob.deletion is not None,
        blob.vacant,
        _copy(blob.copy) if blob.copy is not None and list_blobs.COPY in include else None,
        more_properties=more,
        metadata=blob.metadata if list_blobs.METADATA in include else None,
        tags=blob.tags if blob.tags and list_blobs.TAGS in include else None,
    )
    return BlobItem(row.name, blob, lease, tier, details)


def _lease(lease: Lease, now: int) -> LeaseItem:
    state, duration = leases.state(lease, now).value, leases.reported_duration(lease, now)
    return LeaseItem(leases.status(lease, now), state, duration)


def _has_more_properties(row: BlobRow) -> bool:
    blob = row.blob
    usual = blob.tags or blob.tier or blob.page or blob.sealed or blob.deletion
    return bool(usual or blob.immutability or blob.scope or blob.accessed)


def _more_properties(row: BlobRow, now: int, include: frozenset[str]) -> Pairs:
    blob, pending = row.blob, row.blob.rehydration
    pairs = [("Sealed", "true")] if blob.sealed else []
    if blob.tags:
        pairs.append(("TagCount", str(len(blob.tags))))
    if blob.page is not None:
        pairs += _page(blob.page)
    if pending is not None:
        pairs.append(("ArchiveStatus", pending.status))
    if blob.tier:
        pairs.append(("AccessTierChangeTime", rfc1123(blob.tier_changed)))
    if pending is not None:
        pairs.append(("RehydratePriority", pending.priority))
    if blob.deletion is not None:
        days = remaining_days(blob.deletion.until, max(now, row.version))
        pairs.append(("DeletedTime", rfc1123(blob.deletion.deleted)))
        pairs.append(("RemainingRetentionDays", str(days)))
    if blob.scope:
        pairs.append(("EncryptionScope", blob.scope))
    if blob.accessed:
        pairs.append(("LastAccessTime", rfc1123(blob.accessed)))
    if blob.immutability is not None:
        pairs += _protection(blob.immutability, include)
    return tuple(pairs)


def _protection(protection: Immutability, include: frozenset[str]) -> Pairs:
    pairs: Pairs = ()
    if protection.until and list_blobs.IMMUTABILITY_POLICY in include:
        until = ("ImmutabilityPolicyUntilDate", rfc1123(protection.until))
        pairs = (until, ("ImmutabilityPolicyMode", protection.mode))
    if protection.hold and list_blobs.LEGAL_HOLD in include:
        pairs = (*pairs, ("LegalHold", "true"))
    return pairs


def _page(page: PageState) -> Pairs:
    number = ("x-ms-blob-sequence-number", str(page.sequence_number))
    if page.incremental is None:
        return (number,)
    snapshot = page.incremental.snapshot
    made = (("CopyDestinationSnapshot", iso7(snapshot)),) if snapshot else ()
    return (number, ("IncrementalCopy", "true"), *made)


def _copy(copy: Copy) -> CopyItem:
    progress, status = copies.progress_text(copy), copy.status.value
    return CopyItem(copy.id, status, copy.source, progress, copy.completed, copy.description)


def containers(page: ContainerPage, call: Call[ListContainers], origin: Origin) -> Content:
    request = page_request(origin, call.input.max_results)
    metadata = list_containers.METADATA in call.input.include
    rows = (_container(row, page, metadata) for row in page.items)
    marker = listing.encode_marker(page.marker)
    return long_document(containers_xml.write_containers(request, rows, marker))


def _container(row: ContainerRow, page: ContainerPage, metadata: bool) -> ContainerItem:
    record, deletion, now = row.record, row.deleted, max(page.now, row.version)
    deleted = None
    if deletion is not None:
        version = generation_version(record.generation)
        deleted = DeletedItem(deletion.deleted, remaining_days(deletion.until, now), version)
    protection = page.protections.get(row.name, NOTHING)
    return ContainerItem(
        row.name,
        record.shown_etag,
        record.modified,
        leases.status(record.lease, now),
        leases.state(record.lease, now).value,
        leases.reported_duration(record.lease, now),
        record.public_access,
        record.metadata if metadata else None,
        deleted,
        page.immutability,
        record.scope or ACCOUNT_SCOPE,
        record.denies_scopes,
        protection.retention_days > 0,
        bool(protection.holds),
    )


def acl(view: ContainerView, call: Call[Any], origin: Origin) -> Content:
    return document(write_signed_identifiers(view.record.policies))
