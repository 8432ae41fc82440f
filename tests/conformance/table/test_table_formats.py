"""Content negotiation, the three levels of metadata, verb tunnelling, and the form of tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance.answer import expect
from tests.conformance.table_client import (
    JSON_SENT,
    TableClient,
    entity,
    expect_json,
    insert,
    query,
)

LEVELS = ("nometadata", "minimalmetadata", "fullmetadata")
KEYS = {"PartitionKey": "it's", "RowKey": "a b/c".replace("/", "%")}
WHEN = "2013-08-09T18:55:48.3402073Z"
TYPED = {
    "S": "text", "B": True, "I": 7, "D": 1.5,
    "L@odata.type": "Edm.Int64", "L": "12", "W@odata.type": "Edm.DateTime", "W": WHEN,
    "G@odata.type": "Edm.Guid", "G": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "X@odata.type": "Edm.Binary", "X": "AP8=", "N@odata.type": "Edm.Double", "N": "NaN",
}  # fmt: skip


def accept(level: str) -> dict[str, str]:
    return {"Accept": f"application/json;odata={level}"}


def kind(level: str) -> str:
    return f"application/json;odata={level};streaming=true;charset=utf-8"


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """Return the properties that remain without metadata."""
    return {name: value for name, value in document.items() if "odata." not in name}


NEGOTIATED = [
    # Accept, $format, level
    (None, None, "minimalmetadata"),
    ("", None, "minimalmetadata"),
    ("*/*", None, "minimalmetadata"),
    ("application/*", None, "minimalmetadata"),
    ("application/json", None, "minimalmetadata"),
    ("application/json;odata=nometadata", None, "nometadata"),
    ("Application/JSON; OData=FullMetadata", None, "fullmetadata"),
    ('application/json;odata="fullmetadata";q=0.5', None, "fullmetadata"),
    ("application/json;charset=utf-8;odata=nometadata", None, "nometadata"),
    ("application/atom+xml,application/json;odata=nometadata", None, "nometadata"),
    ("application/atom+xml", "application/json;odata=nometadata", "nometadata"),
    ("application/json;odata=nometadata", "json", "minimalmetadata"),
    (None, "application/json;odata=fullmetadata", "fullmetadata"),
]
REFUSED = [
    ("application/atom+xml", None, "AtomFormatNotSupported"),
    ("application/xml", None, "AtomFormatNotSupported"),
    ("application/json", "atom", "AtomFormatNotSupported"),
    ("application/json;odata=verbose", None, "JsonVerboseFormatNotSupported"),
    ("application/json", "application/json;odata=verbose", "JsonVerboseFormatNotSupported"),
    ("application/json;odata=some", None, "MediaTypeNotSupported"),
    ("text/html", None, "MediaTypeNotSupported"),
    ("nonsense", None, "MediaTypeNotSupported"),
    ("application/json", "text/csv", "MediaTypeNotSupported"),
]


def targets(table: str, asked_format: str | None) -> list[str]:
    """Whatever answers with a document."""
    own = {} if asked_format is None else {"format": asked_format}
    option = query("", **own).partition("?")[2]
    tail = f"?{option}" if option else ""
    one = entity(table, "p", "r") + tail
    return [query(table, **own), one, query("Tables", **own), f"/Tables('{table}'){tail}"]


@pytest.mark.parametrize(("accepted", "asked_format", "level"), NEGOTIATED)
def test_the_level_of_metadata_is_negotiated(
    tables: TableClient, table: str, accepted: str | None, asked_format: str | None, level: str
) -> None:
    """T-FMT-01, T-FMT-05."""
    insert(tables, table, {"PartitionKey": "p", "RowKey": "r"})
    for target in targets(table, asked_format):
        answer = tables.get(target, {"Accept": accepted})
        document = expect_json(answer, 200)
        assert answer["Content-Type"] == kind(level)
        assert ("odata.metadata" in document) is (level != "nometadata")
        full = "odata.type" in document or any("odata.type" in r for r in document.get("value", ()))
        assert full is (level == "fullmetadata")
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Cache-Control"] == "no-cache"
        assert answer["DataServiceVersion"] == "3.0;"


@pytest.mark.parametrize(("accepted", "asked_format", "code"), REFUSED)
def test_other_formats_are_refused(
    tables: TableClient, table: str, accepted: str, asked_format: str | None, code: str
) -> None:
    """T-FMT-04, T-FMT-06."""
    for target in targets(table, asked_format):
        answer = tables.get(target, {"Accept": accepted})
        expect_json(answer, 415, code)
        assert answer["Content-Type"] == kind("minimalmetadata")
        assert answer["DataServiceVersion"] == "3.0;"
    if asked_format is None:
        document = {"PartitionKey": "p", "RowKey": "r"}
        expect_json(tables.post(f"/{table}", document, {"Accept": accepted}), 415, code)
        expect_json(tables.get(entity(table, "p", "r")), 404, "ResourceNotFound")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("application/atom+xml", "AtomFormatNotSupported"),
        ("application/json;odata=verbose", "JsonVerboseFormatNotSupported"),
        ("text/plain", "MediaTypeNotSupported"),
    ],
)
def test_documents_of_other_types_are_refused(
    tables: TableClient, table: str, sent: str, code: str
) -> None:
    """T-FMT-04."""
    headers = {"Content-Type": sent}
    body = json.dumps({"PartitionKey": "p", "RowKey": "r", "TableName": f"{table}x"}).encode()
    for method, target in (
        ("POST", f"/{table}"),
        ("POST", "/Tables"),
        ("PUT", entity(table, "p", "r")),
        ("MERGE", entity(table, "p", "r")),
        ("PATCH", entity(table, "p", "r")),
    ):
        expect_json(tables.send(method, target, headers, body), 415, code)
    given: dict[str, str | None] = {"Content-Type": None}
    expect_json(tables.send("POST", f"/{table}", given, body), 201)


def test_what_an_entity_holds_at_each_level(tables: TableClient, table: str) -> None:
    """T-FMT-02."""
    insert(tables, table, {**KEYS, **TYPED})
    target = entity(table, KEYS["PartitionKey"], KEYS["RowKey"])
    found = {level: expect_json(tables.get(target, accept(level)), 200) for level in LEVELS}
    moment = found["nometadata"].pop("Timestamp")
    own = {name: value for name, value in TYPED.items() if "@" not in name}
    assert found["nometadata"] == {**KEYS, **own}
    etag = f"W/\"datetime'{moment.replace(':', '%3A')}'\""
    minimal = {
        "odata.metadata": f"{tables.url}/$metadata#{table}/@Element",
        "odata.etag": etag,
        **KEYS,
        "Timestamp": moment,
        **TYPED,
    }
    assert found["minimalmetadata"] == minimal
    link = f"{table}(PartitionKey='it''s',RowKey='a%20b%25c')"
    assert found["fullmetadata"] == {
        **minimal,
        "odata.type": f"{tables.account}.{table}",
        "odata.id": f"{tables.url}/{link}",
        "odata.editLink": link,
        "Timestamp@odata.type": "Edm.DateTime",
    }
    for level in LEVELS:
        page = expect_json(tables.get(query(table), accept(level)), 200)
        (row,) = page["value"]
        single = {**found[level]}
        single.pop("odata.metadata", None)
        if level == "nometadata":
            single["Timestamp"] = moment
            assert "odata.metadata" not in page
        else:
            assert page["odata.metadata"] == f"{tables.url}/$metadata#{table}"
        assert row == single


def test_annotations_stand_before_their_properties(tables: TableClient, table: str) -> None:
    """T-FMT-02, T-FMT-07."""
    body = (
        b'{"PartitionKey":"p","L":"12","L@odata.type":"Edm.Int64","RowKey":"r",'
        b'"X@odata.type":"Edm.Binary","X":"AP8=","odata.type":"a.b","Y@odata.navigationLink":"c"}'
    )
    made = tables.send("POST", f"/{table}", JSON_SENT, body)
    expect_json(made, 201)
    assert b'"L@odata.type":"Edm.Int64","L":"12"' in made.body
    assert b'"X@odata.type":"Edm.Binary","X":"AP8="' in made.body
    assert b"navigationLink" not in made.body and b"a.b" not in made.body
    answer = tables.get(entity(table, "p", "r"))
    assert answer.body == made.body
    assert answer["ETag"] == made["ETag"] == expect_json(answer, 200)["odata.etag"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_selection_at_each_level(tables: TableClient, table: str, level: str) -> None:
    """T-FMT-02, T-QRY-09."""
    insert(tables, table, {"PartitionKey": "p", "RowKey": "r", **TYPED})
    answer = tables.get(query(table, select="W,Missing,Timestamp,S"), accept(level))
    (row,) = expect_json(answer, 200)["value"]
    names = [name for name in row if "odata." not in name]
    assert names == ["W", "Missing", "Timestamp", "S"]
    assert (row["W"], row["Missing"], row["S"]) == (WHEN, None, "text")
    assert ("W@odata.type" in row) is ("odata.etag" in row) is (level != "nometadata")
    assert ("Timestamp@odata.type" in row) is ("odata.id" in row) is (level == "fullmetadata")
    one = tables.get(entity(table, "p", "r") + "?$select=W,Missing,Timestamp,S", accept(level))
    document = expect_json(one, 200)
    document.pop("odata.metadata", None)
    assert document == row
    everything = expect_json(tables.get(query(table, select="*"), accept(level)), 200)
    assert everything == expect_json(tables.get(query(table), accept(level)), 200)


def test_options_that_one_entity_does_not_have(tables: TableClient, table: str) -> None:
    """T-QRY-05."""
    insert(tables, table, {"PartitionKey": "p", "RowKey": "r"})
    for option in ("$filter=A%20eq%201", "$top=1", "$expand=x"):
        answer = tables.get(f"{entity(table, 'p', 'r')}?{option}")
        text = expect_json(answer, 501, "NotImplemented")
        assert option.split("=")[0] in text


def test_what_a_table_looks_like_at_each_level(table_account: TableClient) -> None:
    """T-FMT-03."""
    tables = table_account
    made = tables.post("/Tables", {"TableName": "Mine"}, accept("fullmetadata"))
    links = {
        "odata.type": f"{tables.account}.Tables",
        "odata.id": f"{tables.url}/Tables('Mine')",
        "odata.editLink": "Tables('Mine')",
    }
    context = f"{tables.url}/$metadata#Tables"
    one = {"odata.metadata": f"{context}/@Element", "TableName": "Mine"}
    assert expect_json(made, 201) == {**one, **links}
    for level, document, page in (
        ("nometadata", {"TableName": "Mine"}, {"value": [{"TableName": "Mine"}]}),
        ("minimalmetadata", one, {"odata.metadata": context, "value": [{"TableName": "Mine"}]}),
        (
            "fullmetadata",
            {**one, **links},
            {"odata.metadata": context, "value": [{"TableName": "Mine", **links}]},
        ),
    ):
        answer = tables.get("/Tables('Mine')", accept(level))
        assert expect_json(answer, 200) == document
        assert expect_json(tables.get("/Tables", accept(level)), 200) == page


def test_refusals_are_json_whatever_was_asked_for(tables: TableClient, table: str) -> None:
    """T-FMT-06."""
    answer = tables.get(entity(table, "p", "r"), accept("nometadata"))
    text = expect_json(answer, 404, "ResourceNotFound")
    message, request_id, time = text.split("\n")
    assert message == "The specified resource does not exist." == answer.reason
    assert request_id == f"RequestId:{answer['x-ms-request-id']}"
    assert time.startswith("Time:") and len(time) == len("Time:2014-06-04T16:18:20.4307735Z")
    document = json.loads(answer.body)["odata.error"]
    assert document["message"]["lang"] == "en-US"
    refused = expect(tables.put(f"/{table}?comp=acl", (), b"<a>"), 400, "InvalidXmlDocument")
    assert refused["Content-Type"] == "application/xml"


def test_a_post_may_mean_another_method(tables: TableClient, table: str) -> None:
    """T-ADR-06."""
    target = entity(table, "p", "r")
    insert(tables, table, {"PartitionKey": "p", "RowKey": "r", "A": 1})
    for word, document, expected in (
        ("MERGE", {"B": 2}, {"A": 1, "B": 2}),
        ("patch", {"C": 3}, {"A": 1, "B": 2, "C": 3}),
        ("Put", {"D": 4}, {"D": 4}),
    ):
        headers = {**JSON_SENT, "X-HTTP-Method": word, "If-Match": "*"}
        answer = tables.send("POST", target, headers, json.dumps(document).encode())
        expect_json(answer, 204)
        found = expect_json(tables.get(target, accept("nometadata")), 200)
        assert {k: v for k, v in found.items() if len(k) == 1} == expected
    wrong = {"If-Match": "W/\"datetime'2000-01-01T00%3A00%3A00Z'\"", "X-HTTP-Method": "DELETE"}
    expect_json(tables.send("POST", target, wrong), 412, "UpdateConditionNotSatisfied")
    unasked = {"X-HTTP-Method": "DELETE"}
    expect_json(tables.send("POST", target, unasked), 400, "MissingRequiredHeader")
    expect_json(tables.send("POST", target, {**unasked, "If-Match": "*"}), 204)
    expect_json(tables.get(target), 404, "ResourceNotFound")


def test_methods_that_cannot_be_meant(tables: TableClient, table: str) -> None:
    """T-ADR-07."""
    target = entity(table, "p", "r")
    insert(tables, table, {"PartitionKey": "p", "RowKey": "r"})
    any_tag = ("If-Match", "*")
    for word in ("GET", "POST", "OPTIONS", "", "DELETE,PUT"):
        answer = tables.send("POST", target, [any_tag, ("X-HTTP-Method", word)])
        expect_json(answer, 400, "XMethodIncorrectValue")
    twice = [any_tag, ("X-HTTP-Method", "DELETE"), ("X-HTTP-Method", "DELETE")]
    expect_json(tables.send("POST", target, twice), 400, "XMethodIncorrectCount")
    for method in ("PUT", "DELETE", "GET", "MERGE"):
        answer = tables.send(method, target, [any_tag, ("X-HTTP-Method", "DELETE")])
        expect_json(answer, 400, "XMethodNotUsingPost")
    expect_json(tables.get(target), 200)
