"""The reset of a store in memory: what each commit checks, what it leaves, and what a crash
leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from strongroom.account_switches import ContainerProtection, Switches
from strongroom.auth.request import Service
from strongroom.engines.base import CommitUnknown
from strongroom.operations.blob import immutability
from strongroom.operations.file import share
from strongroom.semantics.blob.immutability import Immutability
from strongroom.semantics.table.entities import EntityChange
from strongroom.services.blob.containers import resetting as containers
from strongroom.services.blob.states.immutability import SetHold, SetPolicy
from strongroom.services.core.decisions import UNDECODED, Reads
from strongroom.services.core.resetting import (
    FoundPlace,
    RemovePlace,
    RemoveProperties,
    ResetRefused,
    ResetRight,
    removal_of,
)
from strongroom.services.core.runner import Services
from strongroom.services.file.shares.shares import CreateShare
from strongroom.services.queue.queues import QUEUES
from strongroom.services.reset import ResetScope, reset
from strongroom.services.sweeper import Sweeper
from strongroom.store.core import keys
from strongroom.values import TICKS_PER_S, Purpose
from tests.services import blob_calls as blob
from tests.services import file_calls as file
from tests.services import queue_calls as queue
from tests.services import version_calls as versions
from tests.services.container_calls import ACCOUNT, create, run
from tests.services.purity import WatchedClock
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container, swept
from tests.services.table import test_entities as table

ALL = ResetScope((ACCOUNT,), tuple(Service), (ACCOUNT,), True)
RIGHT = ResetRight(is_marked=True, is_durable=True)
DAY_TICKS = 24 * 60 * 60 * TICKS_PER_S
KEEPING = Switches(container_retention_days=7, share_retention_days=7, versioning=True)
BIG = b"b" * 30_000


def services(allows_reset: bool = True, switches: Switches = KEEPING) -> Services:
    clock = WatchedClock()
    return Services(
        ServiceEngine(clock, allows_reset=allows_reset), clock, lambda account: switches
    )


async def fill(on: Services) -> None:
    """Store something of every kind: versions, soft-deleted places, blocks, messages, files."""
    await create(on)
    await blob.put(on, "old", BIG)
    await drop_container(on)
    await create(on)
    for data in (b"one", BIG):
        await blob.put(on, "b", data)
    await blob.snapshot(on, "b")
    await blob.stage(on, "staged", "1", BIG)
    await queue.create(on)
    await queue.put(on, "x" * 40_000)
    await table.table(on)
    await table.write(on, EntityChange.INSERT_OR_REPLACE, a="x" * 30_000)
    await file.run(on, share.CREATE_SHARE, "", CreateShare())
    await file.create(on, "f", 4)
    await file.write(on, "f", BIG)
    await file.run(on, share.DELETE_SHARE, "")
    await file.run(on, share.CREATE_SHARE, "", CreateShare())
    await file.create(on, "f", 4)


def stored(on: Services) -> list[Any]:
    store = on.store
    assert isinstance(store, ServiceEngine)
    return [*store.records(), *store.content_ids()]


def test_the_space_of_everything_comes_back_by_the_sweep() -> None:
    async def test() -> None:
        on = services()
        await fill(on)
        removed = await reset(on, ALL)
        assert removed == {"containers": 2, "queues": 1, "tables": 1, "shares": 2}
        assert len(stored(on)) > 5
        await swept(on, Sweeper(on))
        assert stored(on) == []

    run(test)


@pytest.mark.parametrize("versioning", [False, True])
def test_jobs_of_what_is_kept_go_too(versioning: bool) -> None:
    """Nothing waits for the end of a retention, or for the end of an upload."""

    async def test() -> None:
        on = services(switches=msgspec.structs.replace(KEEPING, versioning=versioning))
        await fill(on)
        await versions.retain(on, 7)
        first = await versions.put(on, "kept", BIG)
        await versions.put(on, "kept", BIG)
        if versioning:
            assert not await versions.delete(on, "kept", first)
        await blob.delete(on, "kept")
        assert any(ref.partition.keyspace == keys.JOBS for ref in queue.stored(on))
        await reset(on, ALL)
        await swept(on, Sweeper(on))
        assert stored(on) == []

    run(test)


def test_each_commit_checks_the_mark_of_the_store() -> None:
    """A caller that got past the door removes nothing."""

    async def test() -> None:
        on = services(allows_reset=False)
        await fill(on)
        before = len(stored(on))
        with pytest.raises(ResetRefused):
            await reset(on, ALL)
        unmarked = ResetRight(on.store.allows_reset, is_durable=False)
        with pytest.raises(ResetRefused):
            await on.commit(_removal(unmarked, await on.store.now()))
        ref, reads = keys.service_properties(ACCOUNT, "blob"), Reads()
        properties = reads.add(ref, UNDECODED)
        with pytest.raises(ResetRefused):
            await on.commit(
                RemoveProperties(ref.partition, reads.refs, Purpose.FREEING, unmarked, properties)
            )
        place = await _found(on)
        with pytest.raises(ResetRefused):
            await containers.set_mark(on, place, unmarked)
        assert len(stored(on)) == before

    run(test)


def _removal(right: ResetRight, began: int, switches: Switches = KEEPING) -> RemovePlace:
    ref, reads = keys.container(ACCOUNT, "photos"), Reads()
    place = reads.add(ref, UNDECODED)
    return RemovePlace(
        ref.partition,
        reads.refs,
        Purpose.FREEING,
        place,
        f"{ACCOUNT}/photos",
        began,
        right,
        switches,
        containers.removal_of,
        containers.check,
        0,
    )


async def _found(on: Services) -> FoundPlace:
    ref = keys.container(ACCOUNT, "photos")
    (record,) = await on.store.read([ref])
    assert record is not None
    return FoundPlace(f"{ACCOUNT}/photos", ref, record.value)


def test_a_place_that_was_made_since_the_reset_began_stays() -> None:
    async def test() -> None:
        on = services()
        began = await on.store.now()
        on.store.advance(1)
        await create(on)
        assert await on.commit(_removal(RIGHT, began)) is False
        assert await on.place(Service.BLOB, ACCOUNT, "photos") is not None
        on.store.advance(1)
        assert await on.commit(_removal(RIGHT, await on.store.now())) is True
        assert await on.place(Service.BLOB, ACCOUNT, "photos") is None

    run(test)


HELD = ContainerProtection(holds=("case",))
LOCKED = ContainerProtection(retention_days=1, locked=True)
UNLOCKED = ContainerProtection(retention_days=1)


@pytest.mark.parametrize("protection", [HELD, LOCKED])
def test_a_container_with_a_hold_or_a_locked_policy_stops_the_reset(
    protection: ContainerProtection,
) -> None:
    async def test() -> None:
        switches = Switches(containers={"photos": protection})
        on = services(switches=switches)
        await create(on)
        await create(on, "others")
        with pytest.raises(ResetRefused, match="account/photos"):
            await reset(on, ALL)
        assert await on.place(Service.BLOB, ACCOUNT, "others") is not None
        # Protected after the look, before the commit.
        with pytest.raises(ResetRefused):
            await on.commit(_removal(RIGHT, await on.store.now(), switches))
        # A store in memory outlives nothing, so nothing in it has to be kept.
        assert (await reset(on, ALL._replace(is_durable=False)))["containers"] == 2

    run(test)


def test_a_policy_that_is_not_locked_stops_nothing() -> None:
    async def test() -> None:
        on = services(switches=Switches(immutability=True, containers={"photos": UNLOCKED}))
        await create(on)
        await blob.put(on, "b", BIG)
        await policy(on, locked=False)
        assert (await reset(on, ALL))["containers"] == 1

    run(test)


async def policy(on: Services, *, locked: bool) -> None:
    until = await on.store.now() + DAY_TICKS
    given = SetPolicy(Immutability(until, locked))
    await blob.run(on, immutability.SET_POLICY, "b", given)


def test_a_locked_policy_of_a_blob_stops_the_reset_until_it_ends() -> None:
    async def test() -> None:
        on = services(switches=Switches(immutability=True))
        await create(on)
        await blob.put(on, "b", BIG)
        await policy(on, locked=True)
        with pytest.raises(ResetRefused, match="account/photos/b"):
            await reset(on, ALL)
        on.store.advance(24 * 60 * 60 + 1)
        assert (await reset(on, ALL))["containers"] == 1

    run(test)


def test_a_blob_that_is_protected_during_the_reset_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reset has looked at the blobs; a hold comes before its commit."""

    async def test() -> None:
        on = services(switches=Switches(immutability=True))
        await create(on)
        await blob.put(on, "b", BIG)
        looks = 0
        look = containers.check_blobs

        async def check_blobs(*given: Any) -> None:
            nonlocal looks
            looks += 1
            await look(*given)
            if looks == 2:  # the first look is at the whole store
                await blob.run(on, immutability.SET_HOLD, "b", SetHold(True))

        monkeypatch.setattr(containers, "check_blobs", check_blobs)
        with pytest.raises(ResetRefused, match="account/photos/b"):
            await reset(on, ALL)
        assert looks == 3
        assert await blob.read(on, "b") == BIG

    run(test)


@pytest.mark.parametrize("steps", range(3))
def test_a_crash_in_a_commit_leaves_a_place_whole_or_gone(steps: int) -> None:
    async def test() -> None:
        on = services(switches=Switches())
        await create(on)
        await blob.put(on, "b", BIG)
        store = on.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(steps)
        with pytest.raises(CommitUnknown):
            await reset(on, ALL)
        after = Services(store.restarted(), WatchedClock(), on.switches)
        after.store.allows_reset = True  # type: ignore[misc]
        is_there = await after.place(Service.BLOB, ACCOUNT, "photos") is not None
        assert is_there is (steps < 2)
        await swept(after, Sweeper(after))
        if is_there:
            assert await blob.read(after, "b") == BIG
            await reset(after, ALL)
            await swept(after, Sweeper(after))
        assert stored(after) == []

    run(test)


def test_a_reset_that_fails_ends_after_all_of_its_removals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit, ended = Services.commit, []

    async def commit_of(on: Services, decision: Any) -> Any:
        if isinstance(decision, RemovePlace) and decision.name.endswith("/first"):
            raise CommitUnknown("a fault")
        for _ in range(5):
            await asyncio.sleep(0)
        made = await commit(on, decision)
        ended.append(decision)
        return made

    async def test() -> None:
        on = services()
        for name in ("first", "second"):
            await create(on, name)
        monkeypatch.setattr(Services, "commit", commit_of)
        with pytest.raises(CommitUnknown):
            await reset(on, ALL)
        assert [one.name for one in ended] == [f"{ACCOUNT}/second"]

    run(test)


def test_a_queue_that_is_reset_leaves_one_job() -> None:
    async def test() -> None:
        on = services()
        await queue.create(on)
        ref = keys.queue(ACCOUNT, queue.QUEUE)
        (record,) = await on.store.read([ref])
        assert record is not None
        place = FoundPlace(f"{ACCOUNT}/{queue.QUEUE}", ref, record.value)
        removal = removal_of(QUEUES, place, record.version + 1)
        assert [len(step.writes) for step in removal.steps] == [1, 1]
        assert removal.generation == record.version

    run(test)


def test_two_resets_at_once_remove_everything_once() -> None:
    async def test() -> None:
        on = services()
        await fill(on)
        found = await asyncio.gather(reset(on, ALL), reset(on, ALL))
        assert sum(one["containers"] for one in found) == 2
        await swept(on, Sweeper(on))
        assert stored(on) == []

    run(test)
