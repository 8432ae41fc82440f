"""Deleted shares that are retained: when they are swept, and the state after an interrupted
deletion."""

from __future__ import annotations

import contextlib

import pytest

from strongroom.account_switches import Switches
from strongroom.engines.base import CommitUnknown
from strongroom.operations.file import share
from strongroom.services.core.runner import Services
from strongroom.services.core.soft_deleted_places import RestorePlace, generation_version
from strongroom.services.file.shares.list_shares import ListShares, SharePage
from strongroom.services.file.shares.share_snapshots import DeleteShare
from strongroom.services.file.shares.shares import CreateShare
from strongroom.services.sweeper import Sweeper
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services.queue_calls import overwrite
from tests.services.service_engine import ServiceEngine

DAY_S = 24 * 60 * 60
TEXT = b"kept " * 20_000


def keep(on: Services, days: int) -> None:
    """Set the share retention of every account."""
    on.switches = lambda account: Switches(share_retention_days=days)


async def listed(on: Services) -> list[int]:
    """Return the generations of the retained shares."""
    wanted = ListShares(include=frozenset(("deleted",)))
    page: SharePage = await do.run(on, share.LIST_SHARES, "", wanted)
    return [row.record.generation for row in page.items if row.deleted]


async def drop(on: Services) -> None:
    await do.run(on, share.DELETE_SHARE, "", DeleteShare())


async def restore(on: Services, generation: int) -> None:
    wanted = RestorePlace(do.SHARE, generation_version(generation))
    await do.run(on, share.RESTORE_SHARE, "", wanted)


async def swept(on: Services, seconds: float = 1) -> None:
    on.store.advance(seconds)
    await Sweeper(on).run_once()


async def with_a_file(days: int) -> Services:
    on = await do.services()
    keep(on, days)
    await do.mkdir(on, "d")
    await do.write(on, "d/f", TEXT)
    return on


def test_a_kept_share_comes_back_and_is_swept_when_its_retention_ends() -> None:
    """F-RST-01, F-RST-03, F-RST-05."""

    async def scenario() -> None:
        on = await with_a_file(7)
        await drop(on)
        keep(on, 0)
        await swept(on, 5 * DAY_S)
        assert await given.refused(do.look(on, "d/f")) == (404, "ShareNotFound")
        assert do.problems(on) == []
        (generation,) = await listed(on)
        await restore(on, generation)
        assert await listed(on) == []
        assert await do.read(on, "d/f") == TEXT
        await swept(on, 3 * DAY_S)
        assert await do.read(on, "d/f") == TEXT
        keep(on, 7)
        await drop(on)
        await swept(on, 6 * DAY_S)
        assert await listed(on) == [generation]
        await swept(on, 2 * DAY_S)
        assert (await listed(on), do.stored(on), do.problems(on)) == ([], [], [])
        assert await given.refused(restore(on, generation)) == (404, "ShareNotFound")

    given.run(scenario)


def test_a_new_share_of_the_name_is_not_swept_and_bars_the_way_back() -> None:
    """F-RST-04, F-RST-06."""

    async def scenario() -> None:
        on = await with_a_file(1)
        await drop(on)
        await do.run(on, share.CREATE_SHARE, "", CreateShare())
        await do.write(on, "new", b"new")
        (generation,) = await listed(on)
        assert await given.refused(restore(on, generation)) == (409, "ShareAlreadyExists")
        await swept(on, 2 * DAY_S)
        assert await do.names(on) == ["new"] and await do.read(on, "new") == b"new"
        assert do.problems(on) == []

    given.run(scenario)


def test_a_kept_share_that_no_job_ends_is_found() -> None:
    async def scenario() -> None:
        on = await with_a_file(1)
        await drop(on)
        store = on.store
        assert isinstance(store, ServiceEngine)
        (job,) = [ref for ref, _ in store.records() if ref.partition.keyspace == b"j"]
        await overwrite(on, job, None)
        assert [one for one in do.problems(on) if "no job ends that" in one]

    given.run(scenario)


@pytest.mark.parametrize("days", [0, 7])
@pytest.mark.parametrize("cut", range(3))
def test_a_deletion_that_is_cut_off(cut: int, days: int) -> None:
    """F-RST-01, F-CRA-01: the share exists, is retained, or is gone; the job of a deletion that did
    not happen sweeps nothing."""

    async def scenario() -> None:
        before = await with_a_file(days)
        store = before.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(cut)
        with contextlib.suppress(CommitUnknown):
            await drop(before)
        on = Services(store.restarted(), before.clock)
        keep(on, 7)
        if cut < 2:
            await drop(on)
        await swept(on)
        assert bool(await listed(on)) == (cut < 2 or days > 0)
        for generation in await listed(on):
            await restore(on, generation)
            assert await do.read(on, "d/f") == TEXT
            assert do.problems(on) == []
            await drop(on)
        await swept(on, 8 * DAY_S)
        assert (do.stored(on), do.problems(on)) == ([], [])

    given.run(scenario)


@pytest.mark.parametrize("cut", range(3))
def test_an_end_of_the_retention_that_is_cut_off(cut: int) -> None:
    """F-RST-05: the next sweep finishes it."""

    async def scenario() -> None:
        before = await with_a_file(7)
        await drop(before)
        store = before.store
        assert isinstance(store, ServiceEngine)
        store.advance(8 * DAY_S)
        store.cut_after_steps(cut)
        with contextlib.suppress(CommitUnknown):
            await Sweeper(before).run_once()
        on = Services(store.restarted(), before.clock)
        await swept(on, DAY_S)
        assert (await listed(on), do.stored(on), do.problems(on)) == ([], [], [])

    given.run(scenario)
