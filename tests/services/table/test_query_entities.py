"""Query Entities on a store in memory: pages against a naive evaluation, bounds, one snapshot."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from strongroom import limits
from strongroom.auth.authorize import KeyRange
from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Page, Position, Ref, Step, Write
from strongroom.engines.conditions import Condition
from strongroom.engines.memory import data
from strongroom.engines.postgres import records
from strongroom.semantics.table.entities import Properties, StoredEntity
from strongroom.semantics.table.table_filter import Expression, parse
from strongroom.semantics.table.table_intervals import START
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.services.table import query_entities
from strongroom.services.table.query_entities import EntityPage, QueryEntities
from strongroom.services.table.tables import CreateTable, create_table, delete_table
from strongroom.store.core import keys
from strongroom.store.table import entity_records
from tests.semantics.table_entities import Entity, entities, expressions, holds, key_text
from tests.services.container_calls import ACCOUNT, call, refused, run, services
from tests.services.service_engine import ServiceEngine

KeyPair = tuple[str, str]
NONE: Properties = {}
LARGE = "x" * 60_000


def table_call(given: Any, **more: Any) -> Call[Any]:
    return call(given, container="Tasks", service=Service.TABLE, **more)


async def create(on: Services) -> None:
    await create_table(on, table_call(CreateTable("Tasks")))


async def query(
    on: Services, given: QueryEntities, key_range: KeyRange | None = None
) -> EntityPage:
    place = await on.place(Service.TABLE, ACCOUNT, "Tasks")
    asked = table_call(given, place=place, key_range=key_range)
    return await query_entities.query_entities(on, asked)


async def put(on: Services, found: Sequence[Entity]) -> None:
    """Store entities with their own Timestamps."""
    place = await on.place(Service.TABLE, ACCOUNT, "Tasks")
    assert place is not None
    for entity in found:
        ref = keys.entity(place.generation, entity.partition_key, entity.row_key)
        values = entity_records.encode(StoredEntity(entity.timestamp, entity.fragment))
        writes = [Write(ref.key, values[0])]
        for index, value in enumerate(values[1:]):
            writes.append(Write(keys.entity_chunk(ref.key.name, index), value))
        step = Step(ref.partition, tuple(writes))
        await on.store.update(ref.partition, [], _commit(step))


def _commit(step: Step) -> Any:
    return lambda found, stamp: Commit(None, (step,))


async def all_of(
    on: Services, given: QueryEntities, key_range: KeyRange | None = None
) -> list[EntityPage]:
    """Return all pages."""
    pages = [await query(on, given, key_range)]
    while (position := pages[-1].next) is not None:
        assert position > given.start, "a page goes on where it began"
        given = replace(given, start=position)
        pages.append(await query(on, given, key_range))
        assert len(pages) < 200
    return pages


def keys_in(pages: Sequence[EntityPage]) -> list[KeyPair]:
    return [(row.partition_key, row.row_key) for page in pages for row in page.rows]


def unique(found: Sequence[Entity]) -> list[Entity]:
    """Return the last entity of each key, in order."""
    by_key = {(one.partition_key.encode(), one.row_key.encode()): one for one in found}
    return [by_key[key] for key in sorted(by_key)]


def larges(count: int) -> Properties:
    return {f"L{number}": LARGE for number in range(count)}


ends = st.one_of(st.none(), st.tuples(key_text, st.one_of(st.none(), key_text)))
filters = st.one_of(st.none(), expressions)
large = st.builds(
    lambda entity, count: dataclasses.replace(
        entity, properties={**entity.properties, **larges(count)}
    ),
    entities,
    st.integers(1, 4),
)


@given(
    st.lists(st.one_of(entities, entities, entities, large), max_size=12),
    filters,
    st.sampled_from([1, 2, 3, 5, 1000]),
    st.tuples(ends, ends),
)
def test_all_pages_together_are_what_matches(
    found: list[Entity],
    wanted: Expression | None,
    top: int,
    bounds: tuple[tuple[str, str | None] | None, tuple[str, str | None] | None],
) -> None:
    key_range = None if bounds == (None, None) else KeyRange(*bounds)

    async def test() -> None:
        on = services()
        await create(on)
        there = unique(found)
        await put(on, there)
        pages = await all_of(on, QueryEntities(wanted, top), key_range)
        matches = [
            one
            for one in there
            if (wanted is None or holds(wanted, one))
            and (key_range is None or key_range.contains(one.partition_key, one.row_key))
        ]
        assert keys_in(pages) == [(one.partition_key, one.row_key) for one in matches]
        assert all(len(page.rows) <= top for page in pages)
        for row, one in zip((r for page in pages for r in page.rows), matches, strict=True):
            assert (row.timestamp, row.fragment) == (
                one.timestamp,
                one.fragment,
            )

    run(test)


class Counted(ServiceEngine):
    """Counts its calls, and may write between two reads."""

    scans: int = 0
    scanned: int = 0
    reads: int = 0
    between: Any = None

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int = 4 * limits.MIB,
        where: Condition | None = None,
    ) -> Page:
        page = await super().scan(keyspace, first, until, max_records, max_bytes, where)
        self.scans += 1
        self.scanned += len(page.faces())
        if self.between is not None:
            await self.between()
        return page

    async def read(self, reads: Sequence[Ref]) -> Any:
        found = await super().read(reads)
        self.reads += 1
        if self.between is not None:
            await self.between()
        return found


def rows(partition: str, count: int, properties: Properties = NONE) -> list[Entity]:
    return [Entity(partition, f"{number:05}", number, properties) for number in range(count)]


def counted() -> tuple[Services, Counted]:
    on = services()
    store = Counted(on.clock)
    return Services(store, on.clock), store


POINTS = [
    "PartitionKey eq 'p' and RowKey eq '00007'",
    "RowKey eq '00007' and A ne 1 and PartitionKey eq 'p' or PartitionKey eq 'x' and RowKey eq ''",
    "PartitionKey eq 'p' and (RowKey eq '00007' or RowKey eq '00009' or RowKey eq 'no')",
]


@pytest.mark.parametrize("text", POINTS)
def test_entities_that_are_named_by_their_keys_are_read_and_nothing_else(text: str) -> None:
    async def test() -> None:
        on, store = counted()
        await create(on)
        await put(on, rows("p", 20))
        await query(on, QueryEntities(parse(text)))
        assert store.scans == 0

    run(test)


def test_only_the_ranges_that_can_match_are_read() -> None:
    async def test() -> None:
        on, store = counted()
        await create(on)
        for partition in "abc":
            await put(on, rows(partition, 50))
        text = "PartitionKey eq 'b' and RowKey ge '00010' and RowKey lt '00015' or "
        text += "PartitionKey eq 'c' and RowKey gt '00045'"
        page = await query(on, QueryEntities(parse(text)))
        assert len(page.rows) == 9 and page.next is None
        assert store.scanned == 9

    run(test)


def test_a_page_that_has_read_enough_ends_empty_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LIST_SCANNED_RECORDS_MAX", 20)

    async def test() -> None:
        on, store = counted()
        await create(on)
        for number in range(30):
            await put(on, rows(f"p{number:02}", 2))
        await put(on, [Entity("q", "r", 0, {"A": 1})])
        # A scan reads as far as it can; the engine may also return few records at a time.
        monkeypatch.setattr(query_entities, "_READ_MOST", 4)
        monkeypatch.setattr(query_entities, "_READ_LEAST", 4)
        monkeypatch.setattr(query_entities, "SCAN_EXAMINED_MAX", 4)
        for engine in (data, records):
            monkeypatch.setattr(engine, "SCAN_EXAMINED_MAX", 4)
        pages = await all_of(on, QueryEntities(parse("A eq 1")))
        assert [len(page.rows) for page in pages] == [0, 0, 0, 1]
        assert store.scans <= 4 * 6 and store.scanned == 1

    run(test)


def test_a_page_ends_in_a_partition_rather_than_tell_of_two_moments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(query_entities, "_READ_MOST", 10)
    monkeypatch.setattr(query_entities, "_READ_LEAST", 10)
    monkeypatch.setattr(query_entities, "SCAN_EXAMINED_MAX", 10)
    for engine in (data, records):
        monkeypatch.setattr(engine, "SCAN_EXAMINED_MAX", 10)

    async def test() -> None:
        on, _ = counted()
        await create(on)
        await put(on, rows("a", 5) + rows("p", 30))
        first = await query(on, QueryEntities(parse("Timestamp ge datetime'1601-01-01'"), 1000))
        assert first.rows == [] and first.next is not None
        pages = await all_of(on, QueryEntities(parse("RowKey ge '0'"), 1000))
        assert [len(page.rows) for page in pages] == [10, 10, 10, 5]

    run(test)


@pytest.mark.parametrize("text", [*POINTS[2:], "RowKey eq '00007' or RowKey eq '00009'", "A ge 0"])
def test_a_transaction_is_seen_as_a_whole(text: str) -> None:
    """T-QRY-11."""

    async def test() -> None:
        on, store = counted()
        await create(on)
        number = 0

        async def write() -> None:
            nonlocal number
            number += 1
            store.between = None
            place = await on.place(Service.TABLE, ACCOUNT, "Tasks")
            assert place is not None
            partition = keys.entity(place.generation, "p", "").partition
            writes = []
            for name in ("00007", "00009"):
                fragment = Entity("p", name, 0, {"A": number}).fragment
                (head,) = entity_records.encode(StoredEntity(number, fragment))
                key = keys.entity(place.generation, "p", name).key
                writes.append(Write(key, head))
            await on.store.update(partition, [], _commit(Step(partition, tuple(writes))))
            store.between = write

        await put(on, rows("p", 20, {"A": 0}))
        await write()
        for _ in range(5):
            page = await query(on, QueryEntities(parse(text)))
            seen = {row.timestamp for row in page.rows
                    if row.row_key in ("00007", "00009")}  # fmt: skip
            assert len(seen) == 1

    run(test)


def test_an_entity_that_grows_while_it_is_read_comes_whole() -> None:
    async def test() -> None:
        on, store = counted()
        await create(on)
        await put(on, [Entity("p", "r", 1)])

        async def grow() -> None:
            store.between = None
            await put(on, [Entity("p", "r", 2, larges(3))])

        store.between = grow
        page = await query(on, QueryEntities(parse("PartitionKey eq 'p' and RowKey eq 'r'")))
        (row,) = page.rows
        assert len(row.fragment) > 180_000 or row.timestamp == 1

    run(test)


def test_large_entities_named_by_their_keys_come_a_page_at_a_time() -> None:
    """T-QRY-10."""

    async def test() -> None:
        on, store = counted()
        await create(on)
        names = [f"{number:02}" for number in range(12)]
        await put(on, [Entity("p", name, 1, larges(30)) for name in names[1:]])
        either = " or ".join(f"RowKey eq '{name}'" for name in names)
        wanted = parse(f"PartitionKey eq 'p' and ({either}) and RowKey ne '05'")
        pages = await all_of(on, QueryEntities(wanted))
        assert [row for _, row in keys_in(pages)] == [
            name for name in names if name not in ("00", "05")
        ]
        assert [len(page.rows) for page in pages] == [2] * 5 and store.scans == 0

    run(test)


def test_a_table_that_goes_while_it_is_read_is_not_there() -> None:
    """T-QRY-12."""

    async def test() -> None:
        on, store = counted()
        await create(on)
        await put(on, rows("p", 3))
        place = await on.place(Service.TABLE, ACCOUNT, "Tasks")

        async def delete() -> None:
            store.between = None
            await delete_table(on, table_call(None, place=place))

        store.between = delete
        asked = table_call(QueryEntities(), place=place)
        attempt = query_entities.query_entities(on, asked)
        assert await refused(attempt) == (404, "TableNotFound")

    run(test)


def test_queries_take_turns() -> None:
    async def test() -> None:
        on, _ = counted()
        await create(on)
        await put(on, rows("p", 3))
        pages = await asyncio.gather(*(query(on, QueryEntities()) for _ in range(40)))
        assert {len(page.rows) for page in pages} == {3}
        assert START == (b"", b"")

    run(test)
