"""Put Range, List Ranges and everything else that changes or lists the bytes of a file.

Lives here: the changes, and how a request enters for them. Must not live here: the loop that begins
anew when a change is out of date (node/changing.py). Source: "Put Range", "List Ranges", "Set File
Properties" (a new length); reference file.md 5.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import copies
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Touch
from strongroom.semantics.file.byte_ranges import WHOLE_FILE
from strongroom.services.core.calls import BodySource, Call
from strongroom.services.core.decisions import Found
from strongroom.services.core.runner import Services
from strongroom.services.file.names import paths
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.names.smb_properties import NOTHING_GIVEN, SmbProperties, of_changed
from strongroom.services.file.node.access import ByPath
from strongroom.services.file.node.changing import (
    Arrived,
    BytesChange,
    Cleared,
    Entered,
    change_bytes,
)
from strongroom.services.file.node.deciding import AdmittedNode, Applied, Edit
from strongroom.services.file.node.origins import RequestOrigin
from strongroom.services.file.opens.admission import enter, facts_of
from strongroom.services.file.opens.changes import BYTES, Watches, modified
from strongroom.services.file.rest import nodes
from strongroom.services.file.rest.nodes import NodeView, NodeWritten
from strongroom.services.file.rest.reading import registered
from strongroom.services.file.snapshots.past_states import check_snapshot_exists
from strongroom.store.core import extents
from strongroom.store.core.extents import Range, RangeQuery
from strongroom.store.file.file_records import FileRecord
from strongroom.values import ByteRange, iso7, md5_text

PUT_RANGE_BYTES_MAX: Final = 4 * limits.MIB
# Ranges are listed in sectors (file.md 5).
_GRANULARITY_BYTES: Final = 512
_RANGES_MAX: Final = 10_000
_EVERYTHING: Final = 1 << 62
_MARKER_DIGITS_MAX: Final = 19
_LENGTH: Final = "Content-Length"


class PutRange(OnPath, frozen=True, kw_only=True):
    """`span`: (offset, length) of the bytes. `md5`: what the body must have."""

    span: tuple[int, int]
    md5: bytes | None = None
    smb: SmbProperties = NOTHING_GIVEN


class RequestEntry(msgspec.Struct, frozen=True):
    """How a request that changes bytes enters the table of opens. `byte_range` is the (offset,
    length) of the bytes. For `clears_read_only` see RestRequest."""

    operation: FileOperation
    byte_range: tuple[int, int] = WHOLE_FILE
    clears_read_only: bool = False


@dataclass(slots=True)
class _Entering:
    """Enters the file that a request names, once for each attempt. `seen`: the file, if the request
    has looked at it before."""

    services: Services
    call: Call[Any]
    entry: RequestEntry
    seen: NodeView | None
    watches: Watches

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[Entered[ByPath]]:
        services, call, entry = self.services, self.call, self.entry
        seen, self.seen = self.seen, None
        if seen is None:
            seen = await nodes.view(services, call, is_directory=False)
        facts = facts_of(seen.record)
        with await enter(
            services,
            seen.where.partition,
            entry.operation,
            facts,
            clears_read_only=entry.clears_read_only,
            byte_range=entry.byte_range,
        ):
            access = ByPath(RequestOrigin(call), seen.where, facts)
            changed = modified(seen.where.components, BYTES)
            report = partial(self.watches.report, seen.where.generation, changed)
            yield Entered(access, seen.record.size_bytes, report)


async def change(
    services: Services,
    call: Call[Any],
    entry: RequestEntry,
    bytes_change: BytesChange,
    seen: NodeView | None = None,
) -> NodeWritten:
    """Change the bytes of the file that a request names, in one commit with its attributes. `seen`:
    the file, if the request has looked at it before."""
    entering = _Entering(services, call, entry, seen, services.held.of(Watches))
    access, record = await change_bytes(services, entering, bytes_change)
    return NodeWritten(access.where, record)


async def put_range(
    services: Services, call: Call[PutRange], seen: NodeView | None = None
) -> NodeWritten:
    """Write the body to a range of a file. `seen`: as in `change`. InvalidHeaderValue when body and
    range have different lengths."""
    offset, length = call.input.span
    body = call.client.body
    _check_length(body, length)
    if seen is None:
        seen = await nodes.view(services, call, is_directory=False)
    _check_within(call.input, seen.record)
    arriving = _HashedBody(body, length)
    draft = await extents.receive(services.store, seen.map, offset, arriving, length)
    async with draft:
        _verify(call.input.md5, arriving.md5.digest())
        put = BytesChange(Arrived(draft), _Putting(call.input))
        written = await change(services, call, _entry(call.input), put, seen)
    return msgspec.structs.replace(written, md5=arriving.md5.digest())


async def clear_range(services: Services, call: Call[PutRange]) -> NodeWritten:
    """The bytes become zeros, and are no longer allocated. InvalidHeaderValue when there is a
    body."""
    size_bytes = call.client.body.size_bytes
    if size_bytes is None or size_bytes:
        raise errors.invalid_header(_LENGTH, str(size_bytes or ""), "A clear has no body.")
    offset, length = call.input.span
    # The edit refuses a range that ends behind the file, and no file is longer than this.
    start = min(offset, limits.FILE_BYTES_MAX)
    hole = Cleared(start, min(length, limits.FILE_BYTES_MAX - start))
    cleared = BytesChange(hole, _Putting(call.input))
    return await change(services, call, _entry(call.input), cleared)


def _entry(request: PutRange) -> RequestEntry:
    return RequestEntry(FileOperation.PUT_RANGE, request.span)


class _Putting(Edit, frozen=True):
    given: PutRange

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        _check_within(self.given, node.record)
        touched = of_changed(self.given.smb, node.record, Touch.WRITE, stamp)
        return msgspec.structs.replace(node.record, etag=stamp, modified=stamp, **touched), ()


def _check_within(request: PutRange, record: FileRecord) -> None:
    copies.require_none_pending(record.copy)
    offset, length = request.span
    if offset + length > record.size_bytes:
        headers = (("Content-Range", f"bytes */{record.size_bytes}"),)
        raise StorageError(errors.INVALID_RANGE, None, (), headers)


def _check_length(body: BodySource, length: int) -> None:
    if max(length, body.size_bytes or 0) > PUT_RANGE_BYTES_MAX:
        raise errors.body_too_large(PUT_RANGE_BYTES_MAX)
    if body.size_bytes is not None and body.size_bytes != length:
        raise _unlike_range(body.size_bytes)


def _unlike_range(size_bytes: int) -> StorageError:
    text = "The body has another length than the range."
    return errors.invalid_header(_LENGTH, str(size_bytes), text)


def _verify(said: bytes | None, calculated: bytes) -> None:
    if said is not None and said != calculated:
        raise StorageError(
            errors.MD5_MISMATCH,
            None,
            (
                ("UserSpecifiedMd5", md5_text(said)),
                ("ServerCalculatedMd5", md5_text(calculated)),
            ),
        )


class _HashedBody:
    """A body while it arrives, and its MD5. It must be as long as its range."""

    def __init__(self, body: BodySource, length: int) -> None:
        self._body = body
        self._length = length
        self.md5 = hashlib.md5(usedforsecurity=False)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._body:
            count += len(chunk)
            if count > self._length:
                raise _unlike_range(count)
            self.md5.update(chunk)
            yield chunk
            del chunk  # frees the memory while the next chunk is awaited
        if count < self._length:
            raise _unlike_range(count)


class ListRanges(OnPath, frozen=True, kw_only=True):
    """Input of List Ranges.

    Attributes:
        previous: the snapshot since which changes are listed; None = allocated ranges.
        follows_renames: whether the file may have another name in that snapshot.
        marker: the offset at which the list continues; None = its beginning.
        max_results: the most ranges of one answer; None = all.
    """

    range: ByteRange | None = None
    previous: int | None = None
    follows_renames: bool = False
    marker: int | None = None
    max_results: int | None = None


class RangeList(msgspec.Struct, frozen=True):
    """`next_marker` is "" at the end of a list in pages; None = the request asks for no pages."""

    view: NodeView
    ranges: tuple[Range, ...]
    next_marker: str | None = None


def read_marker(name: str, value: str) -> int | None:
    """None for an empty one."""
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= _MARKER_DIGITS_MAX):
        reason = "The value is not a marker that a list has returned."
        raise errors.invalid_query(name, value, reason)
    return int(value)


async def list_ranges(services: Services, call: Call[ListRanges]) -> RangeList:
    """List the allocated ranges in whole sectors, or the changes since a snapshot.
    FileGenerationMismatch when the earlier snapshot has another file or none there;
    InvalidQueryParameterValue when it is a later one."""
    previous = call.input.previous
    async with registered(services, call, FileOperation.LIST_RANGES) as (_, view):
        size_bytes, byte_range = view.record.size_bytes, call.input.range
        start, end = 0, size_bytes
        if byte_range is not None:
            within = byte_range.within(size_bytes)
            if within is None:
                headers = (("Content-Range", f"bytes */{size_bytes}"),)
                raise StorageError(errors.INVALID_RANGE, None, (), headers)
            start, end = within[0], within[0] + within[1]
        if previous is not None:
            await _check_previous(services, call, view, previous)
        ranges: list[Range] = []
        most = call.input.max_results or _EVERYTHING
        resume: int | None = max(start, call.input.marker or 0)
        if previous is not None and previous > view.version:
            resume = None  # the file was not changed since
        while resume is not None and resume < end and len(ranges) < most:
            count = max(1, min(_RANGES_MAX, most - len(ranges)))
            query = RangeQuery(resume, end, count, _GRANULARITY_BYTES)
            if previous is None:
                page = await extents.list_ranges(services.store, view.map, view.version, query)
            else:
                page = await extents.list_changes(
                    services.store, view.map, previous, view.version, query
                )
            for one in page.ranges:
                is_more = ranges and ranges[-1].is_clear == one.is_clear
                if is_more and ranges[-1].end == one.start:
                    ranges[-1] = ranges[-1]._replace(end=one.end)
                else:
                    ranges.append(one)
            resume = page.resume
        if previous is not None:
            await check_snapshot_exists(services, _at(call, previous))
        return RangeList(view, tuple(ranges), _next_marker(call.input, resume, end))


def _next_marker(request: ListRanges, resume: int | None, end: int) -> str | None:
    if request.max_results is None and request.marker is None:
        return None
    return "" if resume is None or resume >= end else str(resume)


def _at(call: Call[Any], snapshot: int) -> Call[Any]:
    """The same request for a snapshot."""
    target = msgspec.structs.replace(call.target, snapshot=snapshot)
    return msgspec.structs.replace(call, target=target)


async def _check_previous(
    services: Services, call: Call[Any], view: NodeView, previous: int
) -> None:
    """Check that an earlier snapshot has the same file, under this name unless renames are
    followed."""
    listed = call.target.snapshot
    if listed is not None and previous > listed:
        reason = "The previous snapshot must not be later than what is listed."
        raise errors.invalid_query("prevsharesnapshot", iso7(previous), reason)
    if call.input.follows_renames:
        await check_snapshot_exists(services, _at(call, previous))
        # An id is the stamp of the file's creation, and the listed state has the file.
        if view.where.id >= previous:
            raise StorageError(file_errors.FILE_GENERATION_MISMATCH)
        return
    try:
        where = await paths.find(services, _at(call, previous), is_directory=False)
    except StorageError as error:
        if error.row not in (errors.RESOURCE_NOT_FOUND, file_errors.PARENT_NOT_FOUND):
            raise
        raise StorageError(file_errors.FILE_GENERATION_MISMATCH) from None
    if where.id != view.where.id:
        raise StorageError(file_errors.FILE_GENERATION_MISMATCH)
