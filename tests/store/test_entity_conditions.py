"""Conditions made of filters: no record of a match may be left out, and few other records pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.engines.conditions import holds as satisfies
from strongroom.semantics.table import table_filter
from strongroom.semantics.table.edm import EdmType, Typed, Value
from strongroom.semantics.table.entities import StoredEntity
from strongroom.semantics.table.table_filter import (
    Comparison,
    Expression,
    Family,
    Literal,
    Operator,
)
from strongroom.store.table import entity_conditions, entity_records
from tests.semantics.table_entities import MOMENTS, UUIDS, Entity, entities, expressions, holds

ODD_TEXTS = ("", " ", "!", '"', "#", "a", "a b", "a!", 'a"', "a#", "a\\", "a\n", "aé", "a" * 70)


def head(entity: Entity) -> bytes:
    return entity_records.encode(StoredEntity(entity.timestamp, entity.fragment))[0]


def check(expression: Expression, entity: Entity) -> None:
    condition = entity_conditions.condition(expression)
    if condition is not None and holds(expression, entity):
        assert satisfies(condition, head(entity))


@given(expressions, entities)
def test_a_match_is_never_left_out(expression: Expression, entity: Entity) -> None:
    check(expression, entity)


@given(
    st.sampled_from(ODD_TEXTS),
    st.sampled_from(Operator),
    st.sampled_from(ODD_TEXTS),
    st.sampled_from(["A", "LongName"]),
)
def test_texts_with_escaped_and_small_characters_are_not_left_out(
    value: str, operator: Operator, literal: str, name: str
) -> None:
    expression = Comparison(name, operator, Literal(Family.STRING, literal))
    check(expression, Entity("p", "r", 1, {name: value}))


@pytest.mark.parametrize("name", ["A", "Timestamps"])
def test_a_timestamp_that_looks_like_a_property_hides_none(name: str) -> None:
    timestamp = int.from_bytes(b"\1" + f'"{name}":'.encode()[:7].rjust(7, b"\1"), "big")
    check(table_filter.parse(f"{name} eq 7"), Entity("p", "r", timestamp, {name: 7}))


def test_an_entity_that_goes_on_in_a_chunk_is_not_left_out() -> None:
    texts: dict[str, Value] = {f"T{number}": "x" * 30_000 for number in range(2)}
    check(table_filter.parse("Last eq 1"), Entity("p", "r", 1, {**texts, "Last": 1}))


OTHERS: tuple[tuple[str, dict[str, Value]], ...] = (
    ("Number lt 5", {"Number": 7}),
    ("Number gt 5", {"Number": 3.5}),
    ("Number gt 5", {"Number": Typed(EdmType.INT64, 4)}),
    ("Number eq 5", {"Number": 50}),
    ("Number ne 5", {"Other": 5}),
    ("Name eq 'ab'", {"Name": "abc"}),
    ("Name ge 'b'", {"Name": "abc"}),
    ("Name lt 'b'", {"Name": "ba"}),
    ("Open", {"Open": False}),
    ("Open eq false", {"Open": True}),
    ("When ge datetime'2020-01-01'", {"When": Typed(EdmType.DATE_TIME, MOMENTS[0])}),
    (f"Id eq guid'{UUIDS[0]}'", {"Id": Typed(EdmType.GUID, UUIDS[1])}),
    ("Data eq X'00'", {"Data": Typed(EdmType.BINARY, b"1")}),
    ("Timestamp gt datetime'2020-01-01'", {}),
    ("Number eq 5 or Number eq 6", {"Number": 7}),
    ("Name eq 'a' and not (Number eq 5)", {"Name": "b", "Number": 7}),
)


@pytest.mark.parametrize(("text", "properties"), OTHERS)
def test_what_is_no_match_is_mostly_left_out(text: str, properties: dict[str, Value]) -> None:
    condition = entity_conditions.condition(table_filter.parse(text))
    assert condition is not None
    assert not satisfies(condition, head(Entity("p", "r", 1, properties)))


@pytest.mark.parametrize(
    "text", ["not (A eq 1)", "RowKey gt 'a'", "A eq 1 or RowKey gt 'a'", "true"]
)
def test_what_says_nothing_about_values_is_no_condition(text: str) -> None:
    assert entity_conditions.condition(table_filter.parse(text)) is None
