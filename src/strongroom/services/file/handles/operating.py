"""What operations by a handle have in common: rights, waits on a client's behalf, touched times.

Must not live here: the decision (node/deciding.py), the end that waits for operations
(opens/open_handle.py).
"""

from __future__ import annotations

import asyncio

import msgspec

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import opens
from strongroom.semantics.file.attributes import FileTimes, TimeField, Touch, archived, touched
from strongroom.semantics.file.opens import BreakAwaited
from strongroom.semantics.file.oplocks import Cause
from strongroom.services.core.decisions import Found
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import AsyncRequest, Handle
from strongroom.services.file.node.access import ByHandle, by_handle
from strongroom.services.file.node.deciding import AdmittedNode, Applied, Edit
from strongroom.services.file.opens.opens import Opens
from strongroom.store.file.file_records import FileRecord


def access_of(handle: Handle) -> ByHandle:
    return by_handle(handle.access, handle.node_id)


def after(
    record: FileRecord, touch: Touch, stamp: int, frozen: frozenset[TimeField] = frozenset()
) -> FileRecord:
    """The attributes after an operation by a handle. `frozen`: the times that the handle does not
    change."""
    before = FileTimes(record.creation, record.access, record.write, record.change)
    times = touched(before, touch, stamp, frozen)
    return msgspec.structs.replace(
        record,
        etag=stamp,
        modified=stamp,
        attributes=archived(record.attributes, touch),
        creation=times.creation,
        access=times.access,
        write=times.write,
        change=times.change,
    )


class Touched(Edit, frozen=True):
    """The attributes after an operation by a handle that changes nothing else of them."""

    touch: Touch
    frozen: frozenset[TimeField]

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        return after(node.record, self.touch, stamp, self.frozen), ()


def check_may(handle: Handle, mask: int) -> None:
    """ACCESS_DENIED unless one of these rights was granted."""
    if not handle.may(mask):
        raise StorageError(file_errors.ACCESS_DENIED_TO_HANDLE)


def check_may_change(handle: Handle, mask: int) -> None:
    """As `check_may`; the open file must not be in a snapshot either."""
    check_may(handle, mask)
    check_changeable(handle)


def check_changeable(handle: Handle) -> None:
    """Refuse changes of a snapshot. Clients that restore a file open it with every access, so the
    change is refused, and not the open."""
    if handle.access.snapshot is not None:
        raise StorageError(file_errors.SNAPSHOT_READ_ONLY)


class RequestWait:
    """Lets a request wait until it is cancelled, or its handle is closed. `ending`: done when that
    is being closed; None = the request has no handle yet."""

    def __init__(self, request: AsyncRequest, ending: asyncio.Future[None] | None = None) -> None:
        self._request = request
        self._ending = () if ending is None else (ending,)
        self._has_sent_interim = False

    async def until(self, event: asyncio.Future[None]) -> None:
        """The client gets an interim answer (STATUS_PENDING) before the first wait. Raises:
        StorageError HANDLE_CLOSED, CANCELLED."""
        if not self._has_sent_interim:
            self._has_sent_interim = True
            await self._request.pending()
        reasons = (event, self._request.cancelled, *self._ending)
        await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
        if any(one.done() for one in self._ending):
            raise StorageError(file_errors.HANDLE_CLOSED)
        if not event.done():
            raise StorageError(file_errors.CANCELLED)


async def break_caches(services: Services, handle: Handle, cause: Cause, wait: RequestWait) -> None:
    """Break the caches of others as an operation of this handle requires, and wait for their
    answers."""
    held = services.held.of(Opens)
    while held.table(handle.partition).holders:
        outcome = opens.break_caches(held.table(handle.partition), handle.id, cause)
        held.put(handle.partition, outcome.table)
        held.notify(services, handle.partition, outcome.notices)
        if not isinstance(outcome, BreakAwaited):
            return
        await wait.until(held.node(handle.partition).change())
