"""The operations that an entity group transaction may combine, on a store in memory."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.engines.base import COMMIT_WRITES_MAX, Commit, Step, Write
from strongroom.semantics.table.entities import EntityChange, StoredEntity
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.services.table import tables, transactions
from strongroom.services.table.entities import EntityDocument, PartFailed, WriteEntity
from strongroom.services.table.query_entities import QueryEntities, query_entities
from strongroom.services.table.tables import CreateTable
from strongroom.store.core import keys
from strongroom.store.table import entity_records
from tests.services.container_calls import ACCOUNT, call, run, services


async def create(on: Services, name: str) -> None:
    asked = call(CreateTable(name), container=name, service=Service.TABLE)
    await tables.create_table(on, asked)


async def part(
    on: Services, change: EntityChange, table: str, partition_key: str, row_key: str
) -> Call[Any]:
    place = await on.place(Service.TABLE, ACCOUNT, table)
    document = EntityDocument(partition_key, row_key)
    written = WriteEntity(change, document)
    return call(written, container=table, place=place, service=Service.TABLE)


async def attempt(
    on: Services, *asked: tuple[str, str, str], change: EntityChange = EntityChange.INSERT
) -> tuple[int, str]:
    """Return (number, code) of the refused operation."""
    calls = [await part(on, change, *one) for one in asked]
    with pytest.raises(PartFailed) as failed:
        await transactions.transact(on, call(calls))
    return failed.value.index, failed.value.error.row.code


async def names(on: Services, table: str) -> list[str]:
    place = await on.place(Service.TABLE, ACCOUNT, table)
    asked = call(QueryEntities(), container=table, place=place, service=Service.TABLE)
    return [row.row_key for row in (await query_entities(on, asked)).rows]


P, Q = "CommandsInBatchActOnDifferentPartitions", "InvalidDuplicateRow"
TABLE = [
    ([("Tasks", "p", "a"), ("Tasks", "q", "b")], (1, P)),
    ([("Tasks", "p", "a"), ("Tasks", "p", "b"), ("Others", "p", "c")], (2, P)),
    ([("Tasks", "p", "a"), ("Tasks", "p", "b"), ("tasks", "p", "a")], (2, Q)),
    # Errors of an operation by itself, in the order of the operations.
    ([("Tasks", "p", "a"), ("Tasks", "p", "b/c"), ("Tasks", "q", "d")], (1, "OutOfRangeInput")),
    ([("Tasks", "p", "a"), ("Tasks", "q", "d"), ("Tasks", "p", "b/c")], (1, P)),
    ([("Nothing", "p", "a"), ("Nothing", "p", "b")], (0, "TableNotFound")),
]


@pytest.mark.parametrize(("asked", "expected"), TABLE)
def test_what_may_not_stand_together(
    asked: list[tuple[str, str, str]], expected: tuple[int, str]
) -> None:
    """T-BAT-05, T-BAT-06, T-BAT-07."""

    async def test() -> None:
        on = services()
        await create(on, "Tasks")
        await create(on, "Others")
        assert await attempt(on, *asked) == expected
        assert await names(on, "Tasks") == await names(on, "Others") == []

    run(test)


def test_more_records_than_one_commit_takes_are_refused() -> None:
    """T-BAT-04."""

    async def test() -> None:
        on = services()
        await create(on, "Tasks")
        place = await on.place(Service.TABLE, ACCOUNT, "Tasks")
        assert place is not None
        values = entity_records.encode(
            StoredEntity(1, b"x" * (255 * entity_records.CHUNK_BYTES_MAX))
        )
        rows = [str(number) for number in range(1 + COMMIT_WRITES_MAX // len(values))]
        for row in rows:
            ref = keys.entity(place.generation, "p", row)
            chunks = (keys.entity_chunk(ref.key.name, index) for index in range(len(values) - 1))
            writes = map(Write, (ref.key, *chunks), values)
            for write in writes:
                step = Step(ref.partition, (write,))
                await on.store.update(ref.partition, [], _commit(step))
        asked = [("Tasks", "p", row) for row in rows]
        refused = await attempt(on, *asked, change=EntityChange.INSERT_OR_REPLACE)
        assert refused == (len(rows) - 1, "InvalidInput")
        few = [await part(on, EntityChange.INSERT_OR_REPLACE, *one) for one in asked[:-1]]
        assert len(await transactions.transact(on, call(few))) == len(few)

    run(test)


def _commit(step: Step) -> Any:
    return lambda found, stamp: Commit(None, (step,))
