"""Bodies, formats and entity tags of table requests, as bytes and texts without a server.

Any input is either parsed or refused. Parsed input can be written again. An answer is JSON without
repeated members.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors import core as errors
from strongroom.semantics.table import edm
from strongroom.semantics.table.edm import EdmType, Typed, Value
from strongroom.semantics.table.entities import Properties, check_values
from strongroom.slices import run_to_completion
from strongroom.values import INT32, Entity
from strongroom.wire.table import odata, odata_documents, odata_entities
from strongroom.wire.table.odata import Metadata
from strongroom.wire.table.odata_documents import TableAddress
from tests.effort import examples
from tests.fuzz.requests import HOSTILE
from tests.fuzz.test_documents import edited
from tests.refusals import refusal

PLACE = TableAddress("http://host/account/", "account", "abc")
MOMENT = 635_000_000_000_000_000
ENTITY = (
    b'{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Int64","A":"12","B":1.5,"C":true,'
    b'"D":"d\\ud83d\\ude00","E":null,"odata.etag":"x","Timestamp":"2020-01-01T00:00:00Z"}'
)
PIECES = (
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u0000", b"\\ud800", b"null", b"NaN", b"-",
    b"1e999", b"1.0", b"9" * 5000, b"\xff", b"\xef\xbb\xbf", b"\0", b'"A":1,', b'"Timestamp":{},',
    b'"A@odata.type":"Edm.Guid",', b'"odata.x":[1],', b"[" * 20_000, b'{"a":' * 20_000, b"//",
    b'"A"\t:1,', b'"B" :2,', b'\\":',
)  # fmt: skip
edits = st.lists(
    st.tuples(
        st.sampled_from(["insert", "replace", "delete", "double"]),
        st.integers(0, len(ENTITY)),
        st.one_of(st.sampled_from(PIECES), st.binary(min_size=1, max_size=4)),
    ),
    max_size=4,
)
PLAIN = (
    b'{"PartitionKey":"p","RowKey":"r","A":12,"B":1.5,"C":true,"D":"d\xc3\xa9","E":null,"F":-0.0,'
    b'"G":"a:b"}'
)
well_formed = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
values: st.SearchStrategy[Value] = st.one_of(
    well_formed,
    st.booleans(),
    st.integers(*INT32),
    st.integers(*edm.INT64).map(lambda value: Typed(EdmType.INT64, value)),
    st.floats().map(lambda value: value if isfinite(value) else Typed(EdmType.DOUBLE, value)),
    st.uuids().map(lambda value: Typed(EdmType.GUID, value)),
    st.binary(max_size=20).map(lambda value: Typed(EdmType.BINARY, value)),
    st.integers(MOMENT, 2 * MOMENT).map(lambda value: Typed(EdmType.DATE_TIME, value)),
)
entities = st.dictionaries(names, values, max_size=6)


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs)
    return found


@examples(1500)
@given(changes=edits)
def test_edited_entities_are_read_or_refused(changes: list[tuple[str, int, bytes]]) -> None:
    body = edited(ENTITY, changes)
    refused = refusal(lambda: odata_entities.read_entity(body))
    if refused is not None:
        assert refused.row.status == 400
        json.loads(odata.error_body(refused, "id", MOMENT))
        return
    found = odata_entities.read_entity(body)
    assert all(one is None or isinstance(one, str | int | float) for one in found.values.values())
    assert not any("@" in name or name.startswith("odata.") for name in found.values)
    assert found.types.keys() <= found.values.keys()
    assert all(isinstance(one, str) for one in found.types.values())


@pytest.mark.parametrize("end", range(len(ENTITY)))
def test_no_prefix_of_an_entity_is_one(end: int) -> None:
    refused = refusal(lambda: odata_entities.read_entity(ENTITY[:end]))
    assert refused is not None and refused.row is errors.INVALID_INPUT


@examples(300)
@given(body=st.one_of(st.binary(max_size=60), st.sampled_from(PIECES)))
def test_bytes_name_no_table(body: bytes) -> None:
    refused = refusal(lambda: odata_entities.read_table_name(body))
    assert refused is not None and refused.row.status == 400


texts = st.one_of(st.text(max_size=40), st.sampled_from(HOSTILE))


@examples(500)
@given(accept=st.none() | texts, asked=st.none() | texts)
def test_formats_are_levels_or_415(accept: str | None, asked: str | None) -> None:
    refused = refusal(lambda: odata.negotiate(accept, asked))
    assert refused is None or refused.row.status == 415
    refused = refusal(lambda: odata.check_content_type(accept))
    assert refused is None or refused.row.status == 415


@examples(500)
@given(text=st.one_of(texts, texts.map(lambda inside: f"W/\"datetime'{inside}'\"")))
def test_entity_tags_are_moments_or_refused(text: str) -> None:
    refused = refusal(lambda: odata.read_match(text))
    assert refused is None or refused.row is errors.INVALID_INPUT


@examples(300)
@given(timestamp=st.integers(MOMENT, 2 * MOMENT))
def test_a_tag_says_its_moment(timestamp: int) -> None:
    assert odata.read_match(odata.etag_text(timestamp)) == timestamp


@examples(500)
@given(properties=entities)
def test_what_is_answered_is_what_can_be_sent(properties: Properties) -> None:
    item = Entity("p", "r", MOMENT, edm.fragment(properties))
    body = odata_documents.entity(item, Metadata.MINIMAL, PLACE)
    sent = odata_entities.read_entity(body)
    assert (sent.values.pop("PartitionKey"), sent.values.pop("RowKey")) == ("p", "r")
    assert not sent.types.keys() & {"PartitionKey", "RowKey"}
    found = {name: edm.value_of(raw, sent.types.get(name)) for name, raw in sent.values.items()}
    # In their order, and each with its type: 1 == True == 1.0.
    assert repr(found) == repr(properties)


chosen = st.one_of(
    names, st.sampled_from(["Timestamp", "RowKey", "odata.etag", "A@odata.type", "@", ""]),
    well_formed,
)  # fmt: skip
selections = st.none() | st.lists(chosen, max_size=5, unique=True).map(tuple)


@examples(500)
@given(
    rows=st.lists(st.tuples(well_formed, well_formed, entities), max_size=3),
    level=st.sampled_from(Metadata),
    select=selections,
)
def test_every_page_is_json_with_each_entity(
    rows: list[tuple[str, str, Properties]],
    level: Metadata,
    select: tuple[str, ...] | None,
) -> None:
    items = [Entity(pk, rk, MOMENT, edm.fragment(properties)) for pk, rk, properties in rows]
    body = b"".join(odata_documents.entities(items, level, PLACE, select))
    shown = json.loads(body, object_pairs_hook=distinct)["value"]
    assert len(shown) == len(items)
    for item, found in zip(items, shown, strict=True):
        single = json.loads(odata_documents.entity(item, level, PLACE, select))
        single.pop("odata.metadata", None)
        assert single == found


def _in_one_go(body: bytes) -> bool:
    """Whether the document is read so; then that is what is found out of its members as well."""
    plain = odata_entities._plain_values(body)
    if plain is None:
        return False
    members = run_to_completion(odata_entities._members(body))
    values, types = odata_entities._values_and_types(members)
    plain.pop("Timestamp", None)
    assert repr(plain) == repr(values)
    assert not types
    # They are what looking at each by itself would make of them, so nobody does.
    told = {name: value for name, value in plain.items() if value is not None}
    assert repr({name: edm.value_of(raw, None) for name, raw in told.items()}) == repr(told)
    check_values(told)
    return True


def test_no_value_of_a_plain_document_is_too_large() -> None:
    body = b'{"A":"%b"}' % (b"x" * (odata_entities.PLAIN_BYTES_MAX - 8))
    assert odata_entities.read_entity(body).is_plain
    assert 2 * odata_entities.PLAIN_BYTES_MAX <= edm.VALUE_BYTES_MAX


@examples(400)
@given(edits)
def test_a_document_read_in_one_go_is_the_one_that_was_sent(
    changes: list[tuple[str, int, bytes]],
) -> None:
    _in_one_go(edited(PLAIN, changes))


@pytest.mark.parametrize(
    ("more", "in_one_go"),
    [
        (b"", True),
        (b',"Timestamp":1', True),
        (b',"Z":1e5', True),
        (b',"A":3', False),
        (b',"Z":null', True),
        (b',"Z":"12:00"', True),
        (b',"Z": "https://a:1"', True),
        (b',"Z" :"12:00"', False),
        (b',"Z":"12 :00"', False),
        (b',"Z"\t:1', False),
        (b',"Z":"\\":"', False),
        (b',"Z":"a:b","A" :3', False),
        (b',"Z":"a:b","A":3', False),
        (b',"Z":"\\":","A" :3', False),
        (b',"Z@odata.type":"Edm.Int64","Z":"1"', False),
        (b',"\\u0040":1', False),
        (b',"odata.etag":"x"', False),
        (b',"Z":[1]', False),
        (b',"Z":1e400', False),
        (b',"Z":"' + b"z" * 16384 + b'"', False),
    ],
)
def test_what_is_read_in_one_go(more: bytes, in_one_go: bool) -> None:
    assert _in_one_go(PLAIN[:-1] + more + b"}") is in_one_go
