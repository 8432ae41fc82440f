"""The bytes of a range, at a stamp.

Lives here: reading a range piece by piece, holes as zeros, and reading a short one at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from strongroom.engines.base import ContentMissing, Ref, StorageEngine
from strongroom.store.core.extents import leaf as leaves
from strongroom.store.core.extents import model, versions
from strongroom.store.core.extents.fetch import fetch
from strongroom.store.core.extents.model import LEAF_BYTES, Extents, MapPlace, clears_of, leaf_of

ZEROS: Final = bytes(4 * LEAF_BYTES)
"""The bytes of a hole, or of a part of one. It is always the same object."""
# The longest read that may be held in memory.
SHORT_BYTES_MAX: Final = 4 * LEAF_BYTES
_WINDOW_LEAVES: Final = 16
_LATEST: Final = 1 << 64


async def read(
    store: StorageEngine, place: MapPlace, at: int, offset: int, length: int
) -> AsyncIterator[bytes]:
    """Yield the bytes of [offset, offset + length) at a stamp, in order, holes as zeros. No piece
    is longer than ZEROS.

    Arguments:
        at: the position of a registered reader (readers.py), or the stamp of a live snapshot. A
            reader's position is the version of the owner's record, which each mutation writes.

    Raises: ContentMissing, DataDamaged, DamagedRecord: the data is damaged.
    """
    position, end = offset, offset + length
    first, until = offset // LEAF_BYTES, -(-end // LEAF_BYTES)
    async for page in versions.pages(store, place, (at,), first, until, _WINDOW_LEAVES):
        rows = [(number, leaf.extents) for number, (leaf,) in page.leaves]
        for start, data in await _bytes(store, place, rows, position, end):
            for piece in _zeros(start - position):
                yield piece
            yield data
            position = start + len(data)
        reached = min(end, page.until * LEAF_BYTES)
        for piece in _zeros(reached - position):
            yield piece
        position = max(position, reached)


async def read_short(
    store: StorageEngine, place: MapPlace, owner: Ref, at: int, offset: int, length: int
) -> list[bytes] | None:
    """Return the present bytes of a short range, without a registered reader.

    Arguments:
        owner: the record that each mutation of the map writes.
        at: the version of that record when the caller read it.
        length: at most SHORT_BYTES_MAX.

    Returns: None when the owner's record has another version now, or when a store was dropped
    during the read: retry, or register and `read`.

    Raises: DataDamaged, DamagedRecord.
    """
    if length > SHORT_BYTES_MAX:
        raise ValueError(f"a short read is of at most {SHORT_BYTES_MAX} bytes")
    spans = leaves.spans(offset, length)
    refs = [owner, place.clears(), *(place.leaf(span.leaf) for span in spans)]
    seen = await store.read(refs)
    if seen[0] is None or seen[0].version != at:
        return None
    clears = clears_of(seen[1])
    rows = []
    for span, record in zip(spans, seen[2:], strict=True):
        states = leaves.history(leaf_of(record), span.leaf, clears, _LATEST)
        rows.append((span.leaf, states[-1].extents if states else ()))
    end = position = offset
    end += length
    pieces: list[bytes] = []
    try:
        stored = await _bytes(store, place, rows, offset, end)
    except ContentMissing:
        return None
    for start, data in stored:
        pieces += (*_zeros(start - position), data)
        position = start + len(data)
    return [*pieces, *_zeros(end - position)]


async def _bytes(
    store: StorageEngine,
    place: MapPlace,
    rows: Sequence[tuple[int, Extents]],
    position: int,
    end: int,
) -> list[tuple[int, bytes]]:
    """Return (offset, bytes) of the allocated ranges in [position, end)."""
    wanted: list[tuple[int, int, int, model.Extent]] = []
    for number, extents in rows:
        first = number * LEAF_BYTES
        for one in extents:
            start, stop = max(position, first + one.start), min(end, first + one.end)
            if start < stop:
                wanted.append((number, start, stop, one))
    fetched = await fetch(store, place, ((number, one.store) for number, _, _, one in wanted))
    pieces = []
    for number, start, stop, one in wanted:
        skipped = start - number * LEAF_BYTES - one.start + one.offset
        pieces.append((start, fetched[number, one.store][skipped : skipped + stop - start]))
    return pieces


def _zeros(length: int) -> Iterator[bytes]:
    while length >= len(ZEROS):
        yield ZEROS
        length -= len(ZEROS)
    if length > 0:
        yield ZEROS[:length]
