"""Durable handles on services in memory: lost connections, reconnects, others that need the
file."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.errors import file as file_errors
from strongroom.operations.file.handle import FORCE_CLOSE_HANDLES, LIST_HANDLES
from strongroom.semantics.file import oplocks
from strongroom.semantics.file.accesses import Disposition, Use
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.semantics.file.oplocks import Caching, CachingKind
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import durable, locking, renaming
from strongroom.services.file.handles.listing import CloseHandles, ListHandles
from strongroom.services.file.handles.model import (
    Handle,
    OpenedHandle,
    RequestedDurability,
    RequestedLock,
    RequestedReconnect,
    RequestedRename,
)
from strongroom.services.file.opens import durable_handles
from strongroom.services.file.opens.opens import Opens
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import ALL, LEASES, Mount, WaitingRequest, mounted
from tests.services.handles.test_handle_breaks import pass_time
from tests.services.handles.test_handle_rest import SENDS
from tests.services.service_engine import ServiceEngine, settle

NOT_FOUND = file_errors.STATUS_OBJECT_NAME_NOT_FOUND
DENIED = file_errors.STATUS_ACCESS_DENIED
CONFLICT = file_errors.STATUS_FILE_LOCK_CONFLICT
GUID = b"guid-1".ljust(16, b"-")
V2 = CachingKind.LEASE_V2
NOBODY: Use = Use.NONE


def lease_of(name: str) -> bytes:
    return name.encode().ljust(16, b"-")


async def opened(
    ann: Mount, path: str = "f", *, guid: bytes | None = None, timeout_ms: int = 0, **more: Any
) -> OpenedHandle:
    """Make a durable open: with a batch oplock, or with the requested lease."""
    more.setdefault("wanted", "RWH")
    more.setdefault("disposition", Disposition.OPEN_IF)
    return await ann.open(path, durable=RequestedDurability(guid, timeout_ms), **more)


async def lost(on: Services, **more: Any) -> tuple[Mount, Handle]:
    """Return a client that has lost its connection, and its durable handle."""
    ann = await mounted(on, "ann")
    handle = (await opened(ann, **more)).handle
    await ann.leave()
    assert is_waiting(handle)
    return ann, handle


async def back(
    on: Services,
    handle: Handle,
    *,
    name: str = "ann",
    guid: bytes | None = None,
    lease: str | None = None,
    kind: CachingKind = V2,
    path: str = "f",
    user: str = given.ACCOUNT,
) -> OpenedHandle:
    """Reconnect the client and claim its handle."""
    mount = await mounted(on, name)
    mount.session_id, mount.user = 2, user
    key = None if lease is None else lease_of(lease)
    wanted = RequestedReconnect(
        handle.id, guid, key, None if lease is None else kind, do.parts(path)
    )
    return await durable.reconnect(on, mount.access, wanted, mount)


def leased(kept: str) -> dict[str, Any]:
    return {} if kept == "batch" else {"lease": "a", "wanted": kept}


def is_waiting(handle: Handle) -> bool:
    """Return whether a handle is open without a client."""
    return handle.owner is None and not handle.is_closed


def lock(on: Services, handle: Handle) -> Awaitable[None]:
    wanted = [RequestedLock(0, 10, is_exclusive=True)]
    return locking.lock(on, handle, wanted, WaitingRequest(), fails_immediately=True)


def test_all_that_a_handle_has_survives_its_connection() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        first = await opened(ann, guid=GUID, lease="a", share=NOBODY, deletes_on_close=True)
        handle = first.handle
        assert first.durable_timeout_ms == 60_000
        await ann.write(handle, 0, b"before")
        await lock(on, handle)
        handle.position = 4
        await ann.leave()
        again = await back(on, handle, guid=GUID, lease="a")
        assert again.handle is handle and again.caching == oplocks.RWH
        assert again.epoch == first.epoch and again.info.size_bytes == 6
        assert handle.position == 4 and handle.client.session_id == 2
        owner = handle.owner
        assert isinstance(owner, Mount)
        await locking.unlock(on, handle, [(0, 10)])
        assert await owner.read(handle) == b"before"
        await owner.close(handle)
        assert await file_calls.names(on) == [], "it was opened to be deleted on close"
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_an_oplock_is_given_back_to_another_client_of_the_user_too() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on)
        assert (await back(on, handle, name="bob", path="any/name")).caching == oplocks.RWH
        assert await do.status(back(on, handle)) == NOT_FOUND, "it has its client already"

    given.run(scenario)


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ({}, NOT_FOUND),
        ({"lease": "b"}, NOT_FOUND),
        ({"lease": "a", "kind": CachingKind.LEASE_V1}, NOT_FOUND),
        ({"lease": "a", "name": "bob"}, NOT_FOUND),
        ({"lease": "a", "guid": bytes(16)}, NOT_FOUND),
        ({"lease": "a", "user": "eve"}, DENIED),
        ({"lease": "a", "path": "g"}, file_errors.STATUS_INVALID_PARAMETER),
        ({"lease": "a", "path": "F"}, 0),
    ],
)
def test_a_refused_reconnect_leaves_the_handle_where_it_is(
    claim: dict[str, Any], status: int
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on, guid=GUID, lease="a")
        assert await do.status(back(on, handle, **claim)) == status
        assert (handle.owner is None) is bool(status)
        if status:
            await back(on, handle, lease="a", guid=GUID)

    given.run(scenario)


@pytest.mark.parametrize(
    ("more", "limit_s"),
    [
        ({}, 120),
        ({"guid": GUID}, 60),
        ({"guid": GUID, "timeout_ms": 5000}, 5),
        ({"guid": GUID, "timeout_ms": 0xFFFF_FFFF}, 300),
    ],
)
def test_time_runs_out(more: dict[str, Any], limit_s: int) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on, share=NOBODY, deletes_on_close=True, **more)
        await settle()
        await pass_time(on, limit_s - 1)
        assert not handle.is_closed
        on.store.advance(2)
        await asyncio.wait_for(handle.ending, 60)
        await on.held.of(Opens).tasks.wait()
        assert do.nothing_is_left(on)
        assert await file_calls.names(on) == []
        assert await do.status(back(on, handle)) == NOT_FOUND

    given.run(scenario)


def test_a_client_that_came_back_has_all_the_time_again() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on)
        await pass_time(on, 100)
        again = (await back(on, handle)).handle.owner
        assert isinstance(again, Mount)
        await pass_time(on, 100)
        assert not handle.is_closed
        await again.leave()
        await settle()
        await pass_time(on, 100)
        assert is_waiting(handle)

    given.run(scenario)


async def _write(on: Services, bob: Mount) -> None:
    handle = await bob.handle("f", share=ALL)
    await bob.write(handle, 0, b"x")


async def _rename(on: Services, bob: Mount) -> None:
    handle = await bob.handle("f")
    await renaming.rename(on, handle, RequestedRename(("g",)), WaitingRequest())


async def _dispose(on: Services, bob: Mount) -> None:
    await bob.dispose(await bob.handle("f"))


async def _lock(on: Services, bob: Mount) -> None:
    await lock(on, await bob.handle("f"))


NEEDS: dict[str, Callable[[Services, Mount], Awaitable[object]]] = {
    "open": lambda on, bob: bob.open("f"),
    "overwrite": lambda on, bob: bob.open("f", disposition=Disposition.OVERWRITE),
    "share nothing": lambda on, bob: bob.open("f", share=NOBODY),
    "write": _write,
    "rename": _rename,
    "dispose": _dispose,
    "lock": _lock,
}


@pytest.mark.parametrize("kept", ["batch", "RWH", "RH"])
@pytest.mark.parametrize("need", NEEDS)
def test_an_open_that_needs_the_file_closes_a_handle_without_a_client(kept: str, need: str) -> None:
    """smb.md 3.9: no client can answer the break. The handle's locks are freed, and the operation
    continues."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        more = leased(kept)
        handle = (await opened(ann, **more)).handle
        await lock(on, handle)
        await ann.leave()
        bob = await mounted(on, "bob")
        async with asyncio.timeout(60):
            await NEEDS[need](on, bob)
        # A plain open breaks nothing of a client that caches no writes.
        stays = need == "open" and kept == "RH"
        assert handle.is_closed is not stays
        expected = 0 if stays else NOT_FOUND
        claim: dict[str, Any] = {} if kept == "batch" else {"lease": "a"}
        assert await do.status(back(on, handle, **claim)) == expected

    given.run(scenario)


@pytest.mark.parametrize("shares_all", [False, True])
@pytest.mark.parametrize("kept", ["batch", "RWH", "RH"])
@pytest.mark.parametrize("operation", SENDS)
def test_no_operation_of_rest_waits_for_a_client_that_is_gone(
    operation: str, kept: str, shares_all: bool
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"abcd")
        ann = await mounted(on, "ann")
        more = leased(kept)
        share = ALL if shares_all else NOBODY
        handle = (await opened(ann, share=share, **more)).handle
        await lock(on, handle)
        await ann.leave()
        reads = operation in ("Get", "ListRanges")
        # A client that caches no writes keeps its handle and its locks, while others only read.
        stays = shares_all and kept == "RH" and reads
        async with asyncio.timeout(60):
            answer = await do.status_over_rest(SENDS[operation](on))
        assert answer == (409 if stays and operation == "Get" else 0)
        await on.held.of(Opens).tasks.wait()
        assert handle.is_closed is not stays

    given.run(scenario)


def test_a_file_to_be_deleted_on_close_goes_before_the_name_is_used_again() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on, deletes_on_close=True)
        bob = await mounted(on, "bob")
        found = await bob.open("f", disposition=Disposition.OPEN_IF)
        assert handle.is_closed and found.info.node_id != handle.node_id

    given.run(scenario)


@pytest.mark.parametrize("more", [{}, {"lease": "a"}, {"lease": "a", "wanted": "RH"}])
def test_a_rename_of_a_directory_above_closes_a_handle_without_a_client(
    more: dict[str, Any],
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.mkdir(on, "d")
        _, handle = await lost(on, path="d/f", **more)
        bob = await mounted(on, "bob")
        directory = await bob.handle("d")
        await renaming.rename(on, directory, RequestedRename(("e",)), WaitingRequest())
        assert handle.is_closed and await file_calls.names(on, "e") == ["f"]

    given.run(scenario)


@pytest.mark.parametrize(
    ("reason", "is_kept"),
    [
        (DisconnectReason.DISCONNECTED, True),
        (DisconnectReason.LOGGED_OFF, True),
        (DisconnectReason.TREE_DISCONNECTED, False),
    ],
)
def test_a_handle_outlives_its_session_but_not_its_tree_connect(
    reason: DisconnectReason, is_kept: bool
) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        handle = (await opened(ann)).handle
        plain = await ann.handle("g", disposition=Disposition.CREATE, wanted=Caching.READ)
        await durable.disconnect(on, [handle, plain], reason)
        assert handle.is_closed is not is_kept and plain.is_closed

    given.run(scenario)


def test_a_file_whose_deletion_is_pending_goes_with_its_connection() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        handle = (await opened(ann)).handle
        await ann.dispose(handle)
        await ann.leave()
        assert handle.is_closed and await file_calls.names(on) == []

    given.run(scenario)


def test_a_lease_that_another_connection_keeps_keeps_its_lost_opens() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, second = await mounted(on, "ann"), await mounted(on, "ann")
        handle = (await opened(ann, lease="a")).handle
        other = await second.handle("f", lease="a", wanted="RWH")
        await ann.leave()
        bob = await mounted(on, "bob")
        await bob.open("f")
        assert not handle.is_closed, "the lease keeps Handle, and its client has answered"
        await bob.open("f", disposition=Disposition.OVERWRITE)
        assert [handle.is_closed, other.is_closed] == [True, False]

    given.run(scenario)


def test_handles_without_a_client_are_listed_and_closed_by_force() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on)
        page = await file_calls.run(on, LIST_HANDLES, "f", ListHandles())
        assert [(row.id, row.reconnected) for row in page.rows] == [(handle.id, None)]
        mount = (await back(on, handle)).handle.owner
        assert isinstance(mount, Mount)
        await mount.leave()
        page = await file_calls.run(on, LIST_HANDLES, "f", ListHandles())
        assert page.rows[0].reconnected is not None
        closed = await file_calls.run(on, FORCE_CLOSE_HANDLES, "f", CloseHandles())
        assert closed.count == 1 and do.nothing_is_left(on)

    given.run(scenario)


def test_a_deleted_share_closes_its_handles_without_a_client() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on)
        await file_calls.run(on, "share_delete", "")
        await on.held.of(Opens).tasks.wait()
        assert handle.is_closed and do.nothing_is_left(on)

    given.run(scenario)


def test_after_a_crash_there_is_nothing_to_come_back_to() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        _, handle = await lost(on)
        assert isinstance(on.store, ServiceEngine)
        anew = Services(on.store.restarted(), on.clock)
        assert await do.status(back(anew, handle)) == NOT_FOUND
        assert await file_calls.names(anew) == ["f"]

    given.run(scenario)


@pytest.mark.parametrize("bound", ["DISCONNECTED_MAX", "DISCONNECTED_PER_ACCOUNT_MAX"])
def test_so_many_handles_wait_and_no_more(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann")
        handles = [(await opened(ann, f"f{number}")).handle for number in range(4)]
        await ann.leave()
        assert [one.is_closed for one in handles] == [False, False, True, True]
        await back(on, handles[0])
        assert on.held.of(Opens).durable.waiting_count == 1
        bob = await mounted(on, "bob")
        more = (await opened(bob, "more")).handle
        await bob.leave()
        assert not more.is_closed, "there is room again"

    monkeypatch.setattr(durable_handles, bound, 2)
    given.run(scenario)


def test_directories_and_opens_without_handle_caching_are_not_durable() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.mkdir(on, "d")
        ann = await mounted(on, "ann")
        directory = await opened(ann, "d", lease="d")
        exclusive = await opened(ann, "x", wanted=oplocks.RW)
        assert LEASES["RW"] == exclusive.caching
        for found in (directory, exclusive):
            assert found.durable_timeout_ms is None and found.handle.durable is None
        await ann.leave()
        assert do.nothing_is_left(on)

    given.run(scenario)
