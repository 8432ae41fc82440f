"""The declarations agree with the hand-made transcript, and every rule of it is cited by a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strongroom.auth.sas import ACCOUNT_LETTERS, PERMISSION_LETTERS
from strongroom.operations.blob import endpoint as blob_service
from strongroom.operations.core.endpoint import Endpoint
from strongroom.operations.core.spec import Operation, Resource
from strongroom.operations.file import endpoint as file_service
from strongroom.operations.queue import endpoint as queue_service
from strongroom.operations.table import endpoint as table_service
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.core.calls import ConditionUse, Existence
from tests.operations.transcript import Row, rows, rule_numbers

TESTS = Path(__file__).parents[1]
ENDPOINTS = (
    blob_service.ENDPOINT,
    queue_service.ENDPOINT,
    table_service.ENDPOINT,
    file_service.ENDPOINT,
)
# The endpoint decides this, not the request, before any operation is matched.
ELSEWHERE = {"get_static_website_content", "preflight"}
LEASES = {
    "none": {LeaseUse.NONE},
    "read": {LeaseUse.READ},
    "write": {LeaseUse.WRITE},
    "delete": {LeaseUse.WRITE},
    "container-read": {LeaseUse.READ_CONTAINER},
    "container-delete": {LeaseUse.DELETE_CONTAINER},
    "operation": {LeaseUse.NONE},
    "share-read": {LeaseUse.READ_SHARE},
    "share-write": {LeaseUse.WRITE_SHARE},
    "file-read": {LeaseUse.READ_FILE},
    "file-write": {LeaseUse.WRITE_FILE},
}
IMS4, TAGS, SEQUENCE = "ims4", "tags", "sequence"


def declared(endpoint: Endpoint) -> dict[str, Operation]:
    return {operation.id: operation for operation in endpoint.routes.operations}


def letters(alternatives: tuple[str, ...] | None) -> str:
    return "-" if alternatives is None else "/".join(alternatives)


SERVICE_ROWS = [
    pytest.param(endpoint, row, id=f"{endpoint.service.value} {row.id}")
    for endpoint in ENDPOINTS
    for row in rows(endpoint.service.value)
    if row.id not in ELSEWHERE
]


@pytest.mark.parametrize(("endpoint", "row"), SERVICE_ROWS)
def test_a_row_is_declared_as_transcribed(endpoint: Endpoint, row: Row) -> None:
    found = declared(endpoint)[row.id]
    assert set(row.methods) <= set(found.methods)
    assert found.resource is (Resource.ENTITY if row.path == "/{entity}" else Resource(row.path))
    assert row.query.get("comp") == found.comp
    assert row.query.get("restype") == found.restype
    assert row.served is found.is_served


@pytest.mark.parametrize(("endpoint", "row"), SERVICE_ROWS)
def test_a_served_row_agrees_in_detail(endpoint: Endpoint, row: Row) -> None:
    if not row.served:
        return
    found = declared(endpoint)[row.id]
    if isinstance(found.success, int):
        assert row.success == {found.success}
    assert found.rule.lease in LEASES[row.lease]
    assert conditions(found) == row.conditions - {"source", "source-tags"}
    if row.account_sas == "-":
        assert found.permission.account_sas is None
    else:
        assert found.permission.account_sas is not None
        kinds, alternatives = found.permission.account_sas
        everything = tuple(ACCOUNT_LETTERS)
        text = "any" if alternatives == everything else letters(alternatives)
        assert f"{'/'.join(kinds)}:{text}" == row.account_sas
    if row.sas == "any":
        assert set(found.permission.sas or ()) == set(PERMISSION_LETTERS[endpoint.service])
    else:
        assert letters(found.permission.sas) == row.sas
    assert declared_names(found) >= {name(text) for text in (*row.required, *row.optional)}


def conditions(found: Operation) -> frozenset[str]:
    headers = {header for field in found.accepts for header in field.headers}
    append = frozenset({"append"} if "x-ms-blob-condition-appendpos" in headers else ())
    sequence = frozenset({SEQUENCE} if "x-ms-if-sequence-number-eq" in headers else ())
    return (
        append
        | sequence
        | {
            ConditionUse.NONE: frozenset[str](),
            ConditionUse.REFUSED: frozenset[str](),
            ConditionUse.IGNORED: frozenset[str](),
            ConditionUse.READ: frozenset({IMS4, TAGS}),
            ConditionUse.WRITE: frozenset({IMS4, TAGS}),
            ConditionUse.TAGS: frozenset({TAGS}),
            ConditionUse.BLOB_READ: frozenset({"blob-ims4", TAGS}),
            ConditionUse.BLOB_WRITE: frozenset({"blob-ims4", TAGS}),
            ConditionUse.DATES: frozenset({"dates"}),
            ConditionUse.MODIFIED_SINCE: frozenset({"modified-since"}),
            ConditionUse.UNMODIFIED_SINCE: frozenset({"unmodified-since"}),
        }[found.rule.conditions]
    )


def name(text: str) -> str:
    return text.lstrip("?").split("=")[0].lower()


def declared_names(found: Operation) -> set[str]:
    names = {"content-length", "content-type", "x-ms-lease-id"}
    names |= {when.name.lstrip("?").lower() for when in found.when}
    is_file = found.resource in (Resource.SHARE, Resource.DIRECTORY, Resource.FILE)
    snapshot = "sharesnapshot" if is_file else "snapshot"
    names |= {snapshot} if found.snapshots else set()
    names |= {"versionid"} if found.versions else set()
    names |= {"x-strongroom-wait"} if found.waits else set()
    for field in found.accepts:
        names |= {header.lower() for header in field.headers} | set(field.query)
    return names


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: one.service.value)
def test_nothing_is_declared_that_is_not_transcribed(endpoint: Endpoint) -> None:
    assert set(declared(endpoint)) <= {row.id for row in rows(endpoint.service.value)}


def test_creating_operations_are_those_that_take_create_permission() -> None:
    operations = blob_service.ROUTES.operations
    creators = {o.id for o in operations if o.rule.existence is Existence.CREATES}
    assert {o.id for o in operations if o.run and o.permission.sas == ("c", "w")} <= (
        creators | {"blob_create_snapshot"}
    )


@pytest.mark.parametrize("service", ["blob", "queue", "table", "file"])
def test_every_rule_is_cited_by_a_test(service: str) -> None:
    cited = set()
    for source in TESTS.rglob("*.py"):
        cited |= set(re.findall(r"[BQTF]-[A-Z]{3}-\d\d", source.read_text()))
    numbers = rule_numbers(service)
    assert numbers
    assert sorted(set(numbers) - cited) == []
