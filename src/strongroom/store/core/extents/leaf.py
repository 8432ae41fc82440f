"""The operations on one leaf: put bytes into it, cut bytes out of it, rewrite it.

Lives here: pure functions of extents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from strongroom.store.core.extents.holes import dug
from strongroom.store.core.extents.model import (
    EXTENTS_MAX,
    LEAF_BYTES,
    SECTOR_BYTES,
    STORES_MAX,
    Clear,
    Extent,
    Extents,
    Leaf,
    LeafStore,
    stores_of,
)

NOW: Final = 0
"""The stamp of the commit that is being prepared, in `Run.written`."""
_FOREVER: Final = 1 << 64


class LeafSpan(NamedTuple):
    """The bytes [start, end) of one leaf."""

    leaf: int
    start: int
    end: int

    @property
    def is_whole(self) -> bool:
        return self.end - self.start == LEAF_BYTES


class Run(NamedTuple):
    """Bytes of a leaf that a rewrite stores one after another in its new store."""

    start: int
    length: int
    written: int


def spans(offset: int, length: int) -> list[LeafSpan]:
    """The leaves that [offset, offset + length) touches, with the part of each."""
    end = offset + length
    touched = []
    while offset < end:
        leaf, start = divmod(offset, LEAF_BYTES)
        stop = min(LEAF_BYTES, start + end - offset)
        touched.append(LeafSpan(leaf, start, stop))
        offset += stop - start
    return touched


def cut(extents: Extents, start: int, end: int) -> Extents:
    kept: list[Extent] = []
    for one in extents:
        if one.end <= start or one.start >= end:
            kept.append(one)
            continue
        if one.start < start:
            kept.append(one._replace(length=start - one.start))
        if one.end > end:
            skipped = end - one.start
            kept.append(one._replace(start=end, length=one.end - end, offset=one.offset + skipped))
    return extents if len(kept) == len(extents) and tuple(kept) == extents else tuple(kept)


def put(extents: Extents, new: Extent) -> Extents:
    """`new` replaces the bytes that it covers."""
    return tuple(sorted((*cut(extents, new.start, new.end), new)))


def clear_within(clear: Clear, leaf: int) -> tuple[int, int]:
    """(start, end) of the part of a clear that lies in a leaf; empty if start >= end."""
    first = leaf * LEAF_BYTES
    return max(clear.start - first, 0), min(clear.end - first, LEAF_BYTES)


def history(leaf: Leaf | None, number: int, clears: Iterable[Clear], at: int) -> list[Leaf]:
    """Return the versions of a leaf up to the stamp `at`: the stored one, then one after each
    pending clear that removes bytes from it. Return an empty list without a leaf.

    The end of a content removes the leaf's holes too.

    Arguments:
        clears: pending ones, the oldest first.
    """
    if leaf is None:
        return []
    versions = [leaf]
    for clear in clears:
        start, end = clear_within(clear, number)
        if start < end and leaf.since < clear.stamp <= at:
            before = versions[-1]
            after = cut(before.extents, start, end)
            if clear.is_end and not before.is_empty:
                versions.append(Leaf(clear.stamp, after))
            elif after is not before.extents:
                versions.append(Leaf(clear.stamp, after, dug(before, after, clear.stamp)))
    return versions


def needs_rewrite(extents: Extents) -> bool:
    """Return whether a leaf is too fragmented, or less than half of its stored bytes are in use."""
    if not extents:
        return False
    stores = stores_of(extents)
    stored_bytes = sum(store.size_bytes for store in stores)
    used_bytes = sum(one.length for one in extents)
    is_fragmented = len(extents) > EXTENTS_MAX or len(stores) > STORES_MAX
    return is_fragmented or stored_bytes > 2 * used_bytes


def runs(extents: Extents, snapshot: int) -> list[Run]:
    """Return the runs of a rewritten leaf with these extents.

    Neighbours that no snapshot can distinguish become one. If there are still too many, each sector
    becomes one run: the gaps in it are then filled with zeros.

    Arguments:
        snapshot: the newest existing snapshot.
    """
    plain = _joined((Run(one.start, one.length, one.written) for one in extents), snapshot)
    if len(plain) <= LEAF_BYTES // SECTOR_BYTES:
        return plain
    return _joined(_by_sector(plain), snapshot)


def _joined(found: Iterable[Run], snapshot: int) -> list[Run]:
    joined: list[Run] = []
    for run in found:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.start + last.length == run.start
            and _alike(last, run, snapshot)
        ):
            written = max(last.written, run.written, key=_order)
            joined[-1] = Run(last.start, last.length + run.length, written)
        else:
            joined.append(run)
    return joined


def _order(written: int) -> int:
    return _FOREVER if written == NOW else written


def _alike(one: Run, other: Run, snapshot: int) -> bool:
    oldest = min(_order(one.written), _order(other.written))
    return one.written == other.written or oldest > snapshot


def _by_sector(found: Iterable[Run]) -> list[Run]:
    """Return one run for each sector with any bytes: from its first byte to its last."""
    sectors: dict[int, Run] = {}
    for run in found:
        position, end = run.start, run.start + run.length
        while position < end:
            sector = position // SECTOR_BYTES
            stop = min(end, (sector + 1) * SECTOR_BYTES)
            before = sectors.get(sector, Run(position, 0, run.written))
            written = max(before.written, run.written, key=_order)
            sectors[sector] = Run(before.start, stop - before.start, written)
            position = stop
    return list(sectors.values())


def laid_out(found: Sequence[Run], store: LeafStore, stamp: int) -> Extents:
    """The extents of runs that are stored one after another in a store. `stamp` is of the commit,
    for runs that are written `NOW`."""
    extents = []
    offset = 0
    for run in found:
        extents.append(Extent(run.start, run.length, store, offset, run.written or stamp))
        offset += run.length
    return tuple(extents)
