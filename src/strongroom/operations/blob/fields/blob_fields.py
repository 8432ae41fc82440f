"""The fields of blobs' operations: properties, digests, ranges, tags, tiers.

One named field per header of the reference. Source: request headers of the operations' pages;
section 2 of the reference.
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError, invalid_header
from strongroom.operations.core.fields import (
    STRUCTURED_BODY,
    filled,
    flag,
    header,
    is_structured,
    one_of,
)
from strongroom.operations.core.spec import BodyKind, Field
from strongroom.semantics.blob import encryption_scopes, tags, tiers
from strongroom.semantics.blob.snapshots import DELETE_TYPE as TYPE_PARAMETER
from strongroom.semantics.blob.snapshots import check_delete_type, delete_option
from strongroom.services.blob.bodies import structured
from strongroom.services.blob.bodies.intake import NO_DIGESTS, Digests
from strongroom.values import ContentProperties
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

# The headers of each stored property: the blob's own header takes precedence over the standard one.
_PROPERTY_HEADERS: Final = (
    ("content_type", "x-ms-blob-content-type", "content-type"),
    ("encoding", "x-ms-blob-content-encoding", "content-encoding"),
    ("language", "x-ms-blob-content-language", "content-language"),
    ("cache_control", "x-ms-blob-cache-control", "cache-control"),
    ("disposition", "x-ms-blob-content-disposition", "content-disposition"),
)
_MD5: Final = "x-ms-blob-content-md5"
DEFAULT_CONTENT_TYPE: Final = "application/octet-stream"


def _properties(
    request: Request, standard: bool = False, default_type: str | None = None
) -> ContentProperties:
    """Each property is the value of its first header that is not empty.

    Arguments:
        standard: whether standard headers are used if the blob's own are missing.
        default_type: the content type if no header gives one.
    """
    get = request.headers.get
    texts: list[str | None] = []
    for _, own, other in _PROPERTY_HEADERS:
        name, value = own, get(own)
        if standard and not value:
            name, value = other, get(other)
        texts.append(_short(name, value) if value else None)
    content_type, encoding, language, cache_control, disposition = texts
    content_type = content_type or default_type
    digest = _short(_MD5, get(_MD5))
    md5, other_md5 = (None, None) if digest is None else wire.unchecked_md5(digest)
    return ContentProperties(
        content_type, encoding, language, md5, cache_control, disposition, other_md5
    )


def _short(name: str, value: str | None) -> str | None:
    """None if the value is empty."""
    if value is not None and len(value) > limits.PROPERTY_CHARS_MAX:
        raise invalid_header(name, value, "The value is longer than 4,096 characters.")
    return value or None


_OWN_NAMES: Final = (*(own for _, own, _ in _PROPERTY_HEADERS), _MD5)
OWN_PROPERTIES: Final = Field(
    "properties",
    lambda request, _: _properties(request, default_type=DEFAULT_CONTENT_TYPE),
    headers=_OWN_NAMES,
)
"""The properties from the x-ms-blob-* headers. A property that was not sent is None, except the
content type, which has a default."""
GIVEN_PROPERTIES: Final = Field(
    "properties", lambda request, _: _properties(request), headers=_OWN_NAMES
)
"""The same without a default type. Put Blob From URL takes missing properties from its source."""
BODY_PROPERTIES: Final = Field(
    "properties",
    lambda request, _: _properties(request, standard=True, default_type=DEFAULT_CONTENT_TYPE),
    headers=(*_OWN_NAMES, *(standard for _, _, standard in _PROPERTY_HEADERS)),
)
"""The properties of Put Blob. A standard header, such as Content-Type, counts if the x-ms-blob-*
header is missing."""


def _digests(request: Request, query: Query) -> Digests:
    md5 = filled(request, "content-md5")
    crc64 = request.headers.get("x-ms-content-crc64")
    if md5 is None and crc64 is None:
        return NO_DIGESTS
    if md5 is not None and crc64 is not None:
        raise StorageError(errors.BOTH_CRC64_AND_MD5_HEADER_PRESENT)
    return Digests(
        None if md5 is None else wire.md5(md5),
        None if crc64 is None else wire.crc64("x-ms-content-crc64", crc64),
    )


def _body_digests(request: Request, query: Query) -> Digests:
    digests, own = _digests(request, query), request.headers.get(_MD5)
    return Digests(wire.md5(own), digests.crc64) if own else digests


_DIGEST_HEADERS: Final = ("content-md5", "x-ms-content-crc64")
DIGESTS: Final = Field("digests", _digests, headers=_DIGEST_HEADERS)
BODY_DIGESTS: Final = Field("digests", _body_digests, headers=(*_DIGEST_HEADERS, _MD5))
"""The digests of Put Blob. x-ms-blob-content-md5 takes precedence over Content-MD5."""


def _no_page_headers(request: Request, query: Query) -> None:
    for name in ("x-ms-blob-content-length", "x-ms-blob-sequence-number"):
        value = request.headers.get(name)
        if value is not None:
            raise invalid_header(name, value, "The header is for page blobs.")


NO_PAGE_HEADERS: Final = Field("", _no_page_headers)
"""Refuses headers that apply only to page blobs. It sets no field."""

# Only a page blob has these headers. A request with no other property header leaves the six
# properties unchanged.
_PAGE_NAMES: Final = frozenset(
    ("x-ms-blob-content-length", "x-ms-blob-sequence-number", "x-ms-sequence-number-action")
)


def _new_properties(request: Request, query: Query) -> ContentProperties | None:
    sent = request.headers
    if sent.has_none_of(_OWN_NAMES) and not sent.has_none_of(_PAGE_NAMES):
        return None
    return _properties(request)


NEW_PROPERTIES: Final = Field("properties", _new_properties, headers=(*_OWN_NAMES, *_PAGE_NAMES))
"""The six properties of Set Blob Properties, where a property that was not sent is None. The field
is None if the request is only about a page blob's size or sequence number."""
DELETE_SNAPSHOTS: Final = header(
    "snapshots", "x-ms-delete-snapshots", lambda _, value: delete_option(value)
)
DELETE_TYPE: Final = Field(
    "", lambda _, query: check_delete_type(query.get(TYPE_PARAMETER)), query=(TYPE_PARAMETER,)
)
TIER_MODIFIED_SINCE: Final = header(
    "tier_modified_since", "x-ms-access-tier-if-modified-since", wire.date
)
TIER_UNMODIFIED_SINCE: Final = header(
    "tier_unmodified_since", "x-ms-access-tier-if-unmodified-since", wire.date
)
DELETION: Final = (DELETE_SNAPSHOTS, DELETE_TYPE, TIER_MODIFIED_SINCE, TIER_UNMODIFIED_SINCE)
"""The fields that every form of Delete Blob accepts."""
RANGE_MD5: Final = header("range_md5", "x-ms-range-get-content-md5", flag, default=False)
RANGE_CRC64: Final = header("range_crc64", "x-ms-range-get-content-crc64", flag, default=False)
TAGS: Final = header("tags", "x-ms-tags", lambda name, value: tags.from_header(value), default=())
TIER: Final = header("tier", tiers.HEADER, tiers.read_tier)
NEW_TIER: Final = header("tier", tiers.HEADER, tiers.read_any_tier, required=True)
REHYDRATE_PRIORITY: Final = header(
    "priority",
    "x-ms-rehydrate-priority",
    one_of(tiers.HIGH, tiers.STANDARD),
    default=tiers.STANDARD,
)
STRUCTURED_ANSWER: Final = header("structured", STRUCTURED_BODY, is_structured, default=False)
SCOPE: Final = header("", encryption_scopes.HEADER, encryption_scopes.read_scope)
"""The encryption scope. The call has it among its terms, so this sets no field."""
CONTENT: Final = BodyKind(unframe=structured.StructuredContent)
"""The bytes of a blob or block, as they are or as a structured message."""
