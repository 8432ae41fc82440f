"""Get Page Ranges, whole or since a snapshot.

Lives here: which body is listed, and how a list continues on the next page. Source: "Get Page
Ranges"; reference section 5.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.engines.base import Ref
from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError, invalid_header, invalid_query
from strongroom.semantics.blob.pages import PAGE_BYTES
from strongroom.services.blob.blobs import with_reader
from strongroom.services.blob.decisions.views import BlobView
from strongroom.services.blob.states.heads import refuse_incremental
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies import pages as bodies
from strongroom.store.blob.bodies.body import BodyPlace
from strongroom.store.blob.bodies.readers import Readers
from strongroom.store.core import keys
from strongroom.store.core.extents import Range, Ranges
from strongroom.values import ByteRange

# Since this version clients follow NextMarker; before it, one answer holds the whole list.
_PAGED_SINCE: Final = "2020-10-02"
_PREVIOUS_URL: Final = "x-ms-previous-snapshot-url"

_List = Callable[[int, int], Awaitable[Ranges]]


class GetPageRanges(msgspec.Struct, frozen=True):
    """`marker` is the offset at which the list continues."""

    range: ByteRange | None = None
    marker: int | None = None
    max_results: int | None = None


class GetPageRangesDiff(GetPageRanges, frozen=True, kw_only=True):
    """`previous` is the snapshot's time, and the path of the URL that named it."""

    previous: tuple[int, str | None]


class PageList(msgspec.Struct, frozen=True):
    """`next_marker` is None in protocol versions without markers."""

    view: BlobView
    ranges: tuple[Range, ...]
    next_marker: str | None


def read_marker(name: str, value: str) -> int | None:
    """None for an empty one."""
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 19) or int(value) % PAGE_BYTES:
        raise invalid_query(name, value, "The value is not a marker that a list has returned.")
    return int(value)


async def get_page_ranges(services: Services, call: Call[GetPageRanges]) -> PageList:
    async with with_reader(services, call) as (_, view):
        place = BodyPlace(services.store, view.partition)
        body, end = view.blob.body, _end(call.input, view.blob)

        async def listed(offset: int, count: int) -> Ranges:
            return await bodies.list_pages(place, body, offset, end, count)

        return await _page_list(call, view, listed)


async def get_changed_ranges(services: Services, call: Call[GetPageRangesDiff]) -> PageList:
    """The pages that were written or cleared after the snapshot."""
    ticks, path = call.input.previous
    if path is not None and not _names_target(call, path):
        raise invalid_header(_PREVIOUS_URL, path, "It must be a snapshot of the same blob.")
    if call.target.snapshot is not None and ticks > call.target.snapshot:
        raise StorageError(blob_errors.PREVIOUS_SNAPSHOT_CANNOT_BE_NEWER)
    async with with_reader(services, call) as (_, view):
        place = BodyPlace(services.store, view.partition)
        readers = services.held.of(Readers)
        reading = readers.begin(view.partition, services.store.gateways)
        try:
            await reading.wait_for_mutations()
            before = await _previous(services, view, ticks)
            reading.set_position(before.body.position)
            body, end = view.blob.body, _end(call.input, view.blob)

            async def listed(offset: int, count: int) -> Ranges:
                return await bodies.list_changed_pages(place, before.body, body, offset, end, count)

            return await _page_list(call, view, listed)
        finally:
            reading.end()


def _names_target(call: Call[Any], path: str) -> bool:
    """Return whether the path of a URL is the target's, in any of the forms of addressing.

    They are by host, by path, or by service and path on the shared port.
    """
    blob = f"/{call.target.container}/{call.target.blob}"
    by_path = f"/{call.target.account}{blob}"
    return path in (blob, by_path, f"/{call.target.service.value}{by_path}")


async def _previous(services: Services, view: BlobView, ticks: int) -> BlobRecord:
    (record,) = await services.store.read([Ref(view.partition, keys.snapshot(ticks))])
    before = blob_records.visible(record)
    if before is None:
        raise StorageError(blob_errors.PREVIOUS_SNAPSHOT_NOT_FOUND)
    if before.kind is not view.blob.kind or not bodies.are_of_one_map(before.body, view.blob.body):
        raise StorageError(blob_errors.BLOB_OVERWRITTEN)
    if before.body.position > view.blob.body.position:
        raise StorageError(blob_errors.PREVIOUS_SNAPSHOT_CANNOT_BE_NEWER)
    return before


def _end(request: GetPageRanges, blob: BlobRecord) -> int:
    """Return the offset where the list ends; a range is widened to whole pages."""
    if request.range is None or request.range.last is None:
        return blob.size_bytes
    return min(blob.size_bytes, -(-(request.range.last + 1) // PAGE_BYTES) * PAGE_BYTES)


async def _page_list(call: Call[Any], view: BlobView, listed: _List) -> PageList:
    request: GetPageRanges = call.input
    if view.past is None:
        refuse_incremental(view.blob)
    start = 0
    if request.range is not None:
        if request.range.within(view.blob.size_bytes) is None:
            headers = (("Content-Range", f"bytes */{view.blob.size_bytes}"),)
            raise StorageError(errors.INVALID_RANGE, None, (), headers)
        start = request.range.first // PAGE_BYTES * PAGE_BYTES
    resume: int | None = max(start, request.marker or 0)
    is_paged = call.caller.version >= _PAGED_SINCE
    most = request.max_results or limits.PAGE_RANGES_MAX
    ranges: list[Range] = []
    while resume is not None and (len(ranges) < most or not is_paged):
        page = await listed(resume, max(1, most - len(ranges)))
        for one in page.ranges:
            if ranges and ranges[-1].end == one.start and ranges[-1].is_clear == one.is_clear:
                ranges[-1] = ranges[-1]._replace(end=one.end)
            else:
                ranges.append(one)
        resume = page.resume
    marker = None if not is_paged else "" if resume is None else str(resume)
    return PageList(view, tuple(ranges), marker)
