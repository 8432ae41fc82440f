"""A share is served by one gateway at a time: others refuse, and take over from a dead one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.clock import ManualClock
from strongroom.engines.base import Unavailable
from strongroom.errors.core import SERVER_BUSY, StorageError
from strongroom.operations.file import copy, directory, file, handle, share
from strongroom.semantics.core import copies
from strongroom.semantics.file import durability
from strongroom.semantics.file.accesses import Use
from strongroom.services.core.copies.sources import CopySources, LocalSource
from strongroom.services.core.place_records import SetPlaceMetadata
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.copying import CopyFile
from strongroom.services.file.handles import locking
from strongroom.services.file.handles.listing import ListHandles
from strongroom.services.file.handles.model import RequestedDurability, RequestedLock
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.opens import background
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.opens.share_holds import ShareHolds
from strongroom.services.file.rest.nodes import NodeWritten
from strongroom.services.file.shares.list_shares import ListShares
from strongroom.services.file.shares.share_snapshots import SnapshotShare
from strongroom.services.file.shares.shares import CreateShare
from strongroom.services.sweeper import Sweeper
from strongroom.store.core import keys
from tests.services import container_calls, gateway_files
from tests.services import file_calls as do
from tests.services import handle_calls as smb
from tests.services.container_calls import refused, run
from tests.services.gateways.test_two_gateways import Gate, pair
from tests.services.queue_calls import jobs
from tests.services.service_engine import ServiceEngine, settle

LATE_S, DEAD_S = 6, 11
BUSY = (503, "ServerBusy")
RETRY = 0xC000_022D
ALONE = Use.NONE


async def with_file() -> list[Services]:
    """Return two gateways; the first serves a share with one file."""
    both = pair()
    await do.run(both[0], share.CREATE_SHARE, "", CreateShare())
    await do.write(both[0], "f", b"first")
    return both


def pause(on: Services, seconds: float) -> None:
    """Stop the gateway's heartbeats, and move the clock by so many seconds."""
    assert isinstance(on.store, ServiceEngine)
    on.store.stop_heartbeats()
    on.store.advance(seconds)


async def beat(on: Services) -> None:
    """Let the gateways see what the others have done, and let begin what is due by now."""
    assert isinstance(on.store, ServiceEngine)
    await on.store.beat_all()


def resume(on: Services) -> None:
    assert isinstance(on.store, ServiceEngine)
    on.store.resume_heartbeats()


def test_another_gateway_refuses_what_concerns_files_and_says_when_to_retry() -> None:
    async def test() -> None:
        holder, other = await with_file()
        for attempt in (
            do.look(other, "f"),
            do.read(other, "f"),
            do.put(other, "f", 0, b"other"),
            do.create(other, "g"),
            do.mkdir(other, "d"),
            do.names(other),
            do.run(other, file.DELETE_FILE, "f", OnPath()),
            do.run(other, directory.GET_DIRECTORY_PROPERTIES, "", OnPath()),
            do.run(other, handle.LIST_HANDLES, "", ListHandles()),
            do.run(other, share.SNAPSHOT_SHARE, "", SnapshotShare()),
        ):
            assert await refused(attempt) == BUSY
        with pytest.raises(StorageError) as raised:
            await do.look(other, "f")
        assert raised.value.row is SERVER_BUSY
        assert raised.value.headers == (("Retry-After", "1"),)
        assert await smb.status(smb.mounted(other)) == RETRY
        assert await do.read(holder, "f") == b"first"

    run(test)


def test_what_concerns_the_share_alone_is_served_by_each_gateway() -> None:
    async def test() -> None:
        holder, other = await with_file()
        changed = await do.run(
            other, share.SET_SHARE_METADATA, "", SetPlaceMetadata((("owner", "ann"),))
        )
        assert (await do.run(holder, share.GET_SHARE_PROPERTIES, "")).record.etag == changed.etag
        assert await do.run(other, share.GET_SHARE_STATS, "") == 5
        listed = await do.run(other, share.LIST_SHARES, "", ListShares())
        assert [one.name for one in listed.items] == [do.SHARE]
        await do.run(other, share.CREATE_SHARE, "", CreateShare(), share="another")
        await do.create(other, "of-the-other", share="another")
        assert await refused(do.look(holder, "of-the-other", share="another")) == BUSY
        # The serving gateway sees a deletion at once.
        await do.run(other, share.DELETE_SHARE, "")
        assert await refused(do.put(holder, "f", 0, b"late!")) == (404, "ShareNotFound")

    run(test)


def test_a_share_is_had_by_one_of_many_that_ask_at_once() -> None:
    async def test() -> None:
        both = pair()
        await do.run(both[0], share.CREATE_SHARE, "", CreateShare())
        outcomes = await asyncio.gather(
            *(do.create(both[number % 2], f"f{number}") for number in range(20)),
            return_exceptions=True,
        )
        refusals = [one.row for one in outcomes if isinstance(one, StorageError)]
        assert refusals == [SERVER_BUSY] * 10
        assert sum(isinstance(one, NodeWritten) for one in outcomes) == 10

    run(test)


def test_a_gateway_that_stops_gives_its_shares_up() -> None:
    async def test() -> None:
        holder, other = await with_file()
        assert await refused(do.read(other, "f")) == BUSY
        await holder.store.close()
        assert await do.read(other, "f") == b"first"
        await do.create(other, "g")

    run(test)


def test_the_share_of_a_dead_gateway_is_taken_over_and_that_one_commits_nothing() -> None:
    """The write of the old holder was decided before; its commit comes after the takeover."""

    async def test() -> None:
        holder, other = await with_file()
        gate = Gate(holder)
        late = asyncio.ensure_future(do.put(holder, "f", 0, b"late!"))
        await gate.reached.wait()
        pause(holder, DEAD_S)
        await do.put(other, "f", 0, b"other")
        resume(holder)
        gate.open()
        with pytest.raises(Unavailable):
            await late
        assert await do.read(other, "f") == b"other"
        with pytest.raises((Unavailable, StorageError)):
            await do.put(holder, "f", 0, b"again")
        assert await do.read(other, "f") == b"other"

    run(test)


def test_a_late_gateway_refuses_and_goes_on_if_nobody_took_its_share() -> None:
    async def test() -> None:
        holder, other = await with_file()
        mount = await smb.mounted(holder)
        alone = await mount.handle("f", share=ALONE)
        pause(holder, LATE_S)
        assert await refused(do.look(other, "f")) == BUSY, "its holder is not dead yet"
        with pytest.raises((Unavailable, StorageError)):
            await do.read(holder, "f")
        resume(holder)
        # The handle, and its exclusions, are unchanged.
        assert await refused(do.read(holder, "f")) == (409, "SharingViolation")
        await mount.write(alone, 0, b"mount")
        assert await mount.read(alone) == b"mount"

    run(test)


def test_a_paused_gateway_opens_and_locks_nothing_that_another_has_by_now() -> None:
    async def test() -> None:
        holder, other = await with_file()
        old = await smb.mounted(holder)
        opened = await old.handle("f")
        pause(holder, DEAD_S)
        new = await smb.mounted(other)
        alone = await new.handle("f", share=ALONE)
        resume(holder)
        wanted = [RequestedLock(0, 1, is_exclusive=True)]
        for attempt in (
            old.handle("f", share=ALONE),
            locking.lock(holder, opened, wanted, smb.WaitingRequest(), fails_immediately=True),
            old.write(opened, 0, b"old!!"),
            old.read(opened),
        ):
            with pytest.raises((Unavailable, StorageError)) as raised:
                await attempt
            if isinstance(raised.value, StorageError):
                assert raised.value.row is SERVER_BUSY
        await new.write(alone, 0, b"new!!")
        assert await new.read(alone) == b"new!!"

    run(test)


def test_what_the_old_holder_wrote_is_before_a_snapshot_that_the_new_one_takes() -> None:
    """The clock of the old holder is far ahead, and its last heartbeat is before its writes."""

    async def test() -> None:
        store = ServiceEngine(ManualClock())
        other = container_calls.services(store)
        ahead = container_calls.services(store.second(skew_s=60.0))
        await do.run(other, share.CREATE_SHARE, "", CreateShare())
        await do.write(ahead, "f", b"first")
        pause(ahead, 0)
        await do.run(ahead, share.SNAPSHOT_SHARE, "", SnapshotShare())
        for _ in range(3):
            await do.put(ahead, "f", 0, b"later")
        pause(ahead, DEAD_S)
        taken = await do.run(other, share.SNAPSHOT_SHARE, "", SnapshotShare())
        await do.put(other, "f", 0, b"newer")
        for snapshot, content in ((taken.snapshot, b"later"), (None, b"newer")):
            found = await do.begin(other, "f", snapshot=snapshot)
            assert await do.drain(found) == content

    run(test)


def test_the_jobs_of_a_share_are_done_by_the_gateway_that_serves_it() -> None:
    async def test() -> None:
        holder, other = await with_file()
        sweepers = {id(on): Sweeper(on) for on in (holder, other)}
        for number in range(8):
            await do.write(holder, f"x{number}", b"x" * 9000)
            await do.run(holder, file.DELETE_FILE, f"x{number}", OnPath())
        assert jobs(holder) == 8
        await sweepers[id(other)].run_once()
        assert jobs(holder) == 8, "they are left to the gateway that serves the share"
        await sweepers[id(holder)].run_once()
        assert jobs(holder) == 0
        await do.run(holder, file.DELETE_FILE, "f", OnPath())
        await holder.store.close()
        await beat(other)
        await sweepers[id(other)].run_once()
        assert jobs(other) == 0
        assert await do.names(other) == []

    run(test)


def test_the_hold_of_a_share_ends_when_the_share_has_been_swept() -> None:
    async def test() -> None:
        holder, _ = await with_file()
        place = await holder.store.read([keys.share(container_calls.ACCOUNT, do.SHARE)])
        assert place[0] is not None
        generation = place[0].version
        holds = holder.held.of(ShareHolds)
        assert holds.has(generation)
        await do.run(holder, share.DELETE_SHARE, "")
        await settle()
        assert holds.has(generation), "a restored share would be the same"
        await beat(holder)
        await Sweeper(holder).run_once()
        assert not holds.has(generation)

    run(test)


def test_a_pending_copy_from_a_share_of_another_gateway_is_put_off() -> None:
    """The copy has begun while its gateway served both shares. It continues when the gateway can
    serve both again."""

    async def test() -> None:
        first, second = await with_file()
        await do.run(first, share.CREATE_SHARE, "", CreateShare(), share="another")
        await _begin_copy(first)
        # Only the memory engine opens a second gateway.
        third = container_calls.services(first.store.second())  # type: ignore[attr-defined]
        # The gateway that has begun dies before the copy is done; its shares go to two others.
        pause(first, DEAD_S)
        assert await do.read(second, "f") == b"first"
        await do.look(third, "copy", share="another")
        sweeper = Sweeper(third)
        await sweeper.run_once()
        found = await do.look(third, "copy", share="another")
        assert found.record.copy is not None
        assert copies.is_pending(found.record.copy)
        await second.store.close()
        await Sweeper(third).run_once()
        assert await do.drain(await do.begin(third, "copy", share="another")) == b"first"

    run(test)


async def _begin_copy(on: Services) -> None:
    """Begin a copy from one share to another, which no sweeper continues."""

    async def locate(url: str, call: Any, wanted: Any) -> LocalSource:
        place = await on.place(Service.FILE, container_calls.ACCOUNT, do.SHARE)
        assert place is not None
        return LocalSource(
            container_calls.ACCOUNT, do.SHARE, place.generation, "f", service=Service.FILE
        )

    on.held.of(CopySources).locate = locate
    await do.run(on, copy.COPY_FILE, "copy", CopyFile(source="http://here/f"), share="another")


@pytest.mark.parametrize("seed", range(2))
def test_exclusive_opens_over_gateways_that_die_lose_no_count(seed: int) -> None:
    async def test() -> tuple[int, int, int]:
        async with asyncio.timeout(60):
            return await gateway_files.count(seed, 80, 4)

    acknowledged, tried, final = asyncio.run(test())
    assert acknowledged > 5
    assert acknowledged <= final <= tried


@pytest.mark.parametrize("seed", range(2))
def test_no_acknowledged_write_to_a_file_is_lost_over_gateways_that_die(seed: int) -> None:
    async def test() -> list[tuple[list[int], int]]:
        async with asyncio.timeout(60):
            return await gateway_files.slots(seed, 40, 4)

    for possible, found in asyncio.run(test()):
        assert found in possible


def test_what_a_late_gateway_waits_for_ends_when_it_serves_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The waits are of a durable handle for its client, and of a notice for its answer."""

    async def test() -> None:
        monkeypatch.setattr(background, "_LATE_S", 0)
        holder = (await with_file())[0]
        ann, bob = await smb.mounted(holder, "ann"), await smb.mounted(holder, "bob", answers=False)
        lost = await ann.handle("f", durable=RequestedDurability(), lease="a", wanted="RH")
        await bob.create("g", lease="b", wanted="RWH")
        await ann.leave()
        carl = await smb.mounted(holder, "carl")
        request = smb.WaitingRequest()
        opening = asyncio.ensure_future(carl.open("g", request=request))
        await asyncio.wait_for(request.has_waited.wait(), 60)
        await settle()
        pause(holder, LATE_S)
        await settle()
        with pytest.raises(Unavailable):
            await holder.store.now()
        resume(holder)
        holder.store.advance(durability.V2_TIMEOUT_MAX_MS / 1000)
        await asyncio.wait_for(opening, 60)
        await settle()
        await holder.held.of(Opens).tasks.wait()
        assert lost.is_closed

    run(test)
