"""Repeated CREATEs and LOCKs of a client, on services in memory; smb.md 2.4 and 2.6."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.errors import file as file_errors
from strongroom.semantics.file import oplocks
from strongroom.semantics.file.accesses import Disposition
from strongroom.services.file.handles import closing, durable
from strongroom.services.file.handles.model import OpenedHandle, RequestedDurability
from strongroom.services.file.opens.opens import Opens
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import Mount, R, WaitingRequest, mounted
from tests.services.handles.test_durable_handles import DENIED, GUID, NOT_FOUND, back, opened


async def repeat(mount: Mount, path: str = "f", *, is_replay: bool = True, **more: Any) -> Any:
    asked = RequestedDurability(GUID, 0, is_replay)
    return await mount.open(path, durable=asked, disposition=Disposition.CREATE, **more)


def test_a_repeated_create_is_answered_by_its_handle() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        first = await repeat(ann, wanted="RWH", is_replay=False)
        again = await repeat(ann, wanted="-")
        assert again.handle is first.handle and again.is_repeated
        assert again.action == first.action == 2 and again.caching == oplocks.RWH
        taken = file_errors.STATUS_DUPLICATE_OBJECTID
        assert await do.status(repeat(ann, is_replay=False)) == taken
        assert await do.status(repeat(ann, lease="a")) == DENIED
        other = await mounted(on, "ann")
        assert await do.status(repeat(other)) == taken, "another session"
        other.user = "eve"
        assert await do.status(repeat(other)) == DENIED
        bob = await mounted(on, "bob")
        collision = file_errors.STATUS_OBJECT_NAME_COLLISION
        assert await do.status(repeat(bob)) == collision, "another client's CreateGuid is its own"
        on.held.of(Opens).durable.forget_create(first.handle)
        assert await do.status(repeat(ann)) == collision, "it is known that it was answered"
        await ann.leave()

    given.run(scenario)


def test_a_client_that_came_back_does_not_repeat_its_create() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        first = await repeat(ann, wanted="RWH", is_replay=False)
        await ann.leave()
        owner = (await back(on, first.handle, guid=GUID)).handle.owner
        assert isinstance(owner, Mount)
        collision = file_errors.STATUS_OBJECT_NAME_COLLISION
        assert await do.status(repeat(owner)) == collision

    given.run(scenario)


def test_a_create_that_waits_is_not_carried_out_twice() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann", answers=False)
        held = (await ann.open("f", disposition=Disposition.CREATE, wanted="RWH")).handle
        bob, request = await mounted(on, "bob"), WaitingRequest()
        wanted = RequestedDurability(GUID, 0)
        second = asyncio.ensure_future(bob.open("f", request=request, durable=wanted))
        await asyncio.wait_for(request.has_waited.wait(), 60)
        waits = file_errors.STATUS_FILE_NOT_AVAILABLE
        for is_replay in (False, True):
            assert await do.status(repeat(bob, is_replay=is_replay)) == waits
        await ann.close(held)
        assert (await repeat_after(second, bob)).is_repeated

    given.run(scenario)


async def repeat_after(first: asyncio.Future[OpenedHandle], mount: Mount) -> OpenedHandle:
    handle = (await asyncio.wait_for(first, 60)).handle
    again: OpenedHandle = await repeat(mount)
    assert again.handle is handle and again.durable_timeout_ms is None
    return again


def test_a_create_that_failed_leaves_its_guid_free() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        missing = ann.open("f", durable=RequestedDurability(GUID, 0))
        assert await do.status(missing) == NOT_FOUND
        await repeat(ann, is_replay=False)
        await ann.leave()
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_a_repeated_lock_is_carried_out_once() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        handle = (await opened(ann)).handle
        done: list[int] = []

        async def count() -> None:
            done.append(1)
            if len(done) == 2:
                raise ValueError

        await durable.lock_once(handle, 1, 5, count)
        await durable.lock_once(handle, 1, 5, count)
        assert len(done) == 1
        with pytest.raises(ValueError):
            await durable.lock_once(handle, 1, 6, count)
        await durable.lock_once(handle, 1, 6, count)
        await durable.lock_once(handle, 1, 5, count)
        assert len(done) == 4, "a LOCK that failed, and another number, are no repetition"
        for bucket in (0, 65):
            await durable.lock_once(handle, bucket, 1, count)
            await durable.lock_once(handle, bucket, 1, count)
        assert len(done) == 8
        plain = await ann.handle("g", disposition=Disposition.CREATE, share=R)
        await durable.lock_once(plain, 1, 1, count)
        await durable.lock_once(plain, 1, 1, count)
        assert len(done) == 10, "only durable handles have buckets"

    given.run(scenario)


def test_a_repeated_lock_of_a_handle_that_was_closed_is_refused() -> None:
    """The locks of the handle are released."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        handle = (await opened(ann)).handle

        async def locked() -> None: ...

        await durable.lock_once(handle, 1, 5, locked)
        await closing.close_all(on, [handle])
        again = durable.lock_once(handle, 1, 5, locked)
        assert await do.status(again) == file_errors.STATUS_FILE_CLOSED

    given.run(scenario)
