"""The answer of List Blobs.

Source: "List Blobs"; the order of elements is that of Azure's answers. One template writes each
blob, because a page may have 5,000 of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

import msgspec

from strongroom.values import (
    BlobKind,
    ContentProperties,
    Etag,
    Metadata,
    iso7,
    md5_text,
    rfc1123,
)
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


class ListedBlob(Protocol):
    """A blob's state as it is stored. Times are ticks.

    `committed` False means that it has only uncommitted blocks: no times, ETag or content
    properties.
    """

    @property
    def kind(self) -> BlobKind: ...
    @property
    def committed(self) -> bool: ...
    @property
    def shown_etag(self) -> Etag: ...
    @property
    def created(self) -> int: ...
    @property
    def modified(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def properties(self) -> ContentProperties: ...


class BlobDetails(msgspec.Struct, frozen=True, gc=False):
    """The parts of a blob's element that few blobs have, or that only some requests ask for.

    `snapshot` is the ticks of a snapshot, `version` the id of a version in ticks (0 = none).
    `is_current`: whether a version is the current one. `only_versions`: there is no blob, but there
    are versions of it. `more_properties` follow ServerEncrypted, in the service's order. `copy`,
    `metadata` and `tags` are None unless requested.
    """

    snapshot: int | None = None
    version: int = 0
    is_current: bool = True
    is_deleted: bool = False
    only_versions: bool = False
    copy: CopyItem | None = None
    more_properties: tuple[tuple[str, str], ...] = ()
    metadata: Metadata | None = None
    tags: tuple[tuple[str, str], ...] | None = None


class BlobItem(msgspec.Struct, frozen=True, gc=False):
    """One blob, snapshot or version. `details` None = it has none.

    `lease` None leaves the lease out (snapshots, soft-deleted blobs), `tier` None the access tier.
    """

    name: str
    blob: ListedBlob
    lease: LeaseItem | None = None
    tier: TierItem | None = None
    details: BlobDetails | None = None


class BlobPrefix(msgspec.Struct, frozen=True, gc=False):
    """A common prefix of names, which a delimiter ends."""

    name: str


class ListQuery(msgspec.Struct, frozen=True):
    """The parts of the request that a page repeats; `delimiter` None = it was not given."""

    page_request: xml.PageRequest
    container: str
    delimiter: str | None = None


def write_blobs(
    query: ListQuery, items: Iterable[BlobItem | BlobPrefix], next_marker: str
) -> Iterator[bytes]:
    """The page as XML, piece by piece; `next_marker` is empty on the last page."""
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
    return xml.pieces(head, map(_row, items), tail)


def _asked(tag: str, text: str) -> str:
    return xml.name_element(text, tag) if text else f"<{tag} />"


def _row(item: BlobItem | BlobPrefix) -> str:
    if isinstance(item, BlobPrefix):
        return f"<BlobPrefix>{xml.name_element(item.name)}</BlobPrefix>"
    blob, details = item.blob, item.details
    heading = properties = ending = ""
    if details is not None:
        heading, properties, ending = _heading(details), _properties(details), _ending(details)
    return (
        f"<Blob>{xml.name_element(item.name)}{heading}"
        f"<Properties>{_content(blob)}{_state_elements(blob.kind, item.tier, item.lease)}"
        f"{properties}</Properties>{ending}<OrMetadata /></Blob>"
    )


def _heading(details: BlobDetails) -> str:
    snapshot, version = details.snapshot, details.version
    return (
        f"{'' if snapshot is None else f'<Snapshot>{iso7(snapshot)}</Snapshot>'}"
        f"{version_elements(version, details.is_current) if version else ''}"
        f"{'<Deleted>true</Deleted>' if details.is_deleted else ''}"
    )


def _properties(details: BlobDetails) -> str:
    more = [f"<{name}>{escape(value)}</{name}>" for name, value in details.more_properties]
    return "".join(more) if details.copy is None else _copy(details.copy) + "".join(more)


def _ending(details: BlobDetails) -> str:
    return (
        f"{xml.metadata_element(details.metadata)}"
        f"{'' if details.tags is None else tags_element(details.tags)}"
        f"{'<HasVersionsOnly>true</HasVersionsOnly>' if details.only_versions else ''}"
    )


@lru_cache(_REMEMBERED)
def _state_elements(kind: BlobKind, tier: TierItem | None, lease: LeaseItem | None) -> str:
    """The elements of the blob's kind and state, from BlobType to ServerEncrypted."""
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


def _content(blob: ListedBlob) -> str:
    if not blob.committed:
        return "<Content-Length>0</Content-Length>"
    content, modified = blob.properties, rfc1123(blob.modified)
    # Most blobs are written once.
    created = modified if blob.created == blob.modified else rfc1123(blob.created)
    return (
        f"<Creation-Time>{created}</Creation-Time><Last-Modified>{modified}</Last-Modified>"
        f"<Etag>{_bare_etag(blob.shown_etag)}</Etag>"
        f"<Content-Length>{blob.size_bytes}</Content-Length>"
        f"{_type_elements(content.content_type, content.encoding, content.language)}"
        f"{_md5_element(content)}{_cache_elements(content.cache_control, content.disposition)}"
    )


def _bare_etag(etag: Etag) -> str:
    """Without its quotes, as List Blobs writes it."""
    return etag[1:-1] if isinstance(etag, str) else f"0x{etag:X}"


def _md5_element(content: ContentProperties) -> str:
    if content.md5 is None:
        return xml.element("Content-MD5", content.other_md5)
    return f"<Content-MD5>{md5_text(content.md5)}</Content-MD5>"


@lru_cache(_REMEMBERED)
def _type_elements(content_type: str | None, encoding: str | None, language: str | None) -> str:
    return (
        f"{xml.element('Content-Type', content_type)}{xml.element('Content-Encoding', encoding)}"
        f"{xml.element('Content-Language', language)}<Content-CRC64 />"
    )


def _cache_elements(cache_control: str | None, disposition: str | None) -> str:
    if not cache_control and not disposition:
        return "<Cache-Control /><Content-Disposition />"
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
