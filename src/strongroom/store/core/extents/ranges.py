"""The lists of allocated ranges, and of ranges that have changed since a snapshot.

Lives here: both lists, in pages of bounded size and bounded work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from strongroom.engines.base import Engine
from strongroom.slices import Steps, parts
from strongroom.store.core.extents import versions
from strongroom.store.core.extents.holes import Spans, widened, without
from strongroom.store.core.extents.model import LEAF_BYTES, Extent, Leaf, MapPlace

LEAVES_MAX: Final = 16 * 1024
"""The maximal number of leaves that one page of ranges reads. They cover 1 GiB if all is
allocated."""
_PAGE_LEAVES: Final = 256
# For the most fragmented leaves: some tenths of a millisecond.
_LEAVES_AT_ONCE: Final = 4


class Range(NamedTuple):
    """The bytes [start, end) are allocated or were written; if `is_clear`, they became a hole."""

    start: int
    end: int
    is_clear: bool = False


class Ranges(NamedTuple):
    """Ranges in order, without overlap; `resume` is the offset at which the next page begins, None
    = nothing is left. A long range may be cut between two pages."""

    ranges: tuple[Range, ...]
    resume: int | None


class RangeQuery(NamedTuple):
    """The request for one page of a list: the ranges within [offset, end).

    `max_ranges` is the limit of one page, at least 1. Ranges are widened to multiples of
    `granularity_bytes`, a divisor of LEAF_BYTES. `leaves_max` is how many leaves one page may read.
    """

    offset: int
    end: int
    max_ranges: int
    granularity_bytes: int = 1
    leaves_max: int = LEAVES_MAX


async def list_ranges(engine: Engine, place: MapPlace, at: int, query: RangeQuery) -> Ranges:
    """The allocated ranges at a stamp, as in reading.read; for a list in several pages each page
    may have its own."""
    return await _list(engine, place, (at,), query)


async def list_changes(
    engine: Engine, place: MapPlace, since: int, at: int, query: RangeQuery
) -> Ranges:
    """Return the ranges that were written or cleared after the snapshot `since` and before `at`.

    A range that is allocated at `at` and was written in between counts as written, even with the
    same bytes. A range that was allocated at `since` and is not at `at` counts as cleared.
    Arguments: see `list_ranges`; `since` is the stamp of a live snapshot, not after `at`.
    """
    return await _list(engine, place, (since, at), query)


async def _list(engine: Engine, place: MapPlace, at: tuple[int, ...], query: RangeQuery) -> Ranges:
    offset, end, leaves_max = query.offset, query.end, query.leaves_max
    ranges: list[Range] = []
    looked = 0
    first, until = offset // LEAF_BYTES, -(-end // LEAF_BYTES)
    page_leaves = min(_PAGE_LEAVES, leaves_max)
    async for page in versions.pages(engine, place, at, first, until, page_leaves):
        left_over = await engine.turns.run(_take(page, at[0], query, ranges))
        if left_over is not None:
            return Ranges(tuple(ranges), left_over)
        looked += page_leaves
        reached = page.until * LEAF_BYTES
        if looked >= leaves_max and reached < end:
            return Ranges(tuple(ranges), reached)
    return Ranges(tuple(ranges), None)


def _take(
    page: versions.LeafPage, since: int, query: RangeQuery, ranges: list[Range]
) -> Steps[int | None]:
    """Add the ranges of a page. Return the offset of the first range that does not fit, or None."""
    for part in parts(page.leaves, _LEAVES_AT_ONCE):
        for number, states in part:
            for one in _of_leaf(number, states, since, query.granularity_bytes):
                start, stop = max(one.start, query.offset), min(one.end, query.end)
                if start >= stop:
                    continue
                if ranges and ranges[-1].end == start and ranges[-1].is_clear == one.is_clear:
                    ranges[-1] = ranges[-1]._replace(end=stop)
                elif len(ranges) >= query.max_ranges:
                    return start
                else:
                    ranges.append(Range(start, stop, one.is_clear))
        yield
    return None


def _of_leaf(
    number: int, states: tuple[Leaf, ...], since: int, granularity_bytes: int
) -> Iterator[Range]:
    """Yield the ranges of one leaf, widened to grains, in order."""
    first, grain, after = number * LEAF_BYTES, granularity_bytes, states[-1]
    if len(states) == 1:
        written, cleared = _grains(after.extents, grain), []
    else:
        written = _grains((one for one in after.extents if one.written > since), grain)
        lost = [(one.start, one.end) for one in states[0].extents]
        lost += [(one.start, one.end) for one in after.holes if one.cleared > since]
        cleared = without(widened(sorted(lost), grain), _grains(after.extents, grain))
    plain = [Range(first + start, first + stop) for start, stop in written]
    gone = [Range(first + start, first + stop, True) for start, stop in cleared]
    yield from sorted(plain + gone)


def _grains(extents: Iterable[Extent], granularity_bytes: int) -> Spans:
    return widened(((one.start, one.end) for one in extents), granularity_bytes)
