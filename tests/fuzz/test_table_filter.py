"""$filter as text: a written filter keeps its meaning in the parser, and other texts are refused.

There is no server: a filter goes from its text to the matching entities and to the ranges of keys
that a query reads.
"""

from __future__ import annotations

import math

from hypothesis import assume, given
from hypothesis import strategies as st

from strongroom.semantics.table import table_filter, table_intervals
from strongroom.semantics.table.table_filter import (
    BooleanProperty,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Family,
    Literal,
    Not,
    Operator,
)
from strongroom.semantics.table.table_predicate import Candidates, Predicate
from strongroom.values import iso7
from tests.effort import examples
from tests.refusals import OK, outcome
from tests.semantics.table_entities import Entity, entities, expressions, holds

WORDS = (
    *("P", "PartitionKey", "RowKey", "Timestamp", "eq", "ne", "gt", "le", "and", "or", "not"),
    *("(", ")", "1", "-1", "1.5e3", "9L", "99999999999999999999", "1e999", "'a'", "'it''s'", "'"),
    *(
        "true",
        "False",
        "null",
        "X'0A'",
        "binary'z'",
        "guid''",
        "datetime'2020-02-30'",
        "startswith(",
        ",",
    ),
    *("P eq 1", "RowKey gt 'b'", "PartitionKey eq 'a'", "add", "\0", "é", "\ud800", "\U0001f600"),
)
STORED = Candidates.of([(b"a", b"b", 0, b'"P":1')])
MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}


def constant(literal: Literal) -> str:
    """A literal as a client writes it."""
    value = literal.value
    if literal.family is Family.STRING:
        return "'" + str(value).replace("'", "''") + "'"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if literal.family is Family.DATETIME:
        assert isinstance(value, int)
        return f"datetime'{iso7(value)}'"
    if literal.family is Family.GUID:
        return f"guid'{value}'"
    assert isinstance(value, int | float)
    return f"{value}L" if isinstance(value, int) and abs(value) >= 2**31 else repr(value)


def written(expression: Expression, mirrored: bool) -> str:
    """A filter as a client writes it; mirrored = with the constants on the left."""
    if isinstance(expression, BooleanProperty):
        return expression.name
    if isinstance(expression, Constant):
        return str(expression.value) if mirrored else str(expression.value).lower()
    if isinstance(expression, Not):
        return f"not ({written(expression.part, mirrored)})"
    if isinstance(expression, Comparison):
        name, operator = expression.name, expression.operator.value
        if mirrored:
            return f"{constant(expression.literal)} {MIRRORED.get(operator, operator)} {name}"
        return f"{name} {operator} {constant(expression.literal)}"
    word = " or " if isinstance(expression, Disjunction) else " and "
    return word.join(f"({written(part, mirrored)})" for part in expression.parts)


def is_writable(expression: Expression) -> bool:
    """There is no constant for a number that is not finite."""
    if isinstance(expression, Comparison):
        value = expression.literal.value
        return not isinstance(value, float) or math.isfinite(value)
    if isinstance(expression, BooleanProperty | Constant):
        return True
    parts = (expression.part,) if isinstance(expression, Not) else expression.parts
    return all(map(is_writable, parts))


@examples(300)
@given(expressions, st.booleans(), st.lists(entities, max_size=4))
def test_what_is_written_is_what_matches(
    expression: Expression, mirrored: bool, found: list[Entity]
) -> None:
    assume(is_writable(expression))
    text = written(expression, mirrored)
    assume(len(text) <= 16 * 1024)
    expected = [holds(expression, entity) for entity in found]
    matches = Predicate(table_filter.parse(text)).select(
        Candidates.of([entity.stored() for entity in found])
    )
    assert matches == expected


@examples(500)
@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=16).map(" ".join)))
def test_any_text_is_refused_or_can_be_asked(text: str) -> None:
    seen = outcome(lambda: table_filter.parse(text))
    assert seen in (OK, "400 InvalidInput", "501 NotImplemented")
    if seen != OK:
        return
    found = table_filter.parse(text)
    (matches,) = Predicate(found).select(STORED)
    reach = table_intervals.cut(table_intervals.intervals(found), (b"a", b"b"), (b"a", b"b\x01"))
    assert reach or not matches


def test_operators_are_all_mirrored() -> None:
    assert set(MIRRORED) == {one.value for one in Operator} - {"eq", "ne"}
