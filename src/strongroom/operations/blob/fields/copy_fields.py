"""The fields of operations that read a source by its URL: copies and From URL operations.

One named field per header of the reference. Source: request headers of "Copy Blob", "Copy Blob From
URL", "Abort Copy Blob", "Put Blob From URL", "Put Block From URL", "Put Page From URL".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError, invalid_header, missing_header, not_served
from strongroom.operations.core.copies import (
    AUTHORIZATION_HEADER,
    CRC64_HEADER,
    RANGE_HEADER,
    SOURCE_HEADER,
    authorization,
    source_range,
)
from strongroom.operations.core.fields import (
    condition_headers,
    conditions,
    filled,
    flag,
    header,
    one_of,
)
from strongroom.operations.core.spec import Field
from strongroom.semantics.blob import tiers
from strongroom.services.blob.bodies.intake import NO_DIGESTS, Digests
from strongroom.services.blob.from_url.source import UrlSource
from strongroom.services.core.copies.sources import SourceRequest
from strongroom.values import md5_text
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

_TAG_OPTION: Final = "x-ms-copy-source-tag-option"
_SOURCE_MD5: Final = "x-ms-source-content-md5"
_BODY_MD5: Final = "content-md5"
_BLOB_MD5: Final = "x-ms-blob-content-md5"
_LENGTH: Final = "content-length"
_MD5_OF_NOTHING: Final = "1B2M2Y8AsgTpgAmY7PhCfg=="
TIER: Final = header("tier", tiers.HEADER, tiers.read_any_tier)
"""The tier of a copy. The valid tiers depend on the type of the source."""
SEAL: Final = header("seal", "x-ms-seal-blob", flag)
SOURCE_MD5: Final = header(
    "source_md5",
    _SOURCE_MD5,
    lambda _, value: wire.md5(value),
    may_be_empty=True,
)
SOURCE_CONDITIONS: Final = Field(
    "source_conditions",
    lambda request, query: conditions(request, "x-ms-source-"),
    headers=condition_headers("x-ms-source-"),
)


def _copies_tags(request: Request, query: Query) -> bool:
    """Whether the copy takes the tags of its source. COPY together with x-ms-tags has an error of
    its own."""
    value = request.headers.get(_TAG_OPTION)
    if value is None or one_of("COPY", "REPLACE")(_TAG_OPTION, value) == "REPLACE":
        return False
    if request.headers.get("x-ms-tags") is not None:
        raise StorageError(blob_errors.BOTH_TAGS_AND_SOURCE_TAGS)
    return True


COPIES_TAGS: Final = Field("copies_tags", _copies_tags, headers=(_TAG_OPTION, "x-ms-tags"))


def _no_authorization(request: Request, query: Query) -> None:
    if request.headers.get(AUTHORIZATION_HEADER) is not None:
        raise not_served(f"The header {AUTHORIZATION_HEADER} of Copy Blob")
    option = request.headers.get(_TAG_OPTION)
    if option is not None:
        one_of("REPLACE")(_TAG_OPTION, option)


NOT_OF_PENDING_COPIES: Final = Field(
    "", _no_authorization, headers=(AUTHORIZATION_HEADER, _TAG_OPTION)
)
"""Refuses headers that apply only to copies that are complete when answered. It sets no field."""


def _require_no_body(request: Request) -> None:
    """Refuse a request that has a body of its own."""
    if request.body.size_bytes != 0:
        value = request.headers.get(_LENGTH) or ""
        raise invalid_header(_LENGTH, value, "The body comes from the copy source: it must be 0.")


def _source_digests(request: Request, md5_headers: tuple[str, ...]) -> Digests:
    """The digests that the source's bytes must have. Two that differ are refused."""
    said: bytes | None = None
    for name in md5_headers:
        value = filled(request, name)
        if value is None or (name == _BODY_MD5 and value == _MD5_OF_NOTHING):
            continue  # such a Content-MD5 is that of the request's own empty body
        digest = wire.md5(value)
        if said is not None and digest != said:
            text = f"The MD5 differs from the one of another header, {md5_text(said)}."
            raise invalid_header(name, value, text)
        said = digest
    value = request.headers.get(CRC64_HEADER)
    if value is None:
        return NO_DIGESTS if said is None else Digests(said)
    if said is not None:
        raise StorageError(errors.BOTH_CRC64_AND_MD5_HEADER_PRESENT)
    return Digests(None, wire.crc64(CRC64_HEADER, value))


def _wanted(request: Request, query: Query, *, is_whole: bool) -> SourceRequest:
    return SourceRequest(
        conditions(request, "x-ms-source-"),
        None if is_whole else source_range(request),
        authorization(request, query),
        is_read=True,
        with_tags=is_whole and _copies_tags(request, query),
    )


def _url_source(request: Request, query: Query, *, is_whole: bool) -> UrlSource:
    url = request.headers.get(SOURCE_HEADER)
    if url is None:
        raise missing_header(SOURCE_HEADER)
    _require_no_body(request)
    md5_headers = (_SOURCE_MD5, _BODY_MD5, _BLOB_MD5) if is_whole else (_SOURCE_MD5, _BODY_MD5)
    return UrlSource(
        url, _wanted(request, query, is_whole=is_whole), _source_digests(request, md5_headers)
    )


_SOURCE_HEADERS: Final = (
    SOURCE_HEADER,
    AUTHORIZATION_HEADER,
    _SOURCE_MD5,
    CRC64_HEADER,
    _BODY_MD5,
    _LENGTH,
    *condition_headers("x-ms-source-"),
)
SOURCE_RANGE: Final = Field(
    "source",
    lambda request, query: _url_source(request, query, is_whole=False),
    headers=(*_SOURCE_HEADERS, RANGE_HEADER),
)
"""The source of Put Block From URL and Append Block From URL."""


def _source_pages(request: Request, query: Query) -> UrlSource:
    """The source and a range of it, which must be sent and have an end."""
    source = _url_source(request, query, is_whole=False)
    span = source.wanted.range
    if span is None:
        raise missing_header(RANGE_HEADER)
    if span.last is None:
        value = request.headers.get(RANGE_HEADER) or ""
        raise invalid_header(RANGE_HEADER, value, "The range must have an end: bytes=FIRST-LAST.")
    return source


SOURCE_PAGES: Final = Field("source", _source_pages, headers=(*_SOURCE_HEADERS, RANGE_HEADER))
"""The source of Put Page From URL."""
WHOLE_SOURCE: Final = Field(
    "source",
    lambda request, query: _url_source(request, query, is_whole=True),
    headers=(*_SOURCE_HEADERS, _BLOB_MD5, _TAG_OPTION, "x-ms-tags"),
)
"""The source of Put Blob From URL."""
COPIES_PROPERTIES: Final = header(
    "copies_properties", "x-ms-copy-source-blob-properties", flag, default=True
)
