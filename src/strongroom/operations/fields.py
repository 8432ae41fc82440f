"""The fields that operations accept: which header or parameter, and how it is read.

Lives here: one named field per header of the reference, shared by all declarations. Must not live
here: what the values mean (services/, semantics/), or the codecs themselves (wire/headers.py).
Source: request headers of the operations' pages; section 2 of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from strongroom import errors, limits
from strongroom.errors import StorageError, invalid_header, missing_header
from strongroom.operations.spec import Field
from strongroom.semantics import names, tags
from strongroom.semantics.conditions import NONE, Conditions
from strongroom.semantics.snapshots import delete_option
from strongroom.services.intake import NO_DIGESTS, Digests
from strongroom.values import ContentProperties, Metadata
from strongroom.wire import headers as wire
from strongroom.wire.http import Request
from strongroom.wire.query import Query

Parse = Callable[[str, str], Any]


def text(name: str, value: str) -> str:
    """The header's value as it is."""
    return value


def header(
    field: str, name: str, parse: Parse = text, *, required: bool = False, default: Any = None
) -> Field:
    """A field read from one header; `default` when it was not sent."""

    def read(request: Request, query: Query) -> Any:
        value = request.headers.get(name)
        if value is None:
            if required:
                raise missing_header(name)
            return default
        return parse(name, value)

    return Field(field, read, headers=(name,))


def parameter(
    field: str, name: str, parse: Parse = text, *, required: bool = False, default: Any = None
) -> Field:
    """A field read from one query parameter; `default` when it was not sent."""

    def read(request: Request, query: Query) -> Any:
        value = query.require(name) if required else query.get(name)
        return default if value is None else parse(name, value)

    return Field(field, read, query=(name,))


def integer(minimum: int, maximum: int) -> Parse:
    """A whole number within bounds. Raises InvalidHeaderValue."""
    return lambda name, value: wire.integer(name, value, minimum, maximum)


def one_of(*allowed: str) -> Parse:
    """One of a few words, in any case. Raises InvalidHeaderValue."""
    return lambda name, value: wire.one_of(name, value, allowed)


def _metadata(request: Request, query: Query) -> Metadata:
    if not request.headers.any_name_holds(wire.METADATA_PREFIX):
        return ()
    return names.check_metadata(wire.metadata(request.headers.fields))


METADATA: Final = Field("metadata", _metadata, headers=("x-ms-meta",))

# Where each stored property is read from: the blob's own header wins, else the standard one.
_PROPERTY_HEADERS: Final = (
    ("content_type", "x-ms-blob-content-type", "content-type"),
    ("encoding", "x-ms-blob-content-encoding", "content-encoding"),
    ("language", "x-ms-blob-content-language", "content-language"),
    ("cache_control", "x-ms-blob-cache-control", "cache-control"),
    ("disposition", "x-ms-blob-content-disposition", "content-disposition"),
)
_MD5: Final = "x-ms-blob-content-md5"
DEFAULT_CONTENT_TYPE: Final = "application/octet-stream"


def _properties(request: Request, standard: bool) -> ContentProperties:
    """Of each property, the first header that says something. Raises InvalidHeaderValue when it is
    too long."""
    get = request.headers.get
    md5 = get(_MD5)
    texts: list[str | None] = []
    for _, own, other in _PROPERTY_HEADERS:
        value = get(own) or (get(other) if standard else None) or None
        if value is not None and len(value) > limits.PROPERTY_CHARS_MAX:
            name = own if get(own) else other
            raise invalid_header(name, value, "The value is longer than 4,096 characters.")
        texts.append(value)
    content_type, encoding, language, cache_control, disposition = texts
    return ContentProperties(
        content_type or DEFAULT_CONTENT_TYPE,
        encoding,
        language,
        wire.md5(md5) if md5 else None,
        cache_control,
        disposition,
    )


def _own_properties(request: Request, query: Query) -> ContentProperties:
    return _properties(request, standard=False)


def _body_properties(request: Request, query: Query) -> ContentProperties:
    return _properties(request, standard=True)


_OWN_NAMES: Final = (*(own for _, own, _ in _PROPERTY_HEADERS), _MD5)
OWN_PROPERTIES: Final = Field("properties", _own_properties, headers=_OWN_NAMES)
"""Properties from the x-ms-blob-* headers only; what is not given is None, but for the type."""
BODY_PROPERTIES: Final = Field(
    "properties",
    _body_properties,
    headers=(*_OWN_NAMES, *(standard for _, _, standard in _PROPERTY_HEADERS)),
)
"""Properties of Put Blob: the standard headers of the body count where the blob's own are
missing."""


def _digests(request: Request, query: Query) -> Digests:
    md5 = request.headers.get("content-md5")
    crc64 = request.headers.get("x-ms-content-crc64")
    if md5 is None and crc64 is None:
        return NO_DIGESTS
    if md5 is not None and crc64 is not None:
        raise StorageError(errors.BOTH_CRC64_AND_MD5_HEADER_PRESENT)
    return Digests(
        None if md5 is None else wire.md5(md5), None if crc64 is None else wire.crc64(crc64)
    )


DIGESTS: Final = Field("digests", _digests, headers=("content-md5", "x-ms-content-crc64"))
RANGE: Final = Field(
    "range",
    lambda request, query: wire.requested_range(
        request.headers.get("range"), request.headers.get("x-ms-range")
    ),
    headers=("range", "x-ms-range"),
)

LEASE_ID_HEADER: Final = "x-ms-lease-id"
WAIT_HEADER: Final = "x-strongroom-wait"
CONDITION_HEADERS: Final = (
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "x-ms-if-tags",
)


def conditions(request: Request, prefix: str = "") -> Conditions:
    """The condition headers of a request, or those of its source (prefix `x-ms-source-`).

    Raises: InvalidHeaderValue.
    """
    names_here = _names(prefix)
    if request.headers.has_none_of(names_here):
        return NONE
    match, none_match, since, until, tags = map(request.headers.get, names_here)
    return Conditions(
        None if match is None else wire.etags(names_here[0], match),
        None if none_match is None else wire.etags(names_here[1], none_match),
        None if since is None else wire.date(names_here[2], since),
        None if until is None else wire.date(names_here[3], until),
        tags,
    )


@lru_cache
def _names(prefix: str) -> tuple[str, ...]:
    if not prefix:
        return CONDITION_HEADERS
    return (*(prefix + name for name in CONDITION_HEADERS[:4]), prefix + "if-tags")


COPY_SOURCE: Final = header("source", "x-ms-copy-source", required=True)
COPY_ID: Final = parameter("copy_id", "copyid", required=True)
SOURCE_MD5: Final = header(
    "source_md5", "x-ms-source-content-md5", lambda _, value: wire.md5(value)
)
SOURCE_CONDITIONS: Final = Field(
    "source_conditions",
    lambda request, query: conditions(request, "x-ms-source-"),
    headers=_names("x-ms-source-"),
)


def lease_id(request: Request) -> str | None:
    """x-ms-lease-id in its lower-case form. Raises InvalidHeaderValue."""
    value = request.headers.get(LEASE_ID_HEADER)
    return None if value is None else wire.guid(LEASE_ID_HEADER, value)


def wait_s(request: Request, allowed: bool) -> int:
    """x-strongroom-wait in seconds, 0 when not sent.

    Raises: InvalidHeaderValue; UnsupportedHeader where the operation does not wait.
    """
    value = request.headers.get(WAIT_HEADER)
    if value is None:
        return 0
    if not allowed:
        extras = (("HeaderName", WAIT_HEADER), ("HeaderValue", value))
        raise StorageError(errors.UNSUPPORTED_HEADER, None, extras)
    return wire.integer(WAIT_HEADER, value, *limits.WAIT_S)


def tier(name: str, value: str) -> str:
    """An access tier that is served here: Hot, Cool or Cold. Raises InvalidHeaderValue."""
    for word in ("Hot", "Cool", "Cold"):
        if value.lower() == word.lower():
            return word
    raise invalid_header(name, value)


def _no_page_headers(request: Request, query: Query) -> None:
    for name in ("x-ms-blob-content-length", "x-ms-blob-sequence-number"):
        value = request.headers.get(name)
        if value is not None:
            raise invalid_header(name, value, "The header is for page blobs.")


NO_PAGE_HEADERS: Final = Field("", _no_page_headers)
"""Refuses what only a page blob can have; fills nothing."""


def flag(name: str, value: str) -> bool:
    """`true` or `false`. Raises InvalidHeaderValue."""
    return wire.boolean(name, value)


def _some_properties(request: Request, query: Query) -> ContentProperties | None:
    found = _own_properties(request, query)
    given = any(request.headers.get(name) is not None for name in _OWN_NAMES)
    return found if given else None


SOME_PROPERTIES: Final = Field("properties", _some_properties, headers=_OWN_NAMES)
"""Set Blob Properties: all six together, or None when none of them was sent."""
DELETE_SNAPSHOTS: Final = header(
    "snapshots", "x-ms-delete-snapshots", lambda _, value: delete_option(value)
)
RANGE_MD5: Final = header("range_md5", "x-ms-range-get-content-md5", flag, default=False)
RANGE_CRC64: Final = header("range_crc64", "x-ms-range-get-content-crc64", flag, default=False)
TAGS: Final = header("tags", "x-ms-tags", lambda name, value: tags.from_header(value), default=())
TIER: Final = header("tier", "x-ms-access-tier", tier)
