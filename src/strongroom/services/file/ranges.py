"""Put Range, List Ranges and everything else that changes or lists the bytes of a file.

Lives here: the changes, and the loop that prepares a change again when it is out of date. Must not
live here: where bytes lie (store/core/extents). Source: "Put Range", "List Ranges", "Set File
Properties" (a new length); reference file.md 5.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.engines.base import Step
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import copies
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Touch
from strongroom.semantics.file.byte_ranges import WHOLE_FILE
from strongroom.services.core.calls import BodySource, Call
from strongroom.services.core.decisions import UNDECODED, Found, Reads
from strongroom.services.core.places import place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file import nodes, paths
from strongroom.services.file.admission import enter, facts_of
from strongroom.services.file.held.changes import BYTES, Watches, modified
from strongroom.services.file.nodes import NodeChange, NodeView, NodeWritten, PreparedChange
from strongroom.services.file.past_states import check_snapshot_exists, newest_of
from strongroom.services.file.paths import OnPath, PathChanged, Where
from strongroom.services.file.readers import FileReaders, pins_of
from strongroom.services.file.reading import registered
from strongroom.services.file.smb_properties import NOTHING_GIVEN, SmbProperties, of_changed
from strongroom.services.file.sweep import sweep_bytes, sweep_step
from strongroom.store.core import extents, records
from strongroom.store.core.extents import (
    Backlog,
    Draft,
    MapPlace,
    Outdated,
    Range,
    RangeQuery,
)
from strongroom.store.file.file_records import FileRecord
from strongroom.values import ByteRange, iso7, md5_text

PUT_RANGE_BYTES_MAX: Final = 4 * limits.MIB
# Ranges are listed in sectors (file.md 5).
_GRANULARITY_BYTES: Final = 512
_RANGES_MAX: Final = 10_000
_EVERYTHING: Final = 1 << 62
_MARKER_DIGITS_MAX: Final = 19
# How often a change waits for a sweep before it is refused as ServerBusy.
_SWEEPS_MAX: Final = 20
_SWEEP_S: Final = 0.05
_LENGTH: Final = "Content-Length"

Changes = Callable[[Where, FileRecord, Found, int], tuple[FileRecord, tuple[Step, ...]]]
"""(the path, the attributes, further records, stamp) -> attributes as they will be, and the steps
that come first. Pure."""


class PutRange(OnPath, frozen=True, kw_only=True):
    """Input of Put Range: (offset, length) of the bytes; the MD5 that the body must have."""

    span: tuple[int, int]
    md5: bytes | None = None
    smb: SmbProperties = NOTHING_GIVEN


class _BytesChange(msgspec.Struct, frozen=True):
    """A change of bytes, with what its commit needs: the operation, the bytes and the new
    attributes. `further` is what `changes` reads."""

    operation: FileOperation
    byte_range: tuple[int, int]
    changes: Changes
    further: Reads | None = None
    clears_read_only: bool = False


async def put_range(services: Services, call: Call[PutRange]) -> NodeWritten:
    """Write the body to a range of a file.

    Raises: StorageError RequestBodyTooLarge, InvalidHeaderValue (body and range have different
        lengths), Md5Mismatch, InvalidRange, ReadOnlyAttribute, and what `nodes.view` raises.
    """
    offset, length = call.input.span
    body = call.client.body
    _check_length(body, length)
    seen = await nodes.view(services, call, is_directory=False)
    _check_within(call.input, seen.record)
    arriving = _HashedBody(body, length)
    place = MapPlace(seen.where.partition, seen.where.id)
    draft = await extents.receive(services.store, place, offset, arriving, length)
    async with draft:
        _verify(call.input.md5, arriving.md5.digest())
        bytes_change = _putting(call.input)
        written = await _change(
            services, call, bytes_change, lambda view: nullcontext(draft), seen=seen
        )
    return msgspec.structs.replace(written, md5=arriving.md5.digest())


async def clear_range(services: Services, call: Call[PutRange]) -> NodeWritten:
    """Clear a range of a file: its bytes become zeros, and are no longer allocated.

    Raises: StorageError InvalidHeaderValue (it has a body), otherwise as put_range.
    """
    size_bytes = call.client.body.size_bytes
    if size_bytes is None or size_bytes:
        raise errors.invalid_header(_LENGTH, str(size_bytes or ""), "A clear has no body.")

    def draft(view: NodeView) -> Draft:
        _check_within(call.input, view.record)
        return extents.clear(services.store, _map(view), *call.input.span)

    return await _change(services, call, _putting(call.input), draft)


def _putting(given: PutRange) -> _BytesChange:
    def changes(
        where: Where, record: FileRecord, found: Found, stamp: int
    ) -> tuple[FileRecord, tuple[Step, ...]]:
        _check_within(given, record)
        touched = of_changed(given.smb, record, Touch.WRITE, stamp)
        return msgspec.structs.replace(record, etag=stamp, modified=stamp, **touched), ()

    return _BytesChange(FileOperation.PUT_RANGE, given.span, changes)


def _check_within(given: PutRange, record: FileRecord) -> None:
    copies.require_none_pending(record.copy)
    offset, length = given.span
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


async def replace_all(
    services: Services,
    call: Call[Any],
    operation: FileOperation,
    changes: Changes,
    further: Reads,
    *,
    clears_read_only: bool = False,
) -> NodeWritten:
    """Overwrite a file: all of its bytes are removed in the commit of `changes`.

    Raises: PathChanged when it is no file any more; as put_range.
    """

    def draft(view: NodeView) -> Draft:
        return extents.resize(services.store, _map(view), view.record.size_bytes, 0)

    bytes_change = _BytesChange(operation, WHOLE_FILE, changes, further, clears_read_only)
    return await _change(services, call, bytes_change, draft, is_resize=True)


async def clear_copied_bytes(services: Services, call: Call[Any], changes: Changes) -> NodeWritten:
    """Clear the bytes that a pending copy has written to the file, in the commit of `changes`.
    Raises: as put_range."""

    def draft(view: NodeView) -> Draft:
        # The copy may have written more since the file was read.
        return extents.clear(services.store, _map(view), 0, limits.FILE_BYTES_MAX)

    bytes_change = _BytesChange(FileOperation.ABORT_COPY, WHOLE_FILE, changes)
    return await _change(services, call, bytes_change, draft)


async def resize(
    services: Services,
    call: Call[Any],
    size_bytes: int,
    changes: Changes,
    further: Reads,
    *,
    clears_read_only: bool = False,
) -> NodeWritten:
    """Change the length of a file in the commit of `changes`. Raises: as put_range."""

    def draft(view: NodeView) -> Draft:
        return extents.resize(services.store, _map(view), view.record.size_bytes, size_bytes)

    bytes_change = _BytesChange(
        FileOperation.SET_PROPERTIES, WHOLE_FILE, changes, further, clears_read_only
    )
    return await _change(services, call, bytes_change, draft, is_resize=True)


def _map(view: NodeView) -> MapPlace:
    return MapPlace(view.where.partition, view.where.id)


async def _change(
    services: Services,
    call: Call[Any],
    bytes_change: _BytesChange,
    draft_of: Callable[[NodeView], AbstractAsyncContextManager[Draft]],
    *,
    is_resize: bool = False,
    seen: NodeView | None = None,
) -> NodeWritten:
    """Commit a change of bytes together with the attributes.

    Arguments:
        draft_of: prepares the change of bytes for the state that was read. Its context discards
            what a failed attempt has stored.
        is_resize: whether that depends on the file's length.
        seen: the file, if the request has looked at it before.
    """
    sweeps = 0
    while True:
        view, seen = seen or await nodes.view(services, call, is_directory=False), None
        facts = facts_of(view.record)
        try:
            with await enter(
                services,
                view.where.partition,
                bytes_change.operation,
                facts,
                clears_read_only=bytes_change.clears_read_only,
                byte_range=bytes_change.byte_range,
            ):
                length = view.record.size_bytes if is_resize else None
                async with draft_of(view) as draft:
                    return await _commit(services, call, view, bytes_change, draft, length)
        except (PathChanged, Outdated):
            continue
        except Backlog:
            sweeps += 1
            if sweeps > _SWEEPS_MAX:
                raise StorageError(errors.SERVER_BUSY) from None
            if not await sweep_bytes(services, view.where.partition, view.where.id):
                await asyncio.sleep(_SWEEP_S)


async def _commit(
    services: Services,
    call: Call[Any],
    view: NodeView,
    bytes_change: _BytesChange,
    draft: Draft,
    length: int | None,
) -> NodeWritten:
    """Try once to commit the change. The path is looked at once more, since others may have changed
    it before this operation entered.

    Raises: PathChanged, Outdated, Backlog.
    """
    where, maps, facts = view.where, services.held.of(FileReaders).maps, facts_of(view.record)
    draft.move(_map(view))
    second = Reads()
    edges = second.add_all(draft.edges, UNDECODED)
    look_reads = nodes.LookReads.of(second, call, where)
    looked = await services.read(second)
    if facts_of(look_reads.view(call, where, looked).record) != facts:
        raise PathChanged
    newest = newest_of(looked.require(look_reads.share, errors.SHARE_NOT_FOUND))
    mutation = await draft.prepare(newest, looked.records(edges))
    further = bytes_change.further
    reads = Reads(() if further is None else further.refs)
    share_read = reads.add(place_ref(call), records.SHARE)
    leaves = reads.add_all(mutation.reads, UNDECODED)

    def change(
        where: Where, record: FileRecord, found: Found, stamp: int
    ) -> NodeChange[tuple[NodeWritten, bool]]:
        if length is not None and record.size_bytes != length:
            raise PathChanged
        share = found.require(share_read, errors.SHARE_NOT_FOUND)
        pins = pins_of(services, share, where.partition, stamp)
        after, first = bytes_change.changes(where, record, found, stamp)
        written = mutation.decide(found.records(leaves), stamp, pins)
        if written.has_garbage:
            first = (*first, sweep_step(where.generation, where.id, stamp))
        result = NodeWritten(where, after), bool(first)
        return NodeChange(result, after, first, written.writes, written.adopt, written.drop)

    prepared = PreparedChange(where, facts, change, reads)
    with maps.mutating(where.partition):
        result, has_ordered = await nodes.commit(services, call, prepared)
    if has_ordered:
        services.work.set()
    services.held.of(Watches).report(where.generation, modified(where.components, BYTES))
    return result


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
    """Result of List Ranges. `next_marker` is "" at the end of a list in pages; None = the request
    asks for no pages."""

    view: NodeView
    ranges: tuple[Range, ...]
    next_marker: str | None = None


def read_marker(name: str, value: str) -> int | None:
    """Return the offset of a marker; None for an empty one. Raises: InvalidQueryParameterValue."""
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= _MARKER_DIGITS_MAX):
        reason = "The value is not a marker that a list has returned."
        raise errors.invalid_query(name, value, reason)
    return int(value)


async def list_ranges(services: Services, call: Call[ListRanges]) -> RangeList:
    """List the allocated ranges in whole sectors, or the changes since a snapshot.

    Raises: StorageError InvalidRange, FileGenerationMismatch (the earlier snapshot has another file
        or none there), InvalidQueryParameterValue (it is a later one), ShareSnapshotNotFound, and
        what `nodes.view` raises.
    """
    previous = call.input.previous
    async with registered(services, call, FileOperation.LIST_RANGES) as (_, view):
        size_bytes, asked = view.record.size_bytes, call.input.range
        start, end = 0, size_bytes
        if asked is not None:
            within = asked.within(size_bytes)
            if within is None:
                headers = (("Content-Range", f"bytes */{size_bytes}"),)
                raise StorageError(errors.INVALID_RANGE, None, (), headers)
            start, end = within[0], within[0] + within[1]
        if previous is not None:
            await _check_previous(services, call, view, previous)
        found: list[Range] = []
        most = call.input.max_results or _EVERYTHING
        resume: int | None = max(start, call.input.marker or 0)
        while resume is not None and resume < end and len(found) < most:
            count = max(1, min(_RANGES_MAX, most - len(found)))
            query = RangeQuery(resume, end, count, _GRANULARITY_BYTES)
            if previous is None:
                page = await extents.list_ranges(services.store, _map(view), view.version, query)
            else:
                page = await extents.list_changes(
                    services.store, _map(view), previous, view.version, query
                )
            for one in page.ranges:
                is_more = found and found[-1].is_clear == one.is_clear
                if is_more and found[-1].end == one.start:
                    found[-1] = found[-1]._replace(end=one.end)
                else:
                    found.append(one)
            resume = page.resume
        if previous is not None:
            await check_snapshot_exists(services, _at(call, previous))
        return RangeList(view, tuple(found), _next_marker(call.input, resume, end))


def _next_marker(given: ListRanges, resume: int | None, end: int) -> str | None:
    if given.max_results is None and given.marker is None:
        return None
    return "" if resume is None or resume >= end else str(resume)


def _at(call: Call[Any], snapshot: int) -> Call[Any]:
    """Return the same request for a snapshot."""
    target = msgspec.structs.replace(call.target, snapshot=snapshot)
    return msgspec.structs.replace(call, target=target)


async def _check_previous(
    services: Services, call: Call[Any], view: NodeView, previous: int
) -> None:
    """Check that an earlier snapshot has the same file, under this name unless renames are
    followed. Raises: as list_ranges."""
    if previous > view.version:
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
