"""Shared by the declarations of copies and of From URL operations: fields, and a copy's headers.

One named field per header that blobs and files have. Sources: "Copy Blob", "Copy File", "Put Block
From URL", "Put Range from URL"; answers of "Get Blob Properties" and "Get File Properties".
"""

from __future__ import annotations

import re
from typing import Final

from strongroom import limits
from strongroom.errors.core import invalid_header
from strongroom.operations.core.answers import Headers
from strongroom.operations.core.fields import filled, header, parameter
from strongroom.operations.core.spec import Field
from strongroom.semantics.core import copies
from strongroom.semantics.core.copies import Copy
from strongroom.values import ByteRange, rfc1123
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

SOURCE_HEADER: Final = "x-ms-copy-source"
AUTHORIZATION_HEADER: Final = "x-ms-copy-source-authorization"
RANGE_HEADER: Final = "x-ms-source-range"
CRC64_HEADER: Final = "x-ms-source-content-crc64"
_BEARER: Final = re.compile(r"[Bb]earer +[A-Za-z0-9._~+/-]+=*")

COPY_SOURCE: Final = header("source", SOURCE_HEADER, required=True)
COPY_ID: Final = parameter("copy_id", "copyid", required=True)


def _copy_wait_s(request: Request, query: Query) -> float:
    """At most three quarters of `timeout`: the rest is left for sending the answer in time."""
    text = query.get("timeout")
    return limits.COPY_WAIT_S if text is None else min(limits.COPY_WAIT_S, int(text[:9]) * 0.75)


COPY_WAIT: Final = Field("wait_s", _copy_wait_s, query=("timeout",))


def authorization(request: Request, query: Query) -> str | None:
    """The authorization for the copy source, `Bearer TOKEN`, or None. An error does not quote the
    value, since it is a secret."""
    value = filled(request, AUTHORIZATION_HEADER)
    if value is not None and _BEARER.fullmatch(value) is None:
        text = "The value must be a bearer token: Bearer TOKEN."
        raise invalid_header(AUTHORIZATION_HEADER, "", text)
    return value


AUTHORIZATION: Final = Field("authorization", authorization, headers=(AUTHORIZATION_HEADER,))


def source_range(request: Request) -> ByteRange | None:
    """The requested range of the source; None for the whole source.

    Only `bytes=a-` and `bytes=a-b` are accepted. A malformed range that a read would ignore must
    not become a copy of the whole source.
    """
    value = request.headers.get(RANGE_HEADER)
    if value is None:
        return None
    span = wire.byte_range(value)
    if span is None:
        text = "The range must read bytes=FIRST-LAST or bytes=FIRST-, with FIRST up to LAST."
        raise invalid_header(RANGE_HEADER, value, text)
    return span


def copy_headers(copy: Copy) -> Headers:
    """The headers about the last copy to a blob or file."""
    headers = [
        ("x-ms-copy-id", copy.id),
        ("x-ms-copy-source", copy.source),
        ("x-ms-copy-status", copy.status.value),
        ("x-ms-copy-progress", copies.progress_text(copy)),
    ]
    if copy.completed:
        headers.append(("x-ms-copy-completion-time", rfc1123(copy.completed)))
    if copy.description:
        headers.append(("x-ms-copy-status-description", copy.description))
    return tuple(headers)
