"""LOCK: byte-range locks of a handle, and waiting for them.

Lives here: taking, waiting, freeing. Must not live here: which locks conflict and which waiter is
next (semantics/file/byte_ranges.py). Sources: [MS-SMB2] section 3.3.5.14; [MS-FSA] sections 2.1.5.8
and 2.1.5.9; smb.md 2.6.

No lock is granted on bytes that a write under way is changing, since that write was admitted before
the lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import byte_ranges
from strongroom.semantics.file.byte_ranges import LockQueued, LocksRefused, RangeLock
from strongroom.semantics.file.oplocks import Cause
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import operating
from strongroom.services.file.handles.model import AsyncRequest, Handle, RequestedLock
from strongroom.services.file.handles.operating import RequestWait
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.opens.share_holds import ShareHolds

_ALL_LOCKS_MAX: Final = 262_144
"""Of all files together. Each takes some 150 bytes of memory."""


async def lock(
    services: Services,
    handle: Handle,
    wanted: Sequence[RequestedLock],
    request: AsyncRequest,
    *,
    fails_immediately: bool,
) -> None:
    """Take all locks or none. Only a request for a single lock may wait. Waiters are served in
    order of arrival, but a waiter does not delay locks that do not conflict.

    Raises: StorageError INVALID_PARAMETER (none, or several that would wait; a directory),
        INVALID_LOCK_RANGE, LOCK_NOT_GRANTED, CANCELLED; RANGE_NOT_LOCKED when the handle is closed
        while it waits. ServerBusy when another gateway may serve the share by now.
    """
    with handle.operating():
        if handle.is_directory or not wanted or (len(wanted) > 1 and not fails_immediately):
            raise StorageError(file_errors.INVALID_OPEN)
        locks = [RangeLock(one.offset, one.length, one.is_exclusive, handle.id) for one in wanted]
        for one in locks:
            refused = byte_ranges.check_range(one.offset, one.length)
            if refused is not None:
                raise StorageError(refused)
        wait = RequestWait(request, handle.ending)
        try:
            await operating.break_caches(services, handle, Cause.WRITE, wait)
            held, holds = services.held.of(Opens), services.held.of(ShareHolds)
            await _take(held, holds, handle, locks, wait, waits=not fails_immediately)
        except StorageError as error:
            if error.row is file_errors.HANDLE_CLOSED:
                raise StorageError(file_errors.RANGE_NOT_LOCKED) from None
            raise


async def _take(
    held: Opens,
    holds: ShareHolds,
    handle: Handle,
    locks: Sequence[RangeLock],
    wait: RequestWait,
    *,
    waits: bool,
) -> None:
    file = handle.partition
    node, ranges = held.node(file), [(one.offset, one.length) for one in locks]
    while (write := node.write_over(ranges)) is not None:
        await wait.until(write)
    # Nothing is awaited between this check and the entry in the table. A lock reads no record, so
    # without the check a gateway that is late or dead would not notice that it is.
    holds.check(handle.access.generation)
    table = held.table(file)
    wait_id = next(held.ids) if waits else None
    if held.counts.locks + len(locks) > _ALL_LOCKS_MAX:
        raise StorageError(file_errors.TOO_MANY_LOCKS)
    outcome = byte_ranges.lock(table.locks, locks, wait_id)
    if isinstance(outcome, LocksRefused):
        raise StorageError(outcome.row)
    if not isinstance(outcome, LockQueued):
        held.put(file, replace(table, locks=outcome.table))
        return
    assert wait_id is not None, "only who may wait is queued"
    with node.lock_wait(wait_id) as granted:
        held.put(file, replace(table, locks=outcome.table))
        try:
            await wait.until(granted)
            while (write := node.write_over(ranges)) is not None:
                # The former owner of the lock may have freed it while it still wrote there.
                await wait.until(write)
            holds.check(handle.access.generation)
        except BaseException:
            _give_up(held, handle, locks[0], wait_id, is_granted=granted.done())
            raise


def _give_up(
    held: Opens, handle: Handle, lock: RangeLock, wait_id: int, *, is_granted: bool
) -> None:
    """Withdraw a request that is answered with an error: it neither waits nor holds its lock."""
    table = held.table(handle.partition)
    if is_granted:
        freed = byte_ranges.unlock(table.locks, handle.id, [(lock.offset, lock.length)])
        held.put(handle.partition, replace(table, locks=freed.table), freed.granted)
        return
    locks = byte_ranges.cancelled(table.locks, wait_id)
    held.put(handle.partition, replace(table, locks=locks))


async def unlock(services: Services, handle: Handle, ranges: Sequence[tuple[int, int]]) -> None:
    """Free locks, in order. If a range is not locked, the ranges before it stay freed."""
    with handle.operating():
        if handle.is_directory:
            raise StorageError(file_errors.INVALID_OPEN)
        held = services.held.of(Opens)
        table = held.table(handle.partition)
        freed = byte_ranges.unlock(table.locks, handle.id, ranges)
        held.put(handle.partition, replace(table, locks=freed.table), freed.granted)
        if freed.row is not None:
            raise StorageError(freed.row)
