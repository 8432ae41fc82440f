"""The answers of operations on shares: headers and documents.

Source: responses of "Operations on shares" and "List Shares".
"""

from __future__ import annotations

from typing import Any, Final

from strongroom.operations.core.answers import Headers, document, long_document, metadata
from strongroom.operations.core.leases import lease_headers
from strongroom.operations.core.listing_fields import page_request
from strongroom.operations.core.spec import Content, Origin, Returned
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core import listing
from strongroom.semantics.core.retention import remaining_days
from strongroom.semantics.file import shares as rules
from strongroom.services.core.calls import Call
from strongroom.services.core.soft_deleted_places import generation_version
from strongroom.services.file.shares import list_shares
from strongroom.services.file.shares.list_shares import ListShares, SharePage, ShareRow
from strongroom.services.file.shares.shares import ShareView
from strongroom.values import etag_text, iso7, rfc1123
from strongroom.wire.core.deleted_places import DeletedItem
from strongroom.wire.core.signed_identifiers import write_signed_identifiers
from strongroom.wire.file import list_shares as shares_xml
from strongroom.wire.file.list_shares import ShareItem

ETAG: Final = Returned("ETag", lambda result: etag_text(result.etag))
LAST_MODIFIED: Final = Returned("Last-Modified", lambda result: rfc1123(result.modified))
SNAPSHOT: Final = Returned("x-ms-snapshot", lambda result: iso7(result.snapshot))
SHARE_ETAG: Final = Returned("ETag", lambda view: etag_text(view.record.etag))
SHARE_LAST_MODIFIED: Final = Returned("Last-Modified", lambda view: rfc1123(view.record.modified))


def share_headers(view: ShareView) -> Headers:
    """The headers of Get Share Properties, but for its ETag and Last-Modified."""
    share = view.record
    return (
        *metadata(view),
        ("x-ms-share-quota", str(share.quota_gib)),
        *lease_headers(share.lease, view.now),
        ("x-ms-access-tier", share.tier),
        ("x-ms-access-tier-change-time", rfc1123(share.tier_changed)),
        ("x-ms-enabled-protocols", rules.SMB),
    )


def acl(view: ShareView, call: Call[Any], origin: Origin) -> Content:
    return document(write_signed_identifiers(view.record.policies))


def shares(page: SharePage, call: Call[ListShares], origin: Origin) -> Content:
    request = call.input
    with_metadata = list_shares.METADATA in request.include
    body = shares_xml.write_shares(
        page_request(origin, request.max_results),
        (_item(row, max(page.now, row.version), with_metadata) for row in page.items),
        listing.encode_marker(page.marker),
    )
    return long_document(body)


def _item(row: ShareRow, now: int, with_metadata: bool) -> ShareItem:
    share, deletion, deleted = row.record, row.deleted, None
    if deletion is not None:
        version = generation_version(share.generation)
        deleted = DeletedItem(deletion.deleted, remaining_days(deletion.until, now), version)
    lease = (
        leases.status(share.lease, now),
        leases.state(share.lease, now).value,
        leases.reported_duration(share.lease, now),
    )
    return ShareItem(
        row.name,
        share.etag,
        share.modified,
        quota_gib=share.quota_gib,
        tier=share.tier,
        tier_changed=share.tier_changed,
        lease=lease,
        metadata=share.metadata if with_metadata else None,
        deleted=deleted,
        snapshot=row.snapshot,
    )
