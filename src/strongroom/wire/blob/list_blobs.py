"""The answer of List Blobs.

Must not live here: which blobs are listed (semantics/core/listing.py). Source: "List Blobs"; the
order of elements is that of Azure's answers. One template writes each blob, because a page may have
5,000 of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from strongroom.values import BlobKind, ContentProperties, Metadata, iso7, rfc1123
from strongroom.wire.blob.tags import tags_element, version_elements
from strongroom.wire.core import xml
from strongroom.wire.core.xml import escape

# Many blobs share these texts. The cache is small, since each may have limits.PROPERTY_CHARS_MAX.
_REMEMBERED: Final = 16


class CopyItem(msgspec.Struct, frozen=True, gc=False):
    """The last copy to a blob: texts of the Copy... elements; `completed` in ticks, 0 = pending."""

    id: str
    status: str
    source: str
    progress: str
    completed: int = 0
    description: str | None = None


class LeaseItem(NamedTuple):
    """The texts of the Lease... elements."""

    status: str
    state: str
    duration: str | None = None


class TierItem(NamedTuple):
    """The access tier, and whether it is inferred from the account."""

    name: str
    is_inferred: bool = False


class BlobItem(msgspec.Struct, frozen=True, gc=False):
    """One blob, snapshot (`snapshot` its ticks) or version (`version` its id in ticks, 0 = none).

    `modified` None means that it has only uncommitted blocks: no times, ETag or content properties.
    Times are ticks. `lease` None leaves the lease out (snapshots, soft-deleted blobs).
    `extra_properties` are properties that follow ServerEncrypted, in the service's order. `copy`,
    `metadata` and `tags` are None unless requested. `is_current`: whether a version is the current
    one.
    `only_versions`: there is no blob, but there are versions of it.
    """

    name: str
    snapshot: int | None = None
    stamp: int = 0
    created: int = 0
    modified: int | None = None
    size_bytes: int = 0
    properties: ContentProperties = ContentProperties()
    kind: BlobKind = BlobKind.BLOCK
    tier: TierItem | None = None
    lease: LeaseItem | None = None
    copy: CopyItem | None = None
    extra_properties: tuple[tuple[str, str], ...] = ()
    metadata: Metadata | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    is_deleted: bool = False
    version: int = 0
    is_current: bool = True
    only_versions: bool = False


class BlobPrefix(msgspec.Struct, frozen=True, gc=False):
    """A common prefix of names, which a delimiter ends."""

    name: str


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The parts of the request that a page repeats; `delimiter` None = it was not given."""

    page_request: xml.PageRequest
    container: str
    delimiter: str | None = None


def write_blobs(
    query: ListQuery, items: Iterable[BlobItem | BlobPrefix], next_marker: str
) -> Iterator[bytes]:
    """Yield the page as XML, piece by piece; `next_marker` is empty on the last page."""
    page_request = query.page_request
    most = None if page_request.max_results is None else str(page_request.max_results)
    head = (
        f'{xml.DECLARATION}<EnumerationResults ServiceEndpoint="{escape(page_request.endpoint)}"'
        f' ContainerName="{escape(query.container)}">'
        f"{'' if page_request.prefix is None else _asked('Prefix', page_request.prefix)}"
        f"{xml.optional_element('Marker', page_request.marker)}"
        f"{xml.optional_element('MaxResults', most)}"
        f"{'' if query.delimiter is None else _asked('Delimiter', query.delimiter)}<Blobs>"
    )
    tail = f"</Blobs>{xml.element('NextMarker', next_marker)}</EnumerationResults>"
    rows = (_blob(item) if isinstance(item, BlobItem) else _prefix(item) for item in items)
    return xml.pieces(head, rows, tail)


def _asked(tag: str, text: str) -> str:
    return xml.name_element(text, tag) if text else f"<{tag} />"


def _prefix(item: BlobPrefix) -> str:
    return f"<BlobPrefix>{xml.name_element(item.name)}</BlobPrefix>"


def _blob(item: BlobItem) -> str:
    snapshot, extra_properties, metadata = item.snapshot, item.extra_properties, item.metadata
    version = version_elements(item.version, item.is_current) if item.version else ""
    return (
        f"<Blob>{xml.name_element(item.name)}"
        f"{'' if snapshot is None else f'<Snapshot>{iso7(snapshot)}</Snapshot>'}"
        f"{version}{'<Deleted>true</Deleted>' if item.is_deleted else ''}"
        f"<Properties>{_content(item)}{_state_elements(item.kind, item.tier, item.lease)}"
        f"{'' if item.copy is None else _copy(item.copy)}"
        f"{_extra_properties(extra_properties) if extra_properties else ''}</Properties>"
        f"{'' if metadata is None else xml.metadata_element(metadata)}"
        f"{'' if item.tags is None else tags_element(item.tags)}"
        f"{'<HasVersionsOnly>true</HasVersionsOnly>' if item.only_versions else ''}"
        "<OrMetadata /></Blob>"
    )


@lru_cache(_REMEMBERED)
def _state_elements(kind: BlobKind, tier: TierItem | None, lease: LeaseItem | None) -> str:
    """Return the elements of the blob's kind and state, from BlobType to ServerEncrypted."""
    tiered, leased = "", ""
    if tier is not None:
        inferred = "<AccessTierInferred>true</AccessTierInferred>" if tier.is_inferred else ""
        tiered = f"<AccessTier>{tier.name}</AccessTier>{inferred}"
    if lease is not None:
        leased = (
            f"<LeaseStatus>{lease.status}</LeaseStatus><LeaseState>{lease.state}</LeaseState>"
            f"{xml.optional_element('LeaseDuration', lease.duration)}"
        )
    return (
        f"<BlobType>{kind.type_text}</BlobType>{tiered}{leased}"
        "<ServerEncrypted>true</ServerEncrypted>"
    )


def _extra_properties(pairs: tuple[tuple[str, str], ...]) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in pairs)


def _content(item: BlobItem) -> str:
    if item.modified is None:
        return "<Content-Length>0</Content-Length>"
    given = item.properties
    return (
        f"<Creation-Time>{rfc1123(item.created)}</Creation-Time>"
        f"<Last-Modified>{rfc1123(item.modified)}</Last-Modified>"
        f"<Etag>0x{item.stamp:X}</Etag><Content-Length>{item.size_bytes}</Content-Length>"
        f"{_type_elements(given.content_type, given.encoding, given.language)}"
        f"{xml.element('Content-MD5', given.content_md5)}"
        f"{_cache_elements(given.cache_control, given.disposition)}"
    )


@lru_cache(_REMEMBERED)
def _type_elements(content_type: str | None, encoding: str | None, language: str | None) -> str:
    return (
        f"{xml.element('Content-Type', content_type)}{xml.element('Content-Encoding', encoding)}"
        f"{xml.element('Content-Language', language)}<Content-CRC64 />"
    )


@lru_cache(_REMEMBERED)
def _cache_elements(cache_control: str | None, disposition: str | None) -> str:
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
