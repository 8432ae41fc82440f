"""The fields of page blobs' operations: lengths, ranges, sequence numbers, markers.

One named field per header or parameter of the reference. Source: request headers and URI parameters
of "Put Blob", "Put Page", "Get Page Ranges" and "Set Blob Properties".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors.core import invalid_header, missing_header
from strongroom.operations.core.fields import (
    RANGE_HEADERS,
    filled,
    header,
    integer,
    parameter,
    sent_range,
)
from strongroom.operations.core.listing_fields import max_results
from strongroom.operations.core.spec import Field
from strongroom.semantics.blob import pages, tiers
from strongroom.semantics.blob.pages import SequenceAction, SequenceConditions
from strongroom.semantics.blob.snapshots import snapshot_in_url
from strongroom.semantics.core.snapshot_times import snapshot_time
from strongroom.services.blob.types.pages.ranges import read_marker
from strongroom.values import ByteRange
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

LENGTH_HEADER: Final = "x-ms-blob-content-length"
NUMBER_HEADER: Final = "x-ms-blob-sequence-number"
ACTION_HEADER: Final = "x-ms-sequence-number-action"
_CONDITIONS: Final = (
    "x-ms-if-sequence-number-le",
    "x-ms-if-sequence-number-lt",
    "x-ms-if-sequence-number-eq",
)
_NUMBER: Final = integer(0, pages.SEQUENCE_MAX)


def _size(name: str, value: str) -> int:
    return pages.check_size(name, value, wire.integer(name, value, 0, 2**63 - 1))


SIZE: Final = header("size_bytes", LENGTH_HEADER, _size, required=True)
NEW_SIZE: Final = header("size_bytes", LENGTH_HEADER, _size)
FIRST_NUMBER: Final = header("sequence_number", NUMBER_HEADER, _NUMBER, default=0)
TIER: Final = header("tier", tiers.HEADER, pages.read_tier)


def _range(request: Request) -> ByteRange | None:
    """None if no range was sent; a malformed one is refused."""
    sent = sent_range(request)
    if sent is None:
        return None
    span = wire.byte_range(sent[1])
    if span is None:
        raise invalid_header(*sent)
    return span


def _pages(request: Request, query: Query) -> tuple[int, int]:
    span = _range(request)
    if span is None:
        raise missing_header("x-ms-range")
    return pages.page_range(span)


PAGES: Final = Field("pages", _pages, headers=RANGE_HEADERS)
RANGE: Final = Field("range", lambda request, query: _range(request), headers=RANGE_HEADERS)


def _no_digests(request: Request, query: Query) -> None:
    for name in ("content-md5", "x-ms-content-crc64"):
        value = filled(request, name)
        if value is not None:
            raise invalid_header(name, value, "A request that clears pages has no body.")


NO_DIGESTS: Final = Field("", _no_digests)
"""Refuses digests, since the request has no body. It sets no field."""


def _conditions(request: Request, query: Query) -> SequenceConditions:
    numbers = []
    for name in _CONDITIONS:
        value = filled(request, name)
        numbers.append(None if value is None else wire.integer(name, value, 0, pages.SEQUENCE_MAX))
    return SequenceConditions(*numbers)


SEQUENCE_CONDITIONS: Final = Field("sequence", _conditions, headers=_CONDITIONS)


def _sequence(request: Request, query: Query) -> tuple[SequenceAction, int | None] | None:
    word, number = filled(request, ACTION_HEADER), filled(request, NUMBER_HEADER)
    if word is None:
        if number is not None:
            raise missing_header(ACTION_HEADER)
        return None
    action = SequenceAction(
        wire.one_of(ACTION_HEADER, word, tuple(one.value for one in SequenceAction))
    )
    if action is SequenceAction.INCREMENT:
        if number is not None:
            raise invalid_header(NUMBER_HEADER, number, "An increment takes no number.")
        return action, None
    if number is None:
        raise missing_header(NUMBER_HEADER)
    return action, wire.integer(NUMBER_HEADER, number, 0, pages.SEQUENCE_MAX)


SEQUENCE: Final = Field("sequence", _sequence, headers=(ACTION_HEADER, NUMBER_HEADER))
MARKER: Final = parameter("marker", "marker", read_marker)
MAX_RESULTS: Final = max_results(limits.PAGE_RANGES_MAX, None)


def _previous(request: Request, query: Query) -> tuple[int, str | None]:
    """The time of the snapshot to compare with, and the path of its URL if that was given."""
    text = query.get("prevsnapshot")
    if text is not None:
        return snapshot_time(text, "prevsnapshot"), None
    return snapshot_in_url(_PREVIOUS_URL, request.headers.get(_PREVIOUS_URL) or "")


_PREVIOUS_URL: Final = "x-ms-previous-snapshot-url"
PREVIOUS: Final = Field("previous", _previous, headers=(_PREVIOUS_URL,), query=("prevsnapshot",))
