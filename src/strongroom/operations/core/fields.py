"""The fields that operations of several services accept: their headers and their parsers.

Functions that make a field of a header or parameter, and one named field per header that services
share. The codecs themselves: wire/core/headers.py. Source: request headers of the operations'
pages; section 2 of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError, invalid_header, missing_header
from strongroom.operations.core.spec import Field
from strongroom.semantics.core import names
from strongroom.semantics.core.conditions import NONE, Conditions
from strongroom.values import ByteRange, Metadata
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

Parse = Callable[[str, str], Any]


def text(name: str, value: str) -> str:
    return value


def filled(request: Request, name: str) -> str | None:
    """None if the header was not sent or is empty.

    Some clients send an empty header for each condition, lease id and digest that they do not use.
    """
    return request.headers.get(name) or None


def header(
    field: str,
    name: str,
    parse: Parse = text,
    *,
    required: bool = False,
    default: Any = None,
    may_be_empty: bool = False,
) -> Field:
    """A field that is read from one header.

    Its value is `default` if the header was not sent, or if it is empty and `may_be_empty`.
    """

    def read(request: Request, query: Query) -> Any:
        value = filled(request, name) if may_be_empty else request.headers.get(name)
        if value is None:
            if required:
                raise missing_header(name)
            return default
        return parse(name, value)

    return Field(field, read, headers=(name,))


def parameter(
    field: str, name: str, parse: Parse = text, *, required: bool = False, default: Any = None
) -> Field:
    """A field that is read from one query parameter; its value is `default` if it was not sent."""

    def read(request: Request, query: Query) -> Any:
        value = query.require(name) if required else query.get(name)
        return default if value is None else parse(name, value)

    return Field(field, read, query=(name,))


def integer(minimum: int, maximum: int) -> Parse:
    """A parser of a whole number within bounds."""
    return lambda name, value: wire.integer(name, value, minimum, maximum)


def one_of(*allowed: str) -> Parse:
    """A parser of one of a few words, in any case."""
    return lambda name, value: wire.one_of(name, value, allowed)


def _metadata(request: Request, query: Query) -> Metadata:
    if not request.headers.any_name_holds(wire.METADATA_PREFIX):
        return ()
    return names.check_metadata(wire.metadata(request.headers.fields))


METADATA: Final = Field("metadata", _metadata, headers=("x-ms-meta",))

LEASE_ID_HEADER: Final = "x-ms-lease-id"
SCOPE_HEADER: Final = "x-ms-encryption-scope"
WAIT_HEADER: Final = "x-strongroom-wait"
CONDITION_HEADERS: Final = (
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "x-ms-if-tags",
)


BLOB_CONDITION_HEADERS: Final = tuple("x-ms-blob-" + name for name in CONDITION_HEADERS[:4])
"""The conditional headers of operations on a blob's tags; x-ms-if-tags has no such form."""


def blob_conditions(request: Request) -> Conditions:
    """The conditions of an operation on a blob's tags. If-Match and the other standard ones are
    refused."""
    if any(filled(request, name) is not None for name in CONDITION_HEADERS[:4]):
        raise StorageError(errors.CONDITION_HEADERS_NOT_SUPPORTED)
    names_here = (*BLOB_CONDITION_HEADERS, CONDITION_HEADERS[4])
    return NONE if request.headers.has_none_of(names_here) else _conditions(request, names_here)


def conditions(request: Request, prefix: str = "") -> Conditions:
    """The conditions of a request, or those of its source (prefix `x-ms-source-`)."""
    names_here = condition_headers(prefix)
    return NONE if request.headers.has_none_of(names_here) else _conditions(request, names_here)


def _conditions(request: Request, names_here: tuple[str, ...]) -> Conditions:
    match, none_match, since, until = [filled(request, name) for name in names_here[:4]]
    tags = request.headers.get(names_here[4])
    if match is none_match is since is until is tags is None:
        return NONE
    return Conditions(
        None if match is None else wire.etags(names_here[0], match),
        None if none_match is None else wire.etags(names_here[1], none_match),
        None if since is None else wire.date(names_here[2], since),
        None if until is None else wire.date(names_here[3], until),
        tags,
    )


@lru_cache
def condition_headers(prefix: str) -> tuple[str, ...]:
    """The names of the condition headers, or those of a source (prefix `x-ms-source-`)."""
    if not prefix:
        return CONDITION_HEADERS
    return (*(prefix + name for name in CONDITION_HEADERS[:4]), prefix + "if-tags")


def lease_id(request: Request) -> str | None:
    """x-ms-lease-id in its lower-case form."""
    value = filled(request, LEASE_ID_HEADER)
    return None if value is None else wire.guid(LEASE_ID_HEADER, value)


def wait_s(request: Request, allowed: bool) -> int:
    """x-strongroom-wait in seconds; 0 if it was not sent. UnsupportedHeader if the operation does
    not wait."""
    value = request.headers.get(WAIT_HEADER)
    if value is None:
        return 0
    if not allowed:
        extras = (("HeaderName", WAIT_HEADER), ("HeaderValue", value))
        raise StorageError(errors.UNSUPPORTED_HEADER, None, extras)
    return wire.integer(WAIT_HEADER, value, *limits.WAIT_S)


def flag(name: str, value: str) -> bool:
    return wire.boolean(name, value)


STRUCTURED_BODY: Final = "x-ms-structured-body"
STRUCTURED_LENGTH: Final = "x-ms-structured-content-length"
STRUCTURED: Final = "XSM/1.0; properties=crc64"


def is_structured(name: str, value: str) -> bool:
    """Whether a body is, or an answer shall be, a structured message."""
    if value.replace(" ", "").lower() != STRUCTURED.replace(" ", "").lower():
        raise invalid_header(name, value, f"It must be '{STRUCTURED}'.")
    return True


RANGE_HEADERS: Final = ("x-ms-range", "range")


def sent_range(request: Request) -> tuple[str, str] | None:
    """The header that asks for a range, and its value; None if there is none.

    x-ms-range takes precedence over Range. An empty header counts as not sent.
    """
    for name in RANGE_HEADERS:
        value = filled(request, name)
        if value is not None:
            return name, value
    return None


def _range(request: Request, query: Query) -> ByteRange | None:
    sent = sent_range(request)
    return None if sent is None else wire.byte_range(sent[1])


RANGE: Final = Field("range", _range, headers=RANGE_HEADERS)
