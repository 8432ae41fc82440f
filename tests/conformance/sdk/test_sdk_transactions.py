"""The official SDK works with queries and transactions of entities, its errors included."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import (
    EdmType,
    EntityProperty,
    RequestTooLargeError,
    TableClient,
    TableSasPermissions,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_table_sas,
)
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient

from tests.conformance import table_client

Operations = Iterable[tuple[Any, ...]]
MOMENT = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def key(table_account: table_client.TableClient) -> AzureNamedKeyCredential:
    """The credential of an account of its own."""
    return AzureNamedKeyCredential(table_account.account, table_account.credential.key)


@pytest.fixture
def service(
    table_account: table_client.TableClient, key: AzureNamedKeyCredential
) -> TableServiceClient:
    """The SDK's client of that account."""
    return TableServiceClient(table_account.url, credential=key, retry_total=0)


@pytest.fixture
def tasks(service: TableServiceClient) -> TableClient:
    """A new table."""
    return service.create_table("Tasks")


def row(name: str, **properties: object) -> dict[str, Any]:
    return {"PartitionKey": "p", "RowKey": name, **properties}


def submit(tasks: TableClient, operations: Operations) -> list[Mapping[str, Any]]:
    return tasks.submit_transaction(operations)


def refusal(tasks: TableClient, operations: Operations) -> tuple[int, object]:
    """(which operation, error code)."""
    with pytest.raises(TableTransactionError) as raised:
        submit(tasks, operations)
    return raised.value.index, vars(raised.value)["error_code"]


def test_queries_with_parameters_of_all_types(tasks: TableClient) -> None:
    """T-QRY-02, T-QRY-07, T-QRY-09."""
    values: dict[str, Any] = {
        "Text": "it's",
        "Flag": True,
        "Small": 7,
        "Large": EntityProperty(2**40, EdmType.INT64),
        "Ratio": 0.5,
        "When": MOMENT,
        "Id": UUID(int=7),
        "Bytes": b"\x00\xff",
    }
    submit(tasks, [("create", row(f"{number:02}", N=number, **values)) for number in range(25)])
    for name, value in values.items():
        plain = value.value if isinstance(value, EntityProperty) else value
        found = list(tasks.query_entities(f"{name} eq @value", parameters={"value": plain}))
        assert len(found) == 25, name
        assert found[0][name] == value
        assert not list(tasks.query_entities(f"{name} ne @value", parameters={"value": plain}))
    pages = tasks.query_entities("N ge 5", results_per_page=8, select=["N"]).by_page()
    sizes = [[entity["N"] for entity in page] for page in pages]
    assert sizes == [list(range(5, 13)), list(range(13, 21)), list(range(21, 25))]
    first: Any = tasks.list_entities(results_per_page=10).by_page()
    next(first)
    again = tasks.list_entities(results_per_page=10).by_page(first.continuation_token)
    assert next(iter(next(again)))["N"] == 10


def test_queries_that_are_refused(service: TableServiceClient, tasks: TableClient) -> None:
    """T-QRY-04, T-QRY-12."""
    with pytest.raises(HttpResponseError) as bad:
        list(tasks.query_entities("N eq"))
    assert (bad.value.status_code, vars(bad.value)["error_code"]) == (400, "InvalidInput")
    with pytest.raises(HttpResponseError) as unknown:
        list(tasks.query_entities("startswith(N, 'a')"))
    assert unknown.value.status_code == 501
    with pytest.raises(ResourceNotFoundError):
        list(service.get_table_client("NoSuchTable").list_entities())


def test_a_transaction_of_all_kinds(tasks: TableClient) -> None:
    """T-BAT-01, T-BAT-02."""
    submit(tasks, [("create", row(name, N=0, M=0)) for name in "abcd"])
    known = tasks.get_entity("p", "d")
    answers = submit(
        tasks,
        [
            ("update", row("a", N=1), {"mode": UpdateMode.REPLACE}),
            ("update", row("b", N=2), {"mode": UpdateMode.MERGE}),
            ("delete", row("c")),
            ("delete", known),
            ("upsert", row("e", N=5)),
            ("create", row("it's", N=6)),
        ],
    )
    assert len(answers) == 6 and answers[0]["etag"] == tasks.get_entity("p", "a").metadata["etag"]
    found = {one["RowKey"]: (one.get("N"), one.get("M")) for one in tasks.list_entities()}
    assert found == {"a": (1, None), "b": (2, 0), "e": (5, None), "it's": (6, None)}


def test_transactions_that_are_refused(service: TableServiceClient, tasks: TableClient) -> None:
    """T-BAT-03, T-BAT-04, T-BAT-06, T-BAT-07, T-BAT-11."""
    tasks.create_entity(row("a"))
    known = tasks.get_entity("p", "a")
    tasks.upsert_entity(row("a", N=1))
    new = ("create", row("n"))
    assert refusal(tasks, [new, ("create", row("a"))]) == (1, "EntityAlreadyExists")
    assert refusal(tasks, [new, ("update", row("x"))]) == (1, "ResourceNotFound")
    tagged = {"etag": known.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
    assert refusal(tasks, [new, ("delete", known, tagged)]) == (1, "UpdateConditionNotSatisfied")
    assert refusal(tasks, [new, ("upsert", row("n"))]) == (1, "InvalidDuplicateRow")
    many = [("upsert", row(str(number))) for number in range(101)]
    assert refusal(tasks, many) == (99, "InvalidInput")
    nowhere = service.get_table_client("NoSuchTable")
    assert refusal(nowhere, [new]) == (0, "TableNotFound")
    large = [("upsert", row(str(n), **{f"P{i}": "x" * 32_000 for i in range(15)}))
             for n in range(12)]  # fmt: skip
    with pytest.raises(RequestTooLargeError):
        submit(tasks, large)
    assert [one["RowKey"] for one in tasks.list_entities()] == ["a"]


def test_a_transaction_with_a_sas(
    table_account: table_client.TableClient, key: AzureNamedKeyCredential, tasks: TableClient
) -> None:
    """T-BAT-13, T-QRY-13."""
    token = generate_table_sas(
        key,
        "Tasks",
        permission=TableSasPermissions(add=True, read=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
        start_pk="p",
        start_rk="b",
        end_pk="p",
        end_rk="d",
    )
    submit(tasks, [("create", row("a")), ("create", row("z"))])
    limited = TableClient(
        table_account.url, "Tasks", credential=AzureSasCredential(token), retry_total=0
    )
    assert len(submit(limited, [("create", row("b")), ("create", row("c"))])) == 2
    assert [one["RowKey"] for one in limited.list_entities()] == ["b", "c"]
    with pytest.raises(HttpResponseError) as raised:
        submit(limited, [("create", row("d")), ("create", row("e"))])
    assert raised.value.status_code == 403
    with pytest.raises(HttpResponseError) as forbidden:
        submit(limited, [("delete", row("b"))])
    assert forbidden.value.status_code == 403
    assert [one["RowKey"] for one in tasks.list_entities()] == ["a", "b", "c", "z"]


async def _with_the_asynchronous_client(url: str, key: AzureNamedKeyCredential) -> None:
    async with AsyncTableServiceClient(url, credential=key, retry_total=0) as service:
        tasks = await service.create_table("Others")
        await tasks.submit_transaction([("upsert", row(str(n), N=n)) for n in range(10)])
        pages = tasks.query_entities("N ge 3", results_per_page=4)
        assert [one["N"] async for one in pages] == list(range(3, 10))
        with pytest.raises(TableTransactionError) as raised:
            await tasks.submit_transaction([("create", row("x")), ("create", row("1"))])
        assert raised.value.index == 1
        assert vars(raised.value)["error_code"] == "EntityAlreadyExists"


def test_the_asynchronous_client(
    table_account: table_client.TableClient, key: AzureNamedKeyCredential
) -> None:
    """T-QRY-07, T-BAT-01, T-BAT-03."""
    asyncio.run(_with_the_asynchronous_client(table_account.url, key))
