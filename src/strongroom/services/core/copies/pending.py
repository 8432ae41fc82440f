"""Pending copies: work that continues after the answer, and after a restart.

Lives here: which source is read, how a failure is recorded, and the wait for a copy's end. Must not
live here: what is written (the wings' copies/jobs.py). Source: "Copy Blob", "Working with a pending
copy"; "Copy File".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from strongroom.engines.base import Busy, DataDamaged, EngineError, Record, Ref
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import copies
from strongroom.semantics.core.copies import Copy
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.opening import reopen_source
from strongroom.services.core.copies.sources import CopySources, Opener, OpenSource, SourceBroken
from strongroom.services.core.runner import Services
from strongroom.services.core.waiting import MustWait
from strongroom.store.core.records import DamagedRecord, Job

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)


class NotPending(Exception):
    """The copy is no longer pending (it was aborted), or its destination is gone."""


class PendingCopy(Protocol):
    """A pending copy, implemented by each service. Each method raises NotPending."""

    async def begin(self) -> None:
        """Check that the copy is still pending."""
        ...

    async def copy(self, source: OpenSource) -> None:
        """Copy all of a source, and commit the completed copy."""
        ...

    async def fail(self, reason: str) -> None: ...


async def run_pending(
    services: Services, job: Job, name: str, pending: PendingCopy, own: Opener
) -> None:
    """Run a pending copy until it succeeds, fails or is no longer pending. The job can then be
    removed.

    After an error of the engine, the job is tried again. `name` is the destination's within the
    container or share that the order names.
    """
    order = job.order
    assert order is not None
    sources = services.held.of(CopySources)
    await sources.wait_until_released(order.destination, name)
    kept_source = sources.take(job.token)
    try:
        await pending.begin()
        if kept_source is None or not await _copied_from_kept(job, pending, kept_source):
            await _copy(pending, await reopen_source(services, order, own))
    except NotPending:
        _log.debug("copy %s is not pending any more", job.token)
    except DataDamaged as damaged:
        # A retry would not help. If the destination is damaged, `_fail` raises too, and that is
        # logged.
        _log.error("copy %s has failed, since data is damaged: %s", job.token, damaged)
        await _fail(job, pending, f"500 {errors.INTERNAL_ERROR.code}")
    except SourceBroken as broken:
        await _fail(job, pending, str(broken))
    except StorageError as refusal:
        if refusal.row is errors.SERVER_BUSY:
            # A busy source is temporary: another gateway serves its share, for example.
            raise Busy(refusal.message) from None
        await _fail(job, pending, f"{refusal.row.status} {refusal.row.code}")
    finally:
        if kept_source is not None:
            await kept_source.close()


async def _copied_from_kept(job: Job, pending: PendingCopy, kept_source: OpenSource) -> bool:
    """Copy from the source that the request has left open. Return False when it must be opened
    again.

    Another server may have closed its connection before the job started.
    """
    assert job.order is not None
    try:
        await _copy(pending, kept_source)
    except SourceBroken as broken:
        if not job.order.url:
            raise
        _log.debug("copy %s begins again: %s", job.token, broken)
        return False
    return True


async def _copy(pending: PendingCopy, source: OpenSource) -> None:
    try:
        await pending.copy(source)
    finally:
        await source.close()


async def _fail(job: Job, pending: PendingCopy, reason: str) -> None:
    try:
        await pending.fail(reason)
    except NotPending:
        _log.debug("copy %s failed, but is not pending any more", job.token)


async def is_pending(
    services: Services, ref: Ref, copy_of: Callable[[Record | None], Copy | None], copy_id: str
) -> bool:
    """`ref` is the record of the copy's destination; `copy_of` returns the copy that is stored in
    it."""
    (record,) = await services.store.read([ref])
    copy = copy_of(record)
    return copy is not None and copy.id == copy_id and copies.is_pending(copy)


async def wait_until_ended(
    services: Services,
    call: Call[Any],
    ref: Ref,
    read: Callable[[Record | None], tuple[Copy | None, T]],
    begun: tuple[str, float],
) -> T | None:
    """Wait until a pending copy has ended, and return the result for its destination.

    Returns None when the copy is still pending, or when another request wrote the destination
    meanwhile. The wait ends early when the server stops, the client disconnects or the destination
    cannot be read. The copy has begun, so its answer must not be an error.

    Arguments:
        read: returns the copy in a record, and the result for the caller.
        begun: the copy's id, and the deadline of the wait in event loop time.
    """
    copy_id, answer_at = begun

    async def attempt() -> T | None:
        (record,) = await services.store.read([ref])
        copy, result = read(record)
        if record is None or copy is None or copy.id != copy_id:
            return None
        if copies.is_pending(copy):
            pending = StorageError(copy_errors.PENDING_COPY_OPERATION)
            raise MustWait(pending, [(ref, record.version)])
        return result

    left_s = answer_at - asyncio.get_running_loop().time()
    try:
        return await services.waiting.until_answered(left_s, attempt, call.client)
    except (StorageError, EngineError, DamagedRecord):
        return None
