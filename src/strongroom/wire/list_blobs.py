"""The answer of List Blobs.

Must not live here: which blobs are listed (semantics/listing.py). Source: "List Blobs"; the order
of elements is the one that the service sends. Written by one template for each blob, because a page
may hold 5,000 of them.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from strongroom.values import ContentProperties, Metadata, iso7, rfc1123
from strongroom.wire import xml
from strongroom.wire.xml import escape

# Of many blobs these are the same; a text is as long as a header may be.
_REMEMBERED: Final = 64


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
    Times are ticks. `lease_status` None leaves the lease out (snapshots).
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
    properties: ContentProperties = ContentProperties()
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
    further, metadata = item.further, item.metadata
    standing = _standing(
        item.blob_type,
        item.access_tier,
        item.access_tier_inferred,
        item.lease_status,
        item.lease_state,
        item.lease_duration,
    )
    return (
        f"<Blob>{xml.name_element(item.name)}{_which(item)}"
        f"<Properties>{_content(item)}{standing}{'' if item.copy is None else _copy(item.copy)}"
        f"{_further(further) if further else ''}</Properties>"
        f"{'' if metadata is None else xml.metadata_element(metadata)}"
        f"{'' if item.tags is None else _tags(item.tags)}<OrMetadata /></Blob>"
    )


@lru_cache(_REMEMBERED)
def _standing(
    blob_type: str,
    tier: str | None,
    tier_inferred: bool,
    lease_status: str | None,
    lease_state: str | None,
    lease_duration: str | None,
) -> str:
    """What a blob is and in which state, from BlobType to ServerEncrypted."""
    inferred = "<AccessTierInferred>true</AccessTierInferred>" if tier_inferred else ""
    return (
        f"<BlobType>{blob_type}</BlobType>{xml.optional_element('AccessTier', tier)}{inferred}"
        f"{xml.optional_element('LeaseStatus', lease_status)}"
        f"{xml.optional_element('LeaseState', lease_state)}"
        f"{xml.optional_element('LeaseDuration', lease_duration)}"
        "<ServerEncrypted>true</ServerEncrypted>"
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
    given = item.properties
    md5 = given.md5
    digest = "" if md5 is None else b2a_base64(md5, newline=False).decode()
    return (
        f"{creation}<Last-Modified>{rfc1123(item.modified)}</Last-Modified>"
        f"<Etag>0x{item.stamp:X}</Etag><Content-Length>{item.size_bytes}</Content-Length>"
        f"{_typed(given.content_type, given.encoding, given.language)}"
        f"{f'<Content-MD5>{digest}</Content-MD5>' if digest else '<Content-MD5 />'}"
        f"{_handled(given.cache_control, given.disposition)}"
    )


@lru_cache(_REMEMBERED)
def _typed(content_type: str | None, encoding: str | None, language: str | None) -> str:
    return (
        f"{xml.element('Content-Type', content_type)}{xml.element('Content-Encoding', encoding)}"
        f"{xml.element('Content-Language', language)}<Content-CRC64 />"
    )


@lru_cache(_REMEMBERED)
def _handled(cache_control: str | None, disposition: str | None) -> str:
    cache = xml.element("Cache-Control", cache_control)
    return cache + xml.element("Content-Disposition", disposition)


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
