"""The official SDK works with tables and entities, types, ETags, policies, its errors included."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import (
    AccountSasPermissions,
    EdmType,
    EntityProperty,
    ResourceTypes,
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableClient,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    TableSasPermissions,
    TableServiceClient,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)

from tests.conformance import table_client

MOMENT = datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


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
def people(service: TableServiceClient) -> TableClient:
    """A new table."""
    return service.create_table("People")


def person(row: str = "ann", **properties: object) -> dict[str, Any]:
    return {"PartitionKey": "p", "RowKey": row, **properties}


def code(raised: pytest.ExceptionInfo[HttpResponseError]) -> str:
    """The error code, which the SDK does not put on every error that it raises."""
    response: Any = raised.value.response
    return str(response.headers["x-ms-error-code"])


def own(entity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties besides the keys."""
    return {name: value for name, value in entity.items() if name not in person()}


def test_the_life_of_a_table(service: TableServiceClient) -> None:
    """T-TAB-01, T-TAB-05, T-TAB-06, T-TAB-07, T-ADR-05."""
    people = service.create_table("People")
    with pytest.raises(ResourceExistsError) as taken:
        service.create_table("people")
    assert code(taken) == "TableAlreadyExists"
    assert service.create_table_if_not_exists("PEOPLE").table_name == "PEOPLE"
    for name in ("Alpha", "beta", "Gamma"):
        service.create_table(name)
    pages = service.list_tables(results_per_page=2).by_page()
    assert [[table.name for table in page] for page in pages] == [
        ["Alpha", "beta"],
        ["Gamma", "People"],
    ]
    found = service.query_tables("TableName eq @name", parameters={"name": "beta"})
    assert [table.name for table in found] == ["beta"]
    people.delete_table()
    people.delete_table()  # The SDK makes nothing of a table that is missing.
    with pytest.raises(ResourceNotFoundError) as missing:
        people.get_entity("p", "ann")
    assert code(missing) == "TableNotFound"
    with pytest.raises(ResourceNotFoundError) as missing:
        people.create_entity(person())
    assert code(missing) == "TableNotFound"


TYPED: dict[str, Any] = {
    "Text": "it's \U0001f600",
    "Empty": "",
    "Yes": True,
    "Small": 7,
    "Large": EntityProperty(2**40, EdmType.INT64),
    "Half": 0.5,
    "Whole": 2.0,
    "Huge": float("inf"),
    "When": MOMENT,
    "Id": UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
    "Bytes": bytes(range(256)),
}


def test_every_type_comes_back(people: TableClient) -> None:
    """T-VAL-01, T-VAL-02, T-WRI-01, T-WRI-08."""
    made = people.create_entity(person(**TYPED, Nothing=None))
    found = people.get_entity("p", "ann")
    assert own(found) == TYPED
    assert {name: type(value) for name, value in own(found).items()} == {
        name: type(value) for name, value in TYPED.items()
    } | {"When": type(found["When"])}
    assert found.metadata["etag"] == made["etag"]
    assert found.metadata["timestamp"] is not None
    (listed,) = people.list_entities(select=["Large", "When"])
    assert own(listed) == {"Large": TYPED["Large"], "When": MOMENT}


def test_writes_under_optimistic_control(people: TableClient) -> None:
    """T-WRI-02, T-WRI-03, T-WRI-05, T-WRI-06."""
    first = people.create_entity(person(A=1, B=1))["etag"]
    held = MatchConditions.IfNotModified
    with pytest.raises(ResourceExistsError) as taken:
        people.create_entity(person())
    assert code(taken) == "EntityAlreadyExists"
    second = people.update_entity(person(A=2), UpdateMode.MERGE, etag=first, match_condition=held)[
        "etag"
    ]
    assert own(people.get_entity("p", "ann")) == {"A": 2, "B": 1}
    with pytest.raises(ResourceModifiedError) as changed:
        people.update_entity(person(A=3), UpdateMode.REPLACE, etag=first, match_condition=held)
    assert code(changed) == "UpdateConditionNotSatisfied"
    people.update_entity(person(C=3), UpdateMode.REPLACE, etag=second, match_condition=held)
    assert own(people.get_entity("p", "ann")) == {"C": 3}
    people.update_entity(person(D=4), UpdateMode.REPLACE)
    with pytest.raises(ResourceModifiedError):
        people.delete_entity("p", "ann", etag=second, match_condition=held)
    people.delete_entity(person())
    people.delete_entity("p", "ann")  # As with tables.
    with pytest.raises(ResourceNotFoundError) as missing:
        people.update_entity(person(A=1))
    assert code(missing) == "ResourceNotFound"


def test_upserts(people: TableClient) -> None:
    """T-WRI-04."""
    for mode, expected in ((UpdateMode.MERGE, {"A": 1, "B": 2}), (UpdateMode.REPLACE, {"B": 2})):
        people.upsert_entity(person(mode.value, A=1), mode)
        people.upsert_entity(person(mode.value, B=2), mode)
        assert own(people.get_entity("p", mode.value)) == expected


def test_keys_with_anything_in_them(people: TableClient) -> None:
    """T-KEY-01, T-ADR-02."""
    for key in ("", "it's", "a b+c", "100%", "(x,y)", "='", "Größe", "\U0001f600", "x" * 512, "&="):
        entity = {"PartitionKey": key, "RowKey": key, "N": 1}
        people.create_entity(entity)
        assert people.get_entity(key, key)["N"] == 1
        people.upsert_entity({**entity, "N": 2})
        assert people.get_entity(key, key)["PartitionKey"] == key
        people.delete_entity(key, key)
    for key in ("a/b", "a\\b", "a#b", "a?b", "a\tb"):
        with pytest.raises(HttpResponseError) as refused:
            people.create_entity({"PartitionKey": key, "RowKey": "r"})
        assert code(refused) == "OutOfRangeInput"
    with pytest.raises(HttpResponseError) as refused:
        people.create_entity(person("x" * 513))
    assert code(refused) == "PropertyValueTooLarge"


def test_limits_say_what_they_are(people: TableClient) -> None:
    """T-KEY-04, T-KEY-05, T-KEY-06, T-KEY-07, T-VAL-05."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({f"P{n}": n for n in range(253)}, "TooManyProperties"),
        ({"P" * 256: 1}, "PropertyNameTooLong"),
        ({"P-Q": 1}, "PropertyNameInvalid"),
        ({"P": "x" * 32_769}, "PropertyValueTooLarge"),
        ({"P": bytes(65_537)}, "PropertyValueTooLarge"),
        ({f"P{n}": bytes(65_536) for n in range(16)}, "EntityTooLarge"),
        ({"P": datetime(1600, 12, 31, tzinfo=UTC)}, "OutOfRangeInput"),
    ]
    for properties, expected in cases:
        with pytest.raises(HttpResponseError) as refused:
            people.create_entity(person(**properties))
        assert code(refused) == expected
    assert list(people.list_entities()) == []


def test_sas_policies_and_ranges(
    table_account: table_client.TableClient, key: AzureNamedKeyCredential, people: TableClient
) -> None:
    """T-SAS-01, T-SAS-03, T-SAS-04, T-SAS-05, T-TAB-08."""
    for row in "abc":
        people.create_entity(person(row))
    soon = datetime.now(UTC) + timedelta(hours=1)

    def with_sas(token: str) -> TableClient:
        sas = AzureSasCredential(token)
        return TableClient(table_account.url, "People", credential=sas, retry_total=0)

    ranged = with_sas(generate_table_sas(
        key, "People", permission=TableSasPermissions(read=True), expiry=soon,
        start_pk="p", start_rk="b", end_pk="p", end_rk="c",
    ))  # fmt: skip
    assert [entity["RowKey"] for entity in ranged.list_entities()] == ["b", "c"]
    for refuse in (lambda: ranged.get_entity("p", "a"), lambda: ranged.delete_entity("p", "b")):
        with pytest.raises(HttpResponseError) as refused:
            refuse()
        assert refused.value.status_code == 403
    policy = TableAccessPolicy(start=MOMENT, expiry=soon, permission="r")
    people.set_table_access_policy({"reader": policy, "none": None})
    found = people.get_table_access_policy()
    assert set(found) == {"reader", "none"}
    assert found["reader"] is not None and found["reader"].permission == "r"
    stored = with_sas(generate_table_sas(key, "People", policy_id="reader"))
    assert len(list(stored.list_entities())) == 3
    people.set_table_access_policy({})
    with pytest.raises(ClientAuthenticationError):
        list(stored.list_entities())
    account = with_sas(generate_account_sas(
        key, ResourceTypes(object=True), AccountSasPermissions(read=True, add=True), soon,
    ))  # fmt: skip
    account.create_entity(person("d"))
    with pytest.raises(HttpResponseError) as refused:
        account.upsert_entity(person("d"))
    assert code(refused) == "AuthorizationPermissionMismatch"


def test_service_properties(service: TableServiceClient) -> None:
    """T-SVC-01."""
    service.set_service_properties(
        analytics_logging=TableAnalyticsLogging(
            read=True, write=True, delete=False,
            retention_policy=TableRetentionPolicy(enabled=True, days=3),
        ),
        hour_metrics=TableMetrics(enabled=False),
        cors=[TableCorsRule(["http://a.example"], ["GET", "MERGE"], max_age_in_seconds=9)],
    )  # fmt: skip
    found: Any = service.get_service_properties()
    assert found["analytics_logging"].read and not found["analytics_logging"].delete
    assert found["analytics_logging"].retention_policy.days == 3
    assert [rule.allowed_methods for rule in found["cors"]] == [["GET", "MERGE"]]
