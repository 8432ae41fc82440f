"""Durable handles during other work: operations, waiting locks, breaks, closes."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from strongroom.errors import file as file_errors
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.operations.file.handle import FORCE_CLOSE_HANDLES
from strongroom.semantics.file.accesses import Disposition
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.services.file.handles import durable, information, locking
from strongroom.services.file.handles import opening as opening_calls
from strongroom.services.file.handles.listing import CloseHandles
from strongroom.services.file.handles.model import Handle, NodeInfo, RequestedLock
from strongroom.services.file.opens.opens import Opens
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import WaitingRequest, mounted
from tests.services.handles.test_durable_handles import (
    GUID,
    NOT_FOUND,
    back,
    is_waiting,
    lock,
    lost,
    opened,
)
from tests.services.service_engine import settle


def test_a_handle_that_is_asked_for_when_its_connection_is_lost_is_closed() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann", answers=False)
        handle = (await opened(ann)).handle
        bob, request = await mounted(on, "bob"), WaitingRequest()
        second = asyncio.ensure_future(bob.open("f", request=request))
        await asyncio.wait_for(request.has_waited.wait(), 60)
        await ann.leave()
        assert handle.is_closed
        await asyncio.wait_for(second, 60)

    given.run(scenario)


def test_what_the_lost_connection_began_ends_before_the_handle_is_given_back() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on)
        with handle.operating():
            coming = asyncio.ensure_future(back(on, handle))
            await settle()
            assert not coming.done() and handle.owner is None
        await asyncio.wait_for(coming, 60)
        assert handle.owner is not None

    given.run(scenario)


def test_a_handle_that_is_closed_while_it_is_given_back_is_not_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on)
        real = information.attributes

        async def attributes(*args: Any) -> NodeInfo:
            found = await real(*args)
            # An operation in progress keeps the handle in the table while it is being closed.
            stack.enter_context(handle.operating())
            on.held.of(Opens).durable.close_disconnected(handle)
            return found

        monkeypatch.setattr(information, "attributes", attributes)
        with ExitStack() as stack:
            assert await do.status(back(on, handle)) == NOT_FOUND
        await on.held.of(Opens).tasks.wait()
        assert do.nothing_is_left(on)

    given.run(scenario)


@pytest.mark.parametrize("reason", [DisconnectReason.DISCONNECTED, DisconnectReason.LOGGED_OFF])
def test_a_lock_that_waits_gives_up_with_its_session_and_the_handle_stays(
    reason: DisconnectReason,
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        first = (await opened(ann, lease="a")).handle
        second = (await opened(ann, lease="a")).handle
        await lock(on, first)
        request, wanted = WaitingRequest(), [RequestedLock(0, 10, is_exclusive=True)]
        taking = locking.lock(on, second, wanted, request, fails_immediately=False)
        waiting = asyncio.ensure_future(do.status(taking))
        await asyncio.wait_for(request.has_waited.wait(), 60)
        await durable.disconnect(on, [first, second], reason)
        refused = await asyncio.wait_for(waiting, 60)
        assert refused == file_errors.STATUS_RANGE_NOT_LOCKED
        assert is_waiting(first) and is_waiting(second)
        await back(on, second, lease="a")
        assert await do.status(lock(on, second)) == file_errors.STATUS_LOCK_NOT_GRANTED

    given.run(scenario)


@pytest.mark.parametrize(
    ("row", "status"),
    [
        (file_errors.SHARE_GONE, NOT_FOUND),
        (file_errors.HANDLE_CLOSED, NOT_FOUND),
        (file_errors.DISK_FULL, file_errors.STATUS_DISK_FULL),
    ],
)
def test_a_handle_is_not_given_up_for_a_failure_that_passes(
    row: ErrorCode, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on)

        async def fail(*args: Any) -> NodeInfo:
            raise StorageError(row)

        with monkeypatch.context() as patched:
            patched.setattr(information, "attributes", fail)
            assert await do.status(back(on, handle)) == status
        assert await do.status(back(on, handle)) == 0

    given.run(scenario)


def test_a_handle_that_is_being_closed_by_force_is_not_closed_again() -> None:
    """Another client opens the file during the close, and waits for its end."""

    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on)
        bob = await mounted(on, "bob")
        with handle.operating():
            closing = asyncio.ensure_future(
                file_calls.run(on, FORCE_CLOSE_HANDLES, "f", CloseHandles())
            )
            async with asyncio.timeout(60):
                while not handle.is_closed:  # noqa: ASYNC110 - a handle has no event
                    await asyncio.sleep(0)
            opening = asyncio.ensure_future(bob.open("f"))
            await settle()
            assert not opening.done()
        async with asyncio.timeout(60):
            assert (await closing).count == 1
            await bob.close((await opening).handle)
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_nothing_is_kept_of_a_handle_that_was_closed_while_it_was_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        await bob.close(await bob.create("f"))
        overwrite = opening_calls._Opening._overwrite
        ends: list[asyncio.Future[Any]] = []

        async def overwritten(self: Any, handle: Handle) -> Any:
            found = await overwrite(self, handle)
            end = file_calls.run(on, FORCE_CLOSE_HANDLES, "f", CloseHandles())
            ends.append(asyncio.ensure_future(end))
            await settle(1000)
            assert handle.is_closed, "the close has begun, and waits for this open"
            return found

        monkeypatch.setattr(opening_calls._Opening, "_overwrite", overwritten)
        over = Disposition.OVERWRITE
        found = await opened(ann, guid=GUID, disposition=over, allocation_bytes=1 << 20)
        await asyncio.gather(*ends)
        assert found.handle.is_closed
        assert do.nothing_is_left(on)

    given.run(scenario)
