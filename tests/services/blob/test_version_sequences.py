"""Any sequence of writes, deletes and switches keeps each version, and frees the rest."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.engines.base import CommitUnknown
from strongroom.operations.blob import blob
from strongroom.services.blob import attributes
from strongroom.services.blob.blobs import PutBlob
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from tests.services import append_calls as log
from tests.services import blob_calls as do
from tests.services import version_calls as ver
from tests.services.container_calls import run
from tests.services.queue_calls import problems
from tests.services.service_engine import ServiceEngine
from tests.services.sweeping.test_sweeping_sequences import INCLUDE, SIZES
from tests.services.sweeps import drop_container, swept

DAY_S = 24 * 60 * 60
BIG = 30_000
WORDS = (
    *("put", "put", "put", "log", "append", "metadata", "snapshot", "drop snapshot"),
    *("delete", "drop", "drop", "copy", "stage", "commit", "switch", "sweep"),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(WORDS),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, len(SIZES) - 1),
    ),
    max_size=30,
)


class Model:
    """The expected content of every blob, snapshot and previous version."""

    def __init__(self) -> None:
        self.is_versioned = True
        self.blobs: dict[str, bytes] = {}
        self.current: dict[str, int] = {}
        self.versions: dict[str, dict[int, bytes]] = {"a": {}, "b": {}}
        self.snapshots: dict[str, dict[int, bytes]] = {"a": {}, "b": {}}
        self.logs: set[str] = set()
        self.staged: set[str] = set()

    def displace(self, name: str, unversioned: int) -> None:
        """Record that a blob is written or deleted; `unversioned` is the id that it gets if it has
        none."""
        version = self.current.get(name) or (unversioned if self.is_versioned else 0)
        if name in self.blobs and version:
            self.versions[name][version] = self.blobs[name]

    def write(self, name: str, data: bytes, version: int) -> None:
        """Record that a blob exists now."""
        self.blobs[name], self.current[name] = data, version


async def etag(on: Services, name: str) -> int:
    """Return the id that a blob without a version id would get."""
    if await do.read(on, name) is None:
        return 0
    view = await do.run(on, blob.GET_BLOB_PROPERTIES, name, None)
    found: int = view.blob.etag
    return found


class Play:
    """One step of a sequence, played on the services and recorded in the model.

    A step that a blob's kind or state forbids does nothing.
    """

    def __init__(
        self, on: Services, model: Model, step: tuple[str, str, str, int], count: int
    ) -> None:
        self.on, self.model = on, model
        _, self.name, self.other, self.number = step
        self.count = count
        self.data = bytes((count % 251,)) * SIZES[self.number]

    async def current(self, name: str) -> int:
        """Return the version id of a blob, as its properties have it."""
        view = await do.run(self.on, blob.GET_BLOB_PROPERTIES, name, None)
        found: int = view.blob.version
        return found

    async def displace(self) -> None:
        self.model.displace(self.name, await etag(self.on, self.name))

    async def switch(self) -> None:
        self.model.is_versioned = not self.model.is_versioned
        ver.switch(self.on, self.model.is_versioned)

    async def put(self) -> None:
        model, name = self.model, self.name
        if name in model.logs and model.snapshots[name]:
            return
        await self.displace()
        model.write(name, self.data, await ver.put(self.on, name, self.data))
        model.logs.discard(name)
        model.staged.discard(name)

    async def log(self) -> None:
        model, name = self.model, self.name
        if model.snapshots[name] or name in model.staged:
            return
        await self.displace()
        await log.create(self.on, name)
        model.write(name, b"", await self.current(name))
        model.logs.add(name)

    async def append(self) -> None:
        if self.name in self.model.logs:
            await log.add(self.on, self.name, self.data or b"e")
            self.model.blobs[self.name] += self.data or b"e"

    async def metadata(self) -> None:
        if self.name in self.model.blobs:
            await self.displace()
            given = attributes.SetMetadata((("v", str(self.count)),))
            written = await do.run(self.on, blob.SET_BLOB_METADATA, self.name, given)
            self.model.current[self.name] = written.version

    async def snapshot(self) -> None:
        model, name = self.model, self.name
        if name in model.blobs:
            await self.displace()
            model.snapshots[name][await do.snapshot(self.on, name)] = model.blobs[name]
            model.current[name] = await self.current(name)

    async def drop_snapshot(self) -> None:
        snapshots = self.model.snapshots[self.name]
        if snapshots:
            ticks = sorted(snapshots)[self.number % len(snapshots)]
            await do.delete(self.on, self.name, ticks=ticks)
            del snapshots[ticks]

    async def delete(self) -> None:
        model, name = self.model, self.name
        if name not in model.blobs:
            return
        await self.displace()
        await ver.delete_blob(self.on, name, INCLUDE)
        del model.blobs[name], model.current[name]
        model.snapshots[name].clear()
        model.logs.discard(name)
        model.staged.discard(name)

    async def drop(self) -> None:
        versions = self.model.versions[self.name]
        if versions:
            version = sorted(versions)[self.number % len(versions)]
            assert await ver.delete(self.on, self.name, version)
            del versions[version]

    async def copy(self) -> None:
        model, name, other = self.model, self.name, self.other
        if not model.versions[name] or model.snapshots[other]:
            return
        if other in model.blobs and (name in model.logs or other in model.logs):
            return
        version = max(model.versions[name])
        view = await do.run(self.on, blob.GET_BLOB_PROPERTIES, name, None, version=version)
        if view.blob.kind.type_text != "BlockBlob":
            return
        model.displace(other, await etag(self.on, other))
        made = await do.start_copy(self.on, name, other, version=version)
        model.write(other, model.versions[name][version], made.version)
        model.staged.discard(other)

    async def stage(self) -> None:
        if self.name not in self.model.logs:
            await do.stage(self.on, self.name, "1", self.data or b"e")
            self.model.staged.add(self.name)

    async def commit(self) -> None:
        if self.name not in self.model.staged:
            return
        await self.displace()
        await do.commit(self.on, self.name, ["1"])
        self.model.staged.discard(self.name)
        body = await do.read(self.on, self.name)
        assert body is not None
        self.model.write(self.name, body, await self.current(self.name))


ACTS: dict[str, Callable[[Play], Awaitable[None]]] = {
    "switch": Play.switch,
    "put": Play.put,
    "log": Play.log,
    "append": Play.append,
    "metadata": Play.metadata,
    "snapshot": Play.snapshot,
    "drop snapshot": Play.drop_snapshot,
    "delete": Play.delete,
    "drop": Play.drop,
    "copy": Play.copy,
    "stage": Play.stage,
    "commit": Play.commit,
}


async def check(on: Services, model: Model) -> None:
    for name in ("a", "b"):
        assert await do.read(on, name) == model.blobs.get(name)
        for version, data in model.versions[name].items():
            assert await ver.read(on, name, version) == data
        if model.current.get(name):
            assert await ver.read(on, name, model.current[name]) == model.blobs[name]
        for ticks, data in model.snapshots[name].items():
            assert await do.read(on, name, ticks) == data
        current = [model.current[name]] if name in model.blobs else []
        assert await ver.ids(on, name) == [*sorted(model.versions[name]), *current]


@given(STEPS)
def test_any_sequence_keeps_each_version_and_nothing_else(
    steps: list[tuple[str, str, str, int]],
) -> None:
    """B-VER-01, B-VER-07, B-VER-13, B-VER-14."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        model = Model()
        for count, step in enumerate(steps):
            if step[0] == "sweep":
                await swept(on, sweeper)
            else:
                await ACTS[step[0]](Play(on, model, step, count))
            await check(on, model)
        await swept(on, sweeper)
        await check(on, model)
        assert problems(on) == []
        for name in ("a", "b"):
            if name in model.blobs:
                model.displace(name, await etag(on, name))
                await ver.delete_blob(on, name, INCLUDE)
            for version in model.versions[name]:
                await ver.delete(on, name, version)
        on.store.advance(30 * DAY_S)
        await swept(on, sweeper)
        assert do.left(on)[1] == []
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


CUT: dict[str, Callable[[Services], Awaitable[object]]] = {
    "put": lambda on: do.put(on, "b", b"new" * BIG),
    "put a small one": lambda on: do.put(on, "b", b"new" * 300),
    "metadata": lambda on: do.metadata(on, "b", "1"),
    "snapshot": lambda on: do.snapshot(on, "b"),
    "delete": lambda on: ver.delete_blob(on, "b"),
    "commit": lambda on: do.commit(on, "b", ["1"]),
}


@pytest.mark.parametrize("cut", range(6))
@pytest.mark.parametrize("step", CUT)
def test_a_commit_that_is_cut_off_loses_no_version(step: str, cut: int) -> None:
    """B-VER-13: also one whose entries in the tag index are in other partitions."""

    async def test() -> None:
        before, _ = await ver.versioned()
        tagged = PutBlob(tags=(("k", "v"),))
        first = (await do.run(before, blob.PUT_BLOB, "b", tagged, b"1" * 1000)).version
        second = (await do.run(before, blob.PUT_BLOB, "b", tagged, b"2" * 1000)).version
        await do.stage(before, "b", "1", b"3" * BIG)
        store = before.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(cut)
        with contextlib.suppress(CommitUnknown):
            await CUT[step](before)
        on = Services(store.restarted(), before.clock)
        ver.switch(on, True)
        sweeper = Sweeper(on)
        on.store.advance(120)
        await swept(on, sweeper)
        assert await ver.read(on, "b", first) == b"1" * 1000
        assert await ver.read(on, "b", second) == b"2" * 1000
        assert problems(on) == []
        await drop_container(on)
        on.store.advance(30 * DAY_S)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_a_version_that_is_deleted_while_it_is_written_over() -> None:
    """B-VER-01, B-VER-08: with concurrent writers and deleters, each acknowledged write is a
    version exactly once, unless it was deleted."""

    async def test() -> None:
        on, sweeper = await ver.versioned()
        made: list[int] = []
        dropped: list[int] = []

        async def write(number: int) -> None:
            for _ in range(8):
                made.append(await ver.put(on, "b", b"%d" % number * 400))
                await asyncio.sleep(0)

        async def drop() -> None:
            for _ in range(8):
                await asyncio.sleep(0)
                for one in [one for one in made if one not in dropped][:1]:
                    if one != max(made):
                        dropped.append(one)
                        await ver.delete(on, "b", one)

        await asyncio.gather(*(write(number) for number in range(8)), drop())
        await swept(on, sweeper)
        assert len(set(made)) == len(made) == 64
        assert await ver.ids(on, "b") == sorted(set(made) - set(dropped))
        assert problems(on) == []

    run(test)
