"""Tables at their limits: one below, at, and one above; odd keys, names, documents and formats."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from strongroom.errors.core import StorageError
from strongroom.wire.table.odata_entities import read_entity
from tests.conformance.table_client import JSON_SENT, TableClient, entity, expect_json, query

MIB = 1024 * 1024


def send(tables: TableClient, body: bytes) -> Any:
    return tables.send("POST", "/Edge", JSON_SENT, body)


KEYS = [
    # key, code
    ("k" * 511, None),
    ("k" * 512, None),
    ("k" * 513, "PropertyValueTooLarge"),
    ("\U0001f600" * 256, None),
    ("\U0001f600" * 257, "PropertyValueTooLarge"),
    ("漢" * 512, None),
    ("'" * 512, None),
    ("", None),
    *((f"a{character}b", None) for character in '%+&=;,: "<>|*~^`{}[]()$@!\xa0\u2028\ufeff\uffff'),
    *((f"a{character}b", "OutOfRangeInput") for character in "/\\#?\t\n\0\x1f\x7f\x80\x9f"),
]


@pytest.mark.parametrize(("key", "code"), KEYS, ids=range(len(KEYS)))
def test_a_key_is_refused_or_leads_back(tables: TableClient, key: str, code: str | None) -> None:
    """T-KEY-01, T-ADR-02, T-WRI-01: by its URL, by the answer's Location, and by a filter."""
    made = tables.post("/Edge", {"PartitionKey": key, "RowKey": key})
    expect_json(made, 400 if code else 201, code)
    target = entity("Edge", key, key)
    if code is not None:
        expect_json(tables.get(target), 400, code)
        return
    location = urlsplit(made["Location"])
    for found in (tables.get(target), tables.another("").get(location.path)):
        assert expect_json(found, 200)["RowKey"] == key
    text = key.replace("'", "''")
    if len(text) < 600:
        condition = f"PartitionKey eq '{text}' and RowKey eq '{text}'"
        (one,) = expect_json(tables.get(query("Edge", filter=condition)), 200)["value"]
        assert one["PartitionKey"] == key
    expect_json(tables.delete(target, {"If-Match": made["ETag"]}), 204)


def sized(bytes_count: int) -> dict[str, str]:
    """Properties of an entity (p, r) that counts so many bytes."""
    names = [f"P{number:02}" for number in range(16)]
    found = dict.fromkeys(names, "x" * 32_000)
    spent = 4 + 2 * 2 + sum(8 + 2 * len(name) + 4 + 64_000 for name in names)
    return {**found, "Q": "y" * ((bytes_count - spent - 8 - 2 - 4) // 2)}


def test_an_entity_has_up_to_a_mebibyte(tables: TableClient) -> None:
    """T-KEY-07."""
    keys = {"PartitionKey": "p", "RowKey": "r"}
    expect_json(tables.post("/Edge", {**keys, **sized(MIB + 2)}), 400, "EntityTooLarge")
    expect_json(tables.post("/Edge", {**keys, **sized(MIB)}), 201)
    target = entity("Edge", "p", "r")
    more = tables.send("MERGE", target, JSON_SENT, b'{"Z":true}')
    expect_json(more, 400, "EntityTooLarge")
    found = expect_json(tables.get(target), 200)
    assert {name: found[name] for name in sized(MIB)} == sized(MIB) and "Z" not in found
    expect_json(tables.send("MERGE", target, JSON_SENT, b'{"P00":"short","Z":true}'), 204)


COUNTS = [
    # properties, of them null, code
    (251, 0, None),
    (252, 0, None),
    (253, 0, "TooManyProperties"),
    (4000, 3900, None),
    (5000, 4999, "TooManyProperties"),
]


@pytest.mark.parametrize(("count", "nulls", "code"), COUNTS)
def test_properties_are_counted(
    tables: TableClient, count: int, nulls: int, code: str | None
) -> None:
    """T-KEY-04, T-VAL-06."""
    own = {f"P{n}": None if n < nulls else n for n in range(count)}
    made = tables.post("/Edge", {"PartitionKey": "p", "RowKey": str(count), **own})
    expect_json(made, 400 if code else 201, code)


MANY, NESTED = "TooManyProperties", "InvalidInput"
KEYED = b'{"PartitionKey":"p","RowKey":"r",%b}'
BULK: dict[str, tuple[Callable[[], bytes], str]] = {
    "properties": (lambda: KEYED % b",".join(b'"P%d":1' % n for n in range(300_000)), MANY),
    "members of OData": (
        lambda: KEYED % b",".join(b'"odata.%d":1' % n for n in range(200_000)),
        MANY,
    ),
    "nulls": (lambda: KEYED % b",".join(b'"P%d":null' % n for n in range(250_000)), MANY),
    "objects": (lambda: KEYED % b'"A":[%b]' % b",".join([b"{}"] * 1_300_000), NESTED),
    "objects in a member of OData": (
        lambda: KEYED % b'"odata.x":[%b]' % b",".join([b"{}"] * 1_300_000),
        NESTED,
    ),
    "objects that are not empty": (
        lambda: KEYED % b'"A":[%b]' % b",".join([b'{"a":1}'] * 500_000),
        NESTED,
    ),
    "texts": (
        lambda: KEYED % b'"A":[%b]' % b",".join(b'"%06d"' % n for n in range(400_000)),
        NESTED,
    ),
    "depth": (lambda: b'{"A":' * 600_000, NESTED),
    "arrays": (lambda: b'{"A":' + b"[" * 4_000_000, NESTED),
}


@pytest.mark.parametrize("name", BULK)
def test_a_document_in_bulk_is_refused(tables: TableClient, name: str) -> None:
    """T-KEY-04, T-FMT-08: ignored parts of an entity have limits too."""
    made, code = BULK[name]
    body = made()
    assert len(body) < 4 * MIB
    expect_json(send(tables, body), 400, code)
    other = tables.another()
    assert other.get("/Edge()").status == 200
    other.close()


@pytest.mark.parametrize("name", [name for name, (_, code) in BULK.items() if code == NESTED])
def test_what_is_nested_in_bulk_is_refused_before_it_is_taken_apart(name: str) -> None:
    """T-FMT-08: in memory, its objects are up to twenty times as large as the document."""
    made, _ = BULK[name]
    body = made()
    tracemalloc.start()
    try:
        with pytest.raises(StorageError):
            read_entity(body)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 2 * len(body)


def test_the_largest_entity_as_escapes_is_read(tables: TableClient) -> None:
    """T-KEY-07: the entity's JSON is six times as long."""
    text = "".join(f"\\u{ord('é'):04x}" for _ in range(30_000))
    own = ",".join(f'"P{number}":"{text}"' for number in range(16))
    body = f'{{"PartitionKey":"p","RowKey":"r",{own}}}'.encode()
    assert len(body) > 2.7 * MIB
    expect_json(send(tables, body), 201)
    assert expect_json(tables.get(entity("Edge", "p", "r")), 200)["P15"] == "é" * 30_000


def test_names_in_any_script_can_be_stored_filtered_and_selected(tables: TableClient) -> None:
    """T-KEY-05, T-QRY-02, T-QRY-09."""
    for row, name in enumerate(("नाम", "ชื่อ", "a\u0301", "a\u203fb", "__class__", "v0", "t0")):
        expect_json(tables.post("/Edge", {"PartitionKey": "p", "RowKey": str(row), name: "v"}), 201)
        found = expect_json(tables.get(query("Edge", filter=f"{name} eq 'v'", select=name)), 200)
        (one,) = found["value"]
        assert one[name] == "v"
    for name in ("²a", "\u0301a", "a b", "\u200da"):
        refused = tables.post("/Edge", {"PartitionKey": "p", "RowKey": "x", name: "v"})
        expect_json(refused, 400, "PropertyNameInvalid")
    long = tables.post("/Edge", {"PartitionKey": "p", "RowKey": "x", "\U00020000" * 128: "v"})
    expect_json(long, 400, "PropertyNameTooLong")


def test_what_is_selected(tables: TableClient) -> None:
    """T-QRY-09: `*` among others is all, and what is no name has no effect."""
    expect_json(tables.post("/Edge", {"PartitionKey": "p", "RowKey": "r", "S": 1, "T": 2}), 201)
    plain = {**JSON_SENT, "Accept": "application/json;odata=nometadata"}

    def selected(text: str) -> Any:
        (one,) = expect_json(tables.get(query("Edge", select=text), plain), 200)["value"]
        return one

    assert selected("S, *") == selected("*")
    assert selected(" S ,,T,S") == {"S": 1, "T": 2}
    assert selected("S,None_") == {"S": 1, "None_": None}
    assert selected("S,\0,odata.etag,S@odata.type,a-b") == {"S": 1}
    assert selected("\0") == {}


def test_what_is_selected_and_not_there_does_not_swell_a_page(tables: TableClient) -> None:
    """T-QRY-10: a null of a few letters for each of a thousand entities."""
    names = ",".join(f"P{number}" for number in range(2_000))
    for number in range(300):
        document = {"PartitionKey": "p", "RowKey": f"{number:03}"}
        expect_json(tables.post("/Edge", document, {"Prefer": "return-no-content"}), 204)
    found, token = 0, ""
    while True:
        answer = tables.get(f"/Edge()?$select={names}{token}")
        found += len(expect_json(answer, 200)["value"])
        assert len(answer.body) < 4.5 * MIB
        if (partition := answer.get("x-ms-continuation-NextPartitionKey")) is None:
            break
        row = answer["x-ms-continuation-NextRowKey"]
        token = f"&NextPartitionKey={partition}&NextRowKey={row}"
    assert found == 300


@pytest.mark.parametrize(
    "top",
    ["1001", "-1", "x", "1.0", " 1", "+1", "9" * 30, "\u0661", "000000001" + "0" * 5000],
)
def test_top_has_its_bounds(tables: TableClient, top: str) -> None:
    """T-QRY-06, T-TAB-07."""
    for target in (query("Edge", top=top), query("Tables", top=top)):
        expect_json(tables.get(target), 400, "InvalidInput")
    for good in ("0", "000", "1", "1000", ""):
        expect_json(tables.get(query("Edge", top=good)), 200)


TOKENS = ["", "abc", "1!4!cA==", "1!4!cB--", "2!4!cA--", "1!5!cA--", "1!2732!" + "A" * 2732]


@pytest.mark.parametrize("token", TOKENS, ids=range(len(TOKENS)))
def test_a_token_that_was_altered_is_refused(tables: TableClient, token: str) -> None:
    """T-QRY-08, T-TAB-07."""
    text = expect_json(tables.get(query("Edge", NextPartitionKey=token)), 400, "InvalidInput")
    assert "NextPartitionKey is not a token" in text
    text = expect_json(tables.get(query("Tables", NextTableName=token)), 400, "InvalidInput")
    assert "NextTableName is not a token" in text


def test_accept_and_format(tables: TableClient) -> None:
    """T-FMT-01."""
    for target, accept, level in (
        (query("Edge", format=""), "application/json;odata=fullmetadata", "full"),
        (query("Edge"), "application/json;odata=fullmetadata;q=0, */*", "minimal"),
        (query("Edge"), "application/atom+xml, application/json;odata=nometadata;q=0.1", "no"),
    ):
        answer = tables.get(target, {"Accept": accept})
        expect_json(answer, 200)
        assert f"odata={level}metadata" in answer["Content-Type"]
    refused = tables.get(query("Edge"), {"Accept": "application/json;q=0"})
    expect_json(refused, 415, "MediaTypeNotSupported")


def test_values_that_look_like_ones(tables: TableClient) -> None:
    """T-VAL-04: digits of other scripts, offsets of no zone."""
    for row, (kind, value, code) in enumerate((
        ("Edm.Int32", "\u0661", "InvalidInput"),
        ("Edm.Int64", "\uff11", "InvalidInput"),
        ("Edm.Double", "1\u0661", "InvalidInput"),
        ("Edm.DateTime", "\u0662013-08-09T00:00:00Z", "InvalidInput"),
        ("Edm.DateTime", "2013-08-09T00:00:00+99:99", "InvalidInput"),
        ("Edm.DateTime", "2013-08-09T00:00:00+14:00", None),
        ("Edm.Int64", "0" * 5000 + "7", None),
    )):  # fmt: skip
        document = {"PartitionKey": "p", "RowKey": str(row), "A@odata.type": kind, "A": value}
        expect_json(tables.post("/Edge", document), 400 if code else 201, code)


def test_methods_that_a_resource_does_not_have(tables: TableClient) -> None:
    """T-ADR-08."""
    for method, target in (("PUT", "/Edge"), ("HEAD", "/Tables"), ("GET", "/$batch")):
        answer = tables.send(method, target)
        assert (answer.status, answer.code) == (405, "MethodNotAllowed")
        if method != "HEAD":
            assert json.loads(answer.body)["odata.error"]["code"] == "MethodNotAllowed"


@pytest.mark.parametrize("value", ["0", "-1", "x", "", "1.5", "%D9%A1"])
def test_a_timeout_is_a_number_of_seconds(tables: TableClient, value: str) -> None:
    """T-ADR-11."""
    for target in ("/Edge()", "/Tables", entity("Edge", "p", "r")):
        refused = tables.get(f"{target}?timeout={value}")
        expect_json(refused, 400, "InvalidQueryParameterValue")
    body = b'{"PartitionKey":"p","RowKey":"r"}'
    refused = tables.send("POST", f"/Edge?timeout={value}", JSON_SENT, body)
    expect_json(refused, 400, "InvalidQueryParameterValue")
    assert expect_json(tables.get("/Edge()?timeout=30"), 200)["value"] == []


@pytest.mark.parametrize("version", ["1.0", "3.0;NetFx", "9.9", "x", ""])
def test_no_version_changes_a_document(tables: TableClient, version: str) -> None:
    """T-FMT-09."""
    plain = tables.get("/Edge()")
    for fields in (
        {"DataServiceVersion": version},
        {"MaxDataServiceVersion": version},
        {"x-ms-version": "2009-09-19", "DataServiceVersion": version},
    ):
        answer = tables.get("/Edge()", fields)
        assert (answer.status, answer.body) == (200, plain.body)
        assert answer["DataServiceVersion"] == "3.0;"
