"""Any sequence of writes, clears, resizes, snapshots, reads and sweeps agrees with a naive
model."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strongroom.clock import ManualClock
from strongroom.engines.memory import MemoryEngine
from strongroom.store.core import extents, keys
from strongroom.store.core.extents import MapReading, model
from strongroom.store.core.extents.model import LEAF_BYTES, OFFSET_MAX, SECTOR_BYTES
from tests.effort import examples
from tests.store.volumes import Model, Volume

WINDOW: Final = 3 * LEAF_BYTES
BASE: Final = 16 * 1024 * 1024
RUNS_MAX: Final = LEAF_BYTES // model.SECTOR_BYTES
SCATTERED_MAX: Final = 36
LONG: Final = 9 * 1024 * 1024
OFFSETS = st.one_of(
    st.integers(0, WINDOW - 1),
    st.integers(0, WINDOW // 512 - 1).map(lambda page: page * 512),
    st.sampled_from([0, LEAF_BYTES - 1, LEAF_BYTES, LEAF_BYTES + 1, 2 * LEAF_BYTES, WINDOW - 1]),
)
LENGTHS = st.one_of(
    st.integers(1, 700),
    st.sampled_from([512, 4096, 8192, 8193, 40_000, LEAF_BYTES, LEAF_BYTES + 1, WINDOW]),
    st.integers(1, WINDOW),
)


class Reader:
    """A long read in progress, and the bytes that it must yield."""

    def __init__(self, reading: MapReading, pieces: AsyncIterator[bytes], expected: bytes) -> None:
        self.reading = reading
        self.pieces = pieces
        self.expected = expected
        self.got = b""


class Sequences(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = MemoryEngine(ManualClock())
        self.volume = Volume(self.store)
        self.model = Model(BASE, WINDOW)
        self.size_bytes = BASE + WINDOW
        self.snapshots: dict[int, Model] = {}
        self.readers: list[Reader] = []
        # Lists are exact to the byte until a leaf has had too many runs.
        self.is_exact = True
        self.random = random.Random(0)
        self.run(self.volume.create(self.size_bytes))

    def run(self, coroutine: Any) -> Any:
        return self.runner.run(coroutine)

    @rule(at=OFFSETS, length=LENGTHS)
    def write(self, at: int, length: int) -> None:
        data = self.random.randbytes(max(0, min(length, self.size_bytes - BASE - at)))
        if data:
            self.run(self.volume.write(BASE + at, data))
            self.model.write(BASE + at, data)

    @rule(
        at=OFFSETS, length=st.sampled_from([1, 100, 512, 600]), count=st.integers(2, SCATTERED_MAX)
    )
    def write_scattered(self, at: int, length: int, count: int) -> None:
        for index in range(count):
            self.write((at + 2 * index * length) % WINDOW, length)

    @rule(at=OFFSETS, length=LENGTHS)
    def clear(self, at: int, length: int) -> None:
        self.run(self.volume.clear(BASE + at, length))
        self.model.clear(BASE + at, length)

    @rule(at=OFFSETS, before=st.booleans())
    def clear_long(self, at: int, before: bool) -> None:
        first, length = (BASE + at - LONG, LONG) if before else (BASE + at, LONG + 1)
        self.run(self.volume.clear(first, length))
        self.model.clear(first, length)

    @rule(size=st.one_of(OFFSETS.map(lambda at: BASE + at), st.sampled_from([0, BASE + WINDOW])))
    def resize(self, size: int) -> None:
        self.run(self.volume.resize(size))
        self.size_bytes = size
        self.model.clear(size, OFFSET_MAX - size)

    @rule()
    def snapshot(self) -> None:
        stamp = self.run(self.volume.snapshot())
        self.snapshots[stamp] = self.model.snapshot(stamp)

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def delete_snapshot(self, data: st.DataObject) -> None:
        stamp = data.draw(st.sampled_from(sorted(self.snapshots)))
        self.run(self.volume.delete_snapshot(stamp))
        del self.snapshots[stamp]

    @rule(data=st.data())
    def begin_to_read(self, data: st.DataObject) -> None:
        stamp = data.draw(st.sampled_from([None, *self.snapshots]))
        state = self.model if stamp is None else self.snapshots[stamp]
        reading = self.run(self.volume.begin(stamp))
        pieces = extents.read(self.store, self.volume.place, reading.at, BASE, WINDOW)
        self.readers.append(Reader(reading, pieces, bytes(state.data)))

    @precondition(lambda self: self.readers)
    @rule()
    def read_on(self) -> None:
        reader = self.readers[0]
        reader.got += self.run(anext(reader.pieces, b""))

    @precondition(lambda self: self.readers)
    @rule()
    def read_to_the_end(self) -> None:
        reader = self.readers.pop(0)

        async def rest() -> bytes:
            return b"".join([piece async for piece in reader.pieces])

        assert reader.got + self.run(rest()) == reader.expected
        reader.reading.end()

    @rule()
    def sweep(self) -> None:
        done = self.run(self.volume.sweep())
        assert done or self.readers
        if not self.readers:
            self.assert_nothing_to_give_back()

    def assert_nothing_to_give_back(self) -> None:
        check = self.run(self.volume.check())
        assert not check.has_waste and not check.given_up
        assert check.needed == set(self.store.content_ids())

    @invariant()
    def every_byte_is_read(self) -> None:
        assert self.run(self.volume.read(BASE, WINDOW)) == self.model.data
        assert self.run(self.volume.read_short(BASE + 5, WINDOW - 9)) == self.model.data[5:-4]

    @invariant()
    def every_snapshot_is_read(self) -> None:
        for stamp, state in self.snapshots.items():
            assert self.run(self.volume.read(BASE, WINDOW, stamp)) == state.data

    @invariant()
    def what_is_owned_is_named(self) -> None:
        check = self.run(self.volume.check())
        owned = set(self.store.content_ids())
        assert check.needed <= owned <= check.needed | check.given_up
        assert self.volume.has_garbage or not check.has_waste
        assert not self.store.contents.adoptions.written

    @invariant()
    def note_fragmentation(self) -> None:
        for name, value in self.run(self.volume.hidden()):
            if name[:1] == keys.MAP_LEAF:
                count = len(model.decode_leaf(value).extents)
                self.is_exact = self.is_exact and count + 2 * SCATTERED_MAX <= RUNS_MAX

    @precondition(lambda self: self.is_exact)
    @rule(most=st.integers(1, 5), grain=st.sampled_from([1, 512]))
    def list_ranges(self, most: int, grain: int) -> None:
        for stamp, state in [(None, self.model), *self.snapshots.items()]:
            assert self.run(self.listed(stamp, most, grain)) == state.ranges(grain)

    async def listed(self, stamp: int | None, most: int, grain: int) -> list[tuple[int, int]]:
        reading = await self.volume.begin(stamp)
        found: list[tuple[int, int]] = []
        resume: int | None = BASE
        while resume is not None:
            asked = extents.RangeQuery(resume, BASE + WINDOW, most, grain, most)
            page = await extents.list_ranges(self.store, self.volume.place, reading.at, asked)
            assert len(page.ranges) <= most
            found += [(one.start, one.end) for one in page.ranges]
            resume = page.resume
        reading.end()
        return joined(found)

    @precondition(lambda self: self.snapshots and self.is_exact)
    @rule(data=st.data(), most=st.integers(1, 5))
    def list_changes(self, data: st.DataObject, most: int) -> None:
        since = data.draw(st.sampled_from(sorted(self.snapshots)))
        later = [one for one in self.snapshots if one >= since]
        until = data.draw(st.sampled_from([None, *later]))
        state = self.model if until is None else self.snapshots[until]
        found = self.run(self.changed(since, until, most))
        assert found == state.changes(since, self.snapshots[since], SECTOR_BYTES)

    async def changed(self, since: int, until: int | None, most: int) -> Any:
        reading = await self.volume.begin(until)
        written: list[tuple[int, int]] = []
        cleared: list[tuple[int, int]] = []
        resume: int | None = BASE
        while resume is not None:
            page = await extents.list_changes(
                self.store,
                self.volume.place,
                since,
                reading.at,
                extents.RangeQuery(resume, BASE + WINDOW, most, SECTOR_BYTES, most),
            )
            assert len(page.ranges) <= most
            for one in page.ranges:
                (cleared if one.is_clear else written).append((one.start, one.end))
            resume = page.resume
        reading.end()
        return joined(written), joined(cleared)

    def teardown(self) -> None:
        while self.readers:
            self.read_to_the_end()
        self.run(self.volume.apply(extents.end(self.store, self.volume.place), 0))
        for stamp, state in self.snapshots.items():
            assert self.run(self.volume.read(BASE, WINDOW, stamp)) == state.data
            self.run(self.volume.delete_snapshot(stamp))
        assert self.run(self.volume.sweep())
        assert self.run(self.volume.hidden()) == []
        assert not list(self.store.content_ids())
        self.runner.close()


def joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges with those that a page cut in two joined again."""
    found: list[tuple[int, int]] = []
    for start, end in ranges:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


TestSequences = Sequences.TestCase
TestSequences.settings = examples(60, steps=25)
