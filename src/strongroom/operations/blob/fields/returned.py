"""The response headers that operations return: one named row per header, shared by all
declarations.

Source: response headers of the operations' pages; reference sections 6 and 12.
"""

from __future__ import annotations

from typing import Any, Final

from strongroom.auth.authorize import NO_OVERRIDES, Overrides
from strongroom.operations.blob.fields.protection_fields import protection_headers
from strongroom.operations.core import fields
from strongroom.operations.core.copies import copy_headers
from strongroom.operations.core.leases import lease_headers
from strongroom.operations.core.spec import Origin, Returned
from strongroom.semantics.blob import encryption_scopes, tiers
from strongroom.semantics.blob.pages import PageState
from strongroom.services.blob.blobs import Download
from strongroom.services.blob.decisions.views import BlobView
from strongroom.services.blob.tiers.tiering import TierSet
from strongroom.services.core.calls import Call
from strongroom.values import (
    BlobKind,
    ContentProperties,
    crc64_text,
    etag_text,
    iso7,
    md5_text,
    rfc1123,
)

# Results of writes: `modified` is a stamp.
ETAG: Final = Returned("ETag", lambda result: etag_text(result.etag))
LAST_MODIFIED: Final = Returned("Last-Modified", lambda result: rfc1123(result.modified))
BODY_MD5: Final = Returned(
    "Content-MD5", lambda result: None if result.md5 is None else md5_text(result.md5)
)
BODY_CRC64: Final = Returned(
    "x-ms-content-crc64",
    lambda result: None if result.crc64 is None else crc64_text(result.crc64),
)
ENCRYPTED: Final = Returned("x-ms-request-server-encrypted", lambda result: "true")
SNAPSHOT: Final = Returned("x-ms-snapshot", lambda result: iso7(result.snapshot))
VERSION_ID: Final = Returned(
    "x-ms-version-id", lambda result: iso7(result.version) if result.version else None
)
COPY_ID: Final = Returned("x-ms-copy-id", lambda result: result.copy_id)
COPY_STATUS: Final = Returned("x-ms-copy-status", lambda result: result.copy_status)

BLOCK_CRC64: Final = Returned(
    "x-ms-content-crc64",
    lambda block: crc64_text(block.crc64) if block.md5 is None else None,
)
SEQUENCE_NUMBER: Final = Returned(
    "x-ms-blob-sequence-number",
    lambda result: None if result.sequence_number is None else str(result.sequence_number),
)
PERMANENT: Final = Returned(
    "x-ms-delete-type-permanent", lambda deleted: str(deleted.is_permanent).lower()
)
COMMITTED_ETAG: Final = Returned(
    "ETag",
    lambda lists: etag_text(lists.view.blob.shown_etag) if lists.view.blob.committed else None,
)
COMMITTED_LAST_MODIFIED: Final = Returned(
    "Last-Modified",
    lambda lists: rfc1123(lists.view.blob.modified) if lists.view.blob.committed else None,
)
BLOB_LENGTH: Final = Returned(
    "x-ms-blob-content-length", lambda lists: str(lists.view.blob.size_bytes)
)
APPEND_OFFSET: Final = Returned("x-ms-blob-append-offset", lambda result: str(result.offset))
APPENDED_BLOCKS: Final = Returned(
    "x-ms-blob-committed-block-count", lambda result: str(result.count)
)
SEALED: Final = Returned("x-ms-blob-sealed", lambda result: "true")
LISTED_ETAG: Final = Returned("ETag", lambda lists: etag_text(lists.view.blob.shown_etag))
LISTED_LAST_MODIFIED: Final = Returned(
    "Last-Modified", lambda lists: rfc1123(lists.view.blob.modified)
)
BLOB_ETAG: Final = Returned("ETag", lambda view: etag_text(view.blob.shown_etag))
BLOB_LAST_MODIFIED: Final = Returned("Last-Modified", lambda view: rfc1123(view.blob.modified))


def blob_metadata(view: BlobView) -> tuple[tuple[str, str], ...]:
    return tuple(("x-ms-meta-" + name, value) for name, value in view.blob.metadata)


def _view(result: BlobView | Download) -> BlobView:
    return result.view if isinstance(result, Download) else result


def blob_headers(result: BlobView | Download) -> tuple[tuple[str, str], ...]:
    """The headers of Get Blob and Get Blob Properties: metadata, properties, lease, copy.

    One function rather than a row each, since most headers depend on others and reads are frequent.
    """
    view = _view(result)
    blob = view.blob
    headers = [
        ("Last-Modified", rfc1123(blob.modified)),
        ("ETag", etag_text(blob.shown_etag)),
        ("x-ms-creation-time", rfc1123(blob.created)),
        ("x-ms-blob-type", blob.kind.type_text),
        ("Accept-Ranges", "bytes"),
        ("x-ms-server-encrypted", "true"),
    ]
    _add_properties(result, headers)
    if blob.metadata:
        headers.extend(blob_metadata(view))
    if blob.tags:
        headers.append(("x-ms-tag-count", str(len(blob.tags))))
    if view.past is None:
        _add_lease(view, headers)
    if blob.version:
        headers.append(("x-ms-version-id", iso7(blob.version)))
        if view.past is None:
            headers.append(("x-ms-is-current-version", "true"))
    if blob.page is not None:
        _add_page(blob.page, headers)
    if blob.page is None or blob.tier is not None:
        _add_tier(view, headers)
    if blob.kind is BlobKind.APPEND:
        _add_append(view, headers)
    if blob.copy is not None:
        headers.extend(copy_headers(blob.copy))
    if blob.accessed:
        headers.append(("x-ms-last-access-time", rfc1123(blob.accessed)))
    if blob.scope:
        headers.append((encryption_scopes.HEADER, blob.scope))
    if blob.immutability is not None:
        headers.extend(protection_headers(blob.immutability))
    return tuple(headers)


def _add_properties(result: BlobView | Download, headers: list[tuple[str, str]]) -> None:
    view = _view(result)
    shown = view.blob.properties
    if view.overrides is not NO_OVERRIDES:
        shown = _overridden(shown, view.overrides)
    if shown.content_type:
        headers.append(("Content-Type", shown.content_type))
    if shown.encoding:
        headers.append(("Content-Encoding", shown.encoding))
    if shown.language:
        headers.append(("Content-Language", shown.language))
    if shown.cache_control:
        headers.append(("Cache-Control", shown.cache_control))
    if shown.disposition:
        headers.append(("Content-Disposition", shown.disposition))
    stored = shown.content_md5
    if not isinstance(result, Download) or not result.partial:
        if stored is not None:
            headers.append(("Content-MD5", stored))
        return
    if stored is not None:
        headers.append(("x-ms-blob-content-md5", stored))
    if result.range_md5 is not None:
        headers.append(("Content-MD5", md5_text(result.range_md5)))
    if result.range_crc64 is not None:
        headers.append(("x-ms-content-crc64", crc64_text(result.range_crc64)))
    last = result.offset + result.length - 1
    headers.append(("Content-Range", f"bytes {result.offset}-{last}/{result.view.blob.size_bytes}"))


def _overridden(stored: ContentProperties, over: Overrides) -> ContentProperties:
    return ContentProperties(
        over.content_type or stored.content_type,
        over.content_encoding or stored.encoding,
        over.content_language or stored.language,
        stored.md5,
        over.cache_control or stored.cache_control,
        over.content_disposition or stored.disposition,
        stored.other_md5,
    )


def _add_lease(view: BlobView, headers: list[tuple[str, str]]) -> None:
    lease = view.blob.lease
    if lease is None:
        headers.append(("x-ms-lease-status", "unlocked"))
        headers.append(("x-ms-lease-state", "available"))
        return
    headers.extend(lease_headers(lease, view.now))


def tier_status(result: TierSet) -> int:
    """202 if the blob leaves the archive tier, as in Azure, where that takes hours; else 200."""
    return 202 if result.left_archive else 200


def _add_tier(view: BlobView, headers: list[tuple[str, str]]) -> None:
    blob = view.blob
    headers.append(("x-ms-access-tier", blob.tier or tiers.ACCOUNT_TIER))
    if blob.tier is None:
        headers.append(("x-ms-access-tier-inferred", "true"))
    else:
        headers.append(("x-ms-access-tier-change-time", rfc1123(blob.tier_changed)))
    if blob.rehydration is not None:
        headers.append(("x-ms-archive-status", blob.rehydration.status))
        headers.append(("x-ms-rehydrate-priority", blob.rehydration.priority))


def _add_append(view: BlobView, headers: list[tuple[str, str]]) -> None:
    count = view.blob.body.appended_count
    headers.append(("x-ms-blob-committed-block-count", str(count)))
    if view.blob.sealed:
        headers.append(("x-ms-blob-sealed", "true"))


def _add_page(page: PageState, headers: list[tuple[str, str]]) -> None:
    headers.append(("x-ms-blob-sequence-number", str(page.sequence_number)))
    copy = page.incremental
    if copy is not None:
        headers.append(("x-ms-incremental-copy", "true"))
        if copy.snapshot:
            headers.append(("x-ms-copy-destination-snapshot", iso7(copy.snapshot)))


def upload_framing(result: Any, call: Call[Any], origin: Origin) -> tuple[tuple[str, str], ...]:
    """The headers for a body that was a structured message, for operations with CONTENT."""
    if origin.headers.get(fields.STRUCTURED_BODY) is None:
        return ()
    return ((fields.STRUCTURED_BODY, fields.STRUCTURED),)


def download_framing(
    result: Download, call: Call[Any], origin: Origin
) -> tuple[tuple[str, str], ...]:
    """The headers of Get Blob for a body that is a structured message."""
    if not call.input.structured:
        return ()
    return (
        (fields.STRUCTURED_BODY, fields.STRUCTURED),
        (fields.STRUCTURED_LENGTH, str(result.length)),
    )
