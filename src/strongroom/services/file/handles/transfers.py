"""READ, WRITE and FLUSH, and zeroing and listing the ranges of a file, by a handle.

Lives here: rights, locks, breaks and the commit of each. Sources: [MS-SMB2] sections 3.3.5.11 to
3.3.5.13; [MS-FSA] sections 2.1.5.3 to 2.1.5.7; smb.md 2.5 and 2.7.

Each write is a commit of its own, and is durable when its answer is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

import msgspec

from strongroom import limits
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses, byte_ranges
from strongroom.semantics.file.attributes import TimeField, Touch
from strongroom.semantics.file.byte_ranges import LockUse
from strongroom.semantics.file.oplocks import Cause
from strongroom.services.core.decisions import Found
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import operating
from strongroom.services.file.handles.model import AsyncRequest, Handle
from strongroom.services.file.handles.operating import RequestWait
from strongroom.services.file.node.access import NodeState, look
from strongroom.services.file.node.changing import (
    AdmittedAccess,
    Arrived,
    BytesChange,
    ClearedInside,
    change_bytes,
)
from strongroom.services.file.node.deciding import AdmittedNode, Applied, Edit
from strongroom.services.file.node.reading import begin_reading
from strongroom.services.file.opens.changes import BYTES, Aspect, Watches, modified
from strongroom.services.file.opens.opens import Opens
from strongroom.store.core import extents
from strongroom.store.core.extents import RangeQuery
from strongroom.store.core.records import ShareRecord

FILE_BYTES_MAX: Final = limits.FILE_BYTES_MAX
"""4 TiB, as over REST."""
# The largest file of NTFS; smbtorture's rw.invalid expects another refusal beyond it.
_NTFS_BYTES_MAX: Final = (1 << 44) - (1 << 16)
_GIB: Final = 1024 * limits.MIB
# A client has many long reads and writes under way at once. Each longer one first yields to other
# requests.
_LONG_BYTES: Final = 64 * limits.KIB


def check_size(share: ShareRecord, size_bytes: int) -> None:
    """Check that a file may have this length. Raises: StorageError DISK_FULL."""
    if size_bytes > min(FILE_BYTES_MAX, share.quota_gib * _GIB):
        raise StorageError(file_errors.DISK_FULL)


def _check_file(handle: Handle) -> None:
    if handle.is_directory:
        raise StorageError(file_errors.NOT_FOR_DIRECTORIES)


def _check_locks(opens: Opens, handle: Handle, use: LockUse, at: int, length: int) -> None:
    refused = byte_ranges.conflict(opens.table(handle.partition).locks, use, at, length, handle.id)
    if refused is not None:
        raise StorageError(refused)


def _check_offsets(offset: int, length: int) -> None:
    if offset < 0 or length < 0 or offset + length >= byte_ranges.OFFSETS // 2:
        raise StorageError(file_errors.INVALID_OPEN)


async def read(
    services: Services, handle: Handle, offset: int, length: int, request: AsyncRequest
) -> Sequence[bytes]:
    """Return the bytes of [offset, offset + length) up to the end of the file, in pieces.
    END_OF_FILE for an offset at or behind the end, when `length` is not 0."""
    with handle.operating():
        _check_file(handle)
        operating.check_may(handle, accesses.READ_DATA | accesses.EXECUTE)
        _check_offsets(offset, length)
        if not length:
            return ()
        if length > _LONG_BYTES:
            await services.turns.pause()
        wait = RequestWait(request, handle.ending)
        await operating.break_caches(services, handle, Cause.READ, wait)
        _check_locks(services.held.of(Opens), handle, LockUse.READ, offset, length)
        return await _bytes(services, handle, offset, length)


async def _bytes(services: Services, handle: Handle, offset: int, length: int) -> Sequence[bytes]:
    access = operating.access_of(handle)
    if handle.access.snapshot is None:
        seen = await look(services, access)
        count = _length(seen, offset, length)
        if count <= extents.SHORT_BYTES_MAX:
            short = await extents.read_short(
                services.store, access.map, access.attributes_ref, seen.version, offset, count
            )
            if short is not None:
                return short
    with ExitStack() as stack:
        seen = await begin_reading(services, access, stack)
        count = _length(seen, offset, length)
        pieces = extents.read(services.store, access.map, seen.version, offset, count)
        return [piece async for piece in pieces]


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
    """Write bytes, at most 8 MiB, durably when this returns; the file grows as far as needed.
    INVALID_PARAMETER beyond what NTFS can address, DISK_FULL beyond what a file or the share may
    hold."""
    with handle.operating():
        _check_file(handle)
        operating.check_may_change(handle, accesses.WRITE_DATA | accesses.APPEND_DATA)
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
        wait = RequestWait(request, handle.ending)
        await operating.break_caches(services, handle, Cause.WRITE, wait)
        _check_locks(services.held.of(Opens), handle, LockUse.WRITE, offset, len(data))
        edit = _Write(
            offset,
            end,
            appends_only=not handle.may(accesses.WRITE_DATA),
            frozen=frozenset(handle.frozen),
        )
        access, opens = operating.access_of(handle), services.held.of(Opens)
        with opens.node(handle.partition).writing(offset, len(data)):
            with access.origin.storing():
                draft = await extents.received(services.store, access.map, offset, data)
            async with draft:
                if len(data) > _LONG_BYTES:
                    await services.turns.pause()  # contents of many writes may be ready at once
                entering = AdmittedAccess(access, reporting(services, handle, BYTES))
                await change_bytes(services, entering, BytesChange(Arrived(draft), edit))


class _Write(Edit, frozen=True):
    """The range is [offset, end). `appends_only`: the handle may write only behind the end of the
    file."""

    offset: int
    end: int
    appends_only: bool
    frozen: frozenset[TimeField]

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        record = node.record
        if self.appends_only and self.offset < record.size_bytes:
            raise StorageError(file_errors.ACCESS_DENIED_TO_HANDLE)
        size_bytes = max(record.size_bytes, self.end)
        written = operating.after(record, Touch.WRITE, stamp, self.frozen)
        return msgspec.structs.replace(written, size_bytes=size_bytes), ()


def reporting(services: Services, handle: Handle, aspects: Aspect) -> Callable[[], None]:
    """Return what reports a change by this handle."""
    watches = services.held.of(Watches)
    return lambda: watches.report(handle.access.generation, modified(handle.path, aspects))


async def flush(services: Services, handle: Handle, request: AsyncRequest) -> None:
    """Wait until other clients have sent their cached writes. The handle's own writes are durable
    since their answers."""
    with handle.operating():
        operating.check_may(handle, accesses.WRITE_DATA | accesses.APPEND_DATA)
        wait = RequestWait(request, handle.ending)
        await operating.break_caches(services, handle, Cause.READ, wait)


async def zero_data(
    services: Services, handle: Handle, offset: int, end: int, request: AsyncRequest
) -> None:
    """Fill [offset, end) with zeros, up to the end of the file (FSCTL_SET_ZERO_DATA)."""
    with handle.operating():
        _check_file(handle)
        operating.check_may_change(handle, accesses.WRITE_DATA)
        if not 0 <= offset <= end:
            raise StorageError(file_errors.INVALID_OPEN)
        wait = RequestWait(request, handle.ending)
        await operating.break_caches(services, handle, Cause.WRITE, wait)
        _check_locks(services.held.of(Opens), handle, LockUse.WRITE, offset, end - offset)
        zeros = BytesChange(
            ClearedInside(offset, end), operating.Touched(Touch.WRITE, frozenset(handle.frozen))
        )
        opens = services.held.of(Opens)
        with opens.node(handle.partition).writing(offset, end - offset):
            report = reporting(services, handle, BYTES)
            entering = AdmittedAccess(operating.access_of(handle), report)
            await change_bytes(services, entering, zeros)


async def allocated_ranges(
    services: Services, handle: Handle, offset: int, length: int, max_ranges: int
) -> tuple[Sequence[tuple[int, int]], bool]:
    """FSCTL_QUERY_ALLOCATED_RANGES. Returns (offset, length) pairs, and whether these are all."""
    with handle.operating():
        _check_file(handle)
        operating.check_may(handle, accesses.READ_DATA)
        _check_offsets(offset, length)
        access = operating.access_of(handle)
        with ExitStack() as stack:
            seen = await begin_reading(services, access, stack)
            end = min(offset + length, seen.record.size_bytes)
            ranges: list[tuple[int, int]] = []
            resume: int | None = offset
            while resume is not None and resume < end:
                if len(ranges) >= max_ranges:
                    return ranges, False
                query = RangeQuery(resume, end, max_ranges - len(ranges))
                page = await extents.list_ranges(services.store, access.map, seen.version, query)
                ranges += [(one.start, one.end - one.start) for one in page.ranges]
                resume = page.resume
            return ranges, True
