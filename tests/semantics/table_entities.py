"""Random entities and filters, and the meaning of a filter, evaluated value by value.

The evaluator here does not know how entities are stored or filters compiled. The fast evaluator is
compared with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import strategies as st

from strongroom.semantics.table import edm
from strongroom.semantics.table.edm import EdmType, Typed, Value
from strongroom.semantics.table.entities import Properties
from strongroom.semantics.table.table_filter import (
    BooleanProperty,
    Comparison,
    Conjunction,
    Constant,
    Disjunction,
    Expression,
    Family,
    Literal,
    Not,
    Operator,
)

FAMILIES: dict[type | EdmType, Family] = {
    str: Family.STRING,
    bool: Family.BOOLEAN,
    int: Family.NUMBER,
    float: Family.NUMBER,
    EdmType.INT64: Family.NUMBER,
    EdmType.DOUBLE: Family.NUMBER,
    EdmType.DATE_TIME: Family.DATETIME,
    EdmType.GUID: Family.GUID,
    EdmType.BINARY: Family.BINARY,
}
Comparable = str | bool | int | float | bytes


@dataclass(frozen=True)
class Entity:
    """An entity with its values."""

    partition_key: str
    row_key: str
    timestamp: int
    properties: Properties = field(default_factory=dict)

    def stored(self) -> tuple[bytes, bytes, int, bytes]:
        """Return the entity in the form for `Candidates.of`."""
        partition, row = self.partition_key.encode(), self.row_key.encode()
        return partition, row, self.timestamp, self.fragment

    @property
    def fragment(self) -> bytes:
        """Return the stored form of the properties."""
        return b",".join(edm.pair(name, value) for name, value in self.properties.items())

    def value(self, name: str) -> tuple[Family, Comparable] | None:
        """Return the value of a property, in the form in which it compares."""
        if name == "PartitionKey":
            return Family.STRING, self.partition_key.encode()
        if name == "RowKey":
            return Family.STRING, self.row_key.encode()
        if name == "Timestamp":
            return Family.DATETIME, self.timestamp
        found = self.properties.get(name)
        return None if found is None else (_family(found), _comparable(edm.untyped(found)))


def _family(value: Value) -> Family:
    return FAMILIES[value.type if isinstance(value, Typed) else type(value)]


def _comparable(value: Comparable | UUID) -> Comparable:
    if isinstance(value, UUID):
        return value.bytes
    return value.encode() if isinstance(value, str) else value


def holds(expression: Expression, entity: Entity) -> bool:
    """Return whether an entity matches."""
    if isinstance(expression, Not):
        return not holds(expression.part, entity)
    if isinstance(expression, Conjunction):
        return all(holds(part, entity) for part in expression.parts)
    if isinstance(expression, Disjunction):
        return any(holds(part, entity) for part in expression.parts)
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, BooleanProperty):
        return entity.value(expression.name) == (Family.BOOLEAN, True)
    found = entity.value(expression.name)
    if found is None or found[0] is not expression.literal.family:
        return False
    literal = _of(expression.literal)
    left, right = found[1], literal
    outcomes = {
        Operator.EQ: left == right,
        Operator.NE: left != right,
        Operator.GT: left > right,  # type: ignore[operator]  # both are of one type
        Operator.GE: left >= right,  # type: ignore[operator]  # both are of one type
        Operator.LT: left < right,  # type: ignore[operator]  # both are of one type
        Operator.LE: left <= right,  # type: ignore[operator]  # both are of one type
    }
    return outcomes[expression.operator]


def _of(literal: Literal) -> Comparable:
    if literal.family is Family.GUID:
        return UUID(str(literal.value)).bytes
    return _comparable(literal.value)


MOMENTS = (630_000_000_000_000_000, 637_000_000_000_000_000, 637_000_000_000_000_001)
UUIDS = (
    UUID("00000000-0000-0000-0000-000000000001"),
    UUID("ff000000-0000-0000-0000-000000000000"),
    UUID("00000000-0000-0000-ff00-000000000000"),
)
TEXTS = ("", "a", "b", "ab", "a'b", "A", "é", "￿", "\U0001f600", "10", "9", "true")
NUMBERS = (0, 1, -1, 2**31 - 1, -(2**31))
LONGS = (*NUMBERS, 2**53 + 1, 2**63 - 1, -(2**63))
DOUBLES = (0.0, -0.0, 1.0, 1.5, -1e300, 1e16, 2.0**53, float("nan"), float("inf"), float("-inf"))

values: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from(TEXTS),
    st.booleans(),
    st.sampled_from(NUMBERS),
    st.sampled_from(LONGS).map(lambda value: Typed(EdmType.INT64, value)),
    st.sampled_from(DOUBLES).map(
        lambda value: value if math.isfinite(value) else Typed(EdmType.DOUBLE, value)
    ),
    st.sampled_from(MOMENTS).map(lambda value: Typed(EdmType.DATE_TIME, value)),
    st.sampled_from(UUIDS).map(lambda value: Typed(EdmType.GUID, value)),
    st.binary(max_size=2).map(lambda value: Typed(EdmType.BINARY, value)),
)
PROPERTIES = ("P", "Q", "R")
key_text = st.sampled_from(("", "a", "aa", "ab", "b", "ba", "é", "￿", "\U0001f600"))
entities = st.builds(
    Entity,
    key_text,
    key_text,
    st.sampled_from(MOMENTS),
    st.dictionaries(st.sampled_from(PROPERTIES), values, max_size=3),
)


def _literal(value: Value) -> Literal:
    content = edm.untyped(value)
    return Literal(_family(value), str(content) if isinstance(content, UUID) else content)


literals = values.map(_literal)
key_literals = st.one_of(key_text, st.sampled_from(("a\0b", "c" * 3000, "a\x01"))).map(
    lambda text: Literal(Family.STRING, text)
)
operators = st.sampled_from(Operator)
comparisons = st.one_of(
    st.builds(
        Comparison, st.sampled_from((*PROPERTIES, "Timestamp", "RowKey")), operators, literals
    ),
    st.builds(Comparison, st.sampled_from(("PartitionKey", "RowKey")), operators, key_literals),
    st.builds(BooleanProperty, st.sampled_from((*PROPERTIES, "PartitionKey"))),
    st.builds(Constant, st.booleans()),
)


def _joined(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Not, inner), st.builds(Conjunction, several), st.builds(Disjunction, several)
    )


expressions: st.SearchStrategy[Expression] = st.recursive(comparisons, _joined, max_leaves=8)
