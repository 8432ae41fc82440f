"""The leaves of a map at a stamp, page by page.

Lives here: which version of each leaf is valid at a stamp.

The present leaf is read first. If it is younger than the stamp, or absent, the past leaf that ended
after the stamp is the valid one. That past leaf exists, because the reader is registered (see
readers.py), and it was written in the commit that changed the present leaf.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from strongroom.engines.base import Engine, Item
from strongroom.slices import Steps, parts
from strongroom.store.core import keys
from strongroom.store.core.extents import leaf as leaves
from strongroom.store.core.extents.model import (
    Clear,
    Leaf,
    MapPlace,
    clears_of,
    decode_leaf,
)

_NONE: Final = Leaf(0, ())
# For the most fragmented leaves: some tenths of a millisecond.
_LEAVES_AT_ONCE: Final = 8


class LeafPage(NamedTuple):
    """The leaves from the previous page up to `until`, each in its version at each of the requested
    stamps."""

    leaves: list[tuple[int, tuple[Leaf, ...]]]
    until: int


async def pages(
    engine: Engine, place: MapPlace, at: Sequence[int], first: int, until: int, page_leaves: int
) -> AsyncIterator[LeafPage]:
    """Yield the leaves first <= number < until, in order, in pages.

    Each page reads at most `page_leaves` present leaves, and as many past ones for each stamp.

    Arguments:
        at: stamps that the caller may read at: live snapshots, or a reader's position.
    """
    (record,) = await engine.read([place.clears()])
    clears = clears_of(record)
    while first < until:
        present, stop = await _present(engine, place, first, until, page_leaves)
        states: list[dict[int, Leaf]] = []
        for stamp in at:
            past, reached = await _past(engine, place, stamp, first, stop, page_leaves)
            stop = min(stop, reached)
            states.append(_states(present, past, clears, stamp))
        numbers = sorted({number for state in states for number in state if number < stop})
        rows = [(one, tuple(state.get(one, _NONE) for state in states)) for one in numbers]
        yield LeafPage(rows, stop)
        first = stop


def _states(
    present: dict[int, Leaf], past: dict[int, Leaf], clears: Sequence[Clear], at: int
) -> dict[int, Leaf]:
    states = dict(past)
    for number, leaf in present.items():
        if leaf.since <= at:
            states[number] = leaves.history(leaf, number, clears, at)[-1]
    return states


async def _present(
    engine: Engine, place: MapPlace, first: int, until: int, page_leaves: int
) -> tuple[dict[int, Leaf], int]:
    """The present leaves of a page, and where the page ends."""
    items = await engine.read_range(
        place.partition,
        True,
        keys.map_leaf(place.number, first).name,
        keys.map_leaf(place.number, until - 1).name + b"\0",
        page_leaves,
    )
    decoded = await engine.turns.run(_decoded(items))
    return decoded, until if len(items) < page_leaves else max(decoded) + 1


def _decoded(items: Sequence[Item]) -> Steps[dict[int, Leaf]]:
    decoded: dict[int, Leaf] = {}
    for part in parts(items, _LEAVES_AT_ONCE):
        decoded |= {keys.map_leaf_number(item.name): decode_leaf(item.value) for item in part}
        yield
    return decoded


def _valid_past_leaves(items: Sequence[Item], at: int) -> Steps[tuple[dict[int, Leaf], set[int]]]:
    """Return the leaves among past ones that are valid at `at`, and the numbers of all that ended
    after it."""
    valid: dict[int, Leaf] = {}
    ended: set[int] = set()
    for part in parts(items, _LEAVES_AT_ONCE):
        for item in part:
            number = keys.map_leaf_number(item.name)
            if number in ended or keys.map_stamp(item.name) <= at:
                continue
            ended.add(number)
            leaf = decode_leaf(item.value)
            if leaf.since <= at:
                valid[number] = leaf
        yield
    return valid, ended


async def _past(
    engine: Engine, place: MapPlace, at: int, first: int, until: int, page_leaves: int
) -> tuple[dict[int, Leaf], int]:
    """Return the past leaves that are valid at `at`, and up to which leaf they are known.

    The first leaf is searched from `at` on, so that each page makes progress.
    """
    items = await engine.read_range(
        place.partition,
        True,
        keys.map_past(place.number, first, at + 1).name,
        keys.map_past_end(place.number, until - 1),
        page_leaves,
    )
    valid, ended = await engine.turns.run(_valid_past_leaves(items, at))
    if len(items) < page_leaves:
        return valid, until
    last = keys.map_leaf_number(items[-1].name)
    return valid, last + 1 if last in ended else last
