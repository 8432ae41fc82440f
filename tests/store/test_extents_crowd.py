"""Writers, long and short readers, and sweeps of one content at the same time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from typing import Final

from strongroom.clock import ManualClock
from strongroom.engines.memory import MemoryEngine
from strongroom.store.core import extents
from strongroom.store.core.extents.model import LEAF_BYTES
from tests.store.volumes import HEAD, PARTITION, Volume

AREA: Final = 40 * LEAF_BYTES
LONG: Final = 9 * 1024 * 1024


def uniform(pieces: Iterable[bytes]) -> bytes:
    """Return the value that fills the area; any one state has a single value."""
    values = {value for piece in pieces for value in set(piece)}
    assert len(values) == 1, values
    return bytes(values)


async def a_writer(volume: Volume, values: list[bytes], seed: int) -> None:
    """Write in a loop: each commit fills all of the area with one value, or clears all of it."""
    chance = random.Random(seed)
    while values:
        value = values.pop()
        if chance.random() < 0.3:
            await volume.clear(0, chance.choice([AREA, LONG]))
        else:
            await volume.write(0, value * AREA)
        await asyncio.sleep(0)


async def a_reader(volume: Volume, values: list[bytes], snapshot: int | None = None) -> int:
    count = 0
    while values:
        reading = await volume.begin(snapshot)
        pieces: list[bytes] = []
        async for piece in extents.read(volume.store, volume.place, reading.at, 0, AREA):
            pieces.append(piece)
            await asyncio.sleep(0)
        reading.end()
        assert uniform(pieces) == b"s" or snapshot is None
        count += 1
    return count


async def a_short_reader(volume: Volume, values: list[bytes]) -> int:
    count = 0
    while values:
        found = await volume.read_short(LEAF_BYTES - 100, 2 * LEAF_BYTES + 200)
        if found is not None:
            uniform([found])
            count += 1
        await asyncio.sleep(0)
    return count


async def a_sweeper(volume: Volume, values: list[bytes]) -> None:
    while values:
        await volume.sweep()
        await asyncio.sleep(0)


def test_each_reader_sees_one_state_while_others_write_and_sweep() -> None:
    async def prove() -> None:
        store = MemoryEngine(ManualClock())
        volume = Volume(store)
        await volume.create(LONG)
        await volume.write(0, b"s" * AREA)
        snapshot = await volume.snapshot()
        values = [bytes((65 + index % 50,)) for index in range(120)]
        writers = [a_writer(volume, values, seed) for seed in range(3)]
        readers = [a_reader(volume, values) for _ in range(3)]
        readers += [a_reader(volume, values, snapshot), a_short_reader(volume, values)]
        counts = await asyncio.gather(*readers, *writers, a_sweeper(volume, values))
        assert all(count for count in counts if count is not None)
        assert await volume.read(0, AREA, snapshot) == b"s" * AREA
        await volume.delete_snapshot(snapshot)
        assert await volume.sweep()
        check = await volume.check()
        assert not check.has_waste
        assert check.needed == set(store.content_ids())
        assert not store.contents.adoptions.written

    asyncio.run(prove())


def test_small_writes_of_a_crowd_in_one_leaf_all_land() -> None:
    async def prove() -> None:
        store = MemoryEngine(ManualClock())
        volume = Volume(store)
        await volume.create(LONG)

        async def writer(number: int) -> None:
            for index in range(8):
                page = number + 16 * index
                await volume.write(page * 512, bytes((number + 1,)) * 512)

        await asyncio.gather(*(writer(number) for number in range(16)))
        expected = b"".join(bytes((page % 16 + 1,)) * 512 for page in range(128))
        assert await volume.read(0, LEAF_BYTES) == expected
        check = await volume.check()
        assert check.needed == set(store.content_ids())
        assert not store.contents.adoptions.written

    asyncio.run(prove())


def test_a_reader_that_begins_while_a_write_is_being_decided_waits_for_it() -> None:
    async def prove() -> None:
        volume = Volume(MemoryEngine(ManualClock()))
        with volume.readers.mutating(PARTITION):
            reading = volume.readers.begin(PARTITION)
            waiting = asyncio.ensure_future(reading.wait_for_mutations())
            await asyncio.sleep(0)
            assert not waiting.done()
        await waiting
        later = volume.readers.begin(PARTITION)
        await later.wait_for_mutations()
        assert volume.readers.positions(PARTITION) is None
        later.set_position(5)
        reading.set_position(9)
        assert volume.readers.positions(PARTITION) == frozenset((5, 9))
        assert volume.readers.pins(PARTITION, 3) == extents.Pins(3, 9)
        reading.end()
        reading.end()
        later.end()
        assert volume.readers.pins(PARTITION, 3) == extents.Pins(3, 0)

    asyncio.run(prove())


def test_a_short_read_is_refused_when_the_owner_has_changed_since_its_look() -> None:
    async def prove() -> None:
        volume = Volume(MemoryEngine(ManualClock()))
        await volume.create(LONG)
        await volume.write(0, b"first")
        _, version = await volume.head()
        await volume.write(0, b"other")
        store, place = volume.store, volume.place
        assert await extents.read_short(store, place, HEAD, version, 0, 5) is None
        assert await extents.read_short(store, place, place.leaf(9), version, 0, 5) is None
        assert await volume.read_short(0, 5) == b"other"

    asyncio.run(prove())
