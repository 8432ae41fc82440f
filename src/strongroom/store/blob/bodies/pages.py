"""The body of a page blob: a map of sparse content, which changes in place.

Lives here: how a body names its map and a state of it; how both are read, shared, swept, checked
and made.

All states of one page blob share one map: the head's state, and those of its snapshots. Each change
of the pages writes the head, whose body then has the stamp of that change. A snapshot keeps the
body that the head had. So the stamp in it is that of the last change before the snapshot. Nothing
else needs to be copied or counted.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from strongroom.engines.base import Commit, Contents, Partition, Record, Step
from strongroom.store.blob.bodies.body import (
    HEAD,
    Body,
    BodyChange,
    BodyFindings,
    BodyPlace,
    BodySweep,
    Feed,
    InspectedBody,
    NamedParts,
    OpenBody,
    P,
    ReadersActive,
    ReadSpan,
)
from strongroom.store.core import extents
from strongroom.store.core.extents import (
    MapChange,
    MapPlace,
    Mutation,
    Part,
    Pins,
    RangeQuery,
    Ranges,
)
from strongroom.store.core.keys import Past
from strongroom.store.core.records import DamagedRecord
from strongroom.values import Purpose

_PAGE_BYTES: Final = 512
# The size of one commit of a copy: this many leaves, from this many ranges.
_LEAVES_AT_ONCE: Final = 128
_RANGES_AT_ONCE: Final = 1024
_PAGES_OF_LEAF: Final = extents.LEAF_BYTES // _PAGE_BYTES
# The mutation only needs the keys of the map's records: the commit names their partition.
_NOWHERE: Final = Partition(b"", b"")


class Pages(Body, frozen=True, array_like=True, tag=5):
    """The map `number` in its state at the stamp `at`.

    `pinned` is the newest snapshot's `at`; `lost` means that this snapshot was deleted. Only the
    head uses both.
    """

    number: int
    at: int
    pinned: int = 0
    lost: bool = False

    is_shared: ClassVar[bool] = True
    is_in_parts: ClassVar[bool] = True

    @property
    def position(self) -> int:
        return self.at

    async def open(
        self, place: BodyPlace, offset: int, length: int, take: ReadSpan[P]
    ) -> OpenBody[P]:
        """Holes are read as zeros."""
        where = MapPlace(place.partition, self.number)
        pieces: Any = extents.read(place.store, where, self.at, offset, length)
        writer = functools.partial(_copied, place, self)
        return OpenBody(pieces, None, None, writer)

    def snapshot(self, change: BodyChange, beside: Sequence[Record | None], past: Past) -> Body:
        return Pages(self.number, self.at, self.at)

    def without(self, snapshot: Body) -> Body:
        if not isinstance(snapshot, Pages):
            return self
        is_newest = (snapshot.number, snapshot.at) == (self.number, self.pinned)
        return msgspec.structs.replace(self, lost=True) if is_newest else self

    async def sweep_retired(self, sweep: BodySweep) -> NamedParts:
        """If no younger live body has the map, its present pages are given up."""
        newest = max(_stamps(self.number, sweep), default=0)
        if self.at > newest:
            await _end(sweep, MapPlace(sweep.place.partition, self.number), newest)
        await self.sweep_leftovers(sweep)
        return NamedParts()

    async def sweep_leftovers(self, sweep: BodySweep) -> None:
        where = MapPlace(sweep.place.partition, self.number)
        living = list(_stamps(self.number, sweep))
        if self.at < max(living, default=0):
            return  # the youngest body of a map does this for all
        work = extents.Sweep(sweep.place.store, sweep.readers, where, living, sweep.horizon)
        if not await work.run():
            raise ReadersActive

    def inspect(self, found: InspectedBody) -> BodyFindings:
        """The maps are checked together (store/blob/integrity.py)."""
        found.claim_map(self.number, self.at)
        return BodyFindings(found.size_bytes)


def _stamps(number: int, sweep: BodySweep) -> Iterator[int]:
    """The states of a map that live bodies name."""
    for body in sweep.live:
        if isinstance(body, Pages) and body.number == number:
            yield body.at


async def _end(sweep: BodySweep, where: MapPlace, newest: int) -> None:
    """Make the present state of a map empty: no head names it any more, or ever will. `newest` is
    the newest state that a live snapshot names, 0 = there is none."""
    store = sweep.place.store
    if await extents.is_ended(store, where):
        return
    mutation = await extents.end(store, where).prepare(newest)

    def decide(found: Sequence[Record | None], stamp: int) -> Commit[None]:
        pins = sweep.readers.pins(where.partition, newest)
        if not store.gateways.is_alone:
            pins = Pins(newest, stamp)
        change = mutation.decide(found, stamp, pins)
        return Commit(None, (Step(where.partition, change.writes, change.adopt, change.drop),))

    await store.update(where.partition, list(mutation.reads), decide, Purpose.FREEING)


class NewPages(msgspec.Struct, frozen=True):
    """Pages that no commit has taken yet; without parts, an empty map.

    `parts` are the allocated ranges of leaves. Their bytes are durable, or so few that the record
    holds them.
    """

    size_bytes: int
    parts: tuple[Part, ...] = ()

    crc64: ClassVar[None] = None

    def take(self, change: BodyChange) -> Pages:
        _put_leaves(change.stamp, self.parts, change)
        return Pages(change.stamp, change.stamp)

    def discard(self, contents: Contents) -> None:
        for part in self.parts:
            if part.content:
                contents.discard(part.content)


class PresentPages(msgspec.Struct, frozen=True):
    """The pages of a head that another one replaces with the same content. `is_shared`: the
    replaced head remains, as a version or a snapshot."""

    size_bytes: int
    body: Body
    is_shared: bool = False

    crc64: ClassVar[None] = None

    def take(self, change: BodyChange) -> Pages:
        pages = _pages(self.body)
        return Pages(pages.number, pages.at, pages.at) if self.is_shared else pages

    def discard(self, contents: Contents) -> None:
        """Nothing was made for it."""


def _put_leaves(number: int, parts: Sequence[Part], change: BodyChange) -> None:
    spans = tuple(part.span for part in parts)
    by_leaf = {part.span.leaf: part for part in parts}
    mutation = Mutation(MapPlace(_NOWHERE, number), spans, by_leaf)
    written = mutation.decide([None] * (1 + len(spans)), change.stamp, Pins())
    take_change(change, written)


def take_change(change: BodyChange, written: MapChange) -> None:
    for write in written.writes:
        change.put(write.key, write.value)
    for content in written.adopt:
        change.adopt(content)
    for content in written.drop:
        change.drop(content)


async def _copied(place: BodyPlace, body: Pages, contents: Contents, feed: Feed) -> NewPages:
    """Of a short body, without its holes."""
    size_bytes = feed.size_bytes or 0
    made: list[Part] = []
    try:
        for first in range(0, size_bytes, extents.LEAF_BYTES):
            end = min(size_bytes, first + extents.LEAF_BYTES)
            data = b"".join([piece async for piece in feed.next_bytes(end - first)])
            part = await _list(place, body, first, end, _PAGES_OF_LEAF)
            if part.ranges:
                runs = [(one.start - first, one.end - first) for one in part.ranges]
                made.append(await extents.store_leaf(contents, first, data, runs))
    except BaseException:
        NewPages(0, tuple(made)).discard(contents)
        raise
    return NewPages(size_bytes, tuple(made))


async def _list(place: BodyPlace, body: Pages, offset: int, end: int, count: int) -> Ranges:
    where = MapPlace(place.partition, body.number)
    query = RangeQuery(offset, end, count, _PAGE_BYTES)
    return await extents.list_ranges(place.store, where, body.at, query)


def emptied(body: Body, change: BodyChange) -> Body:
    """Give up the pages that an unfinished copy has written. Return an empty body."""
    body.release(change, HEAD, alone=False)
    return NewPages(0).take(change)


def is_untouched(body: Body) -> bool:
    """Return whether nothing was ever written to the map."""
    pages = _pages(body)
    return pages.at == pages.number


class CopiedLeaves(NamedTuple):
    """Parts of a body that were stored again, and the offset at which the copy continues; None = it
    is complete."""

    parts: tuple[Part, ...]
    resume: int | None


async def copy_leaves(
    place: BodyPlace, body: Body, offset: int, size_bytes: int, contents: Contents
) -> CopiedLeaves:
    """Store some of a body's pages again, from an offset on. A reader must be registered.

    If it fails, nothing is left behind.
    """
    pages = _pages(body)
    part = await _list(place, pages, offset, size_bytes, _RANGES_AT_ONCE)
    leaves: dict[int, list[tuple[int, int]]] = {}
    for start, end, _ in part.ranges:
        at = start
        while at < end and len(leaves) <= _LEAVES_AT_ONCE:
            first = at - at % extents.LEAF_BYTES
            stop = min(end, first + extents.LEAF_BYTES)
            leaves.setdefault(first, []).append((at - first, stop - first))
            at = stop
    resume = part.resume
    if leaves:
        last = max(leaves)
        goes_on = resume is not None and resume < last + extents.LEAF_BYTES
        if goes_on or len(leaves) > _LEAVES_AT_ONCE:
            resume = last
            del leaves[last]
    made: list[Part] = []
    try:
        for first, runs in leaves.items():
            length = runs[-1][1]
            pieces = read_pages(place, pages, first, length)
            data = b"".join([piece async for piece in pieces])
            made.append(await extents.store_leaf(contents, first, data, runs))
    except BaseException:
        NewPages(0, tuple(made)).discard(contents)
        raise
    return CopiedLeaves(tuple(made), resume)


def with_leaves(body: Body, parts: Sequence[Part], change: BodyChange) -> Body:
    """Add copied leaves to a map that has none there. Return the body with them."""
    pages = _pages(body)
    _put_leaves(pages.number, parts, change)
    return msgspec.structs.replace(pages, at=change.stamp)


async def list_to_copy(
    place: BodyPlace, before: Body | None, body: Body, offset: int, end: int
) -> Ranges:
    """The ranges that a copy must write or clear: the changes since another state, or all allocated
    ranges. Readers must be registered."""
    if before is None:
        return await _list(place, _pages(body), offset, end, _RANGES_AT_ONCE)
    return await list_changed_pages(place, before, body, offset, end, _RANGES_AT_ONCE)


def map_of(body: Body, partition: Partition) -> MapPlace:
    """Raises: DamagedRecord for a body of another kind."""
    return MapPlace(partition, _pages(body).number)


def newest_snapshot(body: Body) -> int:
    """Even if that was deleted; 0 = there was none."""
    return _pages(body).pinned


def changed(
    body: Body, mutation: Mutation, found: Sequence[Record | None], stamp: int, pins: Pins
) -> tuple[Body, MapChange]:
    """Decide on a mutation of a head's pages.

    Arguments:
        found: the records that `mutation.reads` names.
        pins: `reader`: the state of present readers. `snapshot`: 0 if the blob has no snapshots.

    Returns: the head's new body, and the writes of the commit.
    Raises: Outdated when the mutation was prepared for another map; see Mutation.decide.
    """
    pages = _pages(body)
    if pages.number != mutation.place.number:
        raise extents.Outdated
    if pins.snapshot and pages.lost:
        # The newest snapshot was deleted, so the sweep must find out which state is still needed.
        pins = Pins(0, pins.reader, pages.pinned)
    elif pins.snapshot:
        pins = Pins(pages.pinned, pins.reader)
    change = mutation.decide(found, stamp, pins)
    return msgspec.structs.replace(pages, at=stamp), change


async def list_pages(
    place: BodyPlace, body: Body, offset: int, end: int, max_ranges: int
) -> Ranges:
    """The allocated pages of [offset, end). A reader must be registered."""
    return await _list(place, _pages(body), offset, end, max_ranges)


async def list_changed_pages(
    place: BodyPlace, before: Body, body: Body, offset: int, end: int, max_ranges: int
) -> Ranges:
    """The parts of [offset, end) that were written or cleared between two states of one map.
    Readers must be registered at both."""
    where, at = MapPlace(place.partition, _pages(body).number), _pages(body).at
    query = RangeQuery(offset, end, max_ranges, _PAGE_BYTES)
    return await extents.list_changes(place.store, where, _pages(before).at, at, query)


def are_of_one_map(body: Body, other: Body) -> bool:
    return _pages(body).number == _pages(other).number


def read_pages(place: BodyPlace, body: Body, offset: int, length: int) -> AsyncIterator[bytes]:
    pages = _pages(body)
    where = MapPlace(place.partition, pages.number)
    return extents.read(place.store, where, pages.at, offset, length)


def _pages(body: Body) -> Pages:
    if not isinstance(body, Pages):
        raise DamagedRecord("the body of a page blob is not made of pages")
    return body
