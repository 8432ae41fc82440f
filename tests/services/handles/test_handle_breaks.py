"""Oplocks and leases on services in memory: answers in time, late and never, by a movable clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.engines.base import Full
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses, oplocks
from strongroom.semantics.file.accesses import Disposition
from strongroom.semantics.file.oplocks import Caching, CachingKind, OplockLevel
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import breaking, information, locking, renaming
from strongroom.services.file.handles.model import OpenedHandle, RequestedLock, RequestedRename
from strongroom.services.file.opens import background
from strongroom.services.file.opens.opens import Opens
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import STAT, Mount, R, WaitingRequest, mounted
from tests.services.service_engine import settle

VIOLATION = file_errors.STATUS_SHARING_VIOLATION
RWH, RH, RW = oplocks.RWH, oplocks.RH, oplocks.RW


async def waits(work: Awaitable[Any], told: asyncio.Event) -> asyncio.Task[Any]:
    """Start an operation, and return when it has told the client that it waits."""
    task = asyncio.ensure_future(work)
    async with asyncio.timeout(60):
        await told.wait()
    # The timers begin after a read of the clock.
    await settle()
    assert not task.done()
    return task


async def pass_time(on: Services, seconds: float) -> None:
    on.store.advance(seconds)
    await settle()


async def held(on: Services, state: str, *, answers: bool = False) -> tuple[Mount, OpenedHandle]:
    """Return a client with a lease on the file `f`."""
    ann = await mounted(on, "ann", answers=answers)
    opened = await ann.open("f", disposition=Disposition.OPEN_IF, lease="a", wanted=state)
    assert opened.caching == do.LEASES[state]
    return ann, opened


def test_an_open_waits_until_a_lease_is_acknowledged() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, first = await held(on, "RWH")
        bob = await mounted(on, "bob")
        request = WaitingRequest()
        opening = bob.open("f", request=request, lease="b", wanted="RWH")
        second = await waits(opening, request.has_waited)
        ((handle, notice),) = ann.notices
        assert handle is first.handle and notice.current == RWH and notice.to == RH
        assert notice.needs_answer and notice.epoch == 2
        ann.answer(handle, notice)
        opened = await second
        assert opened.caching == RH and request.interims == 1
        again = status_now(lambda: ann.answer(handle, notice))
        assert again == file_errors.STATUS_UNSUCCESSFUL
        await ann.leave()
        await bob.leave()
        assert do.nothing_is_left(on)

    given.run(scenario)


def status_now(call: Callable[[], object]) -> int:
    try:
        call()
    except StorageError as error:
        return error.row.ntstatus or -1
    return 0


def test_answers_that_are_refused() -> None:
    """smb.md 2.12."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, first = await held(on, "RWH")
        guid, key = ann.client_guid, b"a".ljust(16, b"-")
        answer = breaking.acknowledge_lease
        unknown = status_now(lambda: answer(on, guid, b"none", 0))
        assert unknown == file_errors.STATUS_OBJECT_NAME_NOT_FOUND
        idle = status_now(lambda: answer(on, guid, key, int(RH)))
        assert idle == file_errors.STATUS_UNSUCCESSFUL
        bob = await mounted(on, "bob")
        request = WaitingRequest()
        second = await waits(bob.open("f", request=request), request.has_waited)
        wide = status_now(lambda: answer(on, guid, key, int(RWH)))
        assert wide == file_errors.STATUS_REQUEST_NOT_ACCEPTED
        assert answer(on, guid, key, 0) is Caching.NONE
        await second
        plain = status_now(lambda: breaking.acknowledge_oplock(on, first.handle, 0))
        assert plain == file_errors.STATUS_INVALID_DEVICE_STATE

    given.run(scenario)


@pytest.mark.parametrize(
    ("level", "left", "expected"),
    [
        (OplockLevel.II, OplockLevel.II, 0),
        (OplockLevel.NONE, OplockLevel.NONE, 0),
        (OplockLevel.BATCH, None, file_errors.STATUS_INVALID_OPLOCK_PROTOCOL),
        (OplockLevel.LEASE, None, file_errors.STATUS_INVALID_PARAMETER),
    ],
)
def test_answers_for_oplocks(level: int, left: OplockLevel | None, expected: int) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann", answers=False), await mounted(on, "bob")
        first = await ann.open("f", disposition=Disposition.CREATE, wanted=RWH)
        assert first.caching == RWH and first.kind is CachingKind.OPLOCK
        request = WaitingRequest()
        second = await waits(bob.open("f", request=request), request.has_waited)
        found: list[OplockLevel] = []

        def answer() -> None:
            found.append(breaking.acknowledge_oplock(on, first.handle, level))

        assert status_now(answer) == expected
        assert found == ([] if left is None else [left])
        await second

    given.run(scenario)


def test_a_holder_that_never_answers_loses_its_cache_after_35_seconds() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, first = await held(on, "RWH")
        bob = await mounted(on, "bob")
        request = WaitingRequest()
        second = await waits(bob.open("f", request=request), request.has_waited)
        await pass_time(on, 34.9)
        assert not second.done()
        await pass_time(on, 0.2)
        await second
        late = status_now(lambda: ann.answer(*ann.notices[0]))
        assert late == file_errors.STATUS_UNSUCCESSFUL
        # Its handle continues without a cache.
        await ann.write(first.handle, 0, b"x")
        await ann.leave()
        await bob.leave()
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_a_break_ends_although_the_engine_had_no_time_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The disk was full, for example. Nobody else would end the break."""
    monkeypatch.setattr(background, "_LATE_S", 0)

    async def scenario() -> None:
        on = await file_calls.services()
        await held(on, "RWH")
        bob, request, now = await mounted(on, "bob"), WaitingRequest(), on.store.now

        async def full() -> int:
            raise Full

        second = asyncio.ensure_future(bob.open("f", request=request))
        await asyncio.wait_for(request.has_waited.wait(), 60)
        monkeypatch.setattr(on.store, "now", full)
        await pass_time(on, 1)
        monkeypatch.setattr(on.store, "now", now)
        await pass_time(on, 40)
        await asyncio.wait_for(second, 10)

    given.run(scenario)


def test_a_holder_that_closes_instead_is_out_of_the_way() -> None:
    """A share conflict breaks Handle first, then the share modes are checked again."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann", answers=False)
        made = await ann.open(
            "f", accesses.READ_DATA, R, Disposition.CREATE, lease="a", wanted="RH"
        )
        bob = await mounted(on, "bob")
        request = WaitingRequest()
        opening = do.status(bob.open("f", accesses.WRITE_DATA, request=request))
        second = await waits(opening, request.has_waited)
        await ann.close(made.handle)
        assert await second == 0

    given.run(scenario)


def test_a_holder_that_stays_is_a_violation_after_its_answer() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on, "ann", answers=True)
        await ann.open("f", accesses.READ_DATA, R, Disposition.CREATE, lease="a", wanted="RH")
        bob = await mounted(on, "bob")
        assert await do.status(bob.open("f", accesses.WRITE_DATA)) == VIOLATION
        assert [notice.to for _, notice in ann.notices] == [oplocks.R]

    given.run(scenario)


@pytest.mark.parametrize("how", ["cancelled", "holder gone"])
def test_a_waiting_open_ends_when_it_is_cancelled_or_the_holder_goes(how: str) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, _ = await held(on, "RWH")
        bob = await mounted(on, "bob")
        request = WaitingRequest()
        opening = do.status(bob.open("f", request=request))
        second = await waits(opening, request.has_waited)
        if how == "cancelled":
            request.cancelled.set_result(None)
            assert await second == file_errors.STATUS_CANCELLED
            assert len(on.held.of(Opens).handles) == 1
        else:
            await ann.leave()
            assert await second == 0
        await ann.leave()
        await bob.leave()
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_opens_for_attributes_break_nothing_and_same_keys_neither() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, first = await held(on, "RWH")
        bob = await mounted(on, "bob")
        await bob.open("f", STAT)
        again = await ann.open("f", lease="a", wanted="RWH")
        await ann.write(again.handle, 0, b"x")
        assert ann.notices == [] and again.caching == RWH
        other = ann.open("g", disposition=Disposition.CREATE, lease="a", wanted="R")
        assert await do.status(other) == file_errors.STATUS_INVALID_PARAMETER
        await ann.close(first.handle)
        assert again.handle.key == first.handle.key

    given.run(scenario)


async def by_write(bob: Mount, request: WaitingRequest) -> None:
    handle = await bob.handle("f", request=request)
    await bob.write(handle, 0, b"x")


async def by_read(bob: Mount, request: WaitingRequest) -> None:
    await bob.read(await bob.handle("f", request=request), 0, 0)


async def by_lock(bob: Mount, request: WaitingRequest) -> None:
    handle = await bob.handle("f", request=request)
    wanted = [RequestedLock(0, 1, True)]
    await locking.lock(bob.on, handle, wanted, request, fails_immediately=True)


async def by_size(bob: Mount, request: WaitingRequest) -> None:
    handle = await bob.handle("f", request=request)
    await information.set_end_of_file(bob.on, handle, 1, request)


async def by_rename(bob: Mount, request: WaitingRequest) -> None:
    handle = await bob.handle("f", request=request)
    await renaming.rename(bob.on, handle, RequestedRename(("g",)), request)


async def by_disposition(bob: Mount, request: WaitingRequest) -> None:
    handle = await bob.handle("f", request=request)
    await renaming.set_disposition(bob.on, handle, delete=True, request=request)


async def by_overwrite(bob: Mount, request: WaitingRequest) -> None:
    await bob.open("f", disposition=Disposition.OVERWRITE, request=request)


@pytest.mark.parametrize(
    ("operation", "left"),
    [
        (by_read, [RH]),
        (by_write, [RH, Caching.NONE]),
        (by_lock, [RH, Caching.NONE]),
        (by_size, [RH, Caching.NONE]),
        (by_rename, [RH, oplocks.R]),
        (by_disposition, [RH, oplocks.R]),
        (by_overwrite, [Caching.NONE]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_each_operation_of_another_leaves_to_a_lease(
    operation: Callable[[Mount, WaitingRequest], Awaitable[None]], left: list[Caching]
) -> None:
    """smb.md 3.6: the table of operations by another key."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, _ = await held(on, "RWH", answers=True)
        bob = await mounted(on, "bob")
        await operation(bob, WaitingRequest())
        assert [notice.to for _, notice in ann.notices] == left

    given.run(scenario)


def test_causes_that_come_during_a_break_add_up() -> None:
    """smb.md 3.6: the second notice follows the answer to the first."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, _ = await held(on, "RWH")
        bob, eve = await mounted(on, "bob"), await mounted(on, "eve")
        one, two = WaitingRequest(), WaitingRequest()
        plain = await waits(bob.open("f", request=one), one.has_waited)
        overwriting = eve.open("f", disposition=Disposition.OVERWRITE, request=two)
        second = await waits(overwriting, two.has_waited)
        assert len(ann.notices) == 1
        found = []
        for number, left in enumerate((RH, oplocks.R)):
            assert not plain.done() and not second.done()
            (_, notice), key = ann.notices[number], b"a".ljust(16, b"-")
            assert notice.to == left
            found.append(breaking.acknowledge_lease(on, ann.client_guid, key, int(left)))
            # The answer to the acknowledgment is sent first.
            assert len(ann.notices) == number + 1
            await pass_time(on, 0)
        # The next cause breaks the last state at once; the answer had the state that the holder
        # kept.
        assert found == [RH, oplocks.R]
        assert [notice.to for _, notice in ann.notices] == [RH, oplocks.R, Caching.NONE]
        async with asyncio.timeout(60):
            await second
            await plain

    given.run(scenario)


def test_a_notice_goes_to_one_handle_whose_client_can_be_reached() -> None:
    """A lease's handles may be on several connections of one client."""

    async def scenario() -> None:
        on = await file_calls.services()
        lost, there = await mounted(on, "ann", answers=False), await mounted(on, "ann")
        await lost.create("f", lease="a", wanted="RWH")
        for _ in range(2):
            await there.handle("f", lease="a", wanted="RWH")
        lost.alive = False
        await (await mounted(on, "bob")).open("f")
        assert not lost.notices and len(there.notices) == 1

    given.run(scenario)


def test_a_lease_of_two_files_stays_when_the_deleted_one_is_closed() -> None:
    """A file that is to be deleted does not keep its lease's key from another file."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann", answers=False), await mounted(on, "bob")
        first = await ann.create("f", lease="a", wanted="RWH", deletes_on_close=True)
        await ann.create("g", lease="a", wanted="RWH")
        await ann.close(first)
        request = WaitingRequest()
        second = await waits(bob.open("g", request=request), request.has_waited)
        ann.answer(*ann.notices[0])
        await second

    given.run(scenario)


def test_a_rename_above_asks_those_who_cache_their_handles_below() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann", answers=False), await mounted(on, "bob")
        await ann.close(await ann.mkdir("d"))
        inner = await ann.open("d/f", disposition=Disposition.CREATE, lease="a", wanted="RWH")
        folder = await bob.handle("d")
        request = WaitingRequest()
        moving = renaming.rename(on, folder, RequestedRename(("x",)), request)
        renamed = await waits(do.status(moving), request.has_waited)
        assert [notice.to for _, notice in ann.notices] == [RW]
        await ann.close(inner.handle)
        assert await renamed == 0
        assert await file_calls.names(on) == ["x"]

    given.run(scenario)
