"""The matches of a $filter: a table of values and filters, and random filters."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.table import table_filter
from strongroom.semantics.table.edm import EdmType, Typed, parse_time
from strongroom.semantics.table.table_filter import Expression
from strongroom.semantics.table.table_predicate import Candidates, Predicate
from tests.semantics.table_entities import Entity, entities, expressions, holds

MOMENT = "2021-05-06T07:08:09.1234567Z"
GUID = "8f9a3f0e-0000-4000-8000-00000000abcd"
ENTITY = Entity(
    "it's",
    "é",
    parse_time(MOMENT),
    {
        "Text": "b",
        "Digits": "12",
        "True": True,
        "False": False,
        "Int": 12,
        "Long": Typed(EdmType.INT64, 2**53 + 1),
        "Double": 12.0,
        "Big": 1e20,
        "NaN": Typed(EdmType.DOUBLE, float("nan")),
        "Moment": Typed(EdmType.DATE_TIME, parse_time(MOMENT)),
        "Guid": Typed(EdmType.GUID, UUID(GUID)),
        "Bytes": Typed(EdmType.BINARY, b"\x0a\xff"),
        "Naïve": 1,
        'Q"uote': 1,
    },
)

MATCHES = [
    # keys
    ("PartitionKey eq 'it''s'", True),
    ("PartitionKey eq 'its'", False),
    ("PartitionKey ne 'its'", True),
    ("PartitionKey gt 'it'", True),
    ("PartitionKey eq 1", False),
    ("PartitionKey ne 1", False),
    ("RowKey eq 'é'", True),
    ("RowKey gt 'z'", True),
    ("RowKey le 'é'", True),
    ("'z' lt RowKey", True),
    ("'é' ge RowKey", True),
    ("'é' gt RowKey", False),
    # text: ordinal, with case
    ("Text eq 'b'", True),
    ("Text eq 'B'", False),
    ("Text gt 'a'", True),
    ("Text gt 'B'", True),
    ("Text ge 'b'", True),
    ("Text lt 'b'", False),
    ("Digits lt '9'", True),
    # another type, or no property: no comparison holds, not even `ne`, and `not` of it does
    ("Digits eq 12", False),
    ("Digits ne 12", False),
    ("not (Digits eq 12)", True),
    ("Int ne '12'", False),
    ("Absent eq 1", False),
    ("Absent ne 1", False),
    ("not (Absent ne 1)", True),
    ("not Absent", True),
    ("text eq 'b'", False),
    # booleans
    ("True", True),
    ("False", False),
    ("not False", True),
    ("Text", False),
    ("True eq true", True),
    ("False eq false", True),
    ("True gt false", True),
    ("True eq 1", False),
    ("Int eq true", False),
    # numbers of all three types compare with each other
    ("Int eq 12", True),
    ("Int eq 12L", True),
    ("Int eq 12.0", True),
    ("Int gt -1", True),
    ("Int lt 12.5", True),
    ("Int ge 13", False),
    ("Double eq 12", True),
    ("Double le 1.2e1", True),
    ("Long eq 9007199254740993L", True),
    ("Long gt 9007199254740992", True),
    ("Long lt 9007199254740992.0", False),
    ("Big gt 9223372036854775807L", True),
    ("NaN eq 1", False),
    ("NaN ne 1", True),
    ("NaN gt 1", False),
    # times, also in other forms
    (f"Moment eq datetime'{MOMENT}'", True),
    ("Moment gt datetime'2021-05-06T07:08:09.1234566Z'", True),
    ("Moment gt datetime'2021-05-06T07:08:09Z'", True),
    ("Moment lt datetime'2021-05-06T07:08:10Z'", True),
    ("Moment eq datetime'2021-05-06T08:08:09.1234567+01:00'", True),
    (f"Moment eq '{MOMENT}'", False),
    (f"Timestamp eq datetime'{MOMENT}'", True),
    ("Timestamp lt datetime'2021-05-06'", False),
    (f"Timestamp eq '{MOMENT}'", False),
    # guids and bytes
    (f"Guid eq guid'{GUID}'", True),
    (f"Guid eq guid'{GUID.upper()}'", True),
    ("Guid gt guid'8f9a3f0d-ffff-ffff-ffff-ffffffffffff'", True),
    (f"Guid eq '{GUID}'", False),
    ("Bytes eq X'0aFF'", True),
    ("Bytes eq binary'0aff'", True),
    ("Bytes gt X'0a'", True),
    ("Bytes lt X'0b'", True),
    ("Bytes eq 'Cv8='", False),
    # combinations
    ("Int eq 12 and Text eq 'b'", True),
    ("Int eq 12 and Text eq 'b' and False", False),
    ("Int eq 1 or Text eq 'b'", True),
    ("Int eq 1 or Int eq 2 or Int eq 12", True),
    ("False and False or True", True),
    ("True or False and False", True),
    ("(True or False) and False", False),
    ("not True and False", False),
    ("not (True and False)", True),
    ("not not True", True),
    ("Int gt 11 and Int lt 13", True),
    # constants alone
    ("true", True),
    ("false", False),
    ("not false", True),
    ("not (true or Int eq 1)", False),
    ("true and Int eq 12", True),
    ("Int eq 12 and false", False),
    ("(true and Int eq 1) or (false or Text eq 'b')", True),
    ("(True and Int eq 1) or (FALSE or Text eq 'c')", False),
    ("True eq TRUE", True),
    ("False ne True", True),
    ("Naïve eq 1", True),
]


@pytest.mark.parametrize(("text", "expected"), MATCHES)
def test_an_entity_matches(text: str, expected: bool) -> None:
    expression = table_filter.parse(text)
    assert holds(expression, ENTITY) is expected
    assert Predicate(expression).select(Candidates.of([ENTITY.stored()])) == [expected]


def test_nothing_matches_among_no_entities() -> None:
    assert Predicate(table_filter.parse("A eq 1")).select(Candidates.of([])) == []


def test_an_entity_without_properties_has_no_property() -> None:
    bare = Entity("p", "r", 0).stored()
    predicate = Predicate(table_filter.parse("not (A eq 1)"))
    assert predicate.select(Candidates.of([bare, bare])) == [True, True]


def test_a_filter_of_keys_alone_decodes_no_property() -> None:
    undecodable = (b"p", b"r", 0, b"this is no JSON")
    predicate = Predicate(table_filter.parse("PartitionKey eq 'p' and RowKey ge 'q'"))
    assert predicate.select(Candidates.of([undecodable])) == [True]


@pytest.mark.parametrize("chosen", [None, [True, False, True, True]])
@pytest.mark.parametrize("count", [0, 2, 9])
def test_the_chosen_entities_come_in_their_order(chosen: list[bool] | None, count: int) -> None:
    stored = [Entity("ä", f"{row}", row, {"A": row}).stored() for row in range(4)]
    expected = [one for at, one in enumerate(stored) if chosen is None or chosen[at]][:count]
    found = Candidates.of(stored).entities(chosen, count)
    assert [
        (one.partition_key.encode(), one.row_key.encode(), one.timestamp, one.fragment)
        for one in found
    ] == expected


@given(expressions, st.lists(entities, max_size=4))
def test_the_compiled_filter_is_the_naive_one(expression: Expression, found: list[Entity]) -> None:
    stored = [entity.stored() for entity in found]
    expected = [holds(expression, entity) for entity in found]
    assert Predicate(expression).select(Candidates.of(stored)) == expected
