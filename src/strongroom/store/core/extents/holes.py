"""What a leaf remembers of its clears: the sectors in which bytes were removed, and when.

Lives here: pure functions of ranges and holes.

A list of changes needs them for what was written and cleared after a snapshot. Neither the snapshot
nor the present leaf has an extent there. A hole is of use as long as there is a snapshot from
before its clear. A clear of what is a hole already leaves nothing to remember.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from strongroom.store.core.extents.model import SECTOR_BYTES, Extents, Hole, Holes, Leaf

Spans = list[tuple[int, int]]
"""Ranges [start, end) in order and without overlap."""


def joined(ranges: Iterable[tuple[int, int]]) -> Spans:
    """Of ranges in order of their starts; those that touch or overlap become one."""
    spans: Spans = []
    for start, end in ranges:
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def widened(ranges: Iterable[tuple[int, int]], granularity_bytes: int) -> Spans:
    grain = granularity_bytes
    return joined((start // grain * grain, -(-end // grain) * grain) for start, end in ranges)


def without(ranges: Spans, others: Spans) -> Spans:
    """The parts of `ranges` that lie in none of `others`."""
    left: Spans = []
    index = 0
    for start, stop in ranges:
        while index < len(others) and others[index][1] <= start:
            index += 1
        at = index
        while start < stop and at < len(others) and others[at][0] < stop:
            if start < others[at][0]:
                left.append((start, others[at][0]))
            start = others[at][1]
            at += 1
        if start < stop:
            left.append((start, stop))
    return left


def allocated(extents: Extents) -> Spans:
    return joined((one.start, one.end) for one in extents)


def dug(before: Leaf, extents: Extents, stamp: int) -> Holes:
    """Return the holes of a leaf after a change to `extents`. A sector has one hole, the youngest;
    one that is wholly allocated has none."""
    kept = allocated(extents)
    gone = widened(without(allocated(before.extents), kept), SECTOR_BYTES)
    if not gone and not before.holes:
        return ()
    full = [(-(-start // SECTOR_BYTES) * SECTOR_BYTES, end) for start, end in kept]
    full = [(start, end // SECTOR_BYTES * SECTOR_BYTES) for start, end in full]
    full = [one for one in full if one[0] < one[1]]
    holes = [Hole(start, end, stamp) for start, end in without(gone, full)]
    for hole in before.holes:
        left = without(without([(hole.start, hole.end)], gone), full)
        holes += [Hole(start, end, hole.cleared) for start, end in left]
    return tuple(sorted(holes))


def needed(holes: Holes, number: int, read_stamps: Collection[int], horizon: int) -> Holes:
    """Return the holes that a list of changes may need.

    Arguments:
        number: the map's, the stamp of its creation.
        read_stamps: the stamps at which snapshots and readers read.
        horizon: readers of other gateways see all commits with smaller stamps.
    """
    if not holes:
        return holes
    oldest = min((stamp for stamp in read_stamps if stamp >= number), default=horizon)
    return tuple(one for one in holes if one.cleared > oldest or one.cleared >= horizon)
