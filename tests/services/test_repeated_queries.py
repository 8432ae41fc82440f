"""Queries that are asked again, on the embedded engine: they are answered from what is remembered,
and always with what is there."""

from __future__ import annotations

import asyncio
import itertools
import random
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from strongroom import limits
from strongroom.auth.request import Service
from strongroom.clock import SystemClock
from strongroom.engines.base import Commit, Page, Step, Write
from strongroom.engines.embedded import open_store
from strongroom.engines.embedded.records import page_cache
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.semantics.table.edm import Value
from strongroom.semantics.table.entities import Stored
from strongroom.semantics.table.table_filter import Expression, parse
from strongroom.semantics.table.table_predicate import Predicate, predicate
from strongroom.services.core.runner import Services
from strongroom.services.table.query_entities import QueryEntities
from strongroom.services.table.scanned_entities import scanned
from strongroom.store.core import keys
from strongroom.store.table import entity_records
from strongroom.wire.table import odata_documents
from strongroom.wire.table.odata import Metadata
from strongroom.wire.table.odata_documents import TableAddress
from tests.semantics.table_entities import Entity, holds
from tests.services.container_calls import ACCOUNT
from tests.services.test_query_entities import create, put, query

_FILTERS: Final = [
    None if text is None else parse(text)
    for text in (
        None,
        "PartitionKey eq 'a'",
        "PartitionKey eq 'a' and Number lt 5",
        "PartitionKey eq 'b' and Number lt 5 or PartitionKey eq 'a' and Name eq 'n3'",
        "not (PartitionKey eq 'a') and Number ge 3L",
        "PartitionKey ne 'b' or Number eq 1",
        "Name ge 'n4' and not Open",
        "PartitionKey gt 'a' and Missing eq 1",
        "Timestamp ge datetime'2000-01-01' and Number gt 2.5",
    )
]
_OTHER_NAMES: Final = [parse(f"Other{number} eq 1 or Number lt 3") for number in range(40)]
_MANY_NAMES: Final = parse(" or ".join(f"Other{number} eq 1" for number in range(40)))


def _entity(partition: str, row: int, chance: random.Random) -> Entity:
    properties: dict[str, Value] = {
        "Number": chance.randrange(8),
        "Name": f"n{chance.randrange(8)}",
        "Open": chance.random() < 0.5,
    }
    if chance.random() < 0.1:
        properties["Number"] = "3"
    return Entity(partition, f"{row:04}", chance.randrange(10**15), properties)


async def _delete(on: Services, generation: int, gone: Entity) -> None:
    ref = keys.entity(generation, gone.partition_key, gone.row_key)
    step = Step(ref.partition, (Write(ref.key, None),))
    await on.store.update(ref.partition, [], lambda found, stamp: Commit(None, (step,)))


async def _ask(on: Services, wanted: Expression | None, there: list[Entity]) -> None:
    page = await query(on, QueryEntities(wanted))
    expected = [one for one in there if wanted is None or holds(wanted, one)]
    assert page.next is None
    assert [(row.partition_key, row.row_key, row.timestamp, row.fragment) for row in page.rows] == [
        (one.partition_key, one.row_key, one.timestamp, one.fragment) for one in expected
    ]


def _on_disk(tmp_path: Path, work: Callable[[Services], Awaitable[None]]) -> None:
    async def test() -> None:
        store = await open_store(tmp_path / "data", SystemClock())
        try:
            on = Services(store, SystemClock())
            await create(on)
            await work(on)
        finally:
            await store.close()

    asyncio.run(test())


@pytest.mark.parametrize("seed", range(3))
def test_they_tell_what_is_there(seed: int, tmp_path: Path) -> None:
    async def work(on: Services) -> None:
        chance = random.Random(seed)
        found = {
            (partition, row): _entity(partition, row, chance)
            for partition, row in itertools.product("abc", range(60))
        }
        await put(on, list(found.values()))
        place = await on.place(Service.TABLE, ACCOUNT, "Tasks")
        assert place is not None
        for _ in range(150):
            there = [found[key] for key in sorted(found)]
            for _ in range(chance.randrange(6)):
                await _ask(on, chance.choice(_FILTERS), there)
            key = chance.choice("abc"), chance.randrange(60)
            if key in found and chance.random() < 0.3:
                await _delete(on, place.generation, found.pop(key))
            else:
                found[key] = _entity(*key, chance)
                await put(on, [found[key]])

    _on_disk(tmp_path, work)


def test_any_number_of_properties_is_asked_for(tmp_path: Path) -> None:
    async def work(on: Services) -> None:
        there = [_entity("a", row, random.Random(row)) for row in range(60)]
        await put(on, there)
        for wanted in (*_OTHER_NAMES, _MANY_NAMES, *_OTHER_NAMES, _MANY_NAMES, _OTHER_NAMES[0]):
            await _ask(on, wanted, there)

    _on_disk(tmp_path, work)


def _page(count: int, properties: int, size_bytes: int) -> Page:
    """Entities whose properties are by turns numbers and texts of this size."""
    values = [
        b",".join(
            b'"Other%d":"%s"' % (at, (b"%d-%d" % (row, at)).ljust(size_bytes, b"x"))
            if at % 2
            else b'"Other%d":%d' % (at, 1000 * row + at)
            for at in range(properties)
        )
        for row in range(count)
    ]
    names = [b"%06d" % row for row in range(count)]
    encoded = [entity_records.encode(Stored(row, value))[0] for row, value in enumerate(values)]
    return Page([b"p"] * count, names, encoded, list(range(count)), None)


_SHAPES: Final = [(0, 0), (5, 40), (9, 100), (16, 40), (16, 200)]


@pytest.mark.parametrize(("properties", "size_bytes"), _SHAPES)
def test_what_is_remembered_weighs_no_more_than_the_page_counts_for(
    properties: int, size_bytes: int
) -> None:
    everything = "Other0 ge 0 or Missing0 eq 1"
    filters = [f"{everything} or Other{number} eq 1" for number in range(1, 8)]
    filters += [" or ".join([everything, *(f"Other{at} eq 1" for at in range(1, 7))])]
    filters += [" or ".join(f"Missing{at} eq 1" for at in range(90))]
    tracemalloc.start()
    try:
        page = _page(2000, properties, size_bytes)
        for text in filters:
            _tell(page, predicate(parse(text)))
        _tell(page, None)
        traced_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(page.values) * 100 < traced_bytes < page_cache._size_bytes(page)


def _tell(page: Page, wanted: Predicate | None) -> None:
    for part in scanned(page).parts:
        rows = part.matching(wanted, limits.TABLE_RESULTS_MAX)
        odata_documents.entities(
            rows, Metadata.MINIMAL, TableAddress("http://localhost/", "a", "t")
        )


def test_what_stood_still_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(on: Services) -> None:
        there = [_entity("a", row, random.Random(row)) for row in range(60)]
        await put(on, there)
        asked, then = [0], Reader.scan

        def counted(*given: object) -> object:
            asked[0] += 1
            return then(*given)  # type: ignore[arg-type]  # passed on as they came

        monkeypatch.setattr(Reader, "scan", counted)
        for wanted in (*_FILTERS[1:3], *_FILTERS[1:3], *_FILTERS[1:3]):
            await _ask(on, wanted, there)
        assert asked[0] == 2, "both are about the same records"
        await put(on, there[:1])
        await _ask(on, _FILTERS[1], there)
        assert asked[0] == 3

    _on_disk(tmp_path, work)
