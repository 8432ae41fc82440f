"""Query Entities: one page of a table's entities, in the order of their keys.

Lives here: which ranges of keys are read, how far, and where the next page begins. Source: "Query
Entities", "Query timeout and pagination".

The entities of one partition in a page are from one committed state. A partition is read in one
read, up to the limit of a read; if that is too little, the page ends within the partition.
Partitions of one page may be from different times. Where the keys in the filter allow only a few
matches in a partition, only these entities are read. The engine gets a necessary condition of a
match. It may leave out the other records; its result is filtered here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines.base import SCAN_EXAMINED_MAX, Key, Page, Partition, Position, Ref
from strongroom.semantics.table import table_intervals
from strongroom.semantics.table.entities import StoredEntity
from strongroom.semantics.table.table_filter import Expression
from strongroom.semantics.table.table_intervals import Interval
from strongroom.semantics.table.table_predicate import Candidates, predicate
from strongroom.services.core.calls import Call
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.services.table.scanned_entities import Scanned
from strongroom.store.core import keys
from strongroom.store.core.records import DamagedRecord
from strongroom.store.table import entity_conditions, entity_records
from strongroom.store.table.entity_records import EntityHead
from strongroom.values import Entity

_READ_MOST: Final = 5000
_READ_LEAST: Final = 500
# With a filter, this many records are read for each entity that is missing.
_READ_FOR_ONE: Final = 5


class QueryEntities(msgspec.Struct, frozen=True):
    """`start` is the position of the continuation tokens."""

    filter: Expression | None = None
    top: int = limits.TABLE_RESULTS_MAX
    start: table_intervals.Position = table_intervals.START


class EntityPage(msgspec.Struct, frozen=True):
    """Entities in the order of their keys, and where the next page begins (None = the end).

    It may be short, or empty, and have a next page.
    """

    rows: list[Entity]
    next: table_intervals.Position | None


async def query_entities(services: Services, call: Call[QueryEntities]) -> EntityPage:
    """Those that match the filter and lie within the caller's SAS.

    Refused with TableNotFound also when the table is deleted meanwhile.
    """
    query = _Query(services, keys.entities(generation_of(call)), call.input)
    intervals = _intervals_to_read(call)
    if all(map(Interval.is_point, intervals)):
        await query.read(intervals)
    else:
        # The semaphore limits the memory of concurrent large pages.
        async with services.listings:
            await query.read(intervals)
    # Checked last: a table that exists now existed all the time, and nothing of it was swept.
    await services.check_place(call)
    return EntityPage(query.rows, query.next)


def _intervals_to_read(call: Call[QueryEntities]) -> tuple[Interval, ...]:
    """Return the intervals that can contain matches, within the SAS and after earlier pages.

    It is empty for `$top=0`: with a continuation, a client would never reach the end.
    """
    if not call.input.top:
        return ()
    first, until, bounds = call.input.start, None, call.caller.grant.key_range
    if bounds is not None and bounds.first is not None:
        first = max(first, table_intervals.from_key(*bounds.first))
    if bounds is not None and bounds.last is not None:
        until = table_intervals.through_key(*bounds.last)
    return table_intervals.cut(table_intervals.intervals(call.input.filter), first, until)


class _Query:
    """A page under construction; `rows` and `next` as in EntityPage."""

    def __init__(self, services: Services, keyspace: bytes, request: QueryEntities) -> None:
        self._store = services.store
        self._turns = services.turns
        self._keyspace = keyspace
        self._top = request.top
        self._predicate = self._where = None
        if request.filter is not None:
            self._predicate = predicate(request.filter)
            self._where = entity_conditions.condition(request.filter)
        self._size_bytes = self._scanned = self._scanned_bytes = 0
        self.rows: list[Entity] = []
        self.next: table_intervals.Position | None = None

    async def read(self, intervals: Sequence[Interval]) -> None:
        """Read intervals until the page is complete, or has read as much as one page may."""
        for group in table_intervals.by_partition(intervals):
            if self._is_enough():
                self.next = group[0].first
            elif all(map(Interval.is_point, group)):
                await self._read_points(group)
            else:
                await self._read_range(Position(*group[0].first), group[-1].until)
            if self.next is not None:
                return

    async def _read_points(self, points: Sequence[Interval]) -> None:
        """Read entities of one partition from one state: as many as fit into a page."""
        positions = [point.first for point in points]
        entities = await self._read_whole(positions)
        self._scanned += len(entities)
        self._take(Candidates.of([
            (*position, one.timestamp, one.fragment)
            for position, one in zip(positions, entities, strict=False)
            if one is not None
        ]))  # fmt: skip
        if self.next is None and len(entities) < len(positions):
            self.next = positions[len(entities)]

    async def _read_whole(
        self, positions: list[table_intervals.Position]
    ) -> list[StoredEntity | None]:
        chunks = [0] * len(positions)
        while True:
            refs = [self._ref(first, Key(False, row)) for first, row in positions]
            for (first, row), count in zip(positions, chunks, strict=True):
                chunk_keys = (keys.entity_chunk(row, index) for index in range(count))
                refs.extend(self._ref(first, key) for key in chunk_keys)
            values = [None if one is None else one.value for one in await self._store.read(refs)]
            heads = [
                None if value is None else entity_records.head(value)
                for value in values[: len(positions)]
            ]
            needed = _fitting([head.chunks if head else 0 for head in heads])
            if needed == chunks:
                rest = iter([value for value in values[len(positions) :] if value is not None])
                return [head and _joined(head, rest) for head in heads]
            positions, chunks = positions[: len(needed)], needed

    def _ref(self, partition: bytes, key: Key) -> Ref:
        return Ref(Partition(self._keyspace, partition), key)

    async def _read_range(self, first: Position, until: table_intervals.Position | None) -> None:
        bound = None if until is None else Position(*until)
        want = self._read_limit()
        while True:
            page = await self._store.scan(self._keyspace, first, bound, want, where=self._where)
            if self._where is not None and entity_records.any_large(page.values):
                # The scan may have left out some chunks of a large entity.
                self._where = None
                continue
            self._count(page, want)
            scanned = Scanned(page)
            taken = await self._take_all(scanned.parts)
            resume = scanned.resume
            if self.next is not None or resume is None:
                return
            inside = resume.partition in (first.partition, scanned.last_partition)
            if inside and not taken and len(page.values) >= want and want < _READ_MOST:
                # Repeat the read with a higher limit: all entities of a partition must come from
                # one read.
                want = _READ_MOST
            elif inside or self._is_enough():
                if resume == first:
                    raise DamagedRecord("an entity is larger than what is read at once")
                self.next = resume
                return
            else:
                # Read the partition from its beginning: the scan may have left out some of its
                # records.
                first, want = Position(resume.partition, b""), self._read_limit()

    def _count(self, page: Page, want: int) -> None:
        """Count the records that were read. Those that the engine left out are not in the page."""
        looked = len(page.values)
        if self._where is not None and page.resume is not None and looked < want:
            looked = SCAN_EXAMINED_MAX
        self._scanned += looked
        self._scanned_bytes += sum(map(len, page.values))

    def _read_limit(self) -> int:
        """Return how many records to read: one more than is missing, to find where the next page
        begins."""
        missing = self._top - len(self.rows) + 1
        if self._predicate is not None:
            missing = max(missing * _READ_FOR_ONE, _READ_LEAST)
        return min(missing, _READ_MOST)

    def _is_enough(self) -> bool:
        return (
            len(self.rows) >= self._top
            or self._size_bytes >= limits.TABLE_PAGE_BYTES_MAX
            or self._scanned >= limits.LIST_SCANNED_RECORDS_MAX
            or self._scanned_bytes >= limits.LIST_SCANNED_BYTES_MAX
        )

    async def _take_all(self, parts: Sequence[Candidates]) -> bool:
        """As `_take`, but let other tasks run in between."""
        any_taken = False
        for part in parts:
            await self._turns.pause()
            any_taken |= self._take(part)
            if self.next is not None:
                break
        return any_taken

    def _take(self, candidates: Candidates) -> bool:
        """Add those that match, until the page is full. Return whether there were any."""
        # One more than fits: it is where the next page begins.
        most = self._top - len(self.rows) + 1
        chosen = None if self._predicate is None else self._predicate.select(candidates)
        matches = candidates.entities(chosen, most)
        sizes = [len(row.fragment) for row in matches]
        size_bytes = self._size_bytes + sum(sizes)
        if len(self.rows) + len(matches) <= self._top and size_bytes <= limits.TABLE_PAGE_BYTES_MAX:
            self.rows += matches
            self._size_bytes = size_bytes
        else:
            self._take_until_full(matches, sizes)
        return bool(matches)

    def _take_until_full(self, matches: Sequence[Entity], sizes: Sequence[int]) -> None:
        """Add as many as fit, but always the first one."""
        for row, size_bytes in zip(matches, sizes, strict=True):
            size_bytes += self._size_bytes
            full = len(self.rows) >= self._top or size_bytes > limits.TABLE_PAGE_BYTES_MAX
            if full and self.rows:
                self.next = (row.partition_key.encode(), row.row_key.encode())
                break
            self._size_bytes = size_bytes
            self.rows.append(row)


def _fitting(chunks: list[int]) -> list[int]:
    """Return the first of these numbers of chunks that fit into a page; at least one."""
    total = 0
    for at, count in enumerate(chunks):
        total += count
        if total > limits.TABLE_PAGE_BYTES_MAX // entity_records.CHUNK_BYTES_MAX and at:
            return chunks[:at]
    return chunks


def _joined(head: EntityHead, chunks: Iterator[bytes]) -> StoredEntity:
    return entity_records.whole(head, [next(chunks) for _ in range(head.chunks)])
