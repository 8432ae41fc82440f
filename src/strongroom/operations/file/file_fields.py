"""The fields of operations on directories and files: how each is read.

Source: request headers and parameters of "Operations on directories" and "Operations on files";
reference file.md 3 to 5.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError, invalid_header, missing_header, not_served
from strongroom.operations.core.fields import (
    RANGE_HEADERS,
    filled,
    flag,
    header,
    parameter,
    sent_range,
)
from strongroom.operations.core.listing_fields import max_results
from strongroom.operations.core.spec import Field
from strongroom.operations.file import binary_permissions
from strongroom.semantics.core import listing
from strongroom.semantics.core.snapshot_times import snapshot_time
from strongroom.semantics.file import permissions as rules
from strongroom.services.file.names.permissions import TEXT_BYTES_MAX, PermissionGiven, read_header
from strongroom.services.file.names.smb_properties import SmbProperties
from strongroom.services.file.rest.listing import INCLUDES
from strongroom.services.file.rest.ranges import read_marker
from strongroom.values import ByteRange, ContentProperties
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

_TRAILING_DOT: Final = "x-ms-allow-trailing-dot"
_PERMISSION: Final = "x-ms-file-permission"
_PERMISSION_KEY: Final = "x-ms-file-permission-key"

TRAILING_DOTS: Final = header("trailing_dots", _TRAILING_DOT, flag, default=False)


def _no_trailing_dots(request: Request, query: Query) -> None:
    value = request.headers.get(_TRAILING_DOT)
    if value is not None and flag(_TRAILING_DOT, value):
        raise not_served(f"The header {_TRAILING_DOT} with a lease")


NO_TRAILING_DOTS: Final = Field("", _no_trailing_dots, headers=(_TRAILING_DOT,))
"""Refuses a request for trailing dots, which the operation does not support. It sets no field."""


def _size(name: str, value: str) -> int:
    return wire.integer(name, value, 0, limits.FILE_BYTES_MAX)


SIZE: Final = header("size_bytes", "x-ms-content-length", _size, required=True)
NEW_SIZE: Final = header("size_bytes", "x-ms-content-length", _size)

_SMB: Final = {
    "attributes": "x-ms-file-attributes",
    "creation": "x-ms-file-creation-time",
    "last_write": "x-ms-file-last-write-time",
    "change": "x-ms-file-change-time",
}


PERMISSION_HEADERS: Final = (_PERMISSION, _PERMISSION_KEY)


def _text(value: str, form: str) -> str | None:
    """The SDDL of x-ms-file-permission; None for `inherit` and `preserve`."""
    if binary_permissions.is_binary(form) and value.lower() not in (rules.INHERIT, rules.PRESERVE):
        if len(value) > rules.HEADER_BYTES_MAX:
            raise StorageError(file_errors.FILE_INVALID_PERMISSION)
        value = binary_permissions.text_of(value)
        return rules.check_sddl(value, TEXT_BYTES_MAX)
    return read_header(_PERMISSION, value)


def smb(request: Request, query: Query) -> SmbProperties:
    text, key = request.headers.get(_PERMISSION), request.headers.get(_PERMISSION_KEY)
    if text is not None and key is not None:
        raise invalid_header(_PERMISSION, text, f"It excludes {_PERMISSION_KEY}.")
    form = binary_permissions.read_format(request, query)
    permission = PermissionGiven(
        None if text is None else _text(text, form),
        None if key is None else rules.check_key(key),
    )
    texts = {field: filled(request, name) for field, name in _SMB.items()}
    return SmbProperties(permission=permission, **texts)


SMB: Final = Field(
    "smb",
    smb,
    headers=(_PERMISSION, _PERMISSION_KEY, binary_permissions.HEADER, *_SMB.values()),
)
"""All SMB properties."""


LAST_WRITE: Final = Field(
    "smb",
    lambda request, _: SmbProperties(last_write=filled(request, _SMB["last_write"])),
    headers=(_SMB["last_write"],),
)
"""The one SMB property that Put Range takes."""

_PROPERTIES: Final = {
    "content_type": "x-ms-content-type",
    "encoding": "x-ms-content-encoding",
    "language": "x-ms-content-language",
    "cache_control": "x-ms-cache-control",
    "disposition": "x-ms-content-disposition",
}
_MD5: Final = "x-ms-content-md5"
_PROPERTY_HEADERS: Final = (*_PROPERTIES.values(), _MD5)
_DEFAULT_TYPE: Final = "application/octet-stream"


def _properties(request: Request) -> ContentProperties:
    texts: dict[str, Any] = {}
    for field, name in _PROPERTIES.items():
        value = filled(request, name)
        if value is not None and len(value) > limits.PROPERTY_CHARS_MAX:
            raise invalid_header(name, value, "The value is longer than 4,096 characters.")
        texts[field] = value
    digest = filled(request, _MD5)
    if digest is not None and len(digest) > limits.PROPERTY_CHARS_MAX:
        raise invalid_header(_MD5, digest, "The value is longer than 4,096 characters.")
    md5, other_md5 = (None, None) if digest is None else wire.unchecked_md5(digest)
    return ContentProperties(md5=md5, other_md5=other_md5, **texts)


def _created_properties(request: Request, query: Query) -> ContentProperties:
    properties = _properties(request)
    return msgspec.structs.replace(
        properties, content_type=properties.content_type or _DEFAULT_TYPE
    )


def _new_properties(request: Request, query: Query) -> ContentProperties | None:
    if request.headers.has_none_of(frozenset(_PROPERTY_HEADERS)):
        return None
    return _properties(request)


PROPERTIES: Final = Field("properties", _created_properties, headers=_PROPERTY_HEADERS)
NEW_PROPERTIES: Final = Field("properties", _new_properties, headers=_PROPERTY_HEADERS)
"""The six content properties, where a property that was not sent is None. The field is None if none
was sent."""


def _asked_range(request: Request) -> ByteRange | None:
    sent = sent_range(request)
    span = None if sent is None else wire.byte_range(sent[1])
    if sent is not None and span is None:
        raise invalid_header(*sent)
    return span


def _span(request: Request, query: Query) -> tuple[int, int]:
    span = _asked_range(request)
    if span is None:
        raise missing_header("x-ms-range")
    if span.last is None:
        raise invalid_header("x-ms-range", f"bytes={span.first}-", "It has no end.")
    return span.first, span.last - span.first + 1


SPAN: Final = Field("span", _span, headers=RANGE_HEADERS)
LISTED_RANGE: Final = Field(
    "range", lambda request, query: _asked_range(request), headers=RANGE_HEADERS
)
PREVIOUS: Final = parameter(
    "previous", "prevsharesnapshot", lambda name, value: snapshot_time(value, name)
)
_RENAMES: Final = "x-ms-file-support-rename"


def _follows_renames(request: Request, query: Query) -> bool:
    value = request.headers.get(_RENAMES)
    if value is None:
        return False
    if query.get("prevsharesnapshot") is None:
        raise invalid_header(_RENAMES, value, "It needs prevsharesnapshot.")
    return flag(_RENAMES, value)


FOLLOWS_RENAMES: Final = Field("follows_renames", _follows_renames, headers=(_RENAMES,))
RANGE_MARKER: Final = parameter("marker", "marker", read_marker)
RANGE_COUNT: Final = max_results(limits.PAGE_RANGES_MAX, None)
RANGE_MD5: Final = header("range_md5", "x-ms-range-get-content-md5", flag, default=False)
BODY_MD5: Final = Field(
    "md5",
    lambda request, query: (
        None if (value := filled(request, "content-md5")) is None else wire.md5(value)
    ),
    headers=("content-md5",),
)


def _no_md5(request: Request, query: Query) -> None:
    value = filled(request, "content-md5")
    if value is not None:
        raise invalid_header("content-md5", value, "A request that clears a range has no body.")


NO_MD5: Final = Field("", _no_md5, headers=("content-md5",))
"""Refuses a digest in a request without a body. It sets no field."""


def _infinite(name: str, value: str) -> int:
    if value != "-1":
        raise invalid_header(name, value, "The lease of a file is infinite: -1.")
    return -1


INFINITE: Final = header("duration_s", "x-ms-lease-duration", _infinite, required=True)


def _no_body(request: Request, query: Query) -> None:
    value = request.headers.get("content-length")
    if value not in (None, "", "0"):
        raise invalid_header("Content-Length", value or "", "The request has no body.")


NO_BODY: Final = Field("", _no_body)
"""Refuses a body. It sets no field."""

MARKER: Final = parameter(
    "start", "marker", lambda name, value: listing.decode_marker(value), default=listing.START
)
INCLUDE: Final = Field(
    "include",
    lambda request, query: query.comma_list("include", INCLUDES),
    query=("include",),
)
EXTENDED: Final = header("is_extended", "x-ms-file-extended-info", flag, default=False)
KEY: Final = header(
    "key", _PERMISSION_KEY, lambda name, value: rules.check_key(value), required=True
)

FORMAT: Final = Field("form", binary_permissions.read_format, headers=(binary_permissions.HEADER,))


class _PermissionDocument(msgspec.Struct, frozen=True):
    permission: str
    format: str = "Sddl"


def read_permission(body: bytes) -> str:
    """The SDDL in the body of Create Permission, which may have its binary form."""
    try:
        document = msgspec.json.decode(body, type=_PermissionDocument)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        message = 'The body must be JSON like {"permission": "<SDDL>"}.'
        raise StorageError(errors.INVALID_INPUT, message) from None
    if binary_permissions.is_binary(document.format):
        return rules.check_sddl(binary_permissions.text_of(document.permission), TEXT_BYTES_MAX)
    if document.format.lower() != "sddl":
        raise StorageError(errors.INVALID_INPUT, "The format must be sddl or binary.")
    return rules.check_sddl(document.permission, TEXT_BYTES_MAX)
