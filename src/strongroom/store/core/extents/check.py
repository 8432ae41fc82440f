"""The check of maps for doctor: whether the sparse contents of one partition are consistent.

Lives here: `MapsCheck`, which reads the records of all maps of a partition and checks each map.

The rules that must hold:
 1. The extents of a leaf are in order, do not overlap, and lie within the leaf and their stores.
 2. No present leaf has bytes beyond the content's end, after the pending clears.
 3. The versions of a leaf follow one another.
 4. Inline data that a version names exists, with its length and its checksum.
 5. The holes of a leaf are in order, in whole sectors, and not younger than the leaf.
 6. A leaf that has holes alone is marked, and no other.
 7. Every store belongs to one leaf, and each inline data is named by a version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from strongroom.engines.base import DataDamaged, Partition
from strongroom.engines.gateways import STAMP_MAX
from strongroom.store.core import keys
from strongroom.store.core.extents import holes
from strongroom.store.core.extents import leaf as leaves
from strongroom.store.core.extents.model import (
    CLEARS,
    LEAF_BYTES,
    Clear,
    Leaf,
    LeafStore,
    MapPlace,
    decode_data,
    decode_leaf,
    stores_of,
)

_LATEST = 1 << 64


class _Map:
    def __init__(self) -> None:
        self.clears: tuple[Clear, ...] = ()
        self.present: dict[int, Leaf] = {}
        self.hollow: set[int] = set()
        self.past: dict[int, list[tuple[int, Leaf]]] = {}
        # By (leaf, born), the length of its inline data; None = damaged.
        self.data: dict[tuple[int, int], int | None] = {}


class MapsCheck:
    """The maps of one partition: `take` its records, then `judge` each map that a body or file
    names.

    Attributes:
        needed: contents that must exist.
        given_up: contents that only versions without readers name; some may be dropped already.
        has_waste: whether the partition needs a sweep.
    """

    def __init__(self, partition: Partition) -> None:
        self.needed: set[int] = set()
        self.given_up: set[int] = set()
        self.has_waste = False
        self._partition = partition
        self._maps: dict[int, _Map] = {}

    def take(self, name: bytes, value: bytes) -> bool:
        """Return False when the record belongs to no map."""
        kind, size = name[:1], len(name)
        if (kind, size) not in _SIZES:
            return False
        one = self._maps.setdefault(keys.map_number(name), _Map())
        leaf = keys.map_leaf_number(name)
        if kind == keys.MAP_CLEARS:
            one.clears = CLEARS.decode(value).pending
        elif kind == keys.MAP_LEAF:
            one.present[leaf] = decode_leaf(value)
        elif kind == keys.MAP_HOLLOW:
            one.hollow.add(leaf)
        elif kind == keys.MAP_PAST:
            one.past.setdefault(leaf, []).append((keys.map_stamp(name), decode_leaf(value)))
        else:
            place = MapPlace(self._partition, keys.map_number(name))
            born = keys.map_stamp(name)
            try:
                one.data[leaf, born] = len(decode_data(place.data(leaf, born), value))
            except DataDamaged:
                one.data[leaf, born] = None
        return True

    def numbers(self) -> frozenset[int]:
        return frozenset(self._maps)

    def judge(self, number: int, size_bytes: int, living: Collection[int]) -> list[str]:
        """Return the violations of one map. `size_bytes` is the content's present length; 0 when
        only its snapshots are left. `living` are the stamps of these."""
        one = self._maps.get(number, _Map())
        self.has_waste = self.has_waste or bool(one.clears)
        problems: list[str] = []
        named: set[tuple[int, int]] = set()
        for leaf in sorted(one.present.keys() | one.past.keys()):
            past = sorted(one.past.get(leaf, ()))
            present = one.present.get(leaf)
            of_leaf = [*_versions(past, present), *_beyond(leaf, present, one.clears, size_bytes)]
            for version, needed in self._named(past, present, living):
                of_leaf += _extents(version)
                for store in stores_of(version.extents):
                    if store.content:
                        (self.needed if needed else self.given_up).add(store.content)
                    else:
                        named.add((leaf, store.born))
                        of_leaf += _data(store, one.data.get((leaf, store.born), 0), needed)
            problems += [f"leaf {leaf}: {problem}" for problem in dict.fromkeys(of_leaf)]
        hollow = {leaf for leaf, version in one.present.items() if version.is_hollow}
        for leaf in sorted(hollow ^ one.hollow):
            problems.append(f"leaf {leaf}: its mark and its holes differ")
        for leaf in hollow:
            if not holes.needed(one.present[leaf].holes, number, living, STAMP_MAX):
                self.has_waste = True
        problems += self._shared(one)
        for leaf, born in sorted(one.data.keys() - named):
            problems.append(f"leaf {leaf}: inline data of {born} belongs to nothing")
        self.given_up -= self.needed
        return problems

    def _named(
        self, past: list[tuple[int, Leaf]], present: Leaf | None, living: Collection[int]
    ) -> Iterator[tuple[Leaf, bool]]:
        """Yield the versions of a leaf, each with whether a snapshot or the content needs it."""
        for until, version in past:
            is_seen = any(version.since <= stamp < until for stamp in living)
            self.has_waste = self.has_waste or not is_seen
            yield version, is_seen
        if present is not None:
            yield present, True

    def _shared(self, one: _Map) -> Iterator[str]:
        owners: dict[int, int] = {}
        versions = [*one.present.items()]
        versions += [(leaf, version) for leaf, past in one.past.items() for _, version in past]
        for leaf, version in versions:
            for store in stores_of(version.extents):
                if store.content and owners.setdefault(store.content, leaf) != leaf:
                    other = owners[store.content]
                    yield f"leaf {leaf}: its content {store.content} is that of leaf {other} too"


def _versions(past: list[tuple[int, Leaf]], present: Leaf | None) -> Iterator[str]:
    ended = 0
    for until, version in past:
        if not ended <= version.since < until:
            yield f"its version of {version.since} does not follow the one that ended at {ended}"
        ended = until
    if present is not None and present.since < ended:
        yield f"it is of {present.since}, but a past version ended at {ended}"


def _beyond(
    leaf: int, present: Leaf | None, clears: tuple[Clear, ...], size_bytes: int
) -> Iterator[str]:
    states = leaves.history(present, leaf, clears, _LATEST)
    if states and states[-1].extents:
        end = leaf * LEAF_BYTES + states[-1].extents[-1].end
        if end > size_bytes:
            yield f"it has bytes up to {end}, but the content ends at {size_bytes}"


def _extents(version: Leaf) -> Iterator[str]:
    if version.is_empty:
        yield "it is there, but nothing is allocated in it"
    position = 0
    for hole in version.holes:
        if not position <= hole.start < hole.end <= LEAF_BYTES or hole.cleared > version.since:
            yield f"the hole at {hole.start} is out of order"
        position = hole.end
    position = 0
    for one in version.extents:
        if one.start < position or one.length < 1 or one.end > LEAF_BYTES:
            yield f"the extent at {one.start} is out of order"
        if one.offset < 0 or one.offset + one.length > one.store.size_bytes:
            yield f"the extent at {one.start} reaches beyond what is stored"
        if one.store.born > version.since:
            yield f"the extent at {one.start} is younger than the leaf"
        position = one.end


def _data(store: LeafStore, stored_bytes: int | None, needed: bool) -> Iterator[str]:
    if stored_bytes is None:
        yield f"the inline data of {store.born} is damaged: its checksum differs"
    elif needed and stored_bytes != store.size_bytes:
        what = (
            "is missing"
            if not stored_bytes
            else f"has {stored_bytes} bytes, not {store.size_bytes}"
        )
        yield f"the inline data of {store.born} {what}"


_SIZES = {
    (keys.MAP_CLEARS, 9),
    (keys.MAP_LEAF, 13),
    (keys.MAP_HOLLOW, 13),
    (keys.MAP_PAST, 21),
    (keys.MAP_DATA, 21),
}
