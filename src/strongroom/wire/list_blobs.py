"""The answer of List Blobs.

Must not live here: which blobs are listed (semantics/listing.py). Source: "List Blobs"; the order
of elements is the one that the service sends. Written by one template for each blob, because a page
may hold 5,000 of them.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from strongroom.values import Metadata, iso7, rfc1123
from strongroom.wire import xml
from strongroom.wire.xml import escape


class CopyItem(msgspec.Struct, frozen=True):
    """The last copy to a blob: texts of the Copy... elements; `completed` in ticks, 0 = pending."""

    id: str
    status: str
    source: str
    progress: str
    completed: int = 0
    description: str | None = None


class BlobItem(msgspec.Struct, frozen=True):
    """One blob or snapshot.

    `modified` None means that it has only uncommitted blocks: no times, ETag or content properties.
    Times are ticks; `md5` is the raw digest. `lease_status` None leaves the lease out (snapshots).
    `further` are properties that follow ServerEncrypted, in the service's order. `copy`,
    `metadata`, `tags` are None unless asked for.
    """

    name: str
    size_bytes: int = 0
    stamp: int = 0
    created: int | None = None
    modified: int | None = None
    snapshot: int | None = None
    version_id: str | None = None
    is_current_version: bool = False
    deleted: bool = False
    content_type: str | None = None
    encoding: str | None = None
    language: str | None = None
    md5: bytes | None = None
    cache_control: str | None = None
    disposition: str | None = None
    blob_type: str = "BlockBlob"
    access_tier: str | None = None
    access_tier_inferred: bool = False
    lease_status: str | None = None
    lease_state: str | None = None
    lease_duration: str | None = None
    copy: CopyItem | None = None
    further: tuple[tuple[str, str], ...] = ()
    metadata: Metadata | None = None
    tags: tuple[tuple[str, str], ...] | None = None


class BlobPrefix(msgspec.Struct, frozen=True):
    """The common beginning of names that a delimiter folds together."""

    name: str


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What a page repeats of the request; None = it was not given. `endpoint` ends with a slash."""

    endpoint: str
    container: str
    prefix: str | None = None
    marker: str | None = None
    max_results: int | None = None
    delimiter: str | None = None


def write_blobs(
    query: ListQuery, items: Iterable[BlobItem | BlobPrefix], next_marker: str
) -> bytes:
    """The page as XML; `next_marker` is empty when nothing is left."""
    rows = [_blob(item) if isinstance(item, BlobItem) else _prefix(item) for item in items]
    most = None if query.max_results is None else str(query.max_results)
    head = (
        f'{xml.DECLARATION}<EnumerationResults ServiceEndpoint="{escape(query.endpoint)}"'
        f' ContainerName="{escape(query.container)}">'
        f"{'' if query.prefix is None else _asked('Prefix', query.prefix)}"
        f"{xml.optional_element('Marker', query.marker)}{xml.optional_element('MaxResults', most)}"
        f"{'' if query.delimiter is None else _asked('Delimiter', query.delimiter)}<Blobs>"
    )
    tail = f"</Blobs>{xml.element('NextMarker', next_marker)}</EnumerationResults>"
    return "".join((head, *rows, tail)).encode("utf-8", "replace")


def _asked(tag: str, text: str) -> str:
    return xml.name_element(text, tag) if text else f"<{tag} />"


def _prefix(item: BlobPrefix) -> str:
    return f"<BlobPrefix>{xml.name_element(item.name)}</BlobPrefix>"


def _blob(item: BlobItem) -> str:
    tier = item.access_tier
    inferred = "<AccessTierInferred>true</AccessTierInferred>" if item.access_tier_inferred else ""
    lease = "" if item.lease_status is None else _lease(item)
    further, metadata = item.further, item.metadata
    return (
        f"<Blob>{xml.name_element(item.name)}{_which(item)}"
        f"<Properties>{_content(item)}<BlobType>{item.blob_type}</BlobType>"
        f"{'' if tier is None else f'<AccessTier>{tier}</AccessTier>'}{inferred}{lease}"
        f"<ServerEncrypted>true</ServerEncrypted>{'' if item.copy is None else _copy(item.copy)}"
        f"{_further(further) if further else ''}</Properties>"
        f"{'' if metadata is None else xml.metadata_element(metadata)}"
        f"{'' if item.tags is None else _tags(item.tags)}<OrMetadata /></Blob>"
    )


def _further(pairs: tuple[tuple[str, str], ...]) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in pairs)


def _which(item: BlobItem) -> str:
    if item.snapshot is None and item.version_id is None and not item.deleted:
        return ""
    snapshot = "" if item.snapshot is None else f"<Snapshot>{iso7(item.snapshot)}</Snapshot>"
    version = xml.optional_element("VersionId", item.version_id)
    current = "<IsCurrentVersion>true</IsCurrentVersion>" if item.is_current_version else ""
    deleted = "<Deleted>true</Deleted>" if item.deleted else ""
    return snapshot + version + current + deleted


def _content(item: BlobItem) -> str:
    created = item.created
    creation = "" if created is None else f"<Creation-Time>{rfc1123(created)}</Creation-Time>"
    if item.modified is None:
        return f"{creation}<Content-Length>0</Content-Length>"
    type_, encoding, language = item.content_type, item.encoding, item.language
    md5, cache, disposition = item.md5, item.cache_control, item.disposition
    digest = "" if md5 is None else b2a_base64(md5, newline=False).decode()
    return (
        f"{creation}<Last-Modified>{rfc1123(item.modified)}</Last-Modified>"
        f"<Etag>0x{item.stamp:X}</Etag><Content-Length>{item.size_bytes}</Content-Length>"
        f"{f'<Content-Type>{escape(type_)}</Content-Type>' if type_ else '<Content-Type />'}"
        f"{xml.element('Content-Encoding', encoding) if encoding else '<Content-Encoding />'}"
        f"{xml.element('Content-Language', language) if language else '<Content-Language />'}"
        "<Content-CRC64 />"
        f"{f'<Content-MD5>{digest}</Content-MD5>' if digest else '<Content-MD5 />'}"
        f"{xml.element('Cache-Control', cache) if cache else '<Cache-Control />'}"
        f"{xml.element('Content-Disposition', disposition)}"
    )


def _lease(item: BlobItem) -> str:
    duration = item.lease_duration
    tail = "" if duration is None else f"<LeaseDuration>{duration}</LeaseDuration>"
    return (
        f"<LeaseStatus>{item.lease_status}</LeaseStatus>"
        f"<LeaseState>{item.lease_state}</LeaseState>{tail}"
    )


def _copy(copy: CopyItem) -> str:
    completed = rfc1123(copy.completed) if copy.completed else None
    return (
        f"<CopyId>{copy.id}</CopyId><CopyStatus>{copy.status}</CopyStatus>"
        f"<CopySource>{escape(copy.source)}</CopySource>"
        f"<CopyProgress>{copy.progress}</CopyProgress>"
        f"{xml.optional_element('CopyCompletionTime', completed)}"
        f"{xml.optional_element('CopyStatusDescription', copy.description)}"
    )


def _tags(tags: tuple[tuple[str, str], ...]) -> str:
    rows = "".join(
        f"<Tag>{xml.element('Key', key)}{xml.element('Value', value)}</Tag>" for key, value in tags
    )
    return f"<Tags><TagSet>{rows}</TagSet></Tags>" if rows else "<Tags><TagSet /></Tags>"
