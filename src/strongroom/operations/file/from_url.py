"""Declarations: Put Range from URL, and the fields that only it has.

Source: "Put Range from URL"; docs/operations/file.md, table "Files".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import invalid_header, missing_header
from strongroom.operations.core import permissions
from strongroom.operations.core.copies import (
    AUTHORIZATION_HEADER,
    COPY_SOURCE,
    CRC64_HEADER,
    RANGE_HEADER,
    SOURCE_HEADER,
    authorization,
    source_range,
)
from strongroom.operations.core.fields import filled, flag
from strongroom.operations.core.spec import Field, Operation, Resource, Returned, When
from strongroom.operations.file import file_fields as fields
from strongroom.operations.file import file_returned as give
from strongroom.operations.file.file import CHANGES, WRITES
from strongroom.operations.file.rename import SOURCE_DOTS_HEADER
from strongroom.services.core.copies.sources import SourceRequest
from strongroom.services.file.copies import from_url
from strongroom.services.file.copies.from_url import SourceDigests
from strongroom.values import crc64_text
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

_MATCH: Final = "x-ms-source-if-match-crc64"
_NONE_MATCH: Final = "x-ms-source-if-none-match-crc64"


def _wanted(request: Request, query: Query) -> SourceRequest:
    """A range of the source with both ends."""
    span = source_range(request)
    if span is None:
        raise missing_header(RANGE_HEADER)
    if span.last is None:
        value = request.headers.get(RANGE_HEADER) or ""
        raise invalid_header(RANGE_HEADER, value, "It must read bytes=FIRST-LAST.")
    dots = request.headers.get(SOURCE_DOTS_HEADER)
    return SourceRequest(
        range=span,
        authorization=authorization(request, query),
        is_read=True,
        trailing_dots=dots is not None and flag(SOURCE_DOTS_HEADER, dots),
    )


def _digests(request: Request, query: Query) -> SourceDigests:
    names = (CRC64_HEADER, _MATCH, _NONE_MATCH)
    sent = ((name, filled(request, name)) for name in names)
    return SourceDigests(
        *(None if value is None else wire.crc64(name, value) for name, value in sent)
    )


WANTED: Final = Field(
    "wanted", _wanted, headers=(RANGE_HEADER, AUTHORIZATION_HEADER, SOURCE_DOTS_HEADER)
)
DIGESTS: Final = Field("digests", _digests, headers=(CRC64_HEADER, _MATCH, _NONE_MATCH))

PUT_RANGE_FROM_URL: Final = Operation(
    name="Put Range from URL",
    id="file_upload_range_from_url",
    methods=("PUT",),
    resource=Resource.FILE,
    comp="range",
    when=(When("x-ms-write", "update"), When(SOURCE_HEADER)),
    permission=permissions.FILE_WRITE,
    rule=WRITES,
    input=from_url.PutRangeFromUrl,
    accepts=(
        fields.SPAN,
        COPY_SOURCE,
        WANTED,
        DIGESTS,
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
        errors.CRC64_MISMATCH,
        copy_errors.CANNOT_VERIFY_COPY_SOURCE,
        copy_errors.COPY_SOURCE_FORBIDDEN,
        copy_errors.COPY_SOURCE_UNAUTHENTICATED,
        copy_errors.COPY_SOURCE_CONDITION_NOT_MET,
        copy_errors.BLOB_ARCHIVED,
    ),
    run=from_url.put_range_from_url,
)

OPERATIONS: Final = (PUT_RANGE_FROM_URL,)
