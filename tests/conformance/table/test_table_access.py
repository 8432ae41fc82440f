"""Access to tables and entities: signatures, table SAS with its range of keys, account SAS."""

from __future__ import annotations

import json

import pytest

from tests.conformance.answer import expect
from tests.conformance.client import Credential
from tests.conformance.sas import account_sas, at
from tests.conformance.table_client import (
    JSON_SENT,
    TableClient,
    entity,
    expect_json,
    insert,
    query,
    table_sas,
)

MISMATCH = "AuthorizationPermissionMismatch"
OUTSIDE = "AuthorizationFailure"
Fields = dict[str, str]
TAGGED: Fields = {**JSON_SENT, "If-Match": "*"}
# name: (method, headers, what is needed, status); of the entity (p, r), which is there.
OPERATIONS: dict[str, tuple[str, Fields, str, int]] = {
    "get": ("GET", {}, "r", 200),
    "query": ("GET", {}, "r", 200),
    "insert": ("POST", JSON_SENT, "a", 201),
    "update": ("PUT", TAGGED, "u", 204),
    "merge": ("MERGE", TAGGED, "u", 204),
    "patch": ("PATCH", TAGGED, "u", 204),
    "insert or replace": ("PUT", JSON_SENT, "au", 204),
    "insert or merge": ("PATCH", JSON_SENT, "au", 204),
    "delete": ("DELETE", {"If-Match": "*"}, "d", 204),
}


def target_of(name: str, table: str, partition: str = "p", row: str = "r") -> str:
    if name == "insert":
        return f"/{table}"
    return query(table) if name == "query" else entity(table, partition, row)


def body_of(name: str, partition: str = "p", row: str = "r") -> bytes:
    if name in ("get", "query", "delete"):
        return b""
    keys = {"PartitionKey": partition, "RowKey": row} if name == "insert" else {}
    return json.dumps({**keys, "N": 1}).encode()


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_letters_of_a_sas_permit(tables: TableClient, table: str, name: str) -> None:
    """T-SAS-01."""
    method, headers, needed, status = OPERATIONS[name]
    row = "new" if name == "insert" else "r"
    insert(tables, table, {"PartitionKey": "p", "RowKey": "r"})
    target, body = target_of(name, table), body_of(name, row=row)
    for letter in needed:
        letters = "raud".replace(letter, "")
        token = table_sas(tables.credential, table, sp=letters)
        answer = tables.send(method, f"{target}?{token}", headers, body, None)
        expect_json(answer, 403, MISMATCH)
    assert "N" not in expect_json(tables.get(entity(table, "p", "r")), 200)
    token = table_sas(tables.credential, table, sp="".join(sorted(needed, key="raud".index)))
    answer = tables.send(method, f"{target}?{token}", headers, body, None)
    expect_json(answer, status)


def test_no_letters_permit_what_is_done_to_tables(tables: TableClient, table: str) -> None:
    """T-SAS-01."""
    token = table_sas(tables.credential, table, sp="raud")
    body = json.dumps({"TableName": f"{table}x"}).encode()
    for method, target, document in (
        ("GET", "/Tables", b""),
        ("GET", f"/Tables('{table}')", b""),
        ("POST", "/Tables", body),
        ("DELETE", f"/Tables('{table}')", b""),
    ):
        answer = tables.send(method, f"{target}?{token}", JSON_SENT, document, None)
        assert answer.status == 403, (method, target, answer)
        assert "odata.error" in json.loads(answer.body)
    for method in ("GET", "PUT"):
        answer = tables.send(method, f"/{table}?comp=acl&{token}", auth=None)
        expect(answer, 403, OUTSIDE)
    service = f"/?restype=service&comp=properties&{token}"
    assert tables.send("GET", service, auth=None).status == 403
    expect_json(tables.get(f"/Tables('{table}')"), 200)


def test_a_sas_reaches_its_table_only(tables: TableClient, table: str) -> None:
    """T-SAS-02."""
    other = f"{table}x"
    expect_json(tables.post("/Tables", {"TableName": other}), 201)
    for named in (table, table.lower(), table.upper()):
        token = table_sas(tables.credential, named, sp="raud")
        for asked in (table, table.lower(), table.upper()):
            expect_json(tables.get(f"{query(asked)}?{token}", auth=None), 200)
        answer = tables.get(f"{query(other)}?{token}", auth=None)
        assert (answer.status, answer.code) in ((403, OUTSIDE), (403, "AuthenticationFailed"))
        answer = tables.send("DELETE", f"{entity(other, 'p', 'r')}?{token}", TAGGED, b"", None)
        assert answer.status == 403
    bad = table_sas(tables.credential, table).replace("sig=", "sig=A")
    expect_json(tables.get(f"{query(table)}?{bad}", auth=None), 403, "AuthenticationFailed")
    late = table_sas(tables.credential, table, se=at(-60))
    expect_json(tables.get(f"{query(table)}?{late}", auth=None), 403, "AuthenticationFailed")


RANGES: list[tuple[Fields, tuple[str, ...], tuple[str, ...]]] = [
    # bounds, entities inside, entities outside (PartitionKey RowKey, with a blank)
    ({"spk": "b"}, ("b ", "b x", "c "), ("a x", " ")),
    ({"epk": "b"}, ("a ", "b ", "b x"), ("c ", "ba x")),
    ({"spk": "b", "epk": "b"}, ("b ", "b x"), ("a x", "c ")),
    ({"spk": "b", "srk": "m"}, ("b m", "b n", "c "), ("b l", "b ", "a x")),
    ({"epk": "b", "erk": "m"}, ("b m", "b l", "b ", "a x"), ("b n", "b ma", "c ")),
    ({"spk": "b", "srk": "f", "epk": "b", "erk": "m"}, ("b f", "b m"), ("b e", "b n", "a g")),
    ({"spk": "b", "srk": "m", "epk": "d", "erk": "c"}, ("c x", "d c", "d a"), ("d d", "b a")),
]


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "query"])
@pytest.mark.parametrize(("bounds", "inside", "outside"), RANGES)
def test_a_sas_reaches_its_range_of_keys(
    tables: TableClient,
    table: str,
    name: str,
    bounds: Fields,
    inside: tuple[str, ...],
    outside: tuple[str, ...],
) -> None:
    """T-SAS-03."""
    method, headers, _, status = OPERATIONS[name]
    token = table_sas(tables.credential, table, sp="raud", **bounds)
    for key in (*inside, *outside):
        partition, row = key.split(" ")
        target = f"{target_of(name, table, partition, row)}?{token}"
        body = body_of(name, partition, row)
        if key in outside:
            # The answer does not reveal whether such an entity exists.
            refused = tables.send(method, target, headers, body, None)
            expect_json(refused, 403, OUTSIDE)
        if name != "insert":
            insert(tables, table, {"PartitionKey": partition, "RowKey": row})
        answer = tables.send(method, target, headers, body, None)
        if key in inside:
            expect_json(answer, status)
        else:
            expect_json(answer, 403, OUTSIDE)
    left = {
        f"{one['PartitionKey']} {one['RowKey']}": "N" in one
        for one in expect_json(tables.get(query(table)), 200)["value"]
    }
    if name != "insert":
        assert all(left[key] is False for key in outside)
    else:
        assert set(left) == set(inside)


@pytest.mark.parametrize(
    "bounds", [{"srk": "m"}, {"erk": "m"}, {"spk": "b", "erk": "m"}, {"epk": "b", "srk": "m"}]
)
def test_a_row_key_bounds_nothing_without_its_partition_key(
    tables: TableClient, table: str, bounds: Fields
) -> None:
    """T-SAS-03: such a token permits nothing, rather than everything."""
    token = table_sas(tables.credential, table, sp="raud", **bounds)
    for target in (query(table), entity(table, "b", "m")):
        expect_json(tables.get(f"{target}?{token}", auth=None), 403, "AuthenticationFailed")


def test_an_account_sas_needs_service_type_and_letters(tables: TableClient, table: str) -> None:
    """T-SAS-05."""

    def attempt(
        name: str, target: str, ss: str, srt: str, sp: str, method: str = "", row: str = "r"
    ) -> tuple[int, str | None]:
        token = account_sas(tables.credential, ss=ss, srt=srt, sp=sp)
        headers: Fields = JSON_SENT
        body = b""
        if name:
            method, headers, _, _ = OPERATIONS[name]
            body = body_of(name, row=row)
        joined = target + ("&" if "?" in target else "?") + token
        answer = tables.send(method, joined, headers, body, None)
        return answer.status, answer.code

    insert(tables, table, {"PartitionKey": "p", "RowKey": "r"})
    rows = [
        ("", "/Tables", "GET", "s", "l", 200),
        ("", "/Tables", "GET", "c", "l", 200),
        ("", f"/Tables('{table}')", "GET", "c", "l", 200),
        ("", "/?restype=service&comp=properties", "GET", "s", "r", 200),
        ("", "/Tables('Absent')", "DELETE", "c", "d", 404),
    ]
    rows += [
        (name, target_of(name, table), "", "o", needed, status)
        for name, (_, _, needed, status) in OPERATIONS.items()
    ]
    for name, target, method, srt, sp, status in rows:
        wrong = [one for one in "sco" if one != srt and (srt, one) not in (("s", "c"), ("c", "s"))]
        mismatch = (403, "AuthorizationResourceTypeMismatch")
        refusals = [("b", srt, sp, (403, "AuthorizationServiceMismatch"))]
        refusals += [("t", one, sp, mismatch) for one in wrong]
        refusals += [("t", srt, "rwdlacup".replace(letter, ""), (403, MISMATCH)) for letter in sp]
        for ss, types, letters, expected in refusals:
            assert attempt(name, target, ss, types, letters, method, "x") == expected, (
                name,
                target,
            )
        found = attempt(name, target, "t", srt, sp, method, "new")
        assert found[0] == status, (name, target, found)
    refused = tables.get(f"/{table}?comp=acl&{account_sas(tables.credential, ss='t')}", auth=None)
    expect(refused, 403, OUTSIDE)


def test_both_schemes_sign_tables_and_nothing_else_does(tables: TableClient, table: str) -> None:
    """T-SAS-06."""
    document = {"PartitionKey": "p", "RowKey": "r"}
    for scheme in ("SharedKey", "SharedKeyLite"):
        insertion = tables.post(f"/{table}", {**document, "RowKey": scheme}, auth=scheme)
        expect_json(insertion, 201)
        for target in (query(table, filter="RowKey ne 'a=b&c'"), entity(table, "p", scheme)):
            expect_json(tables.get(target, auth=scheme), 200)
        expect(tables.get(f"/{table}?comp=acl", auth=scheme), 200)
        other = TableClient(tables.port, Credential(tables.account, "AAAA"), scheme)
        expect_json(other.get(query(table)), 403, "AuthenticationFailed")
        other.close()
    for version, status, code in (
        ("2019-12-12", 401, "NoAuthenticationInformation"),
        ("2025-11-05", 401, "NoAuthenticationInformation"),
    ):
        for target in (query(table), "/Tables", entity("Absent", "p", "r"), "/absent"):
            answer = tables.get(target, {"x-ms-version": version}, None)
            expect_json(answer, status, code)
    anonymous = tables.send("POST", f"/{table}", JSON_SENT, json.dumps(document).encode(), None)
    expect_json(anonymous, 401, "NoAuthenticationInformation")
    expect_json(tables.get(entity(table, "p", "r")), 404, "ResourceNotFound")
