"""Handles on services in memory: byte-range locks, waiting for them, and REST beside them."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.errors import file as file_errors
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import locking
from strongroom.services.file.handles.model import Handle, RequestedLock
from strongroom.values import ByteRange
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import WaitingRequest, mounted

CONFLICT = file_errors.STATUS_FILE_LOCK_CONFLICT
NOT_GRANTED = file_errors.STATUS_LOCK_NOT_GRANTED
NOT_LOCKED = file_errors.STATUS_RANGE_NOT_LOCKED
INVALID = file_errors.STATUS_INVALID_PARAMETER
OVER_REST = (409, "FileLockConflict")


async def lock(
    on: Services,
    handle: Handle,
    offset: int,
    length: int,
    *,
    shared: bool = False,
    request: WaitingRequest | None = None,
) -> None:
    """Take a lock; with a request, wait for it."""
    await locking.lock(
        on,
        handle,
        [RequestedLock(offset, length, not shared)],
        request or WaitingRequest(),
        fails_immediately=request is None,
    )


async def unlock(on: Services, handle: Handle, offset: int, length: int) -> None:
    await locking.unlock(on, handle, [(offset, length)])


async def pair(on: Services) -> tuple[do.Mount, Handle, do.Mount, Handle]:
    await file_calls.write(on, "f", b"0123456789")
    ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
    return ann, await ann.handle("f"), bob, await bob.handle("f")


def test_locks_stop_the_reads_and_writes_of_others_and_of_rest() -> None:
    """smb.md 3.5 and 4.4."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, one, bob, other = await pair(on)
        await lock(on, one, 2, 3)
        assert await do.status(bob.read(other, 4, 1)) == CONFLICT
        assert await do.status(bob.write(other, 0, b"abc")) == CONFLICT
        assert await bob.read(other, 5, 5) == b"56789"
        assert await given.refused(file_calls.put(on, "f", 4, b"xx")) == OVER_REST
        assert await given.refused(file_calls.read(on, "f")) == OVER_REST
        assert await given.refused(file_calls.create(on, "f")) == OVER_REST
        assert await file_calls.read(on, "f", ByteRange(5, 7)) == b"567"
        await file_calls.put(on, "f", 5, b"xx")
        await ann.write(one, 2, b"own")
        assert await do.status(lock(on, other, 4, 1)) == NOT_GRANTED
        assert await do.status(unlock(on, other, 2, 3)) == NOT_LOCKED
        await unlock(on, one, 2, 3)
        await lock(on, other, 0, 10, shared=True)
        assert await file_calls.read(on, "f") == b"01own" + b"xx789"
        assert await given.refused(file_calls.put(on, "f", 9, b"x")) == OVER_REST
        assert await do.status(bob.write(other, 9, b"x")) == CONFLICT
        await lock(on, one, 0, 1, shared=True)
        await ann.leave()
        await bob.leave()
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_requests_that_cannot_be() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, one, _, other = await pair(on)
        ranges = [RequestedLock(0, 1, True), RequestedLock(1, 1, True)]
        several = locking.lock(on, one, ranges, WaitingRequest(), fails_immediately=False)
        assert await do.status(several) == INVALID
        nothing = locking.lock(on, one, [], WaitingRequest(), fails_immediately=True)
        assert await do.status(nothing) == INVALID
        too_far = lock(on, one, (1 << 64) - 1, 2)
        assert await do.status(too_far) == file_errors.STATUS_INVALID_LOCK_RANGE
        await lock(on, other, 1, 1)
        both = locking.lock(on, one, ranges, WaitingRequest(), fails_immediately=True)
        assert await do.status(both) == NOT_GRANTED
        await lock(on, other, 0, 1)

    given.run(scenario)


def test_waiters_get_their_locks_in_order_of_arrival() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, one, bob, other = await pair(on)
        third = await bob.handle("f")
        await lock(on, one, 0, 10)
        first, second = WaitingRequest(), WaitingRequest()
        waiting = asyncio.ensure_future(lock(on, other, 0, 5, request=first))
        await first.has_waited.wait()
        behind = asyncio.ensure_future(lock(on, third, 0, 5, request=second))
        await second.has_waited.wait()
        assert first.interims == second.interims == 1
        await unlock(on, one, 0, 10)
        await waiting
        assert not behind.done()
        assert await do.status(ann.write(one, 4, b"x")) == CONFLICT
        await bob.close(other)
        await behind
        await unlock(on, third, 0, 5)

    given.run(scenario)


@pytest.mark.parametrize("how", ["cancelled", "closed", "disconnected"])
def test_who_gives_up_waiting_has_no_lock(how: str) -> None:
    """smb.md 1.7 and 2.6."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, one, bob, other = await pair(on)
        await lock(on, one, 0, 10)
        request = WaitingRequest()
        waiting = asyncio.ensure_future(do.status(lock(on, other, 0, 5, request=request)))
        await request.has_waited.wait()
        if how == "cancelled":
            request.cancelled.set_result(None)
        elif how == "closed":
            await bob.close(other)
        else:
            await bob.leave()
        expected = file_errors.STATUS_CANCELLED if how == "cancelled" else NOT_LOCKED
        assert await waiting == expected
        await unlock(on, one, 0, 10)
        await lock(on, one, 0, 10)
        await ann.leave()
        await bob.leave()
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_the_end_of_a_session_grants_what_waits_for_its_locks() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, one, _, other = await pair(on)
        await lock(on, one, 0, 10)
        request = WaitingRequest()
        waiting = asyncio.ensure_future(lock(on, other, 0, 5, request=request))
        await request.has_waited.wait()
        await ann.leave()
        await waiting
        await unlock(on, other, 0, 5)

    given.run(scenario)


def test_no_lock_is_granted_over_a_write_that_is_under_way() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, one, bob, other = await pair(on)
        began, goes_on = asyncio.Event(), asyncio.Event()
        update = on.store.update

        async def slow(*args: object, **more: object) -> object:
            began.set()
            await goes_on.wait()
            return await update(*args, **more)  # type: ignore[arg-type]  # keywords of a table

        on.store.update = slow  # type: ignore[method-assign, assignment]  # a double
        writing = asyncio.ensure_future(bob.write(other, 0, b"late"))
        await began.wait()
        request = WaitingRequest()
        locked = asyncio.ensure_future(lock(on, one, 3, 1, request=request))
        await lock(on, one, 4, 1)
        await request.has_waited.wait()
        assert not locked.done()
        goes_on.set()
        await writing
        await locked
        assert await file_calls.read(on, "f", ByteRange(0, 2)) == b"lat"
        assert await do.status(bob.write(other, 0, b"next")) == CONFLICT

    given.run(scenario)
