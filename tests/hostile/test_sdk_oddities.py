"""The official SDKs with odd keys, names, values and texts, at the limits, against the server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableClient,
    TableSasPermissions,
    TableTransactionError,
    UpdateMode,
    generate_table_sas,
)
from azure.storage.queue import QueueClient

from tests.conformance import table_client
from tests.conformance.client import Client

KEYS = [
    *("", " ", "it's", "''", "a b+c%20&=", '"()', "~^`{}[]|<>"),
    "漢" * 512,
    "\U0001f600" * 256,
]
VALUES: dict[str, Any] = {
    "Nul": "\0\x01",
    "Beyond": "\U0010ffff",
    "Quote": 'it\'s "quoted"',
    "Longest": "x" * 32_768,
    "Truth": True,
    "Least": EntityProperty(-(2**63), EdmType.INT64),
    "Small": -(2**31),
    "Tiny": 5e-324,
    "Huge": 1.7976931348623157e308,
    "Endless": float("-inf"),
    "First": datetime(1601, 1, 1, tzinfo=UTC),
    "Last": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "Id": UUID(int=2**128 - 1),
    "Bytes": bytes(range(256)) * 256,
    "नाम": "Devanagari",
}


@pytest.fixture
def people(tables: table_client.TableClient) -> TableClient:
    """The SDK's client of the table `Edge`."""
    key = AzureNamedKeyCredential(tables.account, tables.credential.key)
    return TableClient(tables.url, "Edge", credential=key, retry_total=0)


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_an_entity_of_odd_keys_lives(people: TableClient, key: str) -> None:
    """T-ADR-02, T-KEY-01, T-WRI-01 to T-WRI-05."""
    entity = {"PartitionKey": key, "RowKey": key, "N": 1}
    people.create_entity(entity)
    with pytest.raises(ResourceExistsError):
        people.create_entity(entity)
    people.update_entity({**entity, "M": 2}, UpdateMode.MERGE)
    assert people.get_entity(key, key)["M"] == 2
    condition = "PartitionKey eq @key and RowKey eq @key"
    if len(key) < 100:
        (found,) = people.query_entities(condition, parameters={"key": key})
        assert found["N"] == 1
    people.upsert_entity(entity, UpdateMode.REPLACE)
    assert "M" not in people.get_entity(key, key)
    people.delete_entity(key, key)
    with pytest.raises(ResourceNotFoundError):
        people.get_entity(key, key)


def test_values_at_their_limits_come_back(people: TableClient) -> None:
    """T-VAL-01, T-VAL-02, T-VAL-07, T-KEY-06."""
    people.create_entity({"PartitionKey": "p", "RowKey": "r", **VALUES})
    found = people.get_entity("p", "r")
    for name, value in VALUES.items():
        wanted = value.value if isinstance(value, EntityProperty) else value
        seen = found[name].value if isinstance(found[name], EntityProperty) else found[name]
        assert seen == wanted, name
    for name in ("Truth", "Small", "Huge", "First", "Id"):
        parameters = {"value": VALUES[name]}
        assert len(list(people.query_entities(f"{name} eq @value", parameters=parameters))) == 1


def test_a_transaction_of_a_hundred_and_of_one_more(people: TableClient) -> None:
    """T-BAT-01, T-BAT-04."""

    def changes(count: int) -> list[Any]:
        return [
            ("create", {"PartitionKey": "it's", "RowKey": f"{number}'", "T": "漢" * 300})
            for number in range(count)
        ]

    with pytest.raises(TableTransactionError) as refused:
        people.submit_transaction(changes(101))
    assert refused.value.index == 99
    assert list(people.list_entities()) == []
    assert len(people.submit_transaction(changes(100))) == 100
    with pytest.raises(TableTransactionError) as again:
        people.submit_transaction([("delete", {"PartitionKey": "it's", "RowKey": "0'"}),
                                   *changes(100)[50:60]])  # fmt: skip
    assert again.value.index == 1
    assert len(list(people.list_entities(results_per_page=7))) == 100


def test_a_token_for_a_range_of_odd_keys(
    tables: table_client.TableClient, people: TableClient
) -> None:
    """T-SAS-03."""
    for key in ("a", "it's", "it's more", "漢"):
        people.create_entity({"PartitionKey": key, "RowKey": key})
    token = generate_table_sas(
        AzureNamedKeyCredential(tables.account, tables.credential.key),
        "Edge",
        permission=TableSasPermissions(read=True),
        expiry=datetime(2100, 1, 1, tzinfo=UTC),
        start_pk="it's",
        start_rk="it's",
        end_pk="it's more",
        end_rk="it's more",
    )
    reader = TableClient(tables.url, "Edge", credential=AzureSasCredential(token), retry_total=0)
    found = [one["PartitionKey"] for one in reader.list_entities(results_per_page=1)]
    assert found == ["it's", "it's more"]
    for key in ("a", "漢"):
        with pytest.raises(HttpResponseError, match="not authorized"):
            reader.get_entity(key, key)


def test_texts_of_messages_come_back(queues: Client) -> None:
    """Q-PUT-07, Q-PUT-08, Q-UPD-02."""
    edge = QueueClient(queues.url, "edge", credential=queues.credential.key, retry_total=0)
    for text in ("", " ", "<a>&amp;", "\U0010ffff" * 16_384, "]]>", "\ufeff\u2028", "a\nb\tc"):
        sent = edge.send_message(text, time_to_live=-1)
        (got,) = edge.receive_messages(messages_per_page=1, max_messages=1)
        assert (got.id, got.content or "", got.dequeue_count) == (sent.id, text, 1)
        changed = edge.update_message(got, content=f"{text}", visibility_timeout=0)
        edge.delete_message(changed)
        with pytest.raises(ResourceNotFoundError):
            edge.delete_message(got)
    with pytest.raises(HttpResponseError) as refused:
        edge.send_message("x" * 65_537)
    assert vars(refused.value)["error_code"] == "RequestBodyTooLarge"
