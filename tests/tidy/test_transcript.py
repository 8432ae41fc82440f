"""The declarations agree with the hand-made transcript, and every rule of it is cited by a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strongroom.operations.blob_service import ROUTES
from strongroom.operations.spec import Operation
from strongroom.semantics.lease import LeaseUse
from strongroom.services.calls import ConditionUse, Existence
from tests.operations.transcript import Row, rows, rule_numbers

TESTS = Path(__file__).parents[1]
BLOB = {row.id: row for row in rows("blob")}
# Told by its endpoint, not by the request; and answered before any operation is looked for.
ELSEWHERE = {"get_static_website_content", "preflight"}
DECLARED = {operation.id: operation for operation in ROUTES.operations}
LEASES = {
    "none": {LeaseUse.NONE},
    "read": {LeaseUse.READ},
    "write": {LeaseUse.WRITE},
    "delete": {LeaseUse.WRITE},
    "container-read": {LeaseUse.READ_CONTAINER},
    "container-delete": {LeaseUse.DELETE_CONTAINER},
    "operation": {LeaseUse.NONE},
}
IMS4, TAGS = "ims4", "tags"


def declaration(row: Row) -> Operation:
    return DECLARED[row.id]


def letters(alternatives: tuple[str, ...] | None) -> str:
    return "-" if alternatives is None else "/".join(alternatives)


@pytest.mark.parametrize("row", [r for r in BLOB.values() if r.id not in ELSEWHERE], ids=str)
def test_a_row_is_declared_as_transcribed(row: Row) -> None:
    found = declaration(row)
    assert set(row.methods) <= set(found.methods)
    depth = {0: "SERVICE", 1: "CONTAINER", 2: "BLOB"}[row.path.count("{")]
    assert found.resource.name == depth
    assert row.query.get("comp") == found.comp
    assert row.query.get("restype") == found.restype
    assert row.served is (found.run is not None)


@pytest.mark.parametrize(
    "row", [r for r in BLOB.values() if r.served and r.id not in ELSEWHERE], ids=str
)
def test_a_served_row_agrees_in_detail(row: Row) -> None:
    found = declaration(row)
    if isinstance(found.success, int):
        assert row.success == {found.success}
    assert found.rule.lease in LEASES[row.lease]
    assert conditions(found) == row.conditions - {"source", "source-tags"}
    if row.account_sas == "-":
        assert found.permission.account_sas is None
    else:
        assert found.permission.account_sas is not None
        kinds, alternatives = found.permission.account_sas
        assert f"{'/'.join(kinds)}:{letters(alternatives)}" == row.account_sas
    assert letters(found.permission.sas) == row.sas
    assert declared_names(found) >= {name(text) for text in (*row.required, *row.optional)}


def conditions(found: Operation) -> frozenset[str]:
    return {
        ConditionUse.NONE: frozenset[str](),
        ConditionUse.REFUSED: frozenset[str](),
        ConditionUse.READ: frozenset({IMS4, TAGS}),
        ConditionUse.WRITE: frozenset({IMS4, TAGS}),
        ConditionUse.TAGS: frozenset({TAGS}),
        ConditionUse.DATES: frozenset({"dates"}),
        ConditionUse.MODIFIED_SINCE: frozenset({"modified-since"}),
    }[found.rule.conditions]


def name(text: str) -> str:
    return text.lstrip("?").split("=")[0].lower()


def declared_names(found: Operation) -> set[str]:
    names = {"content-length", "content-type", "x-ms-lease-id"}
    names |= {when.name.lstrip("?").lower() for when in found.when}
    names |= {"snapshot"} if found.snapshots else set()
    names |= {"x-strongroom-wait"} if found.waits else set()
    for field in found.accepts:
        names |= {header.lower() for header in field.headers} | set(field.query)
    return names


def test_nothing_is_declared_that_is_not_transcribed() -> None:
    assert set(DECLARED) <= set(BLOB)


def test_creating_operations_are_those_that_take_create_permission() -> None:
    creators = {o.id for o in ROUTES.operations if o.rule.existence is Existence.CREATES}
    assert {o.id for o in ROUTES.operations if o.run and o.permission.sas == ("c", "w")} <= (
        creators | {"blob_create_snapshot"}
    )


def test_every_rule_is_cited_by_a_test() -> None:
    cited = set()
    for source in TESTS.rglob("*.py"):
        cited |= set(re.findall(r"B-[A-Z]{3}-\d\d", source.read_text()))
    assert sorted(set(rule_numbers("blob")) - cited) == []
