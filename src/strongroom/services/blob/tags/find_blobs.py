"""Find Blobs by Tags: one page of the blobs, and versions of blobs, whose tags match a query.

Lives here: how the tag index is read, and how each entry is checked. Source: "Find Blobs by Tags",
"Find Blobs by Tags in Container"; reference section 10.

A blob whose tags do not change has its entries all the time, so no search misses it. An entry is
only a hint. The blob's head is read after it, and the blob is listed if the head has the token and
matches. So each result has matched during the search. The work of a page is bounded by the entries
that it reads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines.base import Position, Ref
from strongroom.semantics.blob.tag_queries import (
    START,
    Resume,
    TagQuery,
    ValueRange,
    encode_marker,
    foreign_marker,
)
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.slices import parts
from strongroom.store.blob import blob_records, tag_index
from strongroom.store.core import keys, records, tag_keys
from strongroom.store.core.tag_keys import TagEntry
from strongroom.values import Metadata

VERSIONS: Final = "versions"
INCLUDES: Final = frozenset(("none", VERSIONS))
"""The words that `include` accepts. Only the last one finds previous versions too."""
# How many entries are checked together: at least this many (except at the end), and at most that
# many.
_LEAST: Final = 32
_TOGETHER: Final = 250
# This many checks take half a millisecond.
_CHECKED_AT_ONCE: Final = 32
# How many entries of each tag are counted to find the rarest, in successive rounds.
_COUNT_LIMITS: Final = (2, 64, 1024)
_CONTAINERS_TOGETHER: Final = 100
# The cost of a container without any match, in entries.
_CONTAINER_WEIGHT: Final = 8
_LAST: Final = b"\x01"


class FindBlobs(msgspec.Struct, frozen=True):
    """`start` is the decoded marker."""

    query: TagQuery
    start: Resume = START
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()


class FoundBlob(msgspec.Struct, frozen=True, gc=False):
    """One blob, or one previous version of it (`is_current` False), with its tags that the query
    names.

    `version` is its id; 0 = it is none.
    """

    container: str
    name: str
    tags: Metadata
    version: int = 0
    is_current: bool = True


class FoundPage(msgspec.Struct, frozen=True):
    """Result: the blobs, and where the next page begins (None = the end)."""

    items: list[FoundBlob]
    marker: Resume | None


async def find_blobs(services: Services, call: Call[FindBlobs]) -> FoundPage:
    """In one container or in all. A page may be short and have a marker.

    The blobs of a container are ordered by the value of the rarest tag, then by name.
    """
    async with services.listings:
        search = _Search(services, call)
        page = await search.run()
    if call.target.container:
        # Checked last: a container that exists now existed all the time, and nothing of it was
        # swept.
        await services.check_place(call)
    return page


@dataclass(slots=True)
class _Search:
    """One page under construction. `scanned` counts the entries and containers that were read."""

    services: Services
    call: Call[FindBlobs]
    items: list[FoundBlob] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    scanned: int = 0

    async def run(self) -> FoundPage:
        """Search one container after the other until the page is full."""
        start = self.call.input.start
        async for container, generation in self._containers():
            entry = start.entry if container == start.container else b""
            stopped = await self._search(container, generation, entry)
            if stopped is not None:
                return FoundPage(self.items, Resume(container, stopped))
            self.scanned += _CONTAINER_WEIGHT
        return FoundPage(self.items, None)

    async def _containers(self) -> AsyncIterator[tuple[str, int]]:
        """Yield (name, generation) of the containers to search, in order, from the marker's on."""
        target, query = self.call.target, self.call.input.query
        name = target.container or query.container
        if name:
            (record,) = await self.services.store.read([keys.container(target.account, name)])
            container = records.CONTAINER.of(record)
            if container is not None:
                yield name, container.generation
            return
        keyspace = keys.containers(target.account)
        position: Position | None = Position(self.call.input.start.container.encode(), b"")
        while position is not None:
            store = self.services.store
            page = await store.scan(keyspace, position, None, _CONTAINERS_TOGETHER)
            for face in page.faces():
                decoded = records.CONTAINER.decode(face.value)
                yield face.partition.decode(), decoded.generation
            position = page.resume

    async def _search(self, container: str, generation: int, entry: bytes) -> bytes | None:
        """Add the matches of one container, from `entry` on. Return the entry where the next page
        begins; None when the container has no more."""
        request = self.call.input
        if self._is_limit_reached():
            return entry
        first, until = await self._interval(generation, entry)
        behind: bytes | None = max(first, entry)
        while behind is not None and behind < until:
            if self._is_limit_reached():
                return behind
            # One more than is missing: a full page has a marker only if something is left.
            missing = request.max_results - len(self.items)
            want = min(max(missing + 1, _LEAST), _TOGETHER)
            partitions, behind = await self._entries(generation, behind, until, want)
            stopped = await self._check(container, generation, partitions)
            if stopped is not None:
                return stopped
        return None

    async def _entries(
        self, generation: int, first: bytes, until: bytes, most: int
    ) -> tuple[Sequence[bytes], bytes | None]:
        """Return the entries from `first` on in order, up to `most` of each kind, and where to
        continue.

        The position is None at the end.
        """
        store, ends = self.services.store, (Position(first, b""), Position(until, b""))
        page = await store.scan(tag_keys.tag_entries(generation), *ends, most)
        self.scanned += len(page.partitions)
        left = page.resume and page.resume.partition
        if VERSIONS not in self.call.input.include:
            return page.partitions, left
        older = await store.scan(tag_keys.version_tag_entries(generation), *ends, most)
        self.scanned += len(older.partitions)
        if older.resume is not None:
            left = min(left or until, older.resume.partition)
        both = sorted((*page.partitions, *older.partitions))
        return [one for one in both if left is None or one < left], left

    def _is_limit_reached(self) -> bool:
        return self.scanned >= limits.FIND_SCANNED_ENTRIES_MAX

    async def _interval(self, generation: int, entry: bytes) -> tuple[bytes, bytes]:
        """Return (first, until) of the entries of the rarest tag; of the marker's tag if there
        is a marker."""
        ranges = self.call.input.query.ranges
        intervals = {key: interval(key, wanted) for key, wanted in ranges.items()}
        if entry:
            begun = intervals.get(entry.partition(b"\0")[0].decode("utf-8", "replace"))
            if begun is None:
                raise foreign_marker(encode_marker(self.call.input.start))
            return begun
        by_exactness = sorted(ranges, key=lambda key: not ranges[key].is_exact)
        candidates = [intervals[key] for key in by_exactness]
        if len(candidates) == 1:
            return candidates[0]
        for count in _COUNT_LIMITS:
            for first, until in candidates:
                if first >= until:
                    return first, until
                _, left = await self._entries(generation, first, until, count)
                if left is None:
                    return first, until
        return candidates[0]

    async def _check(
        self, container: str, generation: int, partitions: Sequence[bytes]
    ) -> bytes | None:
        """Add the blobs of valid entries that match. Return the entry at which the page was
        full."""
        for part in parts(partitions, _CHECKED_AT_ONCE):
            stopped = await self._check_part(container, generation, part)
            if stopped is not None:
                return stopped
            await self.services.turns.pause()
        return None

    async def _check_part(
        self, container: str, generation: int, partitions: Sequence[bytes]
    ) -> bytes | None:
        query, room = self.call.input.query, self.call.input.max_results
        with_versions = VERSIONS in self.call.input.include
        leads = [(partition, tag_keys.tag_entry_of(partition)) for partition in partitions]
        refs = [_place(generation, entry) for _, entry in leads]
        states = await self.services.store.read(refs)
        for (partition, entry), record in zip(leads, states, strict=True):
            blob, version = blob_records.BLOB.of(record), entry.version_id
            if blob is None or not tag_index.counts(blob, entry.token):
                continue
            # One string, since the garbage collector would track tuples.
            one = f"{generation}/{version}/{entry.blob}"
            if not query.matches(dict(blob.tags)) or one in self.seen:
                continue
            if len(self.items) == room:
                return partition
            self.seen.add(one)
            shown = tuple(pair for pair in blob.tags if pair[0] in query.ranges)
            shown_version = blob.version if with_versions else 0
            self.items.append(FoundBlob(container, entry.blob, shown, shown_version, not version))
        return None


def _place(generation: int, entry: TagEntry) -> Ref:
    key = keys.version(entry.version_id) if entry.version_id else keys.HEAD_KEY
    return Ref(keys.blob(generation, entry.blob), key)


def interval(key: str, values: ValueRange) -> tuple[bytes, bytes]:
    """Return (first, until) of the entries of a tag whose values are in a range."""
    low, high = values.low, values.high
    first = tag_keys.tag_values(key, low or "")
    if low is not None and values.above_low:
        first += _LAST  # after the 0 that ends the value, before any longer value
    if high is None:
        return first, key.encode() + _LAST
    until = tag_keys.tag_values(key, high)
    return first, until if values.below_high else until + _LAST
