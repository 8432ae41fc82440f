"""Deletions that include snapshots: many of them, and such as are made and deleted at the same
time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from strongroom.account_switches import ContainerProtection, Switches
from strongroom.engines.base import Item, Partition
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError
from strongroom.operations.blob import immutability
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.services.blob.states import snapshots
from strongroom.services.blob.states.immutability import SetHold
from strongroom.services.blob.states.retention import PAST_PER_COMMIT
from strongroom.services.core.runner import Services
from strongroom.store.core import keys
from tests.services import blob_calls as do
from tests.services import version_calls as ver
from tests.services.container_calls import run
from tests.services.queue_calls import problems
from tests.services.sweeps import fresh, swept

INCLUDE, ONLY = DeleteSnapshots.INCLUDE, DeleteSnapshots.ONLY
BIG = 20_000
DAY_S = 24 * 60 * 60


def before_snapshots_are_read(on: Services, act: Callable[[], Awaitable[object]]) -> None:
    """Run `act` once, before the snapshots are listed for the first time."""
    real = on.store.read_range
    done: list[bytes] = []

    async def read_range(
        partition: Partition, hidden: bool, first: bytes, until: bytes | None, max_records: int
    ) -> list[Item]:
        found = await real(partition, hidden, first, until, max_records)
        if not hidden and not done:
            done.append(first)
            await act()
        return found

    on.store.read_range = read_range  # type: ignore[method-assign]  # a double


@pytest.mark.parametrize("size", [10, 1000, BIG])
@pytest.mark.parametrize("option", [INCLUDE, ONLY])
@pytest.mark.parametrize("count", [PAST_PER_COMMIT, 2 * PAST_PER_COMMIT + 1])
def test_many_snapshots_go(size: int, option: DeleteSnapshots, count: int) -> None:
    """B-DEL-03: each with a content of its own."""

    async def test() -> None:
        on, sweeper = await fresh()
        for number in range(count):
            await do.put(on, "b", bytes((number % 251,)) * size)
            await do.snapshot(on, "b")
        await do.delete(on, "b", option)
        await swept(on, sweeper)
        found, contents = do.left(on)
        names = {ref.key.name for ref, _ in found if ref.key in (keys.HEAD_KEY, keys.inline(0))}
        if option is INCLUDE:
            assert (len(found), contents) == (1, []), "the container's record is left"
        else:
            assert await do.read(on, "b") == bytes(((count - 1) % 251,)) * size
            assert len(found) == 1 + len(names)
            await do.delete(on, "b")

    run(test)


def test_a_snapshot_that_is_taken_meanwhile_goes_too() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "b", b"x" * BIG)
        await do.snapshot(on, "b")
        before_snapshots_are_read(on, lambda: do.snapshot(on, "b"))
        await do.delete(on, "b", INCLUDE)
        await swept(on, sweeper)
        assert len(do.left(on)[0]) == 1
        assert do.left(on)[1] == []

    run(test)


def test_one_that_is_exchanged_for_another_is_noticed() -> None:
    """The head's record has the same value afterwards: its version shows the change."""

    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "b", b"x" * BIG)
        first = await do.snapshot(on, "b")

        async def exchange() -> None:
            await do.delete(on, "b", ticks=first)
            await do.snapshot(on, "b")

        before_snapshots_are_read(on, exchange)
        await do.delete(on, "b", ONLY)
        await swept(on, sweeper)
        assert await do.read(on, "b") == b"x" * BIG
        await do.delete(on, "b")
        await swept(on, sweeper)
        assert (len(do.left(on)[0]), do.left(on)[1]) == (1, [])

    run(test)


def test_a_base_with_snapshots_is_not_deleted_by_the_way() -> None:
    """B-DEL-02."""

    async def test() -> None:
        on, _ = await fresh()
        await do.put(on, "b", b"x")
        ticks = await do.snapshot(on, "b")
        with pytest.raises(StorageError) as caught:
            await do.delete(on, "b")
        assert caught.value.row is blob_errors.SNAPSHOTS_PRESENT
        assert await do.read(on, "b", ticks) == b"x"
        await do.delete(on, "b", ticks=ticks)
        await do.delete(on, "b")
        assert await do.read(on, "b") is None

    run(test)


@pytest.mark.parametrize("held", ["the blob", "its newest snapshot"])
def test_nothing_goes_if_something_behind_the_first_snapshots_is_protected(
    monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    """B-DEL-03: a refused deletion has deleted nothing, however many snapshots there are."""
    monkeypatch.setattr(snapshots, "PAST_PER_COMMIT", 2)

    async def test() -> None:
        on, _ = await fresh()
        on.switches = lambda account: Switches(immutability=True)
        await do.put(on, "b", b"x")
        taken = [await do.snapshot(on, "b") for _ in range(5)]
        ticks = None if held == "the blob" else taken[-1]
        await do.run(on, immutability.SET_HOLD, "b", SetHold(True), snapshot=ticks)
        with pytest.raises(StorageError) as caught:
            await do.delete(on, "b", INCLUDE)
        assert caught.value.row is blob_errors.BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD
        assert [await do.read(on, "b", one) for one in taken] == [b"x"] * 5
        await do.run(on, immutability.SET_HOLD, "b", SetHold(False), snapshot=ticks)
        await do.delete(on, "b", INCLUDE)
        assert [await do.read(on, "b", one) for one in taken] == [None] * 5

    run(test)


@pytest.mark.parametrize("option", [ONLY, INCLUDE])
def test_nothing_goes_if_a_policy_of_the_container_protects_a_newer_snapshot(
    monkeypatch: pytest.MonkeyPatch, option: DeleteSnapshots
) -> None:
    """B-DEL-03: the policy counts from the creation of what the snapshot was taken of."""
    monkeypatch.setattr(snapshots, "PAST_PER_COMMIT", 2)

    async def test() -> None:
        on, _ = await fresh()
        taken = []
        for _ in range(5):
            await do.put(on, "b", b"x")
            taken.append(await do.snapshot(on, "b"))
            on.store.advance(DAY_S)
        policy = Switches(containers={"photos": ContainerProtection(3)})
        on.switches = lambda account: policy
        with pytest.raises(StorageError) as caught:
            await do.delete(on, "b", option)
        assert caught.value.row is blob_errors.BLOB_IMMUTABLE_DUE_TO_POLICY
        assert [await do.read(on, "b", one) for one in taken] == [b"x"] * 5
        on.store.advance(3 * DAY_S)
        await do.delete(on, "b", option)
        assert [await do.read(on, "b", one) for one in taken] == [None] * 5

    run(test)


def test_a_snapshot_without_versioning_leaves_the_blob_the_version_that_it_is() -> None:
    """B-VER-04: as no version it would become one with the same id, in place of the first."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        first = await ver.put(on, "b", b"1" * BIG)
        ver.switch(on, False)
        await do.snapshot(on, "b")
        assert await ver.ids(on, "b") == [first]
        ver.switch(on, True)
        last = await ver.put(on, "b", b"2" * BIG)
        assert await ver.ids(on, "b") == [first, last]
        assert await ver.read(on, "b", first) == b"1" * BIG
        await swept(on, sweeper)
        assert problems(on) == []

    run(test)
