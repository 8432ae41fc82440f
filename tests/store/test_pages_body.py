"""The body of a page blob, where its services' own tests do not reach: copies of very large
maps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from strongroom.clock import ManualClock
from strongroom.engines.base import Partition, Step, Write
from strongroom.engines.memory import MemoryEngine
from strongroom.store.blob.bodies.body import BodyPlace
from strongroom.store.blob.bodies.pages import Pages, copy_leaves
from strongroom.store.core.extents.model import (
    LEAF_BYTES,
    Extent,
    Leaf,
    LeafStore,
    MapPlace,
    encode_data,
    encode_leaf,
)
from strongroom.store.core.extents.ranges import LEAVES_MAX
from strongroom.testing.contract.subject import commit

PARTITION: Final = Partition(b"blobs", b"one")
PLACE: Final = MapPlace(PARTITION, 7)
SNAPSHOT: Final = 10
LEAVES: Final = LEAVES_MAX + 600


def leaf(since: int) -> Leaf:
    return Leaf(since, (Extent(0, 512, LeafStore(since, 512, 0), 0, since),))


async def planted(store: MemoryEngine) -> None:
    """Write a map whose first leaf is older than the snapshot, and whose other leaves are
    younger."""
    data = PLACE.data(0, 5)
    writes = [
        Write(data.key, encode_data(data, b"x" * 512)),
        Write(PLACE.leaf(0).key, encode_leaf(leaf(5))),
    ]
    writes += [Write(PLACE.leaf(number).key, encode_leaf(leaf(20))) for number in range(1, LEAVES)]
    for start in range(0, len(writes), 2000):
        await put(store, writes[start : start + 2000])


async def put(store: MemoryEngine, writes: Sequence[Write]) -> None:
    await commit(store, Step(PARTITION, tuple(writes)))


def test_the_copy_of_a_snapshot_goes_on_behind_leaves_that_it_does_not_see() -> None:
    """One page of the list ends before the map does, and names a single leaf."""

    async def prove() -> None:
        store = MemoryEngine(ManualClock())
        await planted(store)
        place, body = BodyPlace(store, PARTITION), Pages(7, SNAPSHOT)
        size_bytes = LEAVES * LEAF_BYTES
        copied, resume = await copy_leaves(place, body, 0, size_bytes, store.contents)
        assert [part.data for part in copied] == [b"x" * 512]
        assert resume == LEAVES_MAX * LEAF_BYTES
        rest = await copy_leaves(place, body, resume, size_bytes, store.contents)
        assert rest == ((), None)

    asyncio.run(prove())
