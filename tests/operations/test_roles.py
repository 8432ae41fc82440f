"""Every operation with every role agrees with the hand-made tables of docs/operations/roles.md."""

from __future__ import annotations

import re

import pytest

from strongroom.auth.authorize import authorize
from strongroom.auth.bearer import Identity
from strongroom.auth.claims import Anonymous, BearerClaim, SharedKeyClaim
from strongroom.auth.request import Service, Target
from strongroom.auth.roles import OPERATOR, ROLES, Assignment
from strongroom.errors.core import (
    AUTHORIZATION_FAILURE,
    AUTHORIZATION_PERMISSION_MISMATCH,
    StorageError,
)
from strongroom.operations.blob import endpoint as blob_service
from strongroom.operations.core.endpoint import Endpoint
from strongroom.operations.core.spec import Operation, Resource
from strongroom.operations.file import endpoint as file_service
from strongroom.operations.queue import endpoint as queue_service
from strongroom.operations.table import endpoint as table_service
from strongroom.values import PublicAccess
from tests.operations.transcript import DOCS

ENDPOINTS = (
    blob_service.ENDPOINT,
    queue_service.ENDPOINT,
    table_service.ENDPOINT,
    file_service.ENDPOINT,
)
ACCOUNT, USER = "orders", "somebody"
LETTER = re.compile(r"\b([A-Z]) = ([A-Z][A-Za-z]+(?: [A-Za-z]+)+)")
ROW = re.compile(r"^\| ((?:[A-Z] )*[A-Z]|nobody) \| (.+) \|$", re.MULTILINE)


def table(service: Service) -> dict[str, frozenset[str]]:
    """The roles that each operation of a service needs one of, by the operation's id."""
    text = (DOCS / "roles.md").read_text()
    section = text.split(f"## {service.value.title()}s\n")[1].split("\n## ")[0]
    names = dict(LETTER.findall(section.replace("\n", " ")))
    found: dict[str, frozenset[str]] = {}
    for letters, cell in ROW.findall(section):
        roles = (
            frozenset() if letters == "nobody" else frozenset(names[one] for one in letters.split())
        )
        for operation in cell.replace(" (unverified)", "").split(", "):
            assert operation not in found, f"{operation} has two rows"
            found[operation] = roles
    return found


def served(endpoint: Endpoint) -> list[Operation]:
    return [one for one in endpoint.routes.operations if one.resource is not Resource.ANY]


def named(endpoint: Endpoint, id: str) -> Operation:
    return next(one for one in served(endpoint) if one.id == id)


OPERATIONS = [
    pytest.param(endpoint.service, operation, id=f"{endpoint.service.value} {operation.name}")
    for endpoint in ENDPOINTS
    for operation in served(endpoint)
]


def target_of(service: Service, operation: Operation) -> Target:
    if operation.resource in (Resource.SERVICE, Resource.TABLES, Resource.BATCH):
        return Target(service, ACCOUNT)
    below = (Resource.BLOB, Resource.DATA_LAKE, Resource.DIRECTORY, Resource.FILE)
    blob = "b" if operation.resource in below else None
    return Target(service, ACCOUNT, "place", blob)


def refusal(service: Service, operation: Operation, *assignments: Assignment) -> object:
    """The row of the error table with which a principal is refused; None = it is not."""
    claim = BearerClaim(ACCOUNT, Identity(USER), assignments)
    target = target_of(service, operation)
    try:
        authorize(claim, operation.permission, target, PublicAccess.NONE, (), 0, "::1", True, None)
    except StorageError as error:
        return error.row
    return None


@pytest.mark.parametrize(("service", "operation"), OPERATIONS)
def test_an_operation_is_open_to_its_roles_and_no_other(
    service: Service, operation: Operation
) -> None:
    """B-ROL-01, B-ROL-05, Q-ROL-01, T-ROL-01, F-SVC-04."""
    wanted = table(service)[operation.id]
    refused = (
        AUTHORIZATION_FAILURE
        if operation.permission.no_sas and not operation.permission.actions
        else (AUTHORIZATION_PERMISSION_MISMATCH)
    )
    for role in ROLES:
        expected = None if role in wanted else refused
        assert refusal(service, operation, Assignment(USER, role, ACCOUNT)) is expected, role
        # The same role in another account is worth nothing.
        assert refusal(service, operation, Assignment(USER, role, "other")) is refused, role
    assert refusal(service, operation) is refused


@pytest.mark.parametrize(("service", "operation"), OPERATIONS)
def test_a_role_on_one_resource_reaches_that_one(service: Service, operation: Operation) -> None:
    """B-ROL-02: operations on the account need a role on the account."""
    for role in table(service)[operation.id]:
        here = Assignment(USER, role, ACCOUNT, "place")
        elsewhere = Assignment(USER, role, ACCOUNT, "elsewhere")
        is_account = target_of(service, operation).container is None
        anywhere = operation.permission.anywhere
        reaches = anywhere or not is_account
        assert (refusal(service, operation, here) is None) is reaches
        assert (refusal(service, operation, elsewhere) is None) is anywhere


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: one.service.value)
def test_the_tables_name_each_operation_and_no_other(endpoint: Endpoint) -> None:
    assert set(table(endpoint.service)) == {one.id for one in served(endpoint)}


def test_every_role_is_in_a_table() -> None:
    """The operator's role gives no right to data: it shows figures in the console."""
    found = {role for one in ENDPOINTS for roles in table(one.service).values() for role in roles}
    assert found == set(ROLES) - {OPERATOR}
    assert not ROLES[OPERATOR].actions


def test_the_case_of_a_tables_name_does_not_matter() -> None:
    operation = next(
        one for one in served(table_service.ENDPOINT) if one.id == "table_query_entities"
    )
    reader = Assignment(USER, "Storage Table Data Reader", ACCOUNT, "PLACE")
    assert refusal(Service.TABLE, operation, reader) is None
    blob = named(blob_service.ENDPOINT, "blob_download")
    assert (
        refusal(Service.BLOB, blob, Assignment(USER, "Storage Blob Data Reader", ACCOUNT, "Place"))
        is AUTHORIZATION_PERMISSION_MISMATCH
    )


def test_an_alternative_may_need_several_actions() -> None:
    upsert = named(table_service.ENDPOINT, "table_insert_or_merge_entity")
    assert "entities/add/action entities/update/action" in upsert.permission.actions


def test_the_letters_that_a_role_stands_for() -> None:
    read = named(blob_service.ENDPOINT, "blob_download")

    def granted(role: str) -> tuple[str, bool]:
        claim = BearerClaim(ACCOUNT, Identity(USER), (Assignment(USER, role, ACCOUNT),))
        target = Target(Service.BLOB, ACCOUNT, "place", "b")
        grant = authorize(
            claim, read.permission, target, PublicAccess.NONE, (), 0, "::1", True, None
        )
        return grant.letters, grant.may_overwrite

    assert granted("Storage Blob Data Reader") == ("rl", False)
    assert granted("Storage Blob Data Contributor") == ("racwdlm", True)
    assert granted("Storage Blob Data Owner") == ("racwdxyltfmi", True)


@pytest.mark.parametrize("claim", [SharedKeyClaim(ACCOUNT), Anonymous(ACCOUNT)])
@pytest.mark.parametrize("endpoint", ENDPOINTS[:2], ids=lambda one: one.service.value)
def test_a_delegation_key_is_for_bearers_only(
    endpoint: Endpoint, claim: SharedKeyClaim | Anonymous
) -> None:
    """B-UDK-02."""
    key = named(endpoint, "service_get_user_delegation_key")
    target = Target(endpoint.service, ACCOUNT)
    with pytest.raises(StorageError):
        authorize(claim, key.permission, target, PublicAccess.CONTAINER, (), 0, "::1", True, None)
