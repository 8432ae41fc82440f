"""Deleted containers that are retained: when they are swept, and their state after a crash."""

from __future__ import annotations

import contextlib

import pytest

from strongroom.account_switches import Switches
from strongroom.engines.base import CommitUnknown
from strongroom.limits import COPY_AT_ONCE_BYTES_MAX
from strongroom.semantics.core.retention import remaining_days, retention_end
from strongroom.services.blob.containers import containers, list_containers
from strongroom.services.core.copies.sources import CopySources
from strongroom.services.core.runner import Services
from strongroom.services.core.soft_deleted_places import RestorePlace, generation_version
from strongroom.services.sweeper import Sweeper
from strongroom.values import TICKS_PER_S
from tests.services import blob_calls as do
from tests.services.container_calls import call, create, head_of, run
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container, fresh, swept

DAY_S = 24 * 60 * 60
BIG = 30_000


def keep(on: Services, days: int) -> None:
    """Set the container retention of every account."""
    on.switches = lambda account: Switches(container_retention_days=days)


async def listed(on: Services) -> list[tuple[str, int]]:
    """Return name and generation of the retained containers."""
    given = list_containers.ListContainers(include=frozenset(("deleted",)))
    page = await list_containers.list_containers(on, call(given, container=""))
    return [(row.name, row.record.generation) for row in page.items if row.deleted]


async def restore(on: Services, generation: int) -> None:
    given = RestorePlace("photos", generation_version(generation))
    await containers.restore_container(on, call(given))


def test_days_that_are_left() -> None:
    """B-RST-02: a partial day counts as a whole one."""
    until = retention_end(1000, 7)
    assert remaining_days(until, 1000) == 7
    assert remaining_days(until, 1000 + DAY_S * TICKS_PER_S) == 6
    assert remaining_days(until, until - 1) == 1
    assert remaining_days(until, until) == remaining_days(until, until + 1) == 0


def test_a_kept_container_is_swept_when_its_retention_ends() -> None:
    """B-RST-05."""

    async def test() -> None:
        on, sweeper = await fresh()
        keep(on, 7)
        await do.put(on, "b", b"b" * BIG)
        await do.snapshot(on, "b")
        await drop_container(on)
        keep(on, 0)
        assert await swept(on, sweeper) == 0
        on.store.advance(7 * DAY_S - 10)
        assert await swept(on, sweeper) == 0
        assert len(do.left(on)[1]) == 1
        on.store.advance(20)
        assert await swept(on, sweeper) == 1
        assert do.left(on) == ([], [])

    run(test)


def test_a_restored_container_outlives_the_job_of_its_deletion() -> None:
    """B-RST-03, B-RST-05: deleted again, it is retained from that deletion on."""

    async def test() -> None:
        on, sweeper = await fresh()
        keep(on, 7)
        await do.put(on, "b", b"b" * BIG)
        await drop_container(on)
        ((_, generation),) = await listed(on)
        on.store.advance(5 * DAY_S)
        await restore(on, generation)
        on.store.advance(3 * DAY_S)
        await swept(on, sweeper)
        assert await do.read(on, "b") == b"b" * BIG
        await drop_container(on)
        await restore(on, generation)
        await drop_container(on)
        on.store.advance(6 * DAY_S)
        await swept(on, sweeper)
        await restore(on, generation)
        assert await do.read(on, "b") == b"b" * BIG
        await drop_container(on)
        on.store.advance(8 * DAY_S)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_a_container_deleted_again_is_kept_from_that_deletion_on() -> None:
    """B-RST-05: the job of the first deletion falls due while the second one retains it."""

    async def test() -> None:
        on, sweeper = await fresh()
        keep(on, 7)
        await do.put(on, "b", b"b" * BIG)
        await drop_container(on)
        ((_, generation),) = await listed(on)
        on.store.advance(5 * DAY_S)
        await restore(on, generation)
        await drop_container(on)
        on.store.advance(3 * DAY_S)
        assert await swept(on, sweeper) == 1
        await restore(on, generation)
        assert await do.read(on, "b") == b"b" * BIG

    run(test)


def test_a_new_container_of_the_name_is_not_swept() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        keep(on, 1)
        await do.put(on, "b", b"old" * BIG)
        await drop_container(on)
        await create(on)
        await do.put(on, "b", b"new" * BIG)
        on.store.advance(2 * DAY_S)
        await swept(on, sweeper)
        assert await do.read(on, "b") == b"new" * BIG
        assert len(do.left(on)[1]) == 1

    run(test)


@pytest.mark.parametrize("days", [0, 7])
@pytest.mark.parametrize("cut", range(3))
def test_a_deletion_that_is_cut_off(cut: int, days: int) -> None:
    """The container exists, or is retained; the job of a deletion that did not happen sweeps
    nothing."""

    async def test() -> None:
        before, _ = await fresh()
        keep(before, days)
        await do.put(before, "b", b"b" * BIG)
        store = before.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(cut)
        with contextlib.suppress(CommitUnknown):
            await drop_container(before)
        on = Services(store.restarted(), before.clock)
        keep(on, 7)
        if cut < 2:
            # It is retained from now on, before the sweeper runs the job of the other deletion.
            await drop_container(on)
        sweeper = Sweeper(on)
        await swept(on, sweeper)
        for _, generation in await listed(on):
            await restore(on, generation)
            assert await do.read(on, "b") == b"b" * BIG
            await drop_container(on)
        assert bool(await listed(on)) == (cut < 2 or days > 0)
        on.store.advance(8 * DAY_S)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_a_pending_copy_has_failed_in_the_restored_container() -> None:
    """B-RST-07."""

    async def test() -> None:
        on, sweeper = await fresh()
        keep(on, 7)
        await do.put(on, "large", bytes(COPY_AT_ONCE_BYTES_MAX + 1))
        await do.start_copy(on, "large", "b")
        await drop_container(on)
        ((_, generation),) = await listed(on)
        await swept(on, sweeper)
        await restore(on, generation)
        head = await head_of(on, generation, "b")
        assert head is not None and head.copy is not None
        assert (head.copy.status.value, head.copy.description) == (
            "failed",
            "404 ContainerNotFound",
        )
        await do.delete(on, "b")
        await on.held.of(CopySources).close()

    run(test)
