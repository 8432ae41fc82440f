"""The doctor's check of tables: used tables have no findings, and each damage is found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Key, Partition, Ref, Step, Write
from strongroom.semantics.table.edm import EdmType, Typed, Value
from strongroom.semantics.table.entities import EntityChange
from strongroom.services.core.runner import Services
from strongroom.services.table import entities, tables
from strongroom.services.table.entities import EntityDocument, WriteEntity
from strongroom.services.table.tables import CreateTable
from strongroom.store.core import keys
from tests.services import container_calls as given
from tests.services.queue_calls import problems, stored, sweep


async def create(on: Services, name: str) -> None:
    asked = given.call(CreateTable(name), container=name, service=Service.TABLE)
    await tables.create_table(on, asked)


async def put(on: Services, table: str, row: str, chars: int, kind: EntityChange) -> None:
    place = await on.place(Service.TABLE, given.ACCOUNT, table)
    text = "x" * min(chars, 32_000)
    whole: dict[str, Value] = {"T": text, "L": Typed(EdmType.INT64, 7)}
    whole |= {f"T{n}": text for n in range(chars // 32_000)}
    asked = given.call(
        WriteEntity(kind, EntityDocument(properties=whole)),
        service=Service.TABLE,
        container=table,
        entity=("p", row),
        place=place,
    )
    await entities.write_entity(on, asked)


async def used() -> Services:
    """Return services with every kind of record: small and large entities, rewritten ones, a
    deleted table."""
    on = given.services()
    await create(on, "People")
    await create(on, "Gone")
    for row, chars in (("", 1), ("a", 200_000), ("ab", 5), ("b", 200_000)):
        await put(on, "People", row, chars, EntityChange.INSERT)
    await put(on, "People", "b", 100_000, EntityChange.INSERT_OR_REPLACE)
    await put(on, "People", "a", 100, EntityChange.INSERT_OR_MERGE)
    await put(on, "Gone", "a", 200_000, EntityChange.INSERT)
    place = await on.place(Service.TABLE, given.ACCOUNT, "Gone")
    gone = given.call(None, service=Service.TABLE, container="Gone", place=place)
    await tables.delete_table(on, gone)
    return on


async def here(on: Services) -> Partition:
    place = await on.place(Service.TABLE, given.ACCOUNT, "People")
    assert place is not None
    return keys.entity(place.generation, "p", "a").partition


async def _commit(on: Services, ref: Ref, value: bytes | None) -> None:
    step = Step(ref.partition, (Write(ref.key, value),))
    await on.store.update(step.partition, (), lambda found, stamp: Commit(None, (step,)))


async def write(on: Services, key: Key, value: bytes | None) -> None:
    await _commit(on, Ref(await here(on), key), value)


def test_tables_that_were_used_are_whole() -> None:
    async def scenario() -> None:
        on = await used()
        assert problems(on) == []
        await sweep(on)
        assert problems(on) == []

    given.run(scenario)


async def lose_a_chunk(on: Services) -> None:
    await write(on, keys.entity_chunk(b"a", 1), None)


async def lose_the_last_chunk(on: Services) -> None:
    last = max(
        ref.key.name
        for ref in stored(on)
        if ref.partition.keyspace[:1] == b"e" and ref.key.name.startswith(b"a\x00")
    )
    await write(on, Key(False, last), None)


async def lose_a_head(on: Services) -> None:
    await write(on, Key(False, b"a"), None)


async def leave_a_chunk(on: Services) -> None:
    await write(on, keys.entity_chunk(b"ab", 0), b"whose?")


async def garble_a_head(on: Services) -> None:
    await write(on, Key(False, b"ab"), b"\x07nonsense")


async def garble_properties(on: Services) -> None:
    await _fragment(on, b'"T":')


async def garble_a_type(on: Services) -> None:
    await _fragment(on, b'"T@odata.type":"Edm.Int64","T":"x"')


async def write_otherwise(on: Services) -> None:
    await _fragment(on, b'"T" : "x"')


async def _fragment(on: Services, fragment: bytes) -> None:
    await write(on, Key(False, b"ab"), b"\x01" + keys.number(1) + b"\x00" + fragment)


async def misname_a_row(on: Services) -> None:
    record = stored(on)[Ref(await here(on), Key(False, b"ab"))]
    await write(on, Key(False, b"\xff"), record.value)


async def leave_a_stranger(on: Services) -> None:
    await write(on, Key(True, b"a"), b"")


async def lose_the_table(on: Services) -> None:
    await _commit(on, keys.table(given.ACCOUNT, "People"), None)


async def rename_the_table(on: Services) -> None:
    ref = keys.table(given.ACCOUNT, "People")
    record = stored(on)[ref]
    await _commit(on, ref, None)
    await _commit(on, keys.table(given.ACCOUNT, "Other"), record.value)


async def forget_the_sweep(on: Services) -> None:
    for ref in stored(on):
        if ref.partition.keyspace == keys.JOBS:
            await _commit(on, ref, None)


DAMAGES: dict[Callable[[Services], Awaitable[None]], str] = {
    lose_a_chunk: "entity ('p', 'a'): it has 1 of its",
    lose_the_last_chunk: "entity ('p', 'a'): it has",
    lose_a_head: "no record belongs here",
    leave_a_chunk: "no record belongs here",
    garble_a_head: "an entity's record begins with",
    garble_properties: "entity ('p', 'ab'): its properties cannot be read",
    garble_a_type: "entity ('p', 'ab'): its properties cannot be read",
    write_otherwise: "entity ('p', 'ab'): its properties are not written as they should be",
    misname_a_row: "can't decode byte",
    leave_a_stranger: "no record belongs here",
    lose_the_table: "their table is gone, and no job cleans up",
    rename_the_table: "no record belongs here",
    forget_the_sweep: "their table is gone, and no job cleans up",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_each_damage_shows(damage: Callable[[Services], Awaitable[None]]) -> None:
    async def scenario() -> None:
        on = await used()
        await damage(on)
        found = problems(on)
        assert any(DAMAGES[damage] in one for one in found), found

    given.run(scenario)
