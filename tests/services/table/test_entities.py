"""Entities on a store in memory: each write in each state, large ones, transactions, deletion."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.auth.authorize import KeyRange
from strongroom.auth.request import Service
from strongroom.engines.base import Position
from strongroom.errors.core import StorageError
from strongroom.semantics.table.entities import EntityChange
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.services.table import entities, tables
from strongroom.services.table.entities import EntityDocument, PartFailed, WriteEntity
from strongroom.services.table.tables import CreateTable
from strongroom.store.core import keys
from tests.services import container_calls as given

LARGE = "x" * 30_000


def texts(names: list[str], chars: int = 30_000) -> dict[str, Any]:
    return dict.fromkeys(names, "x" * chars)


async def table(on: Services, name: str = "people") -> None:
    asked = given.call(CreateTable(name), container=name, service=Service.TABLE)
    await tables.create_table(on, asked)


async def placed(on: Services, input_: Any = None, **more: Any) -> Call[Any]:
    place = await on.place(Service.TABLE, given.ACCOUNT, "people")
    return given.call(input_, container="people", place=place, service=Service.TABLE, **more)


async def write(
    on: Services, change: EntityChange, *, match: int | None = None, row: str = "r", **values: Any
) -> int:
    """Make a write. Return the Timestamp after it, 0 when the entity is deleted."""
    asked = await written(on, change, match=match, row=row, **values)
    found = await entities.write_entity(on, asked)
    return 0 if found.stored is None else found.stored.timestamp


async def written(
    on: Services, change: EntityChange, *, match: int | None = None, row: str = "r", **values: Any
) -> Call[WriteEntity]:
    document = EntityDocument(properties=values)
    return await placed(on, WriteEntity(change, document, match), entity=("p", row))


async def read(on: Services, row: str = "r") -> str:
    found = await entities.get_entity(on, await placed(on, entity=("p", row)))
    return found.fragment.decode()


UNMET = "UpdateConditionNotSatisfied"
TABLE = {
    # write: (without an entity, on A=1, on A=1 with another tag); the fragment after it, or the
    # error
    EntityChange.INSERT: ('"B":"2"', "EntityAlreadyExists", "EntityAlreadyExists"),
    EntityChange.UPDATE: ("ResourceNotFound", '"B":"2"', UNMET),
    EntityChange.MERGE: ("ResourceNotFound", '"A":"1","B":"2"', UNMET),
    EntityChange.DELETE: ("ResourceNotFound", "gone", UNMET),
    EntityChange.INSERT_OR_REPLACE: ('"B":"2"', '"B":"2"', '"B":"2"'),
    EntityChange.INSERT_OR_MERGE: ('"B":"2"', '"A":"1","B":"2"', '"A":"1","B":"2"'),
}


@pytest.mark.parametrize("change", list(EntityChange))
@pytest.mark.parametrize("state", [0, 1, 2], ids=["nothing", "an entity", "another tag"])
def test_each_write_in_each_state(change: EntityChange, state: int) -> None:
    async def scenario() -> None:
        on = given.services()
        await table(on)
        first = await write(on, EntityChange.INSERT, A="1") if state else 0
        match = (None, first, first - 1)[state]
        expected = TABLE[change][state]
        attempt = write(on, change, match=match, B="2")
        if expected.isalpha() and expected != "gone":
            with pytest.raises(StorageError, match=expected):
                await attempt
            return
        after = await attempt
        if expected == "gone":
            with pytest.raises(StorageError, match="ResourceNotFound"):
                await read(on)
        else:
            assert after > first
            assert await read(on) == expected

    given.run(scenario)


def test_large_entities_are_written_merged_and_leave_nothing_behind() -> None:
    async def scenario() -> None:
        on = given.services()
        await table(on)
        names = [f"P{n}" for n in range(15)]
        await write(on, EntityChange.INSERT, **texts(names))
        text = await read(on)
        assert text == ",".join(f'"{name}":"{LARGE}"' for name in names)
        await write(on, EntityChange.MERGE, P0="short", Q="new")
        assert await read(on) == text.replace(f'"P0":"{LARGE}"', '"P0":"short"') + ',"Q":"new"'
        assert await records(on) > 1
        await write(on, EntityChange.UPDATE, A="1")
        assert await read(on) == '"A":"1"'
        assert await records(on) == 1
        await write(on, EntityChange.INSERT_OR_REPLACE, **texts(names))
        await write(on, EntityChange.DELETE)
        assert await records(on) == 0

    given.run(scenario)


async def records(on: Services) -> int:
    place = await on.place(Service.TABLE, given.ACCOUNT, "people")
    assert place is not None
    start = Position(b"", b"")
    return len((await on.store.scan(keys.entities(place.generation), start, None, 1000)).faces())


def test_one_too_large_is_refused_whole() -> None:
    async def scenario() -> None:
        on = given.services()
        await table(on)
        half = texts([f"P{n}" for n in range(16)], 32_000)
        await write(on, EntityChange.INSERT, **half)
        with pytest.raises(StorageError, match="EntityTooLarge"):
            await write(on, EntityChange.MERGE, More="x" * 20_000)
        with pytest.raises(StorageError, match="EntityTooLarge"):
            await write(on, EntityChange.INSERT, row="s", **half, More="x" * 20_000)
        await write(on, EntityChange.MERGE, P0="short", More="x" * 20_000)

    given.run(scenario)


def test_a_transaction_is_done_whole_or_not_at_all() -> None:
    async def scenario() -> None:
        on = given.services()
        await table(on)
        await write(on, EntityChange.INSERT, row="c", A="1")
        batch = [
            await written(on, EntityChange.INSERT, row="a", A="1"),
            await written(on, EntityChange.MERGE, row="c", B="2"),
            await written(on, EntityChange.INSERT, row="c", A="1"),
        ]
        with pytest.raises(PartFailed) as failed:
            await entities.transact(on, batch)
        assert (failed.value.index, failed.value.error.row.code) == (2, "EntityAlreadyExists")
        assert await read(on, "c") == '"A":"1"'
        results = await entities.transact(on, batch[:2])
        assert await read(on, "a") == '"A":"1"'
        assert await read(on, "c") == '"A":"1","B":"2"'
        assert [found.row_key for found in results] == ["a", "c"]

    given.run(scenario)


def test_of_many_writers_with_one_tag_exactly_one_wins() -> None:
    async def scenario() -> None:
        on = given.services()
        await table(on)
        tag = await write(on, EntityChange.INSERT, A="0")
        asked = [await written(on, EntityChange.UPDATE, match=tag, A=str(n)) for n in range(32)]
        outcomes = await asyncio.gather(
            *(entities.write_entity(on, one) for one in asked), return_exceptions=True
        )
        refused = [found for found in outcomes if isinstance(found, StorageError)]
        assert [error.row.code for error in refused] == [UNMET] * 31

    given.run(scenario)


def test_tags_rise_also_within_one_tick() -> None:
    async def scenario() -> None:
        on = given.services()
        await table(on)
        tags = [await write(on, EntityChange.INSERT_OR_REPLACE, A=str(n)) for n in range(50)]
        assert tags == sorted(set(tags))

    given.run(scenario)


def test_a_table_is_created_again_at_once_and_its_old_entities_are_swept() -> None:
    async def scenario() -> None:
        on = given.services()
        await table(on)
        await write(on, EntityChange.INSERT, **texts(["A", "B", "C"]))
        late = await written(on, EntityChange.INSERT_OR_REPLACE, A="late")
        old = keys.entities(late.place.generation if late.place else 0)
        await tables.delete_table(on, await placed(on))
        await table(on)
        with pytest.raises(StorageError, match="TableNotFound"):
            await entities.write_entity(on, late)
        with pytest.raises(StorageError, match="ResourceNotFound"):
            await read(on)
        await write(on, EntityChange.INSERT, A="new")
        on.store.advance(1)
        await Sweeper(on).run_once()
        assert not (await on.store.scan(old, Position(b"", b""), None, 10)).faces()
        assert await read(on) == '"A":"new"'

    given.run(scenario)


RANGES = [
    # first, last, (key, inside), ...
    (("b", None), None, (("a", "z"), False), (("b", ""), True), (("c", ""), True)),
    (None, ("b", None), (("b", "z"), True), (("c", ""), False)),
    (("b", "m"), ("c", "m"), (("b", "l"), False), (("b", "m"), True), (("b", "z"), True),
     (("c", "m"), True), (("c", "n"), False), (("c", ""), True)),
]  # fmt: skip


@pytest.mark.parametrize(("first", "last", "probes"), [(a, b, rest) for a, b, *rest in RANGES])
def test_a_sas_reaches_its_range_of_keys(first: Any, last: Any, probes: Any) -> None:
    async def scenario() -> None:
        on = given.services()
        await table(on)
        for key, inside in probes:
            asked = await placed(
                on,
                WriteEntity(EntityChange.INSERT_OR_REPLACE),
                entity=key,
                key_range=KeyRange(first, last),
            )
            if inside:
                await entities.write_entity(on, asked)
                await entities.get_entity(on, asked)
            else:
                for attempt in (entities.write_entity, entities.get_entity):
                    with pytest.raises(StorageError, match="AuthorizationFailure"):
                        await attempt(on, asked)

    given.run(scenario)
