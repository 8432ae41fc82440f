"""The cleanup after mutations and deleted snapshots of a map.

Lives here: applying pending clears leaf by leaf, and removing past leaves without readers, with the
stores that only they name. Leaves with holes alone that nobody needs any more go too.

Each commit is correct by itself, so a sweep may stop anywhere and restart, also twice at once. A
past leaf never gains a reader: it ended before any later snapshot or read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import Final

from strongroom.engines.base import (
    Commit,
    ContentMissing,
    Item,
    Key,
    Record,
    Ref,
    Step,
    StorageEngine,
)
from strongroom.engines.endings import to_its_end
from strongroom.engines.gateways import STAMP_MAX
from strongroom.slices import parts
from strongroom.store.core import keys
from strongroom.store.core.extents import leaf as leaves
from strongroom.store.core.extents.change import Collector, Outdated
from strongroom.store.core.extents.draft import rewritten, store_part
from strongroom.store.core.extents.holes import needed
from strongroom.store.core.extents.leaf import LeafSpan
from strongroom.store.core.extents.model import (
    LEAF_BYTES,
    Clear,
    Leaf,
    MapPlace,
    clears_of,
    decode_leaf,
    leaf_of,
    stores_of,
)
from strongroom.store.core.extents.readers import MapReaders
from strongroom.values import Purpose

Pace = Callable[[], Awaitable[object]]
"""Called after each commit, so that requests go first."""

_PAGE_RECORDS: Final = 256
# The approximate number of stores and past leaves that one commit removes. The event loop waits for
# the commit's decision, some 2 ms for so many.
_REMOVALS: Final = 64
_VERSIONS_AT_ONCE: Final = 8
# How often one sweep tries a leaf that keeps changing.
_ATTEMPTS: Final = 8
_LATEST: Final = 1 << 64


class StillNeeded(Exception):
    """A reader may still need the data, or has no position yet."""


async def no_pause() -> None:
    await asyncio.sleep(0)


class Sweep:
    """One sweep of a map. The caller reads the stamps of the existing snapshots, `living`, after
    the records that ordered the sweep. Readers of other gateways see all commits with smaller
    stamps than `horizon`."""

    def __init__(
        self,
        store: StorageEngine,
        readers: MapReaders,
        place: MapPlace,
        living: Collection[int],
        horizon: int = STAMP_MAX,
        pace: Pace = no_pause,
    ) -> None:
        self._store = store
        self._readers = readers
        self._place = place
        self._living = frozenset(living)
        self._horizon = horizon
        self._pace = pace
        self._is_left = False

    async def run(self) -> bool:
        """Do all pending work. False: readers still need some data, so run another sweep later."""
        try:
            await self._apply_clears()
            await self._remove_hollow()
            await self._remove_past()
        except StillNeeded:
            return False
        return not self._is_left

    def _read_stamps(self) -> frozenset[int]:
        """Return the stamps at which a snapshot or reader may read. Raises StillNeeded."""
        positions = self._readers.positions(self._place.partition)
        if positions is None:
            raise StillNeeded
        return self._living | positions

    def _is_seen(self, since: int, until: int, read_stamps: Collection[int]) -> bool:
        """Return whether a snapshot, a reader, or possibly a reader of another gateway, needs a
        version."""
        return until >= self._horizon or _is_seen(since, until, read_stamps)

    async def _apply_clears(self) -> None:
        (record,) = await self._store.read([self._place.clears()])
        clears = clears_of(record)
        if not clears:
            return
        for first, until in _leaf_ranges(clears):
            async for items in self._items(
                keys.map_leaf(self._place.number, first).name,
                keys.map_leaf(self._place.number, until - 1).name + b"\0",
            ):
                await self._apply_to_page(items, clears)
        if not self._is_left:
            await self._forget_clears(clears)

    async def _items(self, first: bytes, until: bytes) -> AsyncIterator[list[Item]]:
        """In pages."""
        partition = self._place.partition
        while True:
            items = await self._store.read_range(partition, True, first, until, _PAGE_RECORDS)
            if items:
                yield items
            if len(items) < _PAGE_RECORDS:
                return
            first = items[-1].name + b"\0"

    async def _apply_to_page(self, items: Sequence[Item], clears: Sequence[Clear]) -> None:
        batch: list[int] = []
        weight = 0
        for item in items:
            await self._store.turns.pause()
            number = keys.map_leaf_number(item.name)
            versions = leaves.history(decode_leaf(item.value), number, clears, _LATEST)
            if len(versions) < 2:
                continue
            if self._must_rewrite(versions[-1]):
                await self._rewrite(number)
                continue
            batch.append(number)
            weight += len(versions) + len(stores_of(versions[0].extents))
            if weight >= _REMOVALS:
                await self._apply(batch)
                batch, weight = [], 0
        if batch:
            await self._apply(batch)

    def _must_rewrite(self, version: Leaf) -> bool:
        """Return whether a leaf is rewritten. Readers of other gateways may use the stores of the
        present leaf. If such readers are possible, the next write to the leaf rewrites it."""
        return self._store.gateways.is_alone and leaves.needs_rewrite(version.extents)

    async def _apply(self, numbers: Sequence[int]) -> None:
        """Apply the pending clears to these leaves. A clear that arrived after the read may leave
        so little of a leaf that it is rewritten."""
        place = self._place

        def decide(found: Sequence[Record | None], stamp: int) -> Commit[list[int]]:
            collector = Collector(place)
            to_rewrite: list[int] = []
            pending, *records = found
            for number, record in zip(numbers, records, strict=True):
                versions = leaves.history(leaf_of(record), number, clears_of(pending), stamp)
                if len(versions) < 2:
                    continue  # a mutation came first
                if self._must_rewrite(versions[-1]):
                    to_rewrite.append(number)
                    continue
                collector.put_leaf(number, versions[0], self._useful(versions[-1]))
                self._retire(collector, number, versions)
            return Commit(to_rewrite, _steps(place, collector))

        refs = [place.clears(), *map(place.leaf, numbers)]
        late = await self._store.update(place.partition, refs, decide, Purpose.FREEING)
        await self._pace()
        for number in late:
            await self._rewrite(number)

    async def _rewrite(self, number: int) -> None:
        """Apply the pending clears to a leaf by a rewrite, because less than half of it is left."""
        for _ in range(_ATTEMPTS):
            if await self._try_rewrite(number):
                return
            await self._pace()
        self._is_left = True

    async def _try_rewrite(self, number: int) -> bool:
        place, span = self._place, LeafSpan(number, 0, LEAF_BYTES)
        refs = [place.clears(), place.leaf(number)]
        looked = await self._store.read(refs)
        pending, leaf = looked
        versions = leaves.history(leaf_of(leaf), number, clears_of(pending), _LATEST)
        if len(versions) < 2:
            return True  # a mutation came first
        *before, last = versions
        last = self._useful(last)
        laid = leaves.runs(last.extents, max(self._living, default=0))
        try:
            data = await rewritten(self._store, place, span, last.extents, laid)
        except ContentMissing:
            if await self._store.read(refs) == looked:
                raise
            return False
        part = await store_part(self._store.contents, span, data) if data else None

        def decide(found: Sequence[Record | None], stamp: int) -> Commit[None]:
            self._check_rewritable(found, looked, last.since)
            collector = Collector(place)
            after = last
            if part is not None:
                store = collector.add_store(number, part, last.since)
                after = last._replace(extents=leaves.laid_out(laid, store, last.since))
            collector.put_leaf(number, versions[0], after)
            self._retire(collector, number, [*before, after])
            return Commit(None, _steps(place, collector))

        try:
            # No new reader may have read the leaf as it was before, also if the sweep is cut off.
            with self._readers.mutating(place.partition):
                update = self._store.update(place.partition, refs, decide, Purpose.FREEING)
                await to_its_end(update)
        except BaseException as error:
            if part is not None and part.content:
                self._store.contents.discard(part.content)
            if isinstance(error, Outdated):
                return False
            raise
        await self._pace()
        return True

    def _check_rewritable(
        self, found: Sequence[Record | None], looked: Sequence[Record | None], since: int
    ) -> None:
        """Check that a leaf may be rewritten. Raises Outdated if it has changed since it was read.
        Raises StillNeeded if a reader may still use its present stores."""
        positions = self._readers.positions(self._place.partition)
        is_alone = self._store.gateways.is_alone
        if positions is None or not is_alone or any(at >= since for at in positions):
            raise StillNeeded
        if list(found) != list(looked):
            raise Outdated

    def _retire(self, collector: Collector, number: int, versions: Sequence[Leaf]) -> None:
        """Keep the versions before the last that are read, and drop the stores that no reader
        needs."""
        read_stamps = self._read_stamps()
        ends = [version.since for version in versions[1:]]
        for version, until in zip(versions, ends, strict=False):
            if not version.is_empty and self._is_seen(version.since, until, read_stamps):
                collector.keep(number, version, until)
        alive = stores_of(versions[0].extents)
        for version in versions[1:]:
            left = stores_of(version.extents)
            for store in alive.keys() - left.keys():
                if not self._is_seen(store.born, version.since, read_stamps):
                    collector.drop_store(number, store)
            alive = left

    async def _forget_clears(self, done: Sequence[Clear]) -> None:
        place = self._place

        def decide(found: Sequence[Record | None], stamp: int) -> Commit[None]:
            collector = Collector(place)
            (pending,) = found
            if pending is not None:
                collector.put_clears(tuple(one for one in clears_of(pending) if one not in done))
            return Commit(None, _steps(place, collector))

        await self._store.update(place.partition, [place.clears()], decide, Purpose.FREEING)

    def _useful(self, leaf: Leaf) -> Leaf:
        """Return a leaf with only those holes that somebody may need. Raises StillNeeded."""
        if not leaf.holes:
            return leaf
        number, horizon = self._place.number, self._horizon
        return leaf._replace(holes=needed(leaf.holes, number, self._read_stamps(), horizon))

    async def _remove_hollow(self) -> None:
        place = self._place
        first, last = place.hollow(0).key.name, place.hollow((1 << 32) - 1).key.name
        async for items in self._items(first, last + b"\0"):
            for batch in parts(items, _REMOVALS):
                await self._remove_some_hollow([keys.map_leaf_number(one.name) for one in batch])
                await self._pace()

    async def _remove_some_hollow(self, numbers: Sequence[int]) -> None:
        """Remove those of these leaves that have holes alone which nobody needs."""
        place = self._place

        def decide(found: Sequence[Record | None], stamp: int) -> Commit[bool]:
            collector = Collector(place)
            is_read = False
            for number, record in zip(numbers, found, strict=True):
                leaf = leaf_of(record)
                if leaf is None or not leaf.is_hollow:
                    continue  # a mutation came first
                if (after := self._useful(leaf)).is_empty:
                    collector.put_leaf(number, leaf, after)
                elif not needed(leaf.holes, place.number, self._living, STAMP_MAX):
                    is_read = True
            return Commit(is_read, _steps(place, collector))

        refs = [place.leaf(number) for number in numbers]
        if await self._store.update(place.partition, refs, decide, Purpose.FREEING):
            self._is_left = True

    async def _remove_past(self) -> None:
        number = self._place.number
        first, until = keys.map_past(number, 0, 0).name, keys.map_past_end(number, (1 << 32) - 1)
        async for items in self._items(first, until):
            read_stamps = self._read_stamps()
            unseen: dict[int, None] = {}
            for item in items:
                since, end = decode_leaf(item.value).since, keys.map_stamp(item.name)
                if not self._is_seen(since, end, read_stamps):
                    unseen[keys.map_leaf_number(item.name)] = None
                elif not _is_seen(since, end, self._living):
                    self._is_left = True
            for leaf in unseen:
                await self._remove_past_of(leaf)

    async def _remove_past_of(self, leaf: int) -> None:
        """Remove the past versions of one leaf that nobody reads, a few in each commit."""
        attempts = 0
        while attempts < _ATTEMPTS:
            try:
                is_done = await self._remove_some_past(leaf)
            except Outdated:
                attempts += 1
                is_done = False
            await self._pace()
            if is_done:
                return
        self._is_left = True

    async def _remove_some_past(self, leaf: int) -> bool:
        number = self._place.number
        ref = self._place.leaf(leaf)
        # Read in this order: a past version that is kept after the first read changes the present
        # leaf too.
        (present,) = await self._store.read([ref])
        past: dict[Key, tuple[Leaf, int]] = {}
        first = keys.map_past(number, leaf, 0).name
        async for items in self._items(first, keys.map_past_end(number, leaf)):
            for item in items:
                until = keys.map_stamp(item.name)
                past[Key(True, item.name)] = decode_leaf(item.value), until

        def decide(found: Sequence[Record | None], stamp: int) -> Commit[bool]:
            now_present, *now_past = found
            # Another sweep may have removed versions that name the same stores.
            if now_present != present or None in now_past:
                raise Outdated
            return self._decide_past(leaf, leaf_of(present), past)

        refs = [ref, *(Ref(ref.partition, key) for key in past)]
        return await self._store.update(ref.partition, refs, decide, Purpose.FREEING)

    def _decide_past(
        self, number: int, present: Leaf | None, past: dict[Key, tuple[Leaf, int]]
    ) -> Commit[bool]:
        read_stamps = self._read_stamps()
        unseen = [
            key
            for key, (leaf, until) in past.items()
            if not self._is_seen(leaf.since, until, read_stamps)
        ]
        gone = unseen[:_VERSIONS_AT_ONCE]
        named = stores_of(present.extents) if present is not None else {}
        for key, (leaf, _) in past.items():
            if key not in gone:
                named |= stores_of(leaf.extents)
        collector = Collector(self._place)
        for key in gone:
            collector.put(Ref(self._place.partition, key), None)
            for store in stores_of(past[key][0].extents).keys() - named.keys():
                collector.drop_store(number, store)
        return Commit(len(gone) == len(unseen), _steps(self._place, collector))


def _steps(place: MapPlace, collector: Collector) -> tuple[Step, ...]:
    change = collector.change()
    if not change.writes:
        return ()
    return (Step(place.partition, change.writes, change.adopt, change.drop),)


def _is_seen(since: int, until: int, read_stamps: Collection[int]) -> bool:
    return any(since <= stamp < until for stamp in read_stamps)


def _leaf_ranges(clears: Sequence[Clear]) -> list[tuple[int, int]]:
    """Return the leaves that clears touch, each once: (first, until)."""
    ranges: list[tuple[int, int]] = []
    for clear in sorted(clears, key=lambda one: one.start):
        first, until = clear.start // LEAF_BYTES, -(-clear.end // LEAF_BYTES)
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], until))
        else:
            ranges.append((first, until))
    return ranges
