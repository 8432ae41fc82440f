"""Entities over HTTP: every write, every type, every limit and values above it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.conformance.answer import Answer, expect
from tests.conformance.concurrent_clients import ConcurrentClients
from tests.conformance.table_client import (
    JSON_SENT,
    MINIMAL,
    TableClient,
    entity,
    expect_json,
    insert,
)

READ = {"Accept": MINIMAL}
KEYS = {"PartitionKey": "p", "RowKey": "r"}
SENT = {"Content-Type": "application/json"}


def read(tables: TableClient, table: str, row: str = "r", level: str = "nometadata") -> Any:
    """The properties of an entity, without keys and Timestamp."""
    accept = {"Accept": f"application/json;odata={level}"}
    found = expect_json(tables.get(entity(table, "p", row), accept), 200)
    own = ("PartitionKey", "RowKey", "Timestamp")
    return {k: v for k, v in found.items() if k not in own and not k.startswith("odata.")}


def write(
    tables: TableClient,
    method: str,
    table: str,
    document: object,
    match: str | None = None,
    row: str = "r",
) -> Answer:
    fields = {**SENT, "If-Match": match}
    body = b"" if document is None else json.dumps(document).encode()
    return tables.send(method, entity(table, "p", row), fields, body)


def run_together(tables: TableClient, act: Any, count: int = 32) -> list[Answer]:
    """Return the answers of many concurrent clients, in the order of their numbers."""
    with ConcurrentClients(tables, count) as clients:
        return clients.run(act)


def test_insert(tables: TableClient, table: str) -> None:
    """T-WRI-01, T-TAB-02."""
    made = tables.post(f"/{table}", {**KEYS, "A": 1})
    found = expect_json(made, 201)
    assert (found["A"], found["odata.etag"]) == (1, made["ETag"])
    location = f"{tables.url}/{table}(PartitionKey='p',RowKey='r')"
    assert made["Location"] == location
    assert made.get("Preference-Applied") is None
    expect_json(tables.post(f"/{table}", {**KEYS, "A": 2}), 409, "EntityAlreadyExists")
    keys = {"PartitionKey": "it's 100%", "RowKey": ""}
    made = tables.post(f"/{table}", keys, {"Prefer": "return-no-content"})
    assert (made.status, made.body, made["Preference-Applied"]) == (204, b"", "return-no-content")
    location = f"{tables.url}/{table}(PartitionKey='it''s%20100%25',RowKey='')"
    assert made["Location"] == made["DataServiceId"] == location
    assert made["ETag"].startswith('W/"datetime')
    made = tables.post(f"/{table}", {**KEYS, "RowKey": "x"}, {"Prefer": "return-content"})
    assert (made.status, made["Preference-Applied"]) == (201, "return-content")
    made = tables.post(f"/{table}", {**KEYS, "RowKey": "y"}, {"Prefer": "return-everything"})
    expect_json(made, 400, "InvalidHeaderValue")


def test_update_replaces(tables: TableClient, table: str) -> None:
    """T-WRI-02, T-WRI-06, T-WRI-07."""
    expect_json(write(tables, "PUT", table, {}, "*"), 404, "ResourceNotFound")
    insert(tables, table, {**KEYS, "A": 1, "B": 2})
    first = tables.get(entity(table, "p", "r"), READ)["ETag"]
    second = expect(write(tables, "PUT", table, {"C": 3}, first), 204)["ETag"]
    assert read(tables, table) == {"C": 3}
    refused = write(tables, "PUT", table, {"D": 4}, first)
    expect_json(refused, 412, "UpdateConditionNotSatisfied")
    for method in ("PUT", "MERGE", "DELETE"):
        refused = write(tables, method, table, {"D": 4}, 'W/"wrong"')
        expect_json(refused, 412, "UpdateConditionNotSatisfied")
        missing = write(tables, method, table, {}, 'W/"wrong"', row="missing")
        expect_json(missing, 404, "ResourceNotFound")
    third = expect(write(tables, "PUT", table, {"E": 5}, "*"), 204)["ETag"]
    assert first < second < third
    assert read(tables, table) == {"E": 5}


@pytest.mark.parametrize("method", ["MERGE", "PATCH"])
def test_merge_keeps_what_is_not_given(tables: TableClient, table: str, method: str) -> None:
    """T-WRI-03, T-VAL-06."""
    expect_json(write(tables, method, table, {}, "*"), 404, "ResourceNotFound")
    insert(tables, table, {**KEYS, "A": 1, "B": "b", "C": True})
    tag = tables.get(entity(table, "p", "r"), READ)["ETag"]
    changed = {"B@odata.type": "Edm.Int64", "B": "7", "C": None, "D": 1.5}
    expect(write(tables, method, table, changed, tag), 204)
    expected = {"A": 1, "B@odata.type": "Edm.Int64", "B": "7", "C": True, "D": 1.5}
    assert read(tables, table, level="minimalmetadata") == expected
    expect_json(write(tables, method, table, {}, tag), 412, "UpdateConditionNotSatisfied")
    expect(write(tables, method, table, {"B": "text again"}, "*"), 204)
    assert read(tables, table, level="minimalmetadata") == {
        "A": 1, "B": "text again", "C": True, "D": 1.5,
    }  # fmt: skip


def test_upserts_need_no_tag(tables: TableClient, table: str) -> None:
    """T-WRI-04."""
    for method, expected in (("PUT", {"B": 2}), ("MERGE", {"A": 1, "B": 2})):
        expect(write(tables, method, table, {"A": 1}, row=method), 204)
        target = entity(table, "p", method)
        assert expect(tables.send(method, target, SENT, b'{"B":2}'), 204)["ETag"]
        assert read(tables, table, method) == expected


def test_delete_needs_a_tag(tables: TableClient, table: str) -> None:
    """T-WRI-05, T-WRI-06."""
    insert(tables, table, KEYS)
    tag = tables.get(entity(table, "p", "r"), READ)["ETag"]
    expect_json(write(tables, "DELETE", table, None), 400, "MissingRequiredHeader")
    expect(write(tables, "MERGE", table, {"A": 1}), 204)
    expect_json(write(tables, "DELETE", table, None, tag), 412, "UpdateConditionNotSatisfied")
    for other in ("W/\"datetime'x'\"", 'W/""'):
        expect_json(write(tables, "DELETE", table, None, other), 412, "UpdateConditionNotSatisfied")
    for bad in ('"0x8D"', 'w/"x"', 'W/"x', "x", ""):
        expect_json(write(tables, "DELETE", table, None, bad), 400, "InvalidInput")
    assert "ETag" not in dict(expect(write(tables, "DELETE", table, None, "*"), 204).headers)
    expect_json(write(tables, "DELETE", table, None, "*"), 404, "ResourceNotFound")
    expect_json(write(tables, "DELETE", table, None, tag), 404, "ResourceNotFound")


def test_get_by_both_keys(tables: TableClient, table: str) -> None:
    """T-WRI-08."""
    insert(tables, table, {**KEYS, "A": 1, "B": "b"})
    answer = tables.get(entity(table, "p", "r"), READ)
    assert expect_json(answer, 200)["odata.etag"] == answer["ETag"]
    chosen = tables.get(entity(table, "p", "r") + "?$select=B,Missing", READ)
    found = expect_json(chosen, 200)
    assert {k: v for k, v in found.items() if not k.startswith("odata.")} == {
        "B": "b", "Missing": None,
    }  # fmt: skip
    missing = tables.get(entity(table, "p", "x"), READ)
    expect_json(missing, 404, "ResourceNotFound")


TYPES = [
    # sent, as read back at minimal metadata (None = as sent)
    ({"P": "text \u00fc \U0001f600 \n \" \\ \u007f"}, None),
    ({"P": ""}, None),
    ({"P": True}, None),
    ({"P": 0}, None),
    ({"P": -(2**31)}, None),
    ({"P": 2**31 - 1}, None),
    ({"P": 1.5}, None),
    ({"P": 3.0}, {"P": 3.0}),
    ({"P": 1e300}, None),
    ({"P@odata.type": "Edm.Double", "P": 3}, {"P": 3.0}),
    ({"P@odata.type": "Edm.Double", "P": "2.5"}, {"P": 2.5}),
    ({"P@odata.type": "Edm.Double", "P": "NaN"}, None),
    ({"P@odata.type": "Edm.Double", "P": "-Infinity"}, None),
    ({"P@odata.type": "Edm.String", "P": "x"}, {"P": "x"}),
    ({"P@odata.type": "Edm.Int32", "P": 7}, {"P": 7}),
    ({"P@odata.type": "Edm.Int32", "P": "7"}, {"P": 7}),
    ({"P@odata.type": "Edm.Boolean", "P": "true"}, {"P": True}),
    ({"P@odata.type": "Edm.Int64", "P": str(2**63 - 1)}, None),
    ({"P@odata.type": "Edm.Int64", "P": str(-(2**63))}, None),
    ({"P@odata.type": "Edm.Int64", "P": 12}, {"P@odata.type": "Edm.Int64", "P": "12"}),
    ({"P": "2013-08-09T18:55:48.3402073Z", "P@odata.type": "Edm.DateTime"}, None),
    ({"P@odata.type": "Edm.DateTime", "P": "1601-01-01T00:00:00Z"},
     {"P@odata.type": "Edm.DateTime", "P": "1601-01-01T00:00:00.0000000Z"}),
    ({"P@odata.type": "Edm.DateTime", "P": "9999-12-31T23:59:59.9999999Z"}, None),
    ({"P@odata.type": "Edm.DateTime", "P": "2013-08-09T20:55:48.5+02:00"},
     {"P@odata.type": "Edm.DateTime", "P": "2013-08-09T18:55:48.5000000Z"}),
    ({"P@odata.type": "Edm.Guid", "P": "C9DA6455-213D-42C9-9A79-3E9149A57833"},
     {"P@odata.type": "Edm.Guid", "P": "c9da6455-213d-42c9-9a79-3e9149a57833"}),
    ({"P@odata.type": "Edm.Binary", "P": base64.b64encode(bytes(range(256))).decode()}, None),
    ({"P@odata.type": "Edm.Binary", "P": ""}, None),
    ({"P": None}, {}),
    ({"P@odata.type": "Edm.Int64", "P": None}, {}),
    ({"Other@odata.type": "Edm.Int64", "P": 1}, {"P": 1}),
    ({"Timestamp": "2001-01-01T00:00:00Z", "odata.etag": "x", "odata.type": "y", "P": 1}, {"P": 1}),
    ({"p": 1, "P": 2}, None),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "expected"), TYPES)
def test_values_are_read_back(
    tables: TableClient, table: str, sent: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    """T-VAL-01, T-VAL-02, T-VAL-03, T-VAL-05, T-VAL-06, T-FMT-07."""
    insert(tables, table, {**KEYS, **sent})
    found = read(tables, table, level="minimalmetadata")
    assert found == (sent if expected is None else expected)
    for name, value in (sent if expected is None else expected).items():
        assert type(found[name]) is type(value)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"P": 2**31}, "InvalidInput"),
        ({"P": -(2**31) - 1}, "InvalidInput"),
        ({"P@odata.type": "Edm.Int64", "P": str(2**63)}, "InvalidInput"),
        ({"P@odata.type": "Edm.Int64", "P": "x"}, "InvalidInput"),
        ({"P@odata.type": "Edm.Int32", "P": 1.5}, "InvalidInput"),
        ({"P@odata.type": "Edm.Boolean", "P": 1}, "InvalidInput"),
        ({"P@odata.type": "Edm.Double", "P": "x"}, "InvalidInput"),
        ({"P@odata.type": "Edm.Double", "P": "1e999"}, "InvalidInput"),
        ({"P@odata.type": "Edm.DateTime", "P": "yesterday"}, "InvalidInput"),
        ({"P@odata.type": "Edm.DateTime", "P": "2013-02-30T00:00:00Z"}, "InvalidInput"),
        ({"P@odata.type": "Edm.DateTime", "P": 7}, "InvalidInput"),
        ({"P@odata.type": "Edm.Guid", "P": "c9da6455"}, "InvalidInput"),
        ({"P@odata.type": "Edm.Binary", "P": "a"}, "InvalidInput"),
        ({"P@odata.type": "Edm.String", "P": 7}, "InvalidInput"),
        ({"P@odata.type": "Edm.Time", "P": "x"}, "InvalidInput"),
        ({"P@odata.type": 7, "P": "x"}, "InvalidInput"),
        ({"P": {"a": 1}}, "InvalidInput"),
        ({"P": [1]}, "InvalidInput"),
        ({"P": "\ud800"}, "InvalidInput"),
        ({"1P": 1}, "PropertyNameInvalid"),
        ({"P Q": 1}, "PropertyNameInvalid"),
        ({"": 1}, "PropertyNameInvalid"),
        ({"P-Q": 1}, "PropertyNameInvalid"),
        ({"P" * 256: 1}, "PropertyNameTooLong"),
        ({"PartitionKey": 7}, "InvalidInput"),
        ({"RowKey": None}, "PropertiesNeedValue"),
    ],
)
def test_values_that_are_refused(
    tables: TableClient, table: str, sent: dict[str, Any], code: str
) -> None:
    """T-VAL-03, T-VAL-04, T-FMT-08, T-KEY-02, T-KEY-05."""
    text = expect_json(tables.post(f"/{table}", {**KEYS, **sent}), 400, code)
    if code == "InvalidInput" and "P" in sent and sent["P"] != "\ud800":
        assert "P" in text.split("\n")[0]
    expect_json(tables.get(entity(table, "p", "r"), READ), 404, "ResourceNotFound")


def test_moments_before_1601(tables: TableClient, table: str) -> None:
    """T-VAL-05."""
    sent = {**KEYS, "P@odata.type": "Edm.DateTime", "P": "1600-12-31T23:59:59Z"}
    text = expect_json(tables.post(f"/{table}", sent), 400, "OutOfRangeInput")
    expected = "The 'P' parameter of value '12/31/1600 23:59:59' is out of range."
    assert text.split("\n")[0] == expected


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"PartitionKey":"p","RowKey":"r","P":1,"P":2}', "DuplicatePropertiesSpecified"),
        (b'{"PartitionKey":"p","RowKey":"r","RowKey":"s"}', "DuplicatePropertiesSpecified"),
        (b"[]", "InvalidInput"),
        (b'"text"', "InvalidInput"),
        (b"{", "InvalidInput"),
        (b"", "InvalidInput"),
        (b"\xff\xfe", "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","P":NaN}', "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","P":1e999}', "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","P":' + b"9" * 5000 + b"}", "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","P":' + b"[" * 200_000, "InvalidInput"),
        (b"{}", "PropertiesNeedValue"),
        (b'{"PartitionKey":"p"}', "PropertiesNeedValue"),
    ],
    ids=range(13),
)
def test_bodies_that_are_refused(tables: TableClient, table: str, body: bytes, code: str) -> None:
    """T-FMT-08, T-KEY-02, T-VAL-04."""
    expect_json(tables.send("POST", f"/{table}", JSON_SENT, body), 400, code)


def test_keys_in_the_body_must_be_those_of_the_url(tables: TableClient, table: str) -> None:
    """T-KEY-03."""
    expect(write(tables, "PUT", table, {**KEYS, "A": 1}), 204)
    expect_json(write(tables, "PUT", table, {"RowKey": "s"}), 400, "InvalidInput")
    expect_json(write(tables, "MERGE", table, {"PartitionKey": "q"}), 400, "InvalidInput")


def test_how_many_properties(tables: TableClient, table: str) -> None:
    """T-KEY-04, T-KEY-05."""
    most = {f"P{n}": n for n in range(252)}
    insert(tables, table, {**KEYS, **most})
    more = tables.post(f"/{table}", {**KEYS, "RowKey": "x", **most, "Q": 1})
    expect_json(more, 400, "TooManyProperties")
    expect_json(write(tables, "MERGE", table, {"Q": 1}, "*"), 400, "TooManyProperties")
    expect(write(tables, "MERGE", table, {"P0": 1}, "*"), 204)
    insert(tables, table, {**KEYS, "RowKey": "long", "N" * 255: 1})


@pytest.mark.parametrize(
    ("value", "kind"),
    [("x" * 32_768, None), ("\U0001f600" * 16_384, None), ("y", "Edm.Binary")],
    ids=["letters", "pairs", "bytes"],
)
def test_how_long_a_value_is(tables: TableClient, table: str, value: str, kind: str | None) -> None:
    """T-KEY-06."""
    annotation = {} if kind is None else {"P@odata.type": kind}
    more = value + "x"
    if kind is not None:
        value = base64.b64encode(bytes(65_536)).decode()
        more = base64.b64encode(bytes(65_537)).decode()
    insert(tables, table, {**KEYS, **annotation, "P": value})
    assert read(tables, table)["P"] == value
    refused = write(tables, "PUT", table, {**annotation, "P": more})
    expect_json(refused, 400, "PropertyValueTooLarge")


def test_how_large_an_entity_is(tables: TableClient, table: str) -> None:
    """T-KEY-07."""
    # 4, the keys, and for each property 8, its name, 4, its value; all text counted double.
    fixed = 4 + 2 * 2
    full = {f"P{n:02}": "x" * 32_000 for n in range(16)}
    used = fixed + sum(8 + 2 * len(name) + 4 + 2 * len(text) for name, text in full.items())
    rest = (1024 * 1024 - used - 8 - 2 * 3 - 4) // 2
    insert(tables, table, {**KEYS, **full, "Last": "", "Z16": "x" * (rest - 10)})
    found = read(tables, table)
    assert len(found) == 18 and found["P15"] == full["P15"]
    assert len(found["Z16"]) == rest - 10
    # That was all the room there is.
    refused = write(tables, "MERGE", table, {"Last": "y"}, "*")
    expect_json(refused, 400, "EntityTooLarge")
    assert read(tables, table)["Last"] == ""
    expect(write(tables, "MERGE", table, {"Last": "y", "Z16": "x"}, "*"), 204)
    assert read(tables, table)["Last"] == "y"
    refused = tables.post(f"/{table}", {**KEYS, "RowKey": "s", **full, "Z16": "x" * 32_000})
    expect_json(refused, 400, "EntityTooLarge")
    body = b'{"PartitionKey":"p","RowKey":"t","P":"' + b"x" * (4 * 1024 * 1024) + b'"}'
    refused = tables.send("POST", f"/{table}", JSON_SENT, body)
    expect_json(refused, 413, "RequestBodyTooLarge")


@pytest.mark.parametrize("name", ["PartitionKey", "RowKey"])
@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", None),
        ("x" * 512, None),
        ("\U0001f600" * 256, None),
        (" ~!@$%^&*()_+-={}|[]:\";'<>,.", None),
        ("x" * 513, "PropertyValueTooLarge"),
        ("\U0001f600" * 257, "PropertyValueTooLarge"),
        ("a/b", "OutOfRangeInput"),
        ("a\\b", "OutOfRangeInput"),
        ("a#b", "OutOfRangeInput"),
        ("a?b", "OutOfRangeInput"),
        ("a\tb", "OutOfRangeInput"),
        ("a\u0000b", "OutOfRangeInput"),
        ("a\u0085b", "OutOfRangeInput"),
        ("\ud800", "InvalidInput"),
    ],
)
def test_keys(tables: TableClient, table: str, name: str, key: str, code: str | None) -> None:
    """T-KEY-01, T-ADR-02."""
    document = {**KEYS, name: key}
    answer = tables.post(f"/{table}", document)
    if code is not None:
        expect_json(answer, 400, code)
        return
    expect_json(answer, 201)
    target = entity(table, document["PartitionKey"], document["RowKey"])
    found = expect_json(tables.get(target, READ), 200)
    assert found[name] == key
    expect(tables.delete(target, {"If-Match": "*"}), 204)


def test_of_32_writers_with_one_tag_one_wins(tables: TableClient, table: str) -> None:
    """T-WRI-09."""
    insert(tables, table, KEYS)
    for _ in range(3):
        tag = tables.get(entity(table, "p", "r"), READ)["ETag"]
        answers = run_together(tables, lambda one, n, t=tag: write(one, "PUT", table, {"A": n}, t))
        statuses = sorted(answer.status for answer in answers)
        assert statuses == [204] + [412] * 31
        (winner,) = (n for n, answer in enumerate(answers) if answer.status == 204)
        assert read(tables, table) == {"A": winner}


def test_of_32_inserters_one_wins(tables: TableClient, table: str) -> None:
    """T-WRI-09."""
    answers = run_together(tables, lambda one, n: one.post(f"/{table}", {**KEYS, "A": n}))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 31


def _delete_or_write(one: TableClient, number: int) -> Answer:
    if number == 0:
        return one.delete("/Tables('Turns')")
    return write(one, "PUT", "Turns", {"A": number}, row=str(number))


def test_a_write_to_a_deleted_table_is_not_in_its_successor(
    table_account: TableClient,
) -> None:
    """T-TAB-05."""
    for turn in range(5):
        expect_json(table_account.post("/Tables", {"TableName": "Turns"}), 201)
        answers = run_together(table_account, _delete_or_write, 16)
        assert {answer.status for answer in answers} <= {204, 404}, turn
        expect_json(table_account.post("/Tables", {"TableName": "Turns"}), 201)
        found = expect_json(table_account.get("/Turns()", READ), 200)
        assert found["value"] == []
        expect(table_account.delete("/Tables('Turns')"), 204)
