"""Role assignments as values and as a document."""

from __future__ import annotations

import json

import pytest

from strongroom.auth.authorize import Permission
from strongroom.auth.request import Service, Target
from strongroom.auth.roles import (
    ASSIGNMENTS_MAX,
    ROLES,
    Assignment,
    RolesError,
    full_assignments,
    parse_document,
    permits,
    permitted_actions,
    serialise_document,
)

READER = "Storage Blob Data Reader"


def test_a_document_reads_back() -> None:
    given = (
        Assignment("user", READER, "orders"),
        Assignment("group", "Storage Table Data Contributor", "orders", "Items"),
    )
    text = serialise_document(given)
    assert parse_document(text) == given
    assert "resource" not in json.loads(text)["assignments"][0]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"principal": ""}, "principal ''"),
        ({"principal": "a b"}, "principal 'a b'"),
        ({"principal": "x" * 257}, "principal"),
        ({"role": "Owner"}, "role 'Owner'"),
        ({"role": READER.lower()}, "did you mean 'Storage Blob Data Reader'?"),
        ({"account": "Orders"}, "account name 'Orders'"),
        ({"account": ""}, "account name ''"),
        ({"resource": "a/b"}, "resource 'a/b'"),
        ({"resource": "x" * 64}, "resource"),
        ({"scope": "/"}, "scope"),
    ],
)
def test_an_assignment_that_breaks_a_rule(row: dict[str, str], reason: str) -> None:
    whole = {"principal": "user", "role": READER, "account": "orders", **row}
    with pytest.raises(RolesError, match=reason):
        parse_document(json.dumps({"assignments": [whole]}).encode())


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"assignments": [{}]}', b"\xff", b"[" * 99999]
)
def test_a_document_that_cannot_be_read(text: bytes) -> None:
    with pytest.raises(RolesError, match="cannot be read"):
        parse_document(text)


def test_a_document_that_is_too_long() -> None:
    row = {"principal": "user", "role": READER, "account": "orders"}
    text = json.dumps({"assignments": [row] * (ASSIGNMENTS_MAX + 1)}).encode()
    with pytest.raises(RolesError, match="more than 10000"):
        parse_document(text)


def test_everything_is_every_action_of_every_service() -> None:
    for service in (Service.BLOB, Service.QUEUE, Service.TABLE):
        actions = permitted_actions(full_assignments("user", "orders"), Target(service, "orders"))
        assert actions == {
            action for role in ROLES.values() if service in role.services for action in role.actions
        }


def test_actions_that_are_needed_together() -> None:
    assert permits(("a b",), {"a", "b"})
    assert not permits(("a b",), {"a"})
    assert permits(("a b", "c"), {"c"})
    assert not permits((), {"a"})


def test_a_declaration_names_actions_that_a_role_has() -> None:
    with pytest.raises(ValueError, match="blobs/fly"):
        Permission(actions=("blobs/read blobs/fly",))
