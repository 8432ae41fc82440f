"""Decisions about a map: from the records found and a stamp to the writes of one commit.

Lives here: `Mutation`, a write or clear that is ready to be decided, and its effect on leaves whose
bytes a reader may still need.

These rules say which bytes are dropped at once. A version of a leaf is kept, as a past leaf, if the
newest snapshot or reader is as new as the version. A store that is no longer named is dropped if it
was born after the newest of them. Otherwise their past leaf names it, and the sweep decides. The
past leaf of a deleted snapshot may already be removed. So a version is also kept if only it still
leads the sweep to such a store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from strongroom.engines.base import Key, Record, Ref, Write
from strongroom.store.core import keys
from strongroom.store.core.extents import leaf as leaves
from strongroom.store.core.extents.holes import dug
from strongroom.store.core.extents.leaf import LeafSpan, Run
from strongroom.store.core.extents.model import (
    CLEARS,
    CLEARS_MAX,
    Clear,
    Clears,
    Extent,
    Extents,
    Leaf,
    LeafStore,
    MapPlace,
    clears_of,
    encode_data,
    encode_leaf,
    leaf_of,
    stores_of,
)

# The number of stores that one commit drops by itself. The sweep drops the others.
DROPS_MAX: Final = 1024
# The number of versions of leaves that one commit keeps. More occur only if many clears are
# pending, and snapshots were taken between them.
_KEPT_MAX: Final = 640
# The content id of a store whose bytes have arrived but are not stored yet.
_PENDING_CONTENT: Final = -1
_MARK: Final = b"\x01"


class Outdated(Exception):
    """A leaf changed after it was read, and must be rewritten: prepare the draft again."""


class Backlog(Exception):
    """Too many clears are pending: sweep the map, then prepare the draft again."""


class Pins(NamedTuple):
    """The readers of earlier states: the stamps of the newest snapshot and of the newest reader; 0
    = there is none.

    `lost`: the stamp of a deleted snapshot whose state older snapshots may still share.
    """

    snapshot: int = 0
    reader: int = 0
    lost: int = 0


class MapChange(msgspec.Struct, frozen=True):
    """A decision's additions to its commit's step in the map's partition.

    `has_garbage`: the commit leaves records for the sweep, so it must order one.
    """

    writes: tuple[Write, ...] = ()
    adopt: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()
    has_garbage: bool = False


class Part(NamedTuple):
    """The bytes for one leaf: either a content, or `data`. `runs` None = they replace a part of the
    leaf; else they are the whole leaf, rewritten.

    `seen`: the versions of the leaf and of the pending clears on which a rewrite is based.
    """

    span: LeafSpan
    size_bytes: int
    content: int
    data: bytes
    runs: tuple[Run, ...] | None = None
    seen: tuple[int | None, int | None] = (None, None)


class Collector:
    """The writes of one commit in a map."""

    def __init__(self, place: MapPlace) -> None:
        self._place = place
        self._writes: dict[Key, bytes | None] = {}
        self._adopt: list[int] = []
        self._drop: list[int] = []
        self._kept = 0
        self.drops = 0
        self.has_garbage = False

    def put(self, ref: Ref, value: bytes | None) -> None:
        self._writes[ref.key] = value

    def put_clears(self, pending: tuple[Clear, ...]) -> None:
        value = CLEARS.encode(Clears(pending)) if pending else None
        self.put(self._place.clears(), value)

    def put_leaf(self, number: int, before: Leaf | None, after: Leaf) -> None:
        if not after.is_empty:
            self.put(self._place.leaf(number), encode_leaf(after))
        elif before is not None:
            self.put(self._place.leaf(number), None)
        was_hollow = before is not None and before.is_hollow
        if was_hollow != after.is_hollow:
            self.put(self._place.hollow(number), None if was_hollow else _MARK)

    def keep(self, number: int, version: Leaf, until: int) -> None:
        """Keep a version of a leaf as a past leaf. Raises: Backlog when the commit would keep too
        many."""
        self._kept += 1
        if self._kept > _KEPT_MAX:
            raise Backlog
        self.put(
            Ref(self._place.partition, keys.map_past(self._place.number, number, until)),
            encode_leaf(version),
        )

    def add_store(self, number: int, part: Part, born: int) -> LeafStore:
        """Make the bytes of a part a store of the leaf, and return it."""
        if part.content:
            self._adopt.append(part.content)
        else:
            ref = self._place.data(number, born)
            self.put(ref, encode_data(ref, part.data))
        return LeafStore(born, part.size_bytes, part.content)

    def drop_store(self, number: int, store: LeafStore) -> None:
        self.drops += 1
        if store.content:
            self._drop.append(store.content)
        else:
            self.put(self._place.data(number, store.born), None)

    def change(self) -> MapChange:
        writes = tuple(Write(key, value) for key, value in self._writes.items())
        drop = tuple(dict.fromkeys(self._drop))
        return MapChange(writes, tuple(self._adopt), drop, self.has_garbage)


class Mutation(msgspec.Struct, frozen=True):
    """A write or a clear that is ready to be decided.

    Attributes:
        place: the map.
        spans: the parts of leaves that it changes.
        parts: the bytes for them, by leaf; a leaf without bytes is cleared there.
        cleared: a long clear, (start, end), which is recorded instead of applied.
    """

    place: MapPlace
    spans: tuple[LeafSpan, ...]
    parts: dict[int, Part]
    cleared: tuple[int, int] | None = None

    @property
    def reads(self) -> tuple[Ref, ...]:
        """The records that `decide` needs, in this order."""
        return (self.place.clears(), *(self.place.leaf(span.leaf) for span in self.spans))

    def decide(self, found: Sequence[Record | None], stamp: int, pins: Pins) -> MapChange:
        """Return the writes of the commit.

        Arguments:
            found: the records that `reads` names.
            pins: the readers at the time of this call.

        Raises: Outdated, Backlog; DamagedRecord.
        """
        collector = Collector(self.place)
        pending, *records = found
        pins = pins._replace(reader=min(pins.reader, stamp - 1))
        if self.cleared is not None:
            _log_clear(collector, clears_of(pending), Clear(stamp, *self.cleared), max(pins))
            return collector.change()
        for span, record in zip(self.spans, records, strict=True):
            before = leaf_of(record)
            versions = leaves.history(before, span.leaf, clears_of(pending), stamp)
            seen = (version_of(record), version_of(pending))
            last = versions[-1] if versions else Leaf(0, ())
            extents = self._after(collector, span, last.extents, seen, stamp)
            if extents == last.extents and len(versions) < 2:
                continue  # a clear of a range that is a hole already
            has_snapshots = max(pins.snapshot, pins.lost) >= self.place.number
            after = Leaf(stamp, extents, dug(last, extents, stamp) if has_snapshots else ())
            collector.put_leaf(span.leaf, before, after)
            # The deleted snapshot may have been the last that needs the holes.
            collector.has_garbage |= after.is_hollow and pins.lost > 0
            _retire(collector, span.leaf, versions, after, pins)
        return collector.change()

    def _after(
        self,
        collector: Collector,
        span: LeafSpan,
        extents: Extents,
        seen: tuple[int | None, int | None],
        stamp: int,
    ) -> Extents:
        part = self.parts.get(span.leaf)
        if part is not None and part.runs is not None:
            if part.seen != seen:
                raise Outdated
            return leaves.laid_out(part.runs, collector.add_store(span.leaf, part, stamp), stamp)
        if part is None:
            extents = leaves.cut(extents, span.start, span.end)
        else:
            store = collector.add_store(span.leaf, part, stamp)
            new = Extent(span.start, span.end - span.start, store, 0, stamp)
            extents = leaves.put(extents, new)
        if leaves.needs_rewrite(extents):
            raise Outdated
        return extents


def preview(span: LeafSpan, versions: Sequence[Leaf], size_bytes: int) -> Extents:
    """Return the extents of a leaf after a change without a rewrite; coming extents are written
    `NOW`. `size_bytes` are put into the span; 0 = it is cleared."""
    extents = versions[-1].extents if versions else ()
    if not size_bytes:
        return leaves.cut(extents, span.start, span.end)
    store = LeafStore(0, size_bytes, _PENDING_CONTENT)
    return leaves.put(extents, Extent(span.start, size_bytes, store, 0, leaves.NOW))


def is_pending_content(store: LeafStore) -> bool:
    """Whether a store of a preview represents the bytes that are to come."""
    return store.content == _PENDING_CONTENT


def version_of(record: Record | None) -> int | None:
    return None if record is None else record.version


def _log_clear(collector: Collector, pending: Sequence[Clear], new: Clear, pinned: int) -> None:
    """Record a clear. Pending clears inside of it are removed, unless a reader may need the
    state between them. The end of a content is the last of its clears, and always fits. Raises
    Backlog."""
    kept = [
        one for one in pending if one.start < new.start or one.end > new.end or one.stamp <= pinned
    ]
    if len(kept) >= CLEARS_MAX and not new.is_end:
        raise Backlog
    collector.put_clears((*kept, new))
    collector.has_garbage = True


def _retire(
    collector: Collector, number: int, versions: Sequence[Leaf], after: Leaf, pins: Pins
) -> None:
    """Keep the versions that a reader may need, and drop the stores that only the others name."""
    if not versions:
        return
    gone = stores_of(versions[0].extents).keys() - stores_of(after.extents).keys()
    pinned = max(pins)
    if collector.drops + len(gone) > DROPS_MAX:
        # Too many for one commit: keep everything, as if a reader needed it.
        pinned = after.since - 1
    for version, following in zip(versions, (*versions[1:], after), strict=True):
        is_last_trace = pins.lost and any(
            store.born <= pins.lost for store in gone & stores_of(version.extents).keys()
        )
        if not version.is_empty and (version.since <= pinned or is_last_trace):
            collector.keep(number, version, following.since)
            if not version.since <= pins.snapshot < following.since:
                collector.has_garbage = True
    for store in sorted(gone):
        if store.born > pinned:
            collector.drop_store(number, store)
