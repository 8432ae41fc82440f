"""The official SDK for asyncio works with tables: many tasks at once, under optimistic control."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import (
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import UpdateMode
from azure.data.tables.aio import TableClient, TableServiceClient

from tests.conformance import table_client

Scenario = Callable[[TableServiceClient, TableClient], Awaitable[None]]


def play(account: table_client.TableClient, scenario: Scenario) -> None:
    """Run a scenario with a service client and a new table `People`."""

    async def run() -> None:
        key = AzureNamedKeyCredential(account.account, account.credential.key)
        async with TableServiceClient(account.url, credential=key, retry_total=0) as service:
            people = await service.create_table("People")
            async with people:
                await scenario(service, people)

    asyncio.run(asyncio.wait_for(run(), 60))


def person(row: str = "ann", **properties: object) -> dict[str, Any]:
    return {"PartitionKey": "p", "RowKey": row, **properties}


def test_the_life_of_an_entity(table_account: table_client.TableClient) -> None:
    """T-WRI-01, T-WRI-02, T-WRI-05, T-WRI-06, T-WRI-08."""

    async def scenario(service: TableServiceClient, people: TableClient) -> None:
        made = await people.create_entity(person(A=1))
        with pytest.raises(ResourceExistsError):
            await people.create_entity(person())
        await people.update_entity(
            person(B=2), UpdateMode.MERGE, etag=made["etag"],
            match_condition=MatchConditions.IfNotModified,
        )  # fmt: skip
        with pytest.raises(ResourceModifiedError):
            await people.update_entity(
                person(C=3), UpdateMode.REPLACE, etag=made["etag"],
                match_condition=MatchConditions.IfNotModified,
            )  # fmt: skip
        assert await people.get_entity("p", "ann") == person(A=1, B=2)
        await people.delete_entity("p", "ann")
        with pytest.raises(ResourceNotFoundError):
            await people.get_entity("p", "ann")
        await service.delete_table("People")
        assert [table.name async for table in service.list_tables()] == []

    play(table_account, scenario)


def test_many_tasks_count_together(table_account: table_client.TableClient) -> None:
    """T-WRI-09."""

    async def scenario(service: TableServiceClient, people: TableClient) -> None:
        await people.create_entity(person(N=0))

        async def add() -> None:
            for _ in range(500):
                found = await people.get_entity("p", "ann")
                found["N"] += 1
                try:
                    await people.update_entity(
                        found, UpdateMode.MERGE, etag=found.metadata["etag"],
                        match_condition=MatchConditions.IfNotModified,
                    )  # fmt: skip
                except ResourceModifiedError:
                    continue
                return
            raise AssertionError("never a turn")

        await asyncio.gather(*(add() for _ in range(20)))
        assert (await people.get_entity("p", "ann"))["N"] == 20

    play(table_account, scenario)


def test_pages_of_a_query(table_account: table_client.TableClient) -> None:
    """T-QRY-02, T-QRY-07."""

    async def scenario(service: TableServiceClient, people: TableClient) -> None:
        rows = [f"{number:03}" for number in range(25)]
        await asyncio.gather(*(people.create_entity(person(row, N=int(row))) for row in rows))
        found = people.query_entities(
            "N ge @least", parameters={"least": 5}, results_per_page=7, select=["RowKey"]
        )
        sizes = []
        every = []
        async for page in found.by_page():
            names = [entity["RowKey"] async for entity in page]
            sizes.append(len(names))
            every += names
        assert every == rows[5:]
        assert max(sizes) <= 7

    play(table_account, scenario)
