"""Documents of tables and entities at the three levels of metadata."""

from __future__ import annotations

import json
from typing import Any

import pytest

from strongroom.values import Entity, iso7
from strongroom.wire.table import odata_documents as documents
from strongroom.wire.table.odata import Metadata, etag_text
from strongroom.wire.table.odata_documents import TableAddress

MOMENT = 635_000_000_000_000_007
PLACE = TableAddress("http://host/account/", "account", "abc")
FRAGMENT = b'"A":1,"L@odata.type":"Edm.Int64","L":"7","S":"x\\u0001"'
ITEM = Entity("it's", "a b", MOMENT, FRAGMENT)
BARE = Entity("", "", MOMENT, b"")
NONE, MINIMAL, FULL = Metadata.NONE, Metadata.MINIMAL, Metadata.FULL
OWN = {"PartitionKey": "it's", "RowKey": "a b", "Timestamp": iso7(MOMENT)}
TYPED = {"A": 1, "L@odata.type": "Edm.Int64", "L": "7", "S": "x\u0001"}
LINK = "abc(PartitionKey='it''s',RowKey='a%20b')"
TAG = {"odata.etag": etag_text(MOMENT)}
LINKS = {
    "odata.type": "account.abc",
    "odata.id": f"http://host/account/{LINK}",
    "odata.editLink": LINK,
}
ENTITIES: dict[Metadata, dict[str, Any]] = {
    NONE: {**OWN, "A": 1, "L": "7", "S": "x\u0001"},
    MINIMAL: {**TAG, **OWN, **TYPED},
    FULL: {**LINKS, **TAG, **OWN, "Timestamp@odata.type": "Edm.DateTime", **TYPED},
}


def context(level: Metadata, of: str) -> dict[str, str]:
    return {} if level is NONE else {"odata.metadata": f"http://host/account/$metadata#{of}"}


@pytest.mark.parametrize("level", list(Metadata))
def test_entities_alone_and_in_pages(level: Metadata) -> None:
    single = json.loads(documents.entity(ITEM, level, PLACE))
    assert single == {**context(level, "abc/@Element"), **ENTITIES[level]}
    page = json.loads(b"".join(documents.entities([ITEM, BARE, ITEM], level, PLACE)))
    assert page.keys() == {*context(level, "abc"), "value"}
    assert [page["value"][0], page["value"][2]] == [ENTITIES[level]] * 2
    assert page["value"][1]["PartitionKey"] == page["value"][1]["RowKey"] == ""
    assert "A" not in page["value"][1]
    assert json.loads(b"".join(documents.entities([], level, PLACE)))["value"] == []


SELECTED: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("A",), {"A": 1}),
    (("L", "A"), {"L@odata.type": "Edm.Int64", "L": "7", "A": 1}),
    (("Nothing",), {"Nothing": None}),
    (("RowKey", "a"), {"RowKey": "a b", "a": None}),
    (("L", "L@odata.type", "A"), {"L@odata.type": "Edm.Int64", "L": "7", "A": 1}),
    (("odata.etag", "odata.id", "@x"), {}),
    ((), {}),
]


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose members all have names of their own."""
    found = dict(pairs)
    assert len(found) == len(pairs)
    return found


@pytest.mark.parametrize(("names", "expected"), SELECTED)
def test_selections(names: tuple[str, ...], expected: dict[str, Any]) -> None:
    single = documents.entity(ITEM, MINIMAL, PLACE, names)
    found = json.loads(single, object_pairs_hook=distinct)
    assert found == {**context(MINIMAL, "abc/@Element"), **TAG, **expected}
    assert [name for name in found if name in expected] == list(expected)
    (row,) = json.loads(b"".join(documents.entities([ITEM], NONE, PLACE, names)))["value"]
    plain = {name: value for name, value in expected.items() if "@" not in name}
    assert row == plain


def test_a_type_stands_before_its_property_in_every_form() -> None:
    for level in (MINIMAL, FULL):
        for names in (None, ("L",), ("A", "L")):
            text = documents.entity(ITEM, level, PLACE, names)
            assert b'"L@odata.type":"Edm.Int64","L":"7"' in text


@pytest.mark.parametrize("level", list(Metadata))
def test_tables_alone_and_in_pages(level: Metadata) -> None:
    place = TableAddress("http://host/account/", "account", "Tables")
    link = "Tables('abc')"
    links = {
        "odata.type": "account.Tables",
        "odata.id": f"http://host/account/{link}",
        "odata.editLink": link,
    }
    one = {**(links if level is FULL else {}), "TableName": "abc"}
    single = json.loads(documents.table("abc", level, place))
    assert single == {**context(level, "Tables/@Element"), **one}
    page = json.loads(b"".join(documents.tables(["abc", "xyz"], level, place)))
    assert page.keys() == {*context(level, "Tables"), "value"}
    assert page["value"][0] == one and page["value"][1]["TableName"] == "xyz"
    assert json.loads(b"".join(documents.tables([], level, place)))["value"] == []
