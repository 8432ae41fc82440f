"""Declarations: Put Range from URL, and the fields that only it has.

Lives here: data, and how the source's URL is read. Must not live here: behaviour. Source: "Put
Range from URL"; docs/operations/file.md, table "Files".
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from strongroom import blob_errors, errors, file_errors
from strongroom.errors import StorageError, invalid_header, missing_header
from strongroom.operations.core import permissions
from strongroom.operations.core.fields import filled
from strongroom.operations.core.spec import Field, Operation, Resource, Returned, When
from strongroom.operations.core.unserved import not_served
from strongroom.operations.file import file_fields as fields
from strongroom.operations.file import file_returned as give
from strongroom.operations.file.file import CHANGES, WRITES
from strongroom.operations.file.rename import SOURCE_TRAILING_DOTS
from strongroom.services.file import from_url
from strongroom.services.file.from_url import FileSource
from strongroom.values import crc64_text
from strongroom.wire.core import headers as wire
from strongroom.wire.core import path
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

_SOURCE: Final = "x-ms-copy-source"
_RANGE: Final = "x-ms-source-range"
_CHARS_MAX: Final = 2 * 1024
# What would have to be compared with the source, or shown to another server.
_UNSERVED: Final = (
    *("x-ms-source-content-crc64", "x-ms-source-if-match-crc64"),
    *("x-ms-source-if-none-match-crc64", "x-ms-copy-source-authorization"),
)


def _source(request: Request, query: Query) -> FileSource | None:
    """The file that the URL names in path style; None for a URL of another host."""
    url = filled(request, _SOURCE)
    if url is None:
        raise missing_header(_SOURCE)
    for name in _UNSERVED:
        if filled(request, name) is not None:
            raise not_served(f"The header {name}")
    if len(url) > _CHARS_MAX:
        raise invalid_header(_SOURCE, url[:256], "It is longer than 2,048 characters.")
    try:
        parts = urlsplit(url)
        named = path.parse(parts.path, None, request.mount)
    except (ValueError, StorageError):
        raise invalid_header(_SOURCE, url) from None
    is_here = parts.netloc.lower() == request.host.lower() and "sharesnapshot" not in parts.query
    if not is_here or named.secondary:
        return None
    if named.container is None or named.blob is None:
        raise invalid_header(_SOURCE, url, "It names no file.")
    return FileSource(named.account, named.container, named.blob.removesuffix("/"))


def _source_span(request: Request, query: Query) -> tuple[int, int]:
    value = filled(request, _RANGE)
    if value is None:
        raise missing_header(_RANGE)
    found = wire.byte_range(value)
    if found is None or found.last is None:
        raise invalid_header(_RANGE, value, "It must read bytes=FIRST-LAST.")
    return found.first, found.last - found.first + 1


SOURCE: Final = Field("source", _source, headers=(_SOURCE, *_UNSERVED))
SOURCE_SPAN: Final = Field("source_span", _source_span, headers=(_RANGE,))

PUT_RANGE_FROM_URL: Final = Operation(
    name="Put Range from URL",
    id="file_upload_range_from_url",
    methods=("PUT",),
    resource=Resource.FILE,
    comp="range",
    when=(When("x-ms-write", "update"), When(_SOURCE)),
    permission=permissions.FILE_WRITE,
    rule=WRITES,
    input=from_url.PutRangeFromUrl,
    accepts=(
        fields.SPAN,
        SOURCE,
        SOURCE_SPAN,
        SOURCE_TRAILING_DOTS,
        fields.LAST_WRITE,
        fields.TRAILING_DOTS,
        fields.NO_BODY,
    ),
    success=201,
    returns=(
        give.NODE_ETAG,
        give.NODE_LAST_MODIFIED,
        give.ENCRYPTED,
        give.LAST_WRITE,
        Returned("x-ms-content-crc64", lambda copied: crc64_text(copied.crc64)),
    ),
    fails=(
        *CHANGES,
        file_errors.INVALID_FILE_TIME,
        errors.INVALID_RANGE,
        errors.REQUEST_BODY_TOO_LARGE,
        blob_errors.CANNOT_VERIFY_COPY_SOURCE,
    ),
    run=from_url.put_range_from_url,
)

OPERATIONS: Final = (PUT_RANGE_FROM_URL,)
