"""The doctor's check of maps: a used map has no findings, and each damage is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import (
    Commit,
    ContentMissing,
    DataDamaged,
    Key,
    Ref,
    Step,
    Write,
)
from strongroom.engines.memory import MemoryEngine
from strongroom.store.core import keys
from strongroom.store.core.extents import MapsCheck, model
from strongroom.store.core.extents.model import (
    LEAF_BYTES,
    Clear,
    Clears,
    Extent,
    Hole,
    Leaf,
    LeafStore,
)
from tests.store.volumes import MAP_NUMBER, PARTITION, Volume

LEAF: Final = keys.map_leaf(MAP_NUMBER, 0)


async def used() -> tuple[MemoryEngine, Volume, int]:
    """Make a content with inline data, contents, a snapshot and a past leaf."""
    store = MemoryEngine(ManualClock())
    volume = Volume(store)
    await volume.create(3 * LEAF_BYTES)
    await volume.write(0, b"x" * 20_000)
    await volume.write(LEAF_BYTES - 3, b"inline")
    snapshot = await volume.snapshot()
    await volume.write(100, b"after")
    return store, volume, snapshot


async def put(volume: Volume, key: Key, value: bytes | None) -> None:
    step = Step(PARTITION, (Write(key, value),))
    await volume.store.update(PARTITION, (), lambda found, stamp: Commit(None, (step,)))


async def problems(volume: Volume, size_bytes: int = 3 * LEAF_BYTES) -> list[str]:
    check = MapsCheck(PARTITION)
    for name, value in await volume.hidden():
        assert check.take(name, value)
    head, _ = await volume.head()
    return check.judge(MAP_NUMBER, size_bytes, [stamp for stamp, _ in head.snapshots])


Edit = Callable[[Leaf], Leaf]


def first(**changes: object) -> Edit:
    """Return an edit that changes fields of a leaf's first extent."""

    def edit(leaf: Leaf) -> Leaf:
        one, *others = leaf.extents
        changed = one._replace(**changes)  # type: ignore[arg-type]  # any field
        return Leaf(leaf.since, (changed, *others))

    return edit


DAMAGES: Final[list[tuple[Edit, str]]] = [
    (first(length=101), "leaf 0: the extent at 100 is out of order"),
    (first(length=0), "leaf 0: the extent at 0 is out of order"),
    (first(offset=19_999), "leaf 0: the extent at 0 reaches beyond what is stored"),
    (lambda leaf: Leaf(1, leaf.extents), "leaf 0: the extent at 0 is younger than the leaf"),
    (lambda leaf: Leaf(5, ()), "leaf 0: it is there, but nothing is allocated in it"),
    (
        lambda leaf: leaf._replace(holes=(Hole(512, 1024, 1), Hole(0, 512, 1))),
        "leaf 0: the hole at 0 is out of order",
    ),
    (
        lambda leaf: leaf._replace(holes=(Hole(0, 512, leaf.since + 1),)),
        "leaf 0: the hole at 0 is out of order",
    ),
    (
        lambda leaf: Leaf(leaf.since, (), (Hole(0, 512, leaf.since),)),
        "leaf 0: its mark and its holes differ",
    ),
    (
        lambda leaf: Leaf(leaf.since, (Extent(0, 5, LeafStore(1, 5, 0), 0, 1),)),
        "leaf 0: the inline data of 1 is missing",
    ),
    (
        lambda leaf: Leaf(5, (Extent(0, 5, LeafStore(5, 5, 77), 0, 5),)),
        "leaf 0: it is of 5, but a past version ended at",
    ),
]


@pytest.mark.parametrize(("edit", "expected"), DAMAGES)
def test_a_leaf_that_cannot_be_is_found(edit: Edit, expected: str) -> None:
    async def prove() -> None:
        store, volume, _ = await used()
        assert await problems(volume) == []
        (found,) = await store.read([volume.place.leaf(0)])
        assert found is not None
        await put(volume, LEAF, model.encode_leaf(edit(model.decode_leaf(found.value))))
        assert any(one.startswith(expected) for one in await problems(volume))

    asyncio.run(prove())


def test_bytes_beyond_the_end_are_found_unless_a_clear_of_them_is_pending() -> None:
    async def prove() -> None:
        _, volume, _ = await used()
        assert await problems(volume, LEAF_BYTES + 3) == []
        expected = f"leaf 1: it has bytes up to {LEAF_BYTES + 3}, but the content ends at 70"
        assert expected in await problems(volume, 70)
        pending = Clears((Clear(1 << 60, 70, 1 << 40),))
        await put(volume, keys.map_clears(MAP_NUMBER), model.CLEARS.encode(pending))
        assert await problems(volume, 70) == []

    asyncio.run(prove())


def test_damaged_missing_and_stray_inline_data_are_found() -> None:
    async def prove() -> None:
        _, volume, _ = await used()
        stray = keys.map_data(MAP_NUMBER, 1, 5)
        await put(volume, stray, model.encode_data(volume.place.data(1, 5), b"stray"))
        assert await problems(volume) == ["leaf 1: inline data of 5 belongs to nothing"]
        await put(volume, stray, None)
        data = [Key(True, name) for name, _ in await volume.hidden() if name[:1] == keys.MAP_DATA]
        assert len(data) == 3
        for key in data:
            (found,) = await volume.store.read([Ref(PARTITION, key)])
            assert found is not None
            await put(volume, key, found.value[:-1] + b"?")
            (problem,) = await problems(volume)
            assert problem.endswith("is damaged: its checksum differs")
            with pytest.raises(DataDamaged):
                await everything(volume)
            await put(volume, key, None)
            (problem,) = await problems(volume)
            assert problem.endswith("is missing")
            with pytest.raises(ContentMissing):
                await everything(volume)
            await put(volume, key, found.value)
        await everything(volume)

    asyncio.run(prove())


async def everything(volume: Volume) -> None:
    head, _ = await volume.head()
    await volume.read(0, 3 * LEAF_BYTES)
    for stamp, _ in head.snapshots:
        await volume.read(0, 3 * LEAF_BYTES, stamp)


def test_a_damaged_content_is_never_read() -> None:
    async def prove() -> None:
        store, volume, _ = await used()
        (content,) = store.content_ids()
        store.damage(content)
        with pytest.raises(DataDamaged):
            await volume.read(5, 1)
        with pytest.raises(DataDamaged):
            await volume.read_short(5, 1)
        with pytest.raises(DataDamaged):
            await volume.clear(1000, 15_000)  # rewrites the leaf

    asyncio.run(prove())


def test_a_content_of_two_leaves_and_versions_out_of_order_are_found() -> None:
    async def prove() -> None:
        store, volume, snapshot = await used()
        (found,) = await store.read([volume.place.leaf(0)])
        assert found is not None
        leaf = model.decode_leaf(found.value)
        shared = [one for one in leaf.extents if one.store.content][:1]
        twice = model.encode_leaf(Leaf(leaf.since, tuple(shared)))
        await put(volume, keys.map_leaf(MAP_NUMBER, 2), twice)
        (problem,) = await problems(volume)
        assert problem.startswith("leaf 2: its content")
        assert problem.endswith("is that of leaf 0 too")
        await put(volume, keys.map_leaf(MAP_NUMBER, 2), None)
        await put(volume, keys.map_past(MAP_NUMBER, 0, snapshot - 1), found.value)
        assert any("does not follow" in one for one in await problems(volume))

    asyncio.run(prove())


def test_what_nobody_sees_is_waste_and_not_missed() -> None:
    async def prove() -> None:
        _, volume, snapshot = await used()
        await volume.write(0, b"y" * 30_000)
        check = await volume.check()
        assert not check.has_waste and len(check.needed) == 2
        await volume.delete_snapshot(snapshot)
        check = await volume.check()
        assert check.has_waste and len(check.needed) == 1 and len(check.given_up) == 1
        assert check.numbers() == {MAP_NUMBER}
        assert MapsCheck(PARTITION).judge(MAP_NUMBER, 0, ()) == []

    asyncio.run(prove())


def test_records_that_are_none_of_a_map_are_left_to_others() -> None:
    check = MapsCheck(PARTITION)
    for key in (keys.UPLOAD_KEY, keys.inline(5), keys.retired(6), Key(True, LEAF.name + b"\0")):
        assert not check.take(key.name, b"")
