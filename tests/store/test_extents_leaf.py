"""The operations on one leaf, and the writes of one decision: tables."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import DataDamaged, Key, Record, Ref
from strongroom.engines.memory import MemoryEngine
from strongroom.store.core import extents, keys
from strongroom.store.core.extents import leaf as leaves
from strongroom.store.core.extents import model
from strongroom.store.core.extents.change import Mutation, Part
from strongroom.store.core.extents.leaf import LeafSpan, Run
from strongroom.store.core.extents.model import (
    LEAF_BYTES,
    OFFSET_MAX,
    WRITE_BYTES_MAX,
    Clear,
    Extent,
    Extents,
    Hole,
    Leaf,
    LeafStore,
    MapPlace,
)
from strongroom.store.core.records import DamagedRecord
from tests.store.volumes import PARTITION, Model, Volume, once

A: Final = LeafStore(10, 1000, 501)
B: Final = LeafStore(20, 1000, 502)
INLINE: Final = LeafStore(30, 1000, 0)
PLACE: Final = MapPlace(PARTITION, 7)


def extent(start: int, end: int, store: LeafStore = A, offset: int = 0, written: int = 0) -> Extent:
    return Extent(start, end - start, store, offset, written or store.born)


def test_a_range_is_cut_at_the_borders_of_leaves() -> None:
    assert leaves.spans(0, 0) == []
    assert leaves.spans(LEAF_BYTES - 1, 1) == [LeafSpan(0, LEAF_BYTES - 1, LEAF_BYTES)]
    assert leaves.spans(LEAF_BYTES - 1, LEAF_BYTES + 2) == [
        LeafSpan(0, LEAF_BYTES - 1, LEAF_BYTES),
        LeafSpan(1, 0, LEAF_BYTES),
        LeafSpan(2, 0, 1),
    ]


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        (0, 100, (extent(100, 200), extent(300, 400, B))),
        (200, 300, (extent(100, 200), extent(300, 400, B))),
        (0, 150, (extent(150, 200, A, 50), extent(300, 400, B))),
        (120, 130, (extent(100, 120), extent(130, 200, A, 30), extent(300, 400, B))),
        (150, 350, (extent(100, 150), extent(350, 400, B, 50))),
        (100, 200, (extent(300, 400, B),)),
        (0, 400, ()),
    ],
)
def test_a_cut_keeps_what_lies_outside(start: int, end: int, left: Extents) -> None:
    assert leaves.cut((extent(100, 200), extent(300, 400, B)), start, end) == left


def test_new_bytes_lie_over_what_was_there() -> None:
    new = extent(150, 350, INLINE)
    assert leaves.put((extent(100, 200), extent(300, 400, B)), new) == (
        extent(100, 150),
        new,
        extent(350, 400, B, 50),
    )


def test_pending_clears_show_from_their_stamps_on() -> None:
    leaf = Leaf(20, (extent(0, 500), extent(500, 900, B)))
    first = 3 * LEAF_BYTES
    clears = [
        Clear(15, first, first + 900),  # older than the leaf
        Clear(30, first - 70, first + 100),
        Clear(40, 0, 10),  # elsewhere
        Clear(50, first + 20, first + 600),
    ]
    versions = [
        leaf,
        Leaf(30, (extent(100, 500, A, 100), extent(500, 900, B)), (Hole(0, 512, 30),)),
        Leaf(50, (extent(600, 900, B, 100),), (Hole(0, 1024, 50),)),
    ]
    for at, count in [(29, 1), (30, 2), (49, 2), (50, 3), (99, 3)]:
        assert leaves.history(leaf, 3, clears, at) == versions[:count]
    assert leaves.history(None, 3, clears, 99) == []


@pytest.mark.parametrize(
    ("extents_of", "expected"),
    [
        ((), False),
        ((extent(0, 500),), False),
        ((extent(0, 499),), True),
        ((extent(0, 900), extent(900, 1000, B)), False),
        ((extent(0, 400), extent(500, 900, B)), True),
        (tuple(extent(2 * i, 2 * i + 1, A._replace(size_bytes=161), i) for i in range(161)), True),
        (tuple(extent(9 * i, 9 * i + 9, LeafStore(i, 9, 0)) for i in range(32)), False),
        (tuple(extent(9 * i, 9 * i + 9, LeafStore(i, 9, 0)) for i in range(33)), True),
    ],
)
def test_a_leaf_is_rewritten_when_it_is_fragmented_or_half_dead(
    extents_of: Extents, expected: bool
) -> None:
    assert leaves.needs_rewrite(extents_of) is expected


def test_a_rewriting_joins_what_no_snapshot_can_tell_apart() -> None:
    found = (
        extent(0, 10, A, 0, 10),
        extent(10, 20, B, 0, 20),
        extent(20, 30, A, 0, 30),
        extent(30, 40, B, 0, 40),
        extent(50, 60, B)._replace(written=leaves.NOW),
        extent(60, 70, B, 0, 40),
    )
    assert leaves.runs(found, 25) == [
        Run(0, 10, 10),
        Run(10, 10, 20),
        Run(20, 20, 40),
        Run(50, 20, leaves.NOW),
    ]
    assert leaves.runs(found, 0) == [Run(0, 40, 40), Run(50, 20, leaves.NOW)]


def test_a_rewriting_of_too_many_runs_fills_the_gaps_inside_of_sectors() -> None:
    found = tuple(extent(4 * index, 4 * index + 1, A, 0, 10 + index % 3) for index in range(200))
    assert leaves.runs(found, 1000) == [Run(0, 509, 12), Run(512, 285, 12)]


def test_a_leaf_record_without_holes_is_read_as_before() -> None:
    """As they were written before leaves remembered their clears."""
    record = bytes.fromhex("01 93 14 91 93 0a cd 03e8 cd 01f5 91 95 00 cd 01f4 00 00 00")
    assert model.decode_leaf(record) == Leaf(20, (extent(0, 500),))


def test_a_leaf_record_holds_any_leaf_in_few_bytes() -> None:
    stamp = 638_000_000_000_000_000
    stores = [LeafStore(stamp + index, 8192, stamp - index) for index in range(32)]
    parts = tuple(
        Extent(400 * index, 399, stores[index % 32], index, stamp + index) for index in range(160)
    )
    encoded = model.encode_leaf(Leaf(stamp, parts))
    assert len(encoded) <= 4096
    assert model.decode_leaf(encoded) == Leaf(stamp, parts)
    holes = tuple(Hole(512 * index, 512 * index + 512, stamp - index) for index in range(128))
    with_holes = model.encode_leaf(Leaf(stamp, parts, holes))
    assert len(with_holes) - len(encoded) <= 2048
    assert model.decode_leaf(with_holes) == Leaf(stamp, parts, holes)
    assert sorted(model.contents_of(keys.map_leaf(7, 1).name, encoded)) == sorted(
        store.content for store in stores
    )
    assert model.contents_of(keys.map_data(7, 1, 2).name, encoded) == ()


@pytest.mark.parametrize(
    "value", [b"", b"\x01", b"\x02\x90", b"\x01\x93\x05\x90\x91\x95\0\1\0\0\0"]
)
def test_a_leaf_record_that_is_none_is_refused(value: bytes) -> None:
    with pytest.raises(DamagedRecord):
        model.decode_leaf(value)


def test_inline_data_is_checked_against_its_checksum_and_its_key() -> None:
    ref, other = PLACE.data(3, 9), PLACE.data(4, 9)
    value = model.encode_data(ref, b"bytes")
    assert model.decode_data(ref, value) == b"bytes"
    for place, damaged in [(ref, value[:-1] + b"?"), (ref, value[:-1]), (other, value)]:
        with pytest.raises(DataDamaged):
            model.decode_data(place, damaged)
    for unknown in (b"", b"\x02" + value[1:], value[:8]):
        with pytest.raises(DamagedRecord):
            model.decode_data(ref, unknown)


def decided(
    leaf: Leaf | None, pins: extents.Pins, clears: tuple[Clear, ...] = ()
) -> tuple[dict[Key, bytes | None], extents.MapChange]:
    """Return the writes and the change of a write of [0, 700) at the stamp 100 to a leaf."""
    span = LeafSpan(0, 0, 700)
    mutation = Mutation(PLACE, (span,), {0: Part(span, 700, 900, b"")})
    pending = Record(model.CLEARS.encode(model.Clears(clears)), 1) if clears else None
    found = None if leaf is None else Record(model.encode_leaf(leaf), 1)
    change = mutation.decide([pending, found], 100, pins)
    assert change.adopt == (900,)
    return {write.key: write.value for write in change.writes}, change


def past(until: int) -> Key:
    return keys.map_past(7, 0, until)


_LEAF: Final = Leaf(50, (extent(0, 600, INLINE), extent(600, 1000, B)))


@pytest.mark.parametrize(
    ("pins", "kept", "drops", "has_garbage"),
    [
        (extents.Pins(), [], True, False),
        (extents.Pins(snapshot=29), [], True, False),  # older than the bytes
        (extents.Pins(snapshot=30), [], False, False),  # an older past leaf names them
        (extents.Pins(snapshot=50), [100], False, False),
        (extents.Pins(snapshot=99), [100], False, False),
        (extents.Pins(reader=60), [100], False, True),
        (extents.Pins(reader=1 << 64), [100], False, True),
        (extents.Pins(snapshot=60, reader=1 << 64), [100], False, False),
        (extents.Pins(lost=29), [], True, False),
        (extents.Pins(lost=30), [100], False, True),  # its past leaf may already be removed
    ],
)
def test_what_may_be_seen_is_kept_and_the_rest_is_dropped(
    pins: extents.Pins, kept: list[int], drops: bool, has_garbage: bool
) -> None:
    writes, change = decided(_LEAF, pins)
    new = LeafStore(100, 700, 900)
    after = Leaf(100, (extent(0, 700, new), extent(700, 1000, B, 100)))
    data = PLACE.data(0, 30).key
    expected = {PLACE.leaf(0).key: model.encode_leaf(after)}
    expected |= {past(until): model.encode_leaf(_LEAF) for until in kept}
    assert {key: value for key, value in writes.items() if value is not None} == expected
    assert [key for key, value in writes.items() if value is None] == ([data] if drops else [])
    assert change.drop == ()
    assert change.has_garbage is has_garbage


def test_a_write_lets_pending_clears_come_true_version_by_version() -> None:
    clears = (Clear(60, 0, 100), Clear(80, 900, 5000))
    first_hole, second_hole = Hole(0, 512, 60), Hole(512, 1024, 80)
    middle = Leaf(60, (extent(100, 600, INLINE, 100), extent(600, 1000, B)), (first_hole,))
    kept = extent(100, 600, INLINE, 100), extent(600, 900, B)
    last = Leaf(80, kept, (first_hole, second_hole))
    writes, change = decided(_LEAF, extents.Pins(snapshot=70), clears)
    assert writes[past(60)] == model.encode_leaf(_LEAF)
    assert writes[past(80)] == model.encode_leaf(middle)
    assert past(100) not in writes
    assert change.has_garbage  # which readers need the first version is unknown
    writes, _ = decided(_LEAF, extents.Pins(snapshot=90), clears)
    assert writes[past(100)] == model.encode_leaf(last)


def test_a_clear_inside_of_a_longer_one_is_forgotten_unless_its_state_may_be_seen() -> None:
    pending = tuple(Clear(10 * index, 100 * index, 100 * index + 50) for index in range(1, 4))
    record = Record(model.CLEARS.encode(model.Clears(pending)), 1)
    mutation = Mutation(PLACE, (), {}, (0, 300))
    for pins, kept in [
        (extents.Pins(), pending[2:]),
        (extents.Pins(snapshot=15), (pending[0], pending[2])),
        (extents.Pins(reader=1 << 64), pending),
    ]:
        change = mutation.decide([record], 100, pins)
        (write,) = change.writes
        assert write.value is not None
        assert model.CLEARS.decode(write.value).pending == (*kept, Clear(100, 0, 300))


def test_a_range_outside_of_what_a_map_holds_is_refused() -> None:
    async def prove() -> None:
        store = MemoryEngine(ManualClock())
        for offset, length in [(-1, 5), (0, 0), (0, WRITE_BYTES_MAX + 1), (OFFSET_MAX - 4, 5)]:
            with pytest.raises(ValueError):
                await extents.receive(store, PLACE, offset, once(b"x" * length), length)
        for offset, length in [(-1, 5), (0, -1), (OFFSET_MAX, 1)]:
            with pytest.raises(ValueError):
                extents.clear(store, PLACE, offset, length)
        for sent in (LEAF_BYTES * 20 - 1, LEAF_BYTES * 20 + 1, LEAF_BYTES * 22):
            with pytest.raises(ValueError):
                await extents.receive(store, PLACE, 5, once(bytes(sent)), LEAF_BYTES * 20)
        with pytest.raises(ValueError):
            await extents.read_short(store, PLACE, PLACE.leaf(0), 1, 0, LEAF_BYTES * 4 + 1)
        assert not store.contents.adoptions.written

    asyncio.run(prove())


async def refused(draft: extents.Draft) -> None:
    async with draft:
        await draft.prepare()
        raise KeyError


def test_a_refused_write_leaves_nothing() -> None:
    async def prove() -> None:
        volume = Volume(store := MemoryEngine(ManualClock()))
        await volume.create(1 << 40)
        for length in (10, LEAF_BYTES, 5 * LEAF_BYTES):
            draft = await extents.receive(store, volume.place, 70, once(bytes(length)), length)
            with pytest.raises(KeyError):
                await refused(draft)
        assert not store.contents.adoptions.written
        assert await volume.hidden() == []

    asyncio.run(prove())


def test_gaps_that_a_rewriting_fills_are_zeros_and_lists_stay_in_order() -> None:
    """The leaf has far more runs of one byte than it can store, as only a file can have."""

    async def prove() -> None:
        volume = Volume(MemoryEngine(ManualClock()))
        await volume.create(1 << 40)
        model = Model(0, LEAF_BYTES)
        for index in range(400):
            offset = 3 * index if index % 2 else 60_000 - 3 * index
            await volume.write(offset, b"x")
            model.write(offset, b"x")
        assert await volume.read(0, LEAF_BYTES) == model.data
        (_, version) = await volume.head()
        found = await extents.list_ranges(
            volume.store, volume.place, version, extents.RangeQuery(0, LEAF_BYTES, 10_000)
        )
        widened = await extents.list_ranges(
            volume.store, volume.place, version, extents.RangeQuery(0, LEAF_BYTES, 10_000, 512)
        )
        for start, end in model.ranges():
            assert any(one.start <= start and end <= one.end for one in found.ranges)
        assert [(one.start, one.end) for one in widened.ranges] == model.ranges(512)
        await volume.check()

    asyncio.run(prove())


def test_keys_of_maps_lead_back_to_what_they_name() -> None:
    past_key = keys.map_past(1 << 60, 1 << 31, 77).name
    assert keys.map_number(past_key) == 1 << 60
    assert keys.map_leaf_number(past_key) == 1 << 31
    assert keys.map_stamp(past_key) == 77
    assert keys.map_past(5, 1, (1 << 64) - 1).name < keys.map_past_end(5, 1)
    assert keys.map_past_end(5, 1) < keys.map_past(5, 2, 0).name
    assert Ref(PARTITION, keys.map_leaf(7, 3)) == PLACE.leaf(3)
