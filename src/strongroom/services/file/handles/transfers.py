"""READ, WRITE and FLUSH, and zeroing and listing the ranges of a file, by a handle.

Lives here: rights, locks, breaks and the commit of each. Must not live here: where bytes lie
(store/core/extents). Sources: [MS-SMB2] sections 3.3.5.11 to 3.3.5.13; [MS-FSA] sections 2.1.5.3 to
2.1.5.7; smb.md 2.5 and 2.7.

Each write is a commit of its own, and is durable when its answer is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines.base import Full, Step
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses, byte_ranges
from strongroom.semantics.file.attributes import Touch
from strongroom.semantics.file.byte_ranges import LockUse
from strongroom.semantics.file.oplocks import Cause
from strongroom.services.core.decisions import UNDECODED, Found, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.admission import Opens
from strongroom.services.file.handles import deciding
from strongroom.services.file.handles.deciding import NodePlace, NodeState, RequestWait, operating
from strongroom.services.file.handles.model import AsyncRequest, Handle
from strongroom.services.file.held.changes import BYTES, Aspect, Watches, modified
from strongroom.services.file.nodes import NodeChange
from strongroom.services.file.past_states import newest_of
from strongroom.services.file.readers import FileReaders, pins_of
from strongroom.services.file.sweep import sweep_bytes, sweep_step
from strongroom.store.core import extents, keys
from strongroom.store.core.extents import Backlog, Draft, MapPlace, Outdated, RangeQuery
from strongroom.store.core.records import ShareRecord
from strongroom.store.file.file_records import FileRecord

FILE_BYTES_MAX: Final = limits.FILE_BYTES_MAX
"""4 TiB, as over REST."""
# The largest file of NTFS; smbtorture's rw.invalid expects another refusal beyond it.
_NTFS_BYTES_MAX: Final = (1 << 44) - (1 << 16)
_GIB: Final = 1024 * limits.MIB
# A client has many long reads and writes under way at once. Each longer one first yields to other
# requests.
_LONG_BYTES: Final = 64 * limits.KIB
# How often a change waits for a sweep before the client is refused.
_SWEEPS_MAX: Final = 20
_SWEEP_S: Final = 0.05

ChangeBytes = Callable[[ShareRecord, FileRecord, int], tuple[FileRecord, tuple[Step, ...]]]
"""(the share, attributes, stamp) -> attributes as they will be, and the steps that come first.
Pure."""


class _Changed(Exception):
    """The file's length differs from the one that the change was prepared for."""


def check_size(share: ShareRecord, size_bytes: int) -> None:
    """Check that a file may have this length. Raises: StorageError DISK_FULL."""
    if size_bytes > min(FILE_BYTES_MAX, share.quota_gib * _GIB):
        raise StorageError(file_errors.DISK_FULL)


def _check_file(handle: Handle) -> None:
    if handle.is_directory:
        raise StorageError(file_errors.NOT_FOR_DIRECTORIES)


def _check_locks(services: Services, handle: Handle, use: LockUse, at: int, length: int) -> None:
    locks = services.held.of(Opens).table(handle.partition).locks
    refused = byte_ranges.conflict(locks, use, at, length, handle.id)
    if refused is not None:
        raise StorageError(refused)


def _check_offsets(offset: int, length: int) -> None:
    if offset < 0 or length < 0 or offset + length >= byte_ranges.OFFSETS // 2:
        raise StorageError(file_errors.INVALID_OPEN)


async def read(
    services: Services, handle: Handle, offset: int, length: int, request: AsyncRequest
) -> Sequence[bytes]:
    """Return the bytes of [offset, offset + length) up to the end of the file, in pieces.

    Raises: StorageError END_OF_FILE (offset at or behind the end, length not 0), FileLockConflict,
        ACCESS_DENIED, INVALID_DEVICE_REQUEST (a directory).
    """
    with operating(handle):
        _check_file(handle)
        deciding.check_may(handle, accesses.READ_DATA | accesses.EXECUTE)
        _check_offsets(offset, length)
        if not length:
            return ()
        if length > _LONG_BYTES:
            await services.turns.pause()
        await deciding.break_caches(
            services, handle, Cause.READ, RequestWait(request, handle.ending)
        )
        _check_locks(services, handle, LockUse.READ, offset, length)
        return await _bytes(services, handle, offset, length)


async def _bytes(services: Services, handle: Handle, offset: int, length: int) -> Sequence[bytes]:
    place = deciding.place_of(handle)
    if place.access.snapshot is None:
        seen = await deciding.read_node(services, place)
        count = _length(seen, offset, length)
        if count <= extents.SHORT_BYTES_MAX:
            found = await extents.read_short(
                services.store, map_of(place), place.attributes_ref, seen.version, offset, count
            )
            if found is not None:
                return found
    async with _registered(services, place) as seen:
        count = _length(seen, offset, length)
        pieces = extents.read(services.store, map_of(place), seen.version, offset, count)
        return [piece async for piece in pieces]


@asynccontextmanager
async def _registered(services: Services, place: NodePlace) -> AsyncIterator[NodeState]:
    """Read the state of an open file, and keep sweeps from removing its bytes. Raises: StorageError
    SHARE_GONE."""
    reading = services.held.of(FileReaders).maps.begin(place.partition)
    other = services.store.gateways.begin_reading()
    try:
        await reading.wait_for_mutations()
        seen = await deciding.read_node(services, place)
        reading.set_position(seen.version)
        yield seen
    finally:
        reading.end()
        other.end()


def _length(seen: NodeState, offset: int, length: int) -> int:
    if offset >= seen.record.size_bytes:
        raise StorageError(file_errors.END_OF_FILE)
    return min(length, seen.record.size_bytes - offset)


async def write(
    services: Services,
    handle: Handle,
    offset: int,
    data: bytes | memoryview,
    request: AsyncRequest,
) -> None:
    """Write bytes, durably when this returns; the file grows as far as needed.

    Arguments:
        data: at most 8 MiB.

    Raises: StorageError FileLockConflict, ACCESS_DENIED, DISK_FULL, INVALID_PARAMETER (beyond what
        NTFS can address).
    """
    with operating(handle):
        _check_file(handle)
        deciding.check_may_change(handle, accesses.WRITE_DATA | accesses.APPEND_DATA)
        end = offset + len(data)
        _check_offsets(offset, len(data))
        if not data:
            return
        if end > _NTFS_BYTES_MAX:
            raise StorageError(file_errors.INVALID_OPEN)
        if end > FILE_BYTES_MAX:
            raise StorageError(file_errors.DISK_FULL)
        if len(data) > _LONG_BYTES:
            await services.turns.pause()
        await deciding.break_caches(
            services, handle, Cause.WRITE, RequestWait(request, handle.ending)
        )
        _check_locks(services, handle, LockUse.WRITE, offset, len(data))
        frozen = frozenset(handle.frozen)
        appends_only = not handle.may(accesses.WRITE_DATA)

        def changes(
            share: ShareRecord, record: FileRecord, stamp: int
        ) -> tuple[FileRecord, tuple[Step, ...]]:
            if appends_only and offset < record.size_bytes:
                raise StorageError(file_errors.ACCESS_DENIED_TO_HANDLE)
            size_bytes = max(record.size_bytes, end)
            written = deciding.after(record, Touch.WRITE, stamp, frozen)
            return msgspec.structs.replace(written, size_bytes=size_bytes), ()

        place = deciding.place_of(handle)
        held = services.held.of(Opens)
        with held.writes.changing(handle.partition, offset, len(data)):
            map_place = MapPlace(place.partition, place.node_id)
            try:
                draft = await extents.received(services.store, map_place, offset, data)
            except Full as full:
                raise StorageError(file_errors.DISK_FULL, str(full)) from None
            async with draft:
                if len(data) > _LONG_BYTES:
                    await services.turns.pause()  # contents of many writes may be ready at once
                await change_bytes(services, place, changes, lambda seen: nullcontext(draft))
            report_change(services, handle, BYTES)


def report_change(services: Services, handle: Handle, aspects: Aspect) -> None:
    """Report a change of a handle's file to the directory watches."""
    services.held.of(Watches).report(handle.access.generation, modified(handle.path, aspects))


async def flush(services: Services, handle: Handle, request: AsyncRequest) -> None:
    """Wait until other clients have sent their cached writes. The handle's own writes are durable
    since their answers.

    Raises: StorageError ACCESS_DENIED.
    """
    with operating(handle):
        deciding.check_may(handle, accesses.WRITE_DATA | accesses.APPEND_DATA)
        await deciding.break_caches(
            services, handle, Cause.READ, RequestWait(request, handle.ending)
        )


async def zero_data(
    services: Services, handle: Handle, offset: int, end: int, request: AsyncRequest
) -> None:
    """Fill [offset, end) with zeros, up to the end of the file (FSCTL_SET_ZERO_DATA).

    Raises: StorageError FileLockConflict, ACCESS_DENIED, INVALID_PARAMETER.
    """
    with operating(handle):
        _check_file(handle)
        deciding.check_may_change(handle, accesses.WRITE_DATA)
        if not 0 <= offset <= end:
            raise StorageError(file_errors.INVALID_OPEN)
        await deciding.break_caches(
            services, handle, Cause.WRITE, RequestWait(request, handle.ending)
        )
        _check_locks(services, handle, LockUse.WRITE, offset, end - offset)
        frozen = frozenset(handle.frozen)

        def changes(
            share: ShareRecord, record: FileRecord, stamp: int
        ) -> tuple[FileRecord, tuple[Step, ...]]:
            return deciding.after(record, Touch.WRITE, stamp, frozen), ()

        place = deciding.place_of(handle)

        def draft(seen: NodeState) -> Draft:
            stop = min(end, seen.record.size_bytes)
            start = min(offset, stop)
            return extents.clear(
                services.store, MapPlace(place.partition, place.node_id), start, stop - start
            )

        held = services.held.of(Opens)
        with held.writes.changing(handle.partition, offset, end - offset):
            await change_bytes(services, place, changes, draft, is_resize=True)
            report_change(services, handle, BYTES)


async def allocated_ranges(
    services: Services, handle: Handle, offset: int, length: int, max_ranges: int
) -> tuple[Sequence[tuple[int, int]], bool]:
    """List allocated ranges (FSCTL_QUERY_ALLOCATED_RANGES).

    Returns: (offset, length) pairs, and whether these are all.

    Raises: StorageError ACCESS_DENIED, INVALID_PARAMETER.
    """
    with operating(handle):
        _check_file(handle)
        deciding.check_may(handle, accesses.READ_DATA)
        _check_offsets(offset, length)
        place = deciding.place_of(handle)
        async with _registered(services, place) as seen:
            end = min(offset + length, seen.record.size_bytes)
            found: list[tuple[int, int]] = []
            resume: int | None = offset
            while resume is not None and resume < end:
                if len(found) >= max_ranges:
                    return found, False
                query = RangeQuery(resume, end, max_ranges - len(found))
                page = await extents.list_ranges(services.store, map_of(place), seen.version, query)
                found += [(one.start, one.end - one.start) for one in page.ranges]
                resume = page.resume
            return found, True


async def change_bytes(
    services: Services,
    place: NodePlace,
    changes: ChangeBytes,
    draft_of: Callable[[NodeState], AbstractAsyncContextManager[Draft]],
    *,
    is_resize: bool = False,
) -> FileRecord:
    """Commit a change of bytes together with the attributes.

    Arguments:
        draft_of: prepares the change of bytes for the state that was read.
        is_resize: whether that depends on the file's length.

    Raises: StorageError SHARE_GONE, DISK_FULL, ServerBusy; what `changes` raises.
    """
    sweeps = 0
    while True:
        seen = await deciding.read_node(services, place)
        try:
            async with draft_of(seen) as draft:
                return await _attempt(services, place, changes, draft, seen, is_resize=is_resize)
        except (_Changed, Outdated):
            continue
        except Backlog:
            sweeps += 1
            if sweeps > _SWEEPS_MAX:
                raise StorageError(errors.SERVER_BUSY) from None
            if not await sweep_bytes(services, place.partition, place.node_id):
                await asyncio.sleep(_SWEEP_S)


async def _attempt(
    services: Services,
    place: NodePlace,
    changes: ChangeBytes,
    draft: Draft,
    seen: NodeState,
    *,
    is_resize: bool,
) -> FileRecord:
    """Try once to commit the change. Raises: _Changed, Outdated, Backlog."""
    maps = services.held.of(FileReaders).maps
    mutation, reads = await draft.prepare(newest_of(seen.share)), Reads()
    leaves = reads.add_all(mutation.reads, UNDECODED)
    generation = place.access.generation
    length = seen.record.size_bytes if is_resize else None

    def change(
        share: ShareRecord, record: FileRecord, found: Found, stamp: int
    ) -> NodeChange[tuple[FileRecord, bool]]:
        if length is not None and record.size_bytes != length:
            raise _Changed
        pins = pins_of(services, share, place.partition, stamp)
        after, first = changes(share, record, stamp)
        written = mutation.decide(found.records(leaves), stamp, pins)
        if written.has_garbage:
            first = (*first, sweep_step(generation, place.node_id, stamp))
        result = after, bool(first)
        return NodeChange(result, after, first, written.writes, written.adopt, written.drop)

    with maps.mutating(place.partition):
        after, has_ordered = await deciding.commit(services, place, change, reads)
    if has_ordered:
        services.work.set()
    return after


def map_of(place: NodePlace) -> MapPlace:
    """Return the place of the map of a file's bytes."""
    return MapPlace(keys.file(place.access.generation, place.node_id), place.node_id)
