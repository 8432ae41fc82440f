"""Deleted blobs that are retained: which states are retained, restored, and finally swept."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth.request import Service
from strongroom.engines.base import CommitUnknown
from strongroom.operations.blob import blob
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.service_properties import RetentionPolicy, ServiceProperties
from strongroom.services.blob import attributes, list_blobs
from strongroom.services.blob.list_blobs import BlobRow
from strongroom.services.blob.states import retention
from strongroom.services.blob.tiers import tiering
from strongroom.services.core import account
from strongroom.services.core.account import SetServiceProperties
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.values import ContentProperties
from tests.services import append_calls
from tests.services import blob_calls as do
from tests.services.container_calls import ACCOUNT, call, placed, refused, run
from tests.services.queue_calls import problems
from tests.services.service_engine import ServiceEngine
from tests.services.sweeping.test_sweeping_sequences import SIZES, Model, act, check
from tests.services.sweeps import drop_container, fresh, swept

HOUR_S = 60 * 60
DAY_S = 24 * HOUR_S
BIG = 30_000
INCLUDE, ONLY = DeleteSnapshots.INCLUDE, DeleteSnapshots.ONLY
NAMES = st.sampled_from(["a", "b", "c"])


async def retain(on: Services, days: int) -> None:
    """Set the retention of deleted blobs; 0 = off."""
    policy = RetentionPolicy(days > 0, days or None)
    sections = SetServiceProperties(ServiceProperties(delete_retention=policy))
    await account.set_properties(on, call(sections, container=""))


async def undelete(on: Services, name: str) -> None:
    await do.run(on, blob.UNDELETE_BLOB, name, None)


async def listed(on: Services, *words: str) -> list[BlobRow]:
    include = frozenset(("deleted", "snapshots", *words))
    page = await list_blobs.list_blobs(on, await placed(on, list_blobs.ListBlobs(include=include)))
    return [row for row in page.items if isinstance(row, BlobRow)]


async def deleted(on: Services) -> list[tuple[str, bool]]:
    """Return the name of each retained state, and whether it is a snapshot."""
    found = [row for row in await listed(on) if row.blob.deletion is not None]
    return [(row.name, row.snapshot is not None) for row in found]


async def snapshots(on: Services, name: str) -> list[bytes | None]:
    """Return the bodies of a blob's snapshots, the oldest first."""
    ticks = [row.snapshot for row in await listed(on) if row.name == name and not row.blob.deletion]
    return [await do.read(on, name, one) for one in ticks if one is not None]


async def put_listed(on: Services, name: str, data: bytes) -> None:
    """Write a blob made of blocks."""
    half = len(data) // 2
    await do.stage(on, name, "1", data[:half])
    await do.stage(on, name, "2", data[half:])
    await do.commit(on, name, ["1", "2"])


async def put_appended(on: Services, name: str, data: bytes) -> None:
    """Write an append blob."""
    half = len(data) // 2
    await append_calls.create(on, name)
    await append_calls.add(on, name, data[:half])
    await append_calls.add(on, name, data[half:])


Make = Callable[[Services, str, bytes], Awaitable[None]]
BODIES: dict[str, tuple[Make, int]] = {
    "empty": (do.put, 0),
    "within": (do.put, 10),
    "inline": (do.put, 1000),
    "stored": (do.put, BIG),
    "listed": (put_listed, BIG),
    "appended": (put_appended, BIG),
}


# Blocks are not staged on an append blob.
REPLACEMENTS = [(a, b) for a in BODIES for b in BODIES if (a, b) != ("appended", "listed")]


@pytest.mark.parametrize(("old", "new"), REPLACEMENTS)
def test_what_is_replaced_comes_back_as_a_snapshot(old: str, new: str) -> None:
    """B-SFT-02, B-SFT-06, B-SFT-08: for every kind of body."""

    async def test() -> None:
        on, sweeper = await fresh()
        await retain(on, 7)
        for kind, letter in ((old, b"o"), (new, b"n")):
            make, size_bytes = BODIES[kind]
            await make(on, "b", letter * size_bytes)
            await swept(on, sweeper)
        assert await deleted(on) == [("b", True)]
        await undelete(on, "b")
        wanted = [b"o" * BODIES[old][1]]
        assert await snapshots(on, "b") == wanted
        assert await do.read(on, "b") == b"n" * BODIES[new][1]
        await do.delete(on, "b", INCLUDE)
        assert await do.read(on, "b") is None
        await swept(on, sweeper)
        await undelete(on, "b")
        assert await snapshots(on, "b") == wanted
        assert await do.read(on, "b") == b"n" * BODIES[new][1]
        await do.delete(on, "b", INCLUDE)
        await retain(on, 0)
        on.store.advance(8 * DAY_S)
        await swept(on, sweeper)
        records, contents = do.left(on)
        assert contents == []
        assert len(records) == 2  # the container and the properties

    run(test)


async def set_metadata(on: Services) -> None:
    await do.metadata(on, "b", "1")


async def set_properties(on: Services) -> None:
    given = attributes.SetProperties(ContentProperties())
    await do.run(on, blob.SET_BLOB_PROPERTIES, "b", given)


async def set_tier(on: Services) -> None:
    await do.run(on, blob.SET_BLOB_TIER, "b", tiering.SetTier("Cool"))


CHANGES: dict[str, tuple[Callable[[Services], Awaitable[object]], int]] = {
    "Put Blob": (lambda on: do.put(on, "b", b"new"), 1),
    "Put Block List": (lambda on: put_listed(on, "b", b"new!"), 1),
    "Copy Blob": (lambda on: do.start_copy(on, "source", "b"), 1),
    "Copy Blob to itself": (lambda on: do.start_copy(on, "b", "b"), 1),
    "Put Block": (lambda on: do.stage(on, "b", "1", b"new"), 0),
    "Set Blob Metadata": (set_metadata, 0),
    "Set Blob Properties": (set_properties, 0),
    "Set Blob Tier": (set_tier, 0),
    "Snapshot Blob": (lambda on: do.snapshot(on, "b"), 0),
    "Lease Blob": (lambda on: do.acquire(on, "b"), 0),
    "Undelete Blob": (lambda on: undelete(on, "b"), 0),
}


@pytest.mark.parametrize("days", [0, 7])
@pytest.mark.parametrize("change", CHANGES)
def test_which_changes_keep_the_state_before(change: str, days: int) -> None:
    """B-SFT-02."""

    async def test() -> None:
        on, _ = await fresh()
        await do.put(on, "source", b"source")
        await do.put(on, "b", b"old")
        await retain(on, days)
        do_it, count = CHANGES[change]
        await do_it(on)
        assert await deleted(on) == [("b", True)] * (count if days else 0)

    run(test)


def test_a_deleted_blob_over_which_one_is_written() -> None:
    """B-SFT-03, B-SFT-04, B-SFT-10."""

    async def test() -> None:
        on, sweeper = await fresh()
        await retain(on, 2)
        await do.put(on, "b", b"old" * BIG)
        await do.metadata(on, "b", "1")
        await do.delete(on, "b")
        await retain(on, 300)
        await do.stage(on, "b", "1", b"1" * BIG)
        assert await deleted(on) == [("b", False)]
        await do.commit(on, "b", ["1"])
        assert await deleted(on) == [("b", True)]
        (head,) = [row for row in await listed(on) if row.snapshot is None]
        assert head.blob.metadata == ()
        on.store.advance(DAY_S)
        assert await deleted(on) == [("b", True)]
        on.store.advance(DAY_S)
        await swept(on, sweeper)
        assert await deleted(on) == []
        assert await do.read(on, "b") == b"1" * BIG
        assert len(do.left(on)[1]) == 1

    run(test)


def test_a_deleted_blob_whose_retention_has_ended_but_that_is_not_swept_yet() -> None:
    """B-SFT-07, B-SFT-08."""

    async def test() -> None:
        on, sweeper = await fresh()
        await retain(on, 1)
        for name in ("a", "b"):
            await do.put(on, name, name.encode() * BIG)
            await do.snapshot(on, name)
            await do.delete(on, name, INCLUDE)
        on.store.advance(DAY_S + 1)
        assert await deleted(on) == []
        assert await refused(undelete(on, "a")) == (404, "BlobNotFound")
        await do.put(on, "b", b"new" * BIG)
        assert await deleted(on) == []
        await undelete(on, "b")
        assert await snapshots(on, "b") == []
        await swept(on, sweeper)
        assert len(do.left(on)[1]) == 1
        assert await do.read(on, "b") == b"new" * BIG

    run(test)


def test_a_blob_that_is_written_while_its_deleted_one_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B-SFT-08: a state that the job has not seen must not become retained after it."""

    async def test() -> None:
        on, sweeper = await fresh()
        await retain(on, 1)
        await do.put(on, "b", b"old" * BIG)
        await do.delete(on, "b")
        on.store.advance(DAY_S + 1)
        find = retention.find_snapshots

        async def find_and_write(*given: Any) -> Any:
            found = await find(*given)
            await retain(on, 0)
            await do.put(on, "b", b"new" * BIG)
            return found

        monkeypatch.setattr(retention, "find_snapshots", find_and_write)
        await swept(on, sweeper)
        monkeypatch.undo()
        await swept(on, sweeper)
        assert await do.read(on, "b") == b"new" * BIG
        assert len(do.left(on)[1]) == 1
        assert problems(on) == []

    run(test)


def test_deleted_snapshots_do_not_count_as_snapshots() -> None:
    """B-SFT-06, B-SFT-09."""

    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "b", b"b" * BIG)
        ticks = await do.snapshot(on, "b")
        await retain(on, 1)
        await do.delete(on, "b", ticks=ticks)
        assert await do.read(on, "b", ticks) is None
        await retain(on, 0)
        await do.delete(on, "b")
        await swept(on, sweeper)
        # The body now belongs to the deleted snapshot.
        assert await refused(undelete(on, "b")) == (404, "BlobNotFound")
        await do.put(on, "b", b"new")
        await undelete(on, "b")
        assert await do.read(on, "b", ticks) == b"b" * BIG
        assert await refused(do.delete(on, "b")) == (409, "SnapshotsPresent")

    run(test)


def test_more_snapshots_than_one_commit_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-SFT-06, B-SFT-08."""
    monkeypatch.setattr(retention, "PAST_PER_COMMIT", 3)
    monkeypatch.setattr("strongroom.services.blob.states.snapshots.PAST_PER_COMMIT", 3)

    async def test() -> None:
        on, sweeper = await fresh()
        await do.put(on, "b", b"b" * BIG)
        for _ in range(7):
            await do.snapshot(on, "b")
        await retain(on, 1)
        await do.delete(on, "b", ONLY)
        assert len(await deleted(on)) == 7
        await undelete(on, "b")
        assert await snapshots(on, "b") == [b"b" * BIG] * 7
        await do.delete(on, "b", INCLUDE)
        assert len(await deleted(on)) == 8
        on.store.advance(DAY_S + 1)
        await swept(on, sweeper)
        assert do.left(on)[1] == []

    run(test)


STEPS: dict[str, Callable[[Services], Awaitable[object]]] = {
    "put": lambda on: do.put(on, "b", b"put" * BIG),
    "commit": lambda on: do.commit(on, "b", ["1", "2"]),
    "copy": lambda on: do.start_copy(on, "source", "b"),
    "delete": lambda on: do.delete(on, "b", INCLUDE),
    "delete the snapshots": lambda on: do.delete(on, "b", ONLY),
    "put over a deleted one": lambda on: do.put(on, "gone", b"put" * BIG),
    "undelete": lambda on: undelete(on, "gone"),
}


@pytest.mark.parametrize("cut", range(4))
@pytest.mark.parametrize("step", STEPS)
def test_a_commit_that_is_cut_off(step: str, cut: int) -> None:
    """B-SFT-08: a retained state is complete, and has a job that ends its retention."""

    async def test() -> None:
        before, _ = await fresh()
        await retain(before, 1)
        await do.put(before, "source", b"source" * BIG)
        await do.put(before, "gone", b"gone" * BIG)
        await do.snapshot(before, "gone")
        await do.delete(before, "gone", INCLUDE)
        await do.stage(before, "b", "1", b"1" * BIG)
        await do.commit(before, "b", ["1"])
        await do.snapshot(before, "b")
        await do.stage(before, "b", "2", b"2" * BIG)
        store = before.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(cut)
        with contextlib.suppress(CommitUnknown):
            await STEPS[step](before)
        on = Services(store.restarted(), before.clock)
        sweeper = Sweeper(on)
        await swept(on, sweeper)
        await undelete(on, "b")
        await undelete(on, "gone")
        assert b"1" * BIG in (await do.read(on, "b"), *await snapshots(on, "b"))
        assert b"gone" * BIG in await snapshots(on, "gone")
        for name in ("b", "gone", "source"):
            await do.delete(on, name, INCLUDE)
        on.store.advance(DAY_S + 1)
        await swept(on, sweeper)
        assert do.left(on)[1] == []

    run(test)


def test_a_deleted_container_takes_what_is_kept_along() -> None:
    """B-SFT-08."""

    async def test() -> None:
        on, sweeper = await fresh()
        await retain(on, 365)
        for data in (b"1", b"2"):
            await put_listed(on, "b", data * BIG)
            await do.snapshot(on, "b")
        await do.delete(on, "b", INCLUDE)
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on)[1] == []
        on.store.advance(366 * DAY_S)
        await swept(on, sweeper)
        assert len(do.left(on)[0]) == 1  # the properties

    run(test)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("put", "put", "stage", "commit", "snapshot", "delete", "delete", "copy"),
                *("drop", "sweep", "undelete", "undelete", "retain", "wait"),
            ]
        ),
        NAMES,
        NAMES,
        st.integers(0, len(SIZES) - 1),
    ),
    max_size=25,
)


class Kept:
    """The states that must be restorable: for each name, (body, hour at which its retention
    ends)."""

    def __init__(self) -> None:
        self.hour = 0
        self.days = 0
        self.heads: dict[str, tuple[bytes, int]] = {}
        self.snapshots: dict[str, list[tuple[bytes, int]]] = {}

    def displace(self, name: str, data: bytes | None) -> None:
        """Retain the body `data` (None: no blob), because a new head replaces it."""
        if data is None and name in self.heads:
            self.snapshots.setdefault(name, []).append(self.heads.pop(name))
        elif data is not None:
            self.keep(name, [data])

    def keep(self, name: str, bodies: list[bytes]) -> None:
        """Retain the bodies of deleted snapshots."""
        until = self.hour + 24 * self.days
        if self.days:
            self.snapshots.setdefault(name, []).extend((data, until) for data in bodies)

    def left(self, name: str) -> list[bytes]:
        """Return the bodies of the deleted snapshots that can be restored."""
        return [data for data, until in self.snapshots.pop(name, []) if until > self.hour]

    def note(self, model: Model, step: tuple[str, str, str, int]) -> None:
        """Record the states that `act` is about to delete or replace."""
        what, name, other, number = step
        present = model.blobs.get(name)
        if what == "put" or (what == "commit" and model.staged.get(name)):
            self.displace(name, present)
        elif what == "copy" and present is not None:
            self.displace(other, model.blobs.get(other))
        elif what == "drop" and model.snapshots.get(name):
            taken = sorted(model.snapshots[name])
            self.keep(name, [model.snapshots[name][taken[number % len(taken)]]])
        elif what == "delete" and present is not None:
            self.keep(name, list(model.snapshots.get(name, {}).values()))
            if self.days:
                self.heads[name] = (present, self.hour + 24 * self.days)


async def restore(on: Services, model: Model, kept: Kept, name: str) -> None:
    """Run Undelete Blob, and compare the result with the model's."""
    head = kept.heads.pop(name, None)
    if head is not None and head[1] > kept.hour:
        model.blobs[name] = head[0]
    elif name not in model.blobs:
        assert await refused(undelete(on, name)) == (404, "BlobNotFound")
        return
    await undelete(on, name)
    wanted = [*model.snapshots.get(name, {}).values(), *kept.left(name)]
    rows = [row for row in await listed(on) if row.name == name and row.snapshot is not None]
    model.snapshots[name] = {}
    for row in rows:
        assert row.snapshot is not None
        body = await do.read(on, name, row.snapshot)
        assert body is not None
        model.snapshots[name][row.snapshot] = body
    assert sorted(model.snapshots[name].values()) == sorted(wanted)


@given(ACTIONS)
def test_any_sequence_brings_back_what_is_kept_and_gives_up_the_rest(
    steps: list[tuple[str, str, str, int]],
) -> None:
    """B-SFT-01 to B-SFT-09."""

    async def test() -> None:
        on, sweeper = await fresh()
        model, kept = Model(), Kept()
        for count, step in enumerate(steps):
            what, name, _, number = step
            if what == "sweep":
                await swept(on, sweeper)
            elif what == "wait":
                on.store.advance(5 * HOUR_S)
                kept.hour += 5
            elif what == "retain":
                kept.days = number % 3
                await retain(on, kept.days)
            elif what == "undelete":
                await restore(on, model, kept, name)
            else:
                kept.note(model, step)
                await act(on, model, step, count)
            await check(on, model)
        await retain(on, 0)
        await swept(on, sweeper)
        assert problems(on) == []
        await check(on, model)
        for name in model.blobs.keys() | model.staged.keys():
            await do.put(on, name, b"")
            await do.delete(on, name, INCLUDE)
        on.store.advance(3 * DAY_S)
        await swept(on, sweeper)
        assert do.left(on)[1] == []
        assert await on.place(Service.BLOB, ACCOUNT, "photos") is not None
        await drop_container(on)
        await swept(on, sweeper)
        assert len(do.left(on)[0]) == 1

    run(test)
