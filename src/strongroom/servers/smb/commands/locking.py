"""LOCK: taking byte-range locks, all or none, and freeing them in order.

Lives here: from the request to the services and back. Must not live here: conflicts
(semantics/file/byte_ranges.py). Source: [MS-SMB2] section 3.3.5.14; smb.md 2.6.
"""

from __future__ import annotations

from functools import partial

from strongroom.errors import file as file_errors
from strongroom.servers.smb.commands.targets import handle_of
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.services.file.handles import durable, locking
from strongroom.services.file.handles.model import Handle, RequestedLock
from strongroom.wire.smb.requests.lock import LOCK_ANSWER, LockRequest, read_lock
from strongroom.wire.smb.statuses import STATUS_NETWORK_SESSION_EXPIRED


async def lock(element: SmbElement) -> SmbAnswer:
    request = read_lock(element.message)
    handle = handle_of(element)
    if element.session.is_expired and not request.is_unlock:
        raise SmbError(STATUS_NETWORK_SESSION_EXPIRED)
    work = partial(_unlock if request.is_unlock else _lock, element, handle, request)
    await durable.lock_once(handle, request.sequence_index, request.sequence_number, work)
    return SmbAnswer(LOCK_ANSWER)


async def _lock(element: SmbElement, handle: Handle, request: LockRequest) -> None:
    ranges = [RequestedLock(one.offset, one.length, one.is_exclusive) for one in request.elements]
    await locking.lock(
        element.services,
        handle,
        ranges,
        element,
        fails_immediately=request.fails_immediately,
    )


async def _unlock(element: SmbElement, handle: Handle, request: LockRequest) -> None:
    """Unlock the ranges before the first element with another flag, then refuse it ([MS-SMB2]
    3.3.5.14.1)."""
    ranges = []
    for one in request.elements:
        if not one.is_unlock:
            break
        ranges.append((one.offset, one.length))
    if ranges:
        await locking.unlock(element.services, handle, ranges)
    if len(ranges) < len(request.elements):
        raise SmbError(file_errors.STATUS_INVALID_PARAMETER)
