"""The cost of a write, a clear and a read: records and bytes, counted, in maps of any size."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import (
    COMMIT_BYTES_MAX,
    COMMIT_WRITES_MAX,
    Decide,
    Item,
    Partition,
    Record,
    Ref,
    Step,
    Write,
)
from strongroom.engines.memory import MemoryEngine
from strongroom.store.core import extents, keys
from strongroom.store.core.extents import leaf as leaves
from strongroom.store.core.extents import model
from strongroom.store.core.extents.model import LEAF_BYTES, Extent, Leaf, LeafStore, encode_leaf
from strongroom.testing.contract.subject import pieces
from strongroom.values import Purpose
from tests.store.volumes import MAP_NUMBER, PARTITION, Volume

TIB: Final = 1 << 40
MIB: Final = 1 << 20


class Counted(MemoryEngine):
    """A store that counts its calls and their records."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self._write = self.contents.write
        self._write_all = self.contents.write_all
        self.contents.write = self._counted_write  # type: ignore[method-assign]  # counts
        self.apply = self._updates.apply
        self._updates.apply = self._counted_apply  # type: ignore[method-assign]  # counts
        self.contents.write_all = self._counted_write_all  # type: ignore[method-assign]
        self.reset()

    async def _counted_write(self, *arguments: Any, **options: Any) -> Any:
        self.stored += 1
        return await self._write(*arguments, **options)

    async def _counted_write_all(self, bodies: Sequence[bytes | memoryview]) -> Any:
        self.stored += len(bodies)
        self.batches += 1
        return await self._write_all(bodies)

    def reset(self) -> None:
        self.batches = 0
        self.commits = self.records_read = self.bytes_read = 0
        self.records_written = self.bytes_written = self.stored = self.looks = 0
        self.most_records = self.most_bytes = self.most_contents = 0

    async def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[Any],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Any:
        self.commits += 1
        self.records_read += len(reads)
        return await super().update(partition, reads, decide, purpose)

    def _counted_apply(self, steps: Sequence[Step], stamp: int, purpose: Purpose) -> None:
        writes = [write for step in steps for write in step.writes]
        size = sum(len(write.key.name) + len(write.value or b"") for write in writes)
        moved = sum(len(step.adopt) + len(step.drop) for step in steps)
        self.records_written += len(writes)
        self.bytes_written += size
        self.most_records = max(self.most_records, len(writes))
        self.most_bytes = max(self.most_bytes, size)
        self.most_contents = max(self.most_contents, moved)
        self.apply(steps, stamp, purpose)

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        found = await super().read(reads)
        self.looks += 1
        self.records_read += len(reads)
        self.bytes_read += sum(len(one.value) for one in found if one is not None)
        return found

    async def read_range(
        self,
        partition: Partition,
        hidden: bool,
        first: bytes,
        until: bytes | None,
        max_records: int,
    ) -> list[Item]:
        found = await super().read_range(partition, hidden, first, until, max_records)
        self.looks += 1
        self.records_read += len(found)
        self.bytes_read += sum(len(one.value) for one in found)
        return found


def run(test: Callable[[Counted, Volume], Awaitable[None]]) -> None:
    async def prove() -> None:
        store = Counted()
        volume = Volume(store)
        await volume.create(8 * TIB)
        store.reset()
        await test(store, volume)

    asyncio.run(prove())


async def plant(store: Counted, count: int, first: int = 0, step: int = 1) -> None:
    """Write leaves as small writes leave them: 16 extents of 4 KiB each, inline."""
    writes: list[Write] = []
    for leaf in range(first, first + count * step, step):
        parts = []
        for index in range(16):
            inline = LeafStore(1000 + index, 4096, 0)
            parts.append(Extent(index * 4096, 4096, inline, 0, inline.born))
        key = keys.map_leaf(MAP_NUMBER, leaf)
        writes.append(Write(key, encode_leaf(Leaf(2000, tuple(parts)))))
    for start in range(0, len(writes), 1000):
        step_of = Step(PARTITION, tuple(writes[start : start + 1000]))
        store.apply((step_of,), 2000, Purpose.GROWTH)


def test_an_empty_content_of_any_size_costs_nothing() -> None:
    async def test(store: Counted, volume: Volume) -> None:
        assert await volume.hidden() == []
        await volume.resize(TIB)
        await volume.resize(8 * TIB)
        await volume.clear(0, 8 * TIB)
        assert store.most_records <= 2
        store.reset()
        pieces = extents.read(store, volume.place, 1 << 62, 0, TIB)
        assert await anext(pieces) is extents.ZEROS
        assert await anext(pieces) is extents.ZEROS
        assert store.looks == 3

    run(test)


def test_the_whole_leaves_of_one_chunk_are_stored_in_batches() -> None:
    """Of what comes in small chunks, nothing is held back until there is more."""

    async def test(store: Counted, volume: Volume) -> None:
        for length, chunk_bytes, batches in (
            (MIB, MIB, 1),
            (4 * MIB, 4 * MIB, 4),
            (MIB, 256 * 1024, 4),
            (MIB, 48 * 1024, 16),
        ):
            await volume.resize(length)
            store.reset()
            body = random.Random(length).randbytes(length)
            draft = await extents.receive(store, volume.place, 0, pieces(body, chunk_bytes), length)
            assert (store.batches, store.stored) == (batches, length // LEAF_BYTES)
            for content_id in list(store.contents.adoptions.written):
                store.contents.discard(content_id)
            del draft

    run(test)


def test_a_small_write_into_a_map_of_200_000_extents_touches_a_few_records() -> None:
    async def test(store: Counted, volume: Volume) -> None:
        await plant(store, 12_500)
        chance = random.Random(1)
        for length in (512, 4096):
            for _ in range(20):
                store.reset()
                offset = chance.randrange(12_500 * 16) * 4096
                await volume.write(offset, b"x" * length)
                assert store.commits == 1
                assert store.stored == 0
                assert store.records_read <= 8
                assert store.records_written <= 4
                assert store.bytes_read < 4096
                assert store.bytes_written < length + 4096

    run(test)


def test_small_writes_over_the_same_bytes_rewrite_little() -> None:
    """The bound includes the rewrites that keep leaves from becoming fragmented."""

    async def test(store: Counted, volume: Volume) -> None:
        await volume.write(0, b"x" * 8 * MIB)
        before = store.data.size_bytes
        chance = random.Random(2)
        store.reset()
        for _ in range(500):
            page = chance.randrange(8 * MIB // 512)
            await volume.write(page * 512, b"y" * 512)
        assert store.commits == 500
        assert store.stored <= 500 // 30
        assert store.most_bytes <= 16 * 1024
        assert store.data.size_bytes <= 2 * before

    run(test)


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_a_large_write_over_50_000_tiny_ranges_is_one_bounded_commit(has_snapshot: bool) -> None:
    async def test(store: Counted, volume: Volume) -> None:
        for leaf in range(50_000 // 31):
            await _fragment(store, volume, leaf)
        if has_snapshot:
            await volume.snapshot()
        store.reset()
        await volume.write(LEAF_BYTES - 512, b"x" * 8 * MIB)
        assert store.commits == 1
        assert store.most_records <= COMMIT_WRITES_MAX
        assert store.most_contents <= COMMIT_WRITES_MAX
        assert store.most_bytes <= COMMIT_BYTES_MAX
        store.reset()
        await volume.clear(100, 8 * MIB)
        assert store.most_records <= COMMIT_WRITES_MAX
        assert await volume.sweep()
        assert store.most_records <= COMMIT_WRITES_MAX
        check = await volume.check()
        assert not check.has_waste

    run(test)


async def _fragment(store: Counted, volume: Volume, leaf: int) -> None:
    """Write 31 ranges of 512 bytes with holes between them, each stored by itself."""
    parts = tuple(
        Extent(1024 * index, 512, LeafStore(1000 + index, 512, 0), 0, 1000 + index)
        for index in range(31)
    )
    assert not leaves.needs_rewrite(parts)
    writes = [Write(keys.map_leaf(MAP_NUMBER, leaf), encode_leaf(Leaf(2000, parts)))]
    for one in parts:
        ref = volume.place.data(leaf, one.store.born)
        writes.append(Write(ref.key, model.encode_data(ref, b"a" * 512)))
    store.apply((Step(PARTITION, tuple(writes)),), 2000, Purpose.GROWTH)


def test_a_clear_of_8_tib_is_one_small_commit_whatever_is_allocated() -> None:
    async def test(store: Counted, volume: Volume) -> None:
        for index in range(300):
            await volume.write(index * 1000 * LEAF_BYTES, b"z" * 20_000)
        snapshot = await volume.snapshot()
        store.reset()
        await volume.clear(0, 8 * TIB)
        assert store.commits == 1
        assert store.records_written == 2
        assert await volume.read(1000 * LEAF_BYTES, 20_000) == bytes(20_000)
        assert await volume.read(1000 * LEAF_BYTES, 20_000, snapshot) == b"z" * 20_000
        assert await volume.sweep()
        assert store.most_records <= COMMIT_WRITES_MAX
        assert len(list(store.content_ids())) == 300
        await volume.delete_snapshot(snapshot)
        assert await volume.sweep()
        assert not list(store.content_ids())
        assert await volume.hidden() == []

    run(test)


def test_a_sweep_of_a_long_clear_makes_commits_that_hold_up_nobody() -> None:
    async def test(store: Counted, volume: Volume) -> None:
        for index in range(300):
            await volume.write(index * 1000 * LEAF_BYTES, b"z" * 20_000)
        await volume.clear(0, 8 * TIB)
        store.reset()
        assert await volume.sweep()
        assert 0 < store.most_contents <= 64
        assert not list(store.content_ids())

    run(test)


def test_a_snapshot_of_any_map_costs_nothing_and_a_write_after_it_copies_one_leaf() -> None:
    async def test(store: Counted, volume: Volume) -> None:
        await plant(store, 5_000)
        store.reset()
        await volume.snapshot()
        assert (store.records_written, store.records_read) == (1, 1)
        store.reset()
        await volume.write(77 * LEAF_BYTES, b"x" * 4096)
        assert store.records_written == 4  # the head, the leaf, the past leaf, the bytes
        assert store.bytes_written < 4096 + 3 * 4096

    run(test)


def test_a_page_of_ranges_looks_at_a_bounded_number_of_leaves() -> None:
    async def test(store: Counted, volume: Volume) -> None:
        await plant(store, 3_000, step=2)
        store.reset()
        page = await extents.list_ranges(
            store, volume.place, 1 << 62, extents.RangeQuery(0, 8 * TIB, 5_000, leaves_max=512)
        )
        assert page.resume is not None
        assert 0 < len(page.ranges) <= 512
        assert store.records_read <= 512 + 8
        asked = extents.RangeQuery(0, 8 * TIB, 7)
        page = await extents.list_ranges(store, volume.place, 1 << 62, asked)
        assert len(page.ranges) == 7
        assert page.resume == 14 * LEAF_BYTES

    run(test)


def test_too_many_pending_clears_ask_for_a_sweep() -> None:
    async def test(store: Counted, volume: Volume) -> None:
        await volume.write(5, b"left")
        for index in range(model.CLEARS_MAX):
            await volume.clear(16 * MIB * (index + 1), 9 * MIB)
        mutation = await extents.clear(store, volume.place, 0, 10 * MIB).prepare()
        (found,) = await store.read([volume.place.clears()])
        with pytest.raises(extents.Backlog):
            mutation.decide([found], 1 << 60, extents.Pins())
        ending = await extents.end(store, volume.place).prepare()
        assert ending.decide([found], 1 << 61, extents.Pins(snapshot=1 << 60)).has_garbage
        await volume.clear(0, 4 * TIB)  # replaces the clears inside of it
        assert await volume.read(5, 4) == bytes(4)
        for index in range(2 * model.CLEARS_MAX):
            await volume.clear(16 * MIB * index, 9 * MIB)
        assert await volume.sweep()
        assert await volume.hidden() == []

    run(test)


@pytest.mark.parametrize("offset", [0, 7, LEAF_BYTES - 9, LEAF_BYTES])
@pytest.mark.parametrize("length", [1, 9, 10, 4096, LEAF_BYTES - 1, LEAF_BYTES, LEAF_BYTES + 1])
def test_bytes_that_have_arrived_are_written_as_a_stream_is(offset: int, length: int) -> None:
    async def prove() -> None:
        volume = Volume(MemoryEngine(ManualClock()))
        await volume.create(1 << 20)
        data = random.Random(length).randbytes(length)
        draft = await extents.received(volume.store, volume.place, offset, memoryview(data))
        await volume.apply(draft)
        around = await volume.read(0, offset + length + 9)
        assert around == bytes(offset) + data + bytes(9)

    asyncio.run(prove())


@pytest.mark.parametrize(("offset", "data"), [(0, b""), (-1, b"a"), (model.OFFSET_MAX, b"a")])
def test_bytes_that_have_arrived_for_an_impossible_range_are_refused(
    offset: int, data: bytes
) -> None:
    async def prove() -> None:
        volume = Volume(MemoryEngine(ManualClock()))
        with pytest.raises(ValueError, match="one write is of"):
            await extents.received(volume.store, volume.place, offset, data)

    asyncio.run(prove())
