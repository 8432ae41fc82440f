"""Any sequence of operations and sweeps keeps every named body, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth.request import Service
from strongroom.engines.base import CommitUnknown
from strongroom.limits import COPY_AT_ONCE_BYTES_MAX, UNCOMMITTED_LIFETIME_S
from strongroom.semantics.blob.snapshots import DeleteSnapshots
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from tests.services import append_calls as log
from tests.services import blob_calls as do
from tests.services.container_calls import ACCOUNT, run
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container, fresh, swept

BIG = 30_000
SIZES = (0, 100, BIG, 2 * BIG, 1000)
INCLUDE = DeleteSnapshots.INCLUDE

NAMES = st.sampled_from(["a", "b", "c"])
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "put",
                "put",
                "log",
                "append",
                "append",
                "stage",
                "stage",
                "commit",
                "snapshot",
                "delete",
                "copy",
                "drop",
                "sweep",
            ]
        ),
        NAMES,
        NAMES,
        st.integers(0, len(SIZES) - 1),
    ),
    max_size=40,
)


class Model:
    """The expected content of every blob and snapshot."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.snapshots: dict[str, dict[int, bytes]] = {}
        self.staged: dict[str, dict[str, bytes]] = {}
        self.committed: dict[str, dict[str, bytes]] = {}
        self.logs: set[str] = set()

    def may_copy(self, source: str, target: str) -> bool:
        """Return whether the target is missing, or of the source's type."""
        return target not in self.blobs or (source in self.logs) == (target in self.logs)


async def act(on: Services, model: Model, step: tuple[str, str, str, int], count: int) -> None:
    what, name, other, number = step
    data = bytes((count % 251,)) * SIZES[number]
    other_type = name in model.logs and bool(model.snapshots.get(name))
    if what == "put" and not other_type:
        await do.put(on, name, data)
        model.logs.discard(name)
        model.blobs[name] = data
        model.staged.pop(name, None)
        model.committed.pop(name, None)
    elif what == "log" and not model.snapshots.get(name) and name not in model.staged:
        await log.create(on, name)
        model.blobs[name] = b""
        model.logs.add(name)
        model.committed.pop(name, None)
    elif what == "append" and name in model.logs:
        await log.add(on, name, data or b"e")
        model.blobs[name] += data or b"e"
    elif what == "stage" and name not in model.logs:
        await do.stage(on, name, str(number), data or b"e")
        model.staged.setdefault(name, {})[str(number)] = data or b"e"
    elif what == "commit" and model.staged.get(name):
        known = model.committed.get(name, {}) | model.staged.pop(name)
        ids = sorted(known)[: number + 1]
        await do.commit(on, name, ids)
        model.committed[name] = {one: known[one] for one in ids}
        model.blobs[name] = b"".join(known[one] for one in ids)
    elif what == "snapshot" and name in model.blobs:
        model.snapshots.setdefault(name, {})[await do.snapshot(on, name)] = model.blobs[name]
    elif what == "copy" and name in model.blobs and model.may_copy(name, other):
        await do.start_copy(on, name, other)
        if name in model.logs:
            model.logs.add(other)
        model.blobs[other] = model.blobs[name]
        model.staged.pop(other, None)
        model.committed[other] = dict(model.committed.get(name, {}))
    elif what == "drop" and model.snapshots.get(name):
        ticks = sorted(model.snapshots[name])[number % len(model.snapshots[name])]
        await do.delete(on, name, ticks=ticks)
        del model.snapshots[name][ticks]
    elif what == "delete" and name in model.blobs:
        await do.delete(on, name, INCLUDE if number % 2 or model.snapshots.get(name) else None)
        for kept in (model.blobs, model.snapshots, model.staged, model.committed):
            kept.pop(name, None)
        model.logs.discard(name)


async def check(on: Services, model: Model) -> None:
    for name in ("a", "b", "c"):
        assert await do.read(on, name) == model.blobs.get(name)
        for ticks, data in model.snapshots.get(name, {}).items():
            assert await do.read(on, name, ticks) == data


@given(ACTIONS)
def test_any_sequence_keeps_what_is_named_and_nothing_else(
    steps: list[tuple[str, str, str, int]],
) -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        model = Model()
        for count, step in enumerate(steps):
            if step[0] == "sweep":
                await swept(on, sweeper)
                await check(on, model)
            else:
                await act(on, model, step, count)
        await swept(on, sweeper)
        await check(on, model)
        for name in model.blobs.keys() | model.staged.keys():
            if name not in model.logs:
                await do.put(on, name, b"")
            await do.delete(on, name, INCLUDE)
        await swept(on, sweeper)
        assert isinstance(on.store, ServiceEngine)
        assert do.left(on)[1] == []
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


async def grown_log(on: Services) -> None:
    await log.add(on, "log", b"put" * BIG)


STEPS: dict[str, Callable[[Services], Awaitable[object]]] = {
    "stage": lambda on: do.stage(on, "b", "9", b"staged" * BIG),
    "stage on a new blob": lambda on: do.stage(on, "new", "9", b"staged" * BIG),
    "commit": lambda on: do.commit(on, "b", ["1", "2"]),
    "put": lambda on: do.put(on, "b", b"put" * BIG),
    "snapshot": lambda on: do.snapshot(on, "b"),
    "delete": lambda on: do.delete(on, "b", INCLUDE),
    "copy": lambda on: do.start_copy(on, "large", "b"),
    "append": grown_log,
    "create a log again": lambda on: log.create(on, "log"),
    "drop": drop_container,
}


@pytest.mark.parametrize("cut", range(4))
@pytest.mark.parametrize("step", STEPS)
def test_a_commit_that_is_cut_off_leaves_nothing_that_is_not_swept(step: str, cut: int) -> None:
    """These are the leftovers of a crash on an engine that distributes commits over machines."""

    async def test() -> None:
        before, _ = await fresh()
        await do.put(before, "large", bytes(COPY_AT_ONCE_BYTES_MAX + 1))
        await do.stage(before, "b", "1", b"1" * BIG)
        await do.commit(before, "b", ["1"])
        await do.snapshot(before, "b")
        await do.stage(before, "b", "2", b"2" * BIG)
        await log.create(before, "log")
        await log.add(before, "log", b"log" * BIG)
        await log.add(before, "log", b"log")
        store = before.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(cut)
        with contextlib.suppress(CommitUnknown):
            await STEPS[step](before)
        on = Services(store.restarted(), before.clock)
        sweeper = Sweeper(on)
        await swept(on, sweeper)
        if await on.place(Service.BLOB, ACCOUNT, "photos") is not None:
            assert await do.read(on, "large") is not None
            for name in ("b", "new", "large"):
                await do.put(on, name, b"")
                await do.delete(on, name, INCLUDE)
            await log.add(on, "log", b"more")
            await do.delete(on, "log")
            await swept(on, sweeper)
            assert do.left(on)[1] == []
            await drop_container(on)
        on.store.advance(2 * UNCOMMITTED_LIFETIME_S)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)
