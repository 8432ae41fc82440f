"""Filters on the embedded engine, which skips most records that do not match, between writes."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from strongroom.auth.request import Service
from strongroom.clock import SystemClock
from strongroom.engines.base import Commit, Step, Write
from strongroom.engines.embedded import open_store
from strongroom.semantics.table.edm import Value
from strongroom.semantics.table.table_filter import Expression, parse
from strongroom.services.core.runner import Services
from strongroom.services.table.query_entities import QueryEntities
from strongroom.store.core import keys
from tests.semantics.table_entities import Entity, holds
from tests.services.container_calls import ACCOUNT
from tests.services.table.test_query_entities import create, put, query

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
def test_queries_between_writes_find_what_matches(seed: int, tmp_path: Path) -> None:
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


def test_entities_that_go_on_in_chunks_are_found(tmp_path: Path) -> None:
    async def work(on: Services) -> None:
        texts: dict[str, Value] = {f"T{at}": "x" * 30_000 for at in range(4)}
        there = [Entity("a", f"{row:04}", row, {"Number": row % 5}) for row in range(900)]
        there[450] = Entity("a", "0450", 450, {**texts, "Number": 7})
        await put(on, there)
        for text in (
            "Number eq 7",
            "Number eq 3",
            "T0 eq 'y'",
            "PartitionKey eq 'a' and Number gt 2",
        ):
            await _ask(on, parse(text), there)

    _on_disk(tmp_path, work)
