"""Tables: Create, Get, Delete, Query, their access control lists, and their URLs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.answer import Answer, expect, texts
from tests.conformance.client import Client
from tests.conformance.running import Running
from tests.conformance.table_client import (
    JSON_SENT,
    TableClient,
    entity,
    expect_json,
    insert,
    query,
    table_sas,
)

POLICY = (
    "<SignedIdentifiers><SignedIdentifier><Id>{id}</Id><AccessPolicy>"
    "<Start>2020-01-01T00:00:00.0000000Z</Start><Expiry>2099-01-01T00:00:00.0000000Z</Expiry>"
    "<Permission>{letters}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
)
ANY = {"If-Match": "*"}
MERGE = {**JSON_SENT, **ANY}


def names(answer: Answer) -> list[str]:
    """The tables of a page."""
    return [row["TableName"] for row in expect_json(answer, 200)["value"]]


def pages(tables: TableClient, **options: object) -> Iterator[list[str]]:
    """The pages of Query Tables."""
    for _ in range(50):
        answer = tables.get(query("Tables", **options))
        yield names(answer)
        token = answer.get("x-ms-continuation-NextTableName")
        if token is None:
            return
        options["NextTableName"] = token
    raise AssertionError("the pages do not end")


def test_creation_says_where_the_table_is(tables: TableClient, table: str) -> None:
    """T-TAB-01, T-TAB-02."""
    made = tables.post("/Tables", {"TableName": f"{table}A"})
    document = expect_json(made, 201)
    assert document == {
        "odata.metadata": f"{tables.url}/$metadata#Tables/@Element",
        "TableName": f"{table}A",
    }
    assert made["Location"] == f"{tables.url}/Tables('{table}A')"
    assert made.get("Preference-Applied") is None
    quiet = tables.post("/Tables", {"TableName": f"{table}B"}, {"Prefer": "return-no-content"})
    assert expect_json(quiet, 204) is None
    assert quiet["Preference-Applied"] == "return-no-content"
    assert quiet["Location"] == quiet["DataServiceId"] == f"{tables.url}/Tables('{table}B')"
    told = tables.post("/Tables", {"TableName": f"{table}C"}, {"Prefer": "return-content"})
    assert expect_json(told, 201)["TableName"] == f"{table}C"
    assert told["Preference-Applied"] == "return-content"
    for name in (table, table.lower(), table.upper()):
        taken = tables.post("/Tables", {"TableName": name})
        assert "already exists" in expect_json(taken, 409, "TableAlreadyExists")
    bad = tables.post("/Tables", {"TableName": f"{table}D"}, {"Prefer": "return-something"})
    expect_json(bad, 400, "InvalidHeaderValue")
    expect_json(tables.get(f"/Tables('{table}D')"), 404, "ResourceNotFound")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{}", 400, "PropertiesNeedValue"),
        (b'{"tablename":"abc"}', 400, "PropertiesNeedValue"),
        (b'{"TableName":""}', 400, "PropertiesNeedValue"),
        (b'{"TableName":null}', 400, "PropertiesNeedValue"),
        (b'{"TableName":7}', 400, "PropertiesNeedValue"),
        (b"", 400, "InvalidInput"),
        (b"[]", 400, "InvalidInput"),
        (b'"abc"', 400, "InvalidInput"),
        (b'{"TableName":"abc"', 400, "InvalidInput"),
        (b'{"TableName":"\xff"}', 400, "InvalidInput"),
        (b"[" * 60_000, 400, "InvalidInput"),
        (b'{"TableName":"abc","x":"' + b"x" * 70_000 + b'"}', 413, "RequestBodyTooLarge"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_bodies_that_name_no_table(
    tables: TableClient, body: bytes, status: int, code: str
) -> None:
    """T-TAB-03."""
    expect_json(tables.another().send("POST", "/Tables", JSON_SENT, body), status, code)


NAMES = [
    ("ab", "OutOfRangeInput"),
    ("a" * 64, "OutOfRangeInput"),
    ("1abc", "InvalidResourceName"),
    ("a-b", "InvalidResourceName"),
    ("a_b", "InvalidResourceName"),
    ("ab\u00e9", "InvalidResourceName"),
    ("$MetricsX", "InvalidResourceName"),
    ("a b c", "InvalidResourceName"),
    ("tables", "InvalidInput"),
    ("TABLES", "InvalidInput"),
]


@pytest.mark.parametrize(("name", "code"), NAMES)
def test_names_that_no_table_has(tables: TableClient, name: str, code: str) -> None:
    """T-ADR-04."""
    expect_json(tables.post("/Tables", {"TableName": name}), 400, code)
    if name.isascii() and " " not in name:
        for target in (query(name), entity(name, "p", "r"), f"/Tables('{name}')"):
            expect_json(tables.get(target), 400, code)


def test_names_at_the_edge(tables: TableClient) -> None:
    """T-ADR-04."""
    for name in ("abc", "A1b", "T" * 63):
        expect_json(tables.post("/Tables", {"TableName": name}), 201)
        expect_json(tables.get(query(name)), 200)


def test_a_table_by_its_name(tables: TableClient, table: str) -> None:
    """T-TAB-04, T-ADR-03."""
    for name in (table, table.lower(), table.upper()):
        document = expect_json(tables.get(f"/Tables('{name}')"), 200)
        assert document["TableName"] == table
        expect_json(tables.get(query(name)), 200)
    insert(tables, table.upper(), {"PartitionKey": "p", "RowKey": "r", "Name": 1, "NAME": 2})
    found = expect_json(tables.get(entity(table.lower(), "p", "r")), 200)
    assert (found["Name"], found["NAME"]) == (1, 2)
    assert found["odata.metadata"].endswith(f"#{table.lower()}/@Element")
    expect_json(tables.get(entity(table, "P", "r")), 404, "ResourceNotFound")


def test_what_is_asked_of_a_missing_table(tables: TableClient) -> None:
    """T-ADR-05, T-QRY-12."""
    one = entity("NoSuchTable", "p", "r")
    document = json.dumps({"A": 1}).encode()
    for method, headers, body in (
        ("GET", {}, b""),
        ("PUT", MERGE, document),
        ("PUT", JSON_SENT, document),
        ("PATCH", MERGE, document),
        ("MERGE", JSON_SENT, document),
        ("DELETE", ANY, b""),
    ):
        text = expect_json(tables.send(method, one, headers, body), 404, "TableNotFound")
        assert text.startswith("The table specified does not exist.\n")
    insertion = tables.post("/NoSuchTable", {"PartitionKey": "p", "RowKey": "r"})
    expect_json(insertion, 404, "TableNotFound")
    expect_json(tables.get(query("NoSuchTable")), 404, "TableNotFound")
    expect(tables.get("/NoSuchTable?comp=acl"), 404, "TableNotFound")
    expect(tables.put("/NoSuchTable?comp=acl"), 404, "TableNotFound")
    for method in ("GET", "DELETE"):
        expect_json(tables.send(method, "/Tables('NoSuchTable')"), 404, "ResourceNotFound")


def test_deletion_takes_everything_and_creation_goes_on_at_once(
    tables: TableClient, table: str
) -> None:
    """T-TAB-05."""
    insert(
        tables, table, {"PartitionKey": "p", "RowKey": "r", "A": "x" * 30_000, "B": "y" * 30_000}
    )
    policy = POLICY.format(id="one", letters="r").encode()
    expect(tables.put(f"/{table}?comp=acl", (), policy), 204)
    gone = tables.delete(f"/Tables('{table.lower()}')")
    assert expect_json(gone, 204) is None and gone.body == b""
    expect_json(tables.delete(f"/Tables('{table}')"), 404, "ResourceNotFound")
    expect_json(tables.get(query(table)), 404, "TableNotFound")
    expect_json(tables.post("/Tables", {"TableName": table.upper()}), 201)
    assert expect_json(tables.get(query(table)), 200)["value"] == []
    expect_json(tables.get(entity(table, "p", "r")), 404, "ResourceNotFound")
    assert expect_json(tables.get(f"/Tables('{table}')"), 200)["TableName"] == table.upper()
    assert not list(expect(tables.get(f"/{table}?comp=acl"), 200).xml)


def test_tables_are_listed_in_order(table_account: TableClient) -> None:
    """T-TAB-06."""
    every = ["abc", "ABCD", "Abd", "b12", "Zed", "zee"]
    for name in reversed(every):
        expect_json(table_account.post("/Tables", {"TableName": name}), 201)
    assert names(table_account.get("/Tables")) == every
    assert names(table_account.get("/Tables()")) == every
    for top in range(1, 8):
        found = list(pages(table_account, top=top))
        assert [name for page in found for name in page] == every
        assert all(len(page) <= top for page in found)
    document = expect_json(table_account.get("/Tables"), 200)
    assert document["odata.metadata"] == f"{table_account.url}/$metadata#Tables"


FILTERS: list[tuple[str, list[str]]] = [
    ("TableName eq 'Abd'", ["Abd"]),
    ("TableName eq 'abd'", []),
    ("TableName ge 'Abd' and TableName lt 'b'", ["abc", "Abd"]),
    ("TableName ne 'abc'", ["Abd", "b12"]),
    ("not (TableName lt 'a')", ["abc", "b12"]),
    ("TableName eq 'b12' or TableName eq 'abc'", ["abc", "b12"]),
    ("", ["abc", "Abd", "b12"]),
    ("true", ["abc", "Abd", "b12"]),
    ("false", []),
    ("(True and TableName eq 'abc') or false", ["abc"]),
]


def test_tables_are_filtered_by_name(table_account: TableClient) -> None:
    """T-TAB-07."""
    for name in ("abc", "Abd", "b12"):
        expect_json(table_account.post("/Tables", {"TableName": name}), 201)
    for text, expected in FILTERS:
        assert names(table_account.get(query("Tables", filter=text))) == expected, text
        found = [name for page in pages(table_account, filter=text, top=1) for name in page]
        assert found == expected, text
    for text in ("TableName eq", "TableName = 'a'", "('"):
        expect_json(table_account.get(query("Tables", filter=text)), 400, "InvalidInput")
    for top in ("1001", "x", "-1"):
        expect_json(table_account.get(query("Tables", top=top)), 400, "InvalidInput")
    answer = table_account.get(query("Tables", top=0))
    assert names(answer) == []
    assert answer.get("x-ms-continuation-NextTableName") is None
    for token in ("nonsense", "1!4!AAAA!", "", "2!4!Yg--"):
        answer = table_account.get(query("Tables", NextTableName=token))
        expect_json(answer, 400, "InvalidInput")


def test_policies_come_back_as_they_were_set(tables: TableClient, table: str) -> None:
    """T-TAB-08, T-FMT-06."""
    sent = POLICY.format(id="one", letters="raud")
    expect(tables.put(f"/{table}?comp=acl", (), sent.encode()), 204)
    found = expect(tables.get(f"/{table.upper()}?comp=acl"), 200)
    assert texts(found.xml, "SignedIdentifier/Id") == ["one"]
    assert texts(found.xml, "SignedIdentifier/AccessPolicy/Permission") == ["raud"]
    assert found["Content-Type"] == "application/xml"
    assert expect(tables.head(f"/{table}?comp=acl"), 200).body == b""
    many = "".join(f"<SignedIdentifier><Id>{n}</Id></SignedIdentifier>" for n in range(6))
    body = f"<SignedIdentifiers>{many}</SignedIdentifiers>".encode()
    refused = expect(tables.put(f"/{table}?comp=acl", (), body), 400, "InvalidXmlDocument")
    assert refused["Content-Type"] == "application/xml"
    expect(tables.put(f"/{table}?comp=acl"), 204)
    assert not list(expect(tables.get(f"/{table}?comp=acl"), 200).xml)


def test_a_policy_counts_from_the_moment_it_is_set(tables: TableClient, table: str) -> None:
    """T-TAB-08, T-SAS-04."""
    token = table_sas(tables.credential, table, sp="", se="", si="one")
    target = f"/{table}()?{token}"
    for _ in range(3):
        expect_json(tables.get(target, auth=None), 403, "AuthenticationFailed")
        policy = POLICY.format(id="one", letters="r").encode()
        expect(tables.put(f"/{table}?comp=acl", (), policy), 204)
        expect_json(tables.get(target, auth=None), 200)
        policy = POLICY.format(id="one", letters="aud").encode()
        expect(tables.put(f"/{table}?comp=acl", (), policy), 204)
        refused = tables.get(target, auth=None)
        expect_json(refused, 403, "AuthorizationPermissionMismatch")
        expect(tables.put(f"/{table}?comp=acl"), 204)


def test_the_urls_of_tables_and_entities(server: Running, tables: TableClient, table: str) -> None:
    """T-ADR-01, T-ADR-02."""
    insert(tables, table, {"PartitionKey": "it's", "RowKey": "a (b), c=d", "N": 1})
    hosted = tables.another("")
    host = {"Host": f"{tables.account}.table.localhost:{server.table_port}"}
    for target in (f"/{table}", f"/{table}()", f"/{table}(%20)"):
        for one, headers in ((tables, {}), (hosted, host)):
            assert len(expect_json(one.get(target, headers), 200)["value"]) == 1
    forms = (
        "PartitionKey='it%27%27s',RowKey='a%20(b),%20c=d'",
        "RowKey='a%20(b),%20c=d',PartitionKey='it''s'",
        "%20PartitionKey%20=%20'it''s'%20,%20RowKey%20=%20'a%20(b),%20c=d'%20",
        "PartitionKey=%27it%27%27s%27%2CRowKey=%27a%20%28b%29%2C%20c%3Dd%27",
    )
    for form in forms:
        assert expect_json(tables.get(f"/{table}({form})"), 200)["N"] == 1
    hosted.close()
    insert(tables, table, {"PartitionKey": "", "RowKey": ""})
    expect_json(tables.get(f"/{table}(PartitionKey='',RowKey='')"), 200)


@pytest.mark.parametrize(
    "inside",
    [
        "(PartitionKey='p')",
        "(RowKey='r')",
        "('p','r')",
        "(PartitionKey='p',RowKey='r',RowKey='r')",
        "(PartitionKey='p';RowKey='r')",
        "(PartitionKey=p,RowKey=r)",
        "(PartitionKey='p',RowKey='r'",
        "(PartitionKey='p',RowKey='r')x",
        "(PartitionKey='p',RowKey='r'))",
        "(PartitionKey='it's',RowKey='r')",
        "(PartitionKey='p',RowKey='r',)",
        "(partitionkey='p',rowkey='r')",
        "/other",
        ")",
    ],
)
def test_parentheses_that_name_nothing(tables: TableClient, table: str, inside: str) -> None:
    """T-ADR-02."""
    answer = tables.get(f"/{table}{inside}")
    assert answer.status == 400, answer
    assert answer.code in ("InvalidUri", "InvalidResourceName"), answer


def test_operations_that_there_are_not(tables: TableClient, table: str) -> None:
    """T-ADR-08."""
    expect_json(tables.get(f"/{table}?comp=nonsense"), 400, "InvalidQueryParameterValue")
    expect_json(tables.get("/?restype=nonsense&comp=stats"), 400, "InvalidQueryParameterValue")
    for method, target, allowed in (
        ("PUT", f"/{table}", {"GET", "POST"}),
        ("POST", entity(table, "p", "r"), {"GET", "PUT", "MERGE", "PATCH", "DELETE"}),
        ("DELETE", "/Tables", {"GET", "POST"}),
        ("PUT", f"/Tables('{table}')", {"GET", "DELETE"}),
        ("GET", "/$batch", {"POST"}),
    ):
        answer = tables.send(method, target)
        expect_json(answer, 405, "MethodNotAllowed")
        assert set(answer["Allow"].split(", ")) >= allowed


def test_an_account_url_that_ends_in_a_table(tables: TableClient, table: str) -> None:
    """T-ADR-12."""
    new = {"TableName": "another"}
    expect_json(tables.post("/missing/Tables", new), 404, "TableNotFound")
    expect_json(tables.post(f"/{table}/Tables", new), 400, "PropertiesNeedValue")
    batch = {"Content-Type": "multipart/mixed; boundary=b"}
    refused = tables.send("POST", f"/{table}/$batch", batch, b"--b--")
    expect_json(refused, 415, "MediaTypeNotSupported")
    assert tables.delete(f"/{table}/Tables('{table}')").status == 400
    expect_json(tables.get(query(table)), 200)


def test_the_secondary_endpoint_only_reads(tables: TableClient, table: str) -> None:
    """T-ADR-09, T-SVC-02."""
    insert(tables, table, {"PartitionKey": "p", "RowKey": "r", "N": 1})
    other = tables.another(f"/{tables.account}-secondary")
    assert expect_json(other.get(entity(table, "p", "r")), 200)["N"] == 1
    assert len(expect_json(other.get(query(table)), 200)["value"]) == 1
    document = expect_json(other.get(f"/Tables('{table}')"), 200)
    assert document["TableName"] == table
    code = "InsufficientAccountPermissions"
    refused = other.post("/Tables", {"TableName": f"{table}x"})
    expect_json(refused, 403, code)
    assert b"Write operations are not allowed." in refused.body
    expect_json(other.post(f"/{table}", {"PartitionKey": "p", "RowKey": "s"}), 403, code)
    expect_json(other.delete(entity(table, "p", "r"), ANY), 403, code)
    expect_json(other.delete(f"/Tables('{table}')"), 403, code)
    stats = "/?restype=service&comp=stats"
    found = expect(other.get(stats), 200).xml
    assert found.findtext("GeoReplication/Status") == "live"
    assert (found.findtext("GeoReplication/LastSyncTime") or "").endswith(" GMT")
    expect(tables.get(stats), 400, "InvalidQueryParameterValue")
    other.close()
    assert expect_json(tables.get(entity(table, "p", "r")), 200)["N"] == 1


def test_other_conditions_have_no_effect(tables: TableClient, table: str) -> None:
    """T-ADR-10."""
    never: dict[str, Any] = {
        "If-None-Match": "*",
        "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT",
        "If-Unmodified-Since": "Fri, 01 Jan 2010 00:00:00 GMT",
    }
    document = {"PartitionKey": "p", "RowKey": "r", "N": 1}
    wrong = {"If-Match": "W/\"datetime'2000-01-01T00%3A00%3A00Z'\""}
    expect_json(tables.post(f"/{table}", document, {**never, **wrong}), 201)
    expect_json(tables.get(entity(table, "p", "r"), {**never, **wrong}), 200)
    expect_json(tables.delete(f"/Tables('{table}')", {**never, **wrong}), 204)


@pytest.mark.parametrize("name", ["If-None-Match", "If-Modified-Since", "if-unmodified-since"])
def test_conditions_that_writes_do_not_have(tables: TableClient, table: str, name: str) -> None:
    """T-WRI-11."""
    insert(tables, table, {"PartitionKey": "p", "RowKey": "r", "N": 1})
    target, body = entity(table, "p", "r"), json.dumps({"N": 2}).encode()
    given = {**JSON_SENT, name: "*"}
    for method in ("PUT", "MERGE", "PATCH", "DELETE"):
        sent = b"" if method == "DELETE" else body
        for match in ({}, ANY) if method != "DELETE" else (ANY,):
            text = expect_json(
                tables.send(method, target, {**given, **match}, sent), 400, "InvalidInput"
            )
            assert name.lower() in text.lower()
    assert expect_json(tables.get(target), 200)["N"] == 1


def test_answers_have_the_headers_of_every_service(tables: Client, table: str) -> None:
    """T-SVC-04."""
    answer = tables.get(
        f"/{table}", {"x-ms-client-request-id": "mine", "x-ms-version": "2021-12-02"}
    )
    assert answer["Server"].startswith("Windows-Azure-Table/1.0 ")
    assert answer["x-ms-version"] == "2021-12-02"
    assert answer["x-ms-client-request-id"] == "mine"
    ids = {tables.get(f"/{table}")["x-ms-request-id"] for _ in range(3)}
    assert len(ids) == 3
