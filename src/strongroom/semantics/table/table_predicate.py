"""The predicate of a $filter: an expression, compiled once, evaluated for many entities.

The grammar: table_filter.py; which entities are read: table_intervals.py. Source: "Querying tables
and entities", "Differences between Table service and OData".

A comparison holds only between values that can be compared (`Family`). A property that an entity
lacks, or has with another type, satisfies no comparison, not even `ne`; its negation by `not` then
holds. The three types of numbers compare with each other as numbers. Text, keys and binary values
compare by their bytes (text as UTF-8), false before true. Keys are text, Timestamp is a DateTime.

Stored properties are the inside of a JSON object (edm.py). Only those that the filter names are
decoded, for all entities at once; the decoder skips the others.
"""

from __future__ import annotations

import base64
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from strongroom.semantics.table import table_filter
from strongroom.semantics.table.edm import EdmType
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
from strongroom.values import Entity, iso7

PARTITION_KEY: Final = "PartitionKey"
ROW_KEY: Final = "RowKey"
TIMESTAMP: Final = "Timestamp"
T = TypeVar("T")
_decoded: Final[Callable[[bytes], str]] = bytes.decode


class Candidates:
    """Stored entities, by column.

    Arguments:
        partition_keys, row_keys: as UTF-8.
        timestamps: in ticks.
        fragments: their other properties as the inside of a JSON object.

    Attributes:
        is_one_partition: whether all of them have the same partition key.
    """

    __slots__ = ("fragments", "is_one_partition", "partition_keys", "row_keys", "timestamps")

    def __init__(
        self,
        partition_keys: Sequence[bytes],
        row_keys: Sequence[bytes],
        timestamps: Sequence[int],
        fragments: Sequence[bytes],
    ) -> None:
        self.partition_keys = partition_keys
        self.row_keys = row_keys
        self.timestamps = timestamps
        self.fragments = fragments
        self.is_one_partition = len(set(partition_keys)) == 1

    @classmethod
    def of(cls, entities: Sequence[tuple[bytes, bytes, int, bytes]]) -> Candidates:
        """Single entities are (partition key, row key, Timestamp, fragment)."""
        if not entities:
            return cls((), (), (), ())
        partition_keys, row_keys, timestamps, fragments = zip(*entities, strict=True)
        return cls(partition_keys, row_keys, timestamps, fragments)

    def parts(self, count: int) -> list[Candidates]:
        if 0 < len(self.fragments) <= count:
            return [self]
        return [self._part(slice(at, at + count)) for at in range(0, len(self.fragments), count)]

    def _part(self, here: slice) -> Candidates:
        names = self.partition_keys[here], self.row_keys[here]
        return Candidates(*names, self.timestamps[here], self.fragments[here])

    def entities(self, chosen: Sequence[bool] | None, count: int) -> list[Entity]:
        """The first `count` entities, of those that are chosen (None = all)."""

        def of(column: Sequence[T]) -> Iterator[T]:
            cells = column if chosen is None else itertools.compress(column, chosen)
            return itertools.islice(cells, count)

        partitions = map(_decoded, of(self.partition_keys))
        rows = map(_decoded, of(self.row_keys))
        return list(map(Entity, partitions, rows, of(self.timestamps), of(self.fragments)))

    def columns(self, names: tuple[str, ...]) -> list[_Column]:
        """The values of these properties for each entity; all entities are decoded in one call."""
        if not names:
            return []
        document = b"[{" + b"},{".join(self.fragments) + b"}]" if self.fragments else b"[]"
        named = _decoder(names).decode(document)
        return [_Column(named, at) for at in range(len(names))]


class _Column:
    """One property of each entity: its JSON values and its annotations, None where it is absent.
    `types` and `distinct_type_names` are the sets of types and annotations that occur."""

    __slots__ = ("distinct_type_names", "type_names", "types", "values")

    def __init__(self, named: list[Any], at: int) -> None:
        self.values = list(map(operator.attrgetter(f"v{at}"), named))
        self.type_names = list(map(operator.attrgetter(f"t{at}"), named))
        self.types = set(map(type, self.values))
        self.distinct_type_names = set(self.type_names)


class _Page(NamedTuple):
    candidates: Candidates
    columns: Sequence[_Column]


Found = bool | list[bool]
"""Whether something holds: of all entities, or of each."""

Test = Callable[[_Page], Found]
"""test(entities) -> whether it holds of them. A comparison runs over its whole column. Where all
entities have the type that is asked for, no call of Python is made for a single entity."""

_OPERATIONS: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
}
_SYSTEM: Final = frozenset({PARTITION_KEY, ROW_KEY, TIMESTAMP})
_PLAIN_NUMBERS: Final[frozenset[type]] = frozenset({int, float})
_INT64: Final = EdmType.INT64.value
_DOUBLE: Final = EdmType.DOUBLE.value


@lru_cache(maxsize=256)
def predicate(expression: Expression) -> Predicate:
    """Repeated ones are cached."""
    return Predicate(expression)


class Predicate:
    """A compiled `$filter` expression, which selects entities."""

    def __init__(self, expression: Expression) -> None:
        names = table_filter.names(expression)
        self._names = tuple(sorted(set(names) - _SYSTEM))
        self._test = _compiled(expression, {name: at for at, name in enumerate(self._names)})

    def select(self, candidates: Candidates) -> list[bool]:
        """For each entity, in order, whether it matches."""
        matches = self._test(_Page(candidates, candidates.columns(self._names)))
        return [matches] * len(candidates.fragments) if isinstance(matches, bool) else matches


@lru_cache(maxsize=256)
def _decoder(names: tuple[str, ...]) -> msgspec.json.Decoder[list[Any]]:
    """A decoder of these properties and their types; name number i becomes `v<i>` and `t<i>`."""
    fields: list[tuple[str, Any, Any]] = []
    for at, name in enumerate(names):
        fields.append((f"v{at}", Any, msgspec.field(name=name, default=None)))
        kind = msgspec.field(name=f"{name}@odata.type", default=None)
        fields.append((f"t{at}", str | None, kind))
    # The class is made at run time, so it is no type for the type checker.
    named: Any = msgspec.defstruct("Named", fields, gc=False)
    return msgspec.json.Decoder(list[named])


def _compiled(expression: Expression, places: dict[str, int]) -> Test:
    if isinstance(expression, Not):
        return _opposite(_compiled(expression.part, places))
    if isinstance(expression, Conjunction | Disjunction):
        return _joined(expression, [_compiled(part, places) for part in expression.parts])
    if isinstance(expression, Constant):
        return _of_all(expression.value)
    if isinstance(expression, BooleanProperty):
        expression = Comparison(expression.name, Operator.EQ, Literal(Family.BOOLEAN, True))
    if expression.name in _SYSTEM:
        return _system_test(expression)
    return _property_test(expression, places[expression.name])


def _opposite(part: Test) -> Test:
    def test(page: _Page) -> Found:
        matches = part(page)
        return not matches if isinstance(matches, bool) else list(map(operator.not_, matches))

    return test


def _joined(expression: Conjunction | Disjunction, parts: list[Test]) -> Test:
    """The test for `and` or `or`. `and` ends with the first part that is false of all entities,
    `or` with the first that is true of all."""
    decides = isinstance(expression, Disjunction)
    join = operator.or_ if decides else operator.and_

    def test(page: _Page) -> Found:
        matches: Found = not decides
        for part in parts:
            other = part(page)
            if other is decides:
                return decides
            if isinstance(matches, bool):
                matches = other
            elif not isinstance(other, bool):
                matches = list(map(join, matches, other))
        return matches

    return test


def _of_all(value: bool) -> Test:
    return lambda page: value


_COLUMNS: Final[dict[str, Callable[[Candidates], Sequence[Any]]]] = {
    PARTITION_KEY: operator.attrgetter("partition_keys"),
    ROW_KEY: operator.attrgetter("row_keys"),
    TIMESTAMP: operator.attrgetter("timestamps"),
}


def _system_test(comparison: Comparison) -> Test:
    """The test of a system property. A key is compared as bytes, Timestamp as ticks; a literal of
    another type never matches."""
    compare, literal = _OPERATIONS[comparison.operator], comparison.literal
    family = Family.DATETIME if comparison.name == TIMESTAMP else Family.STRING
    if literal.family is not family:
        return _of_all(False)
    value: Any = literal.value
    if family is Family.STRING:
        value = value.encode("utf-8", "surrogatepass")
    column = _COLUMNS[comparison.name]

    def test(page: _Page) -> Found:
        if comparison.name == PARTITION_KEY and page.candidates.is_one_partition:
            return compare(page.candidates.partition_keys[0], value)
        return list(map(compare, column(page.candidates), repeat(value)))

    return test


def _property_test(comparison: Comparison, at: int) -> Test:
    compare, literal = _OPERATIONS[comparison.operator], comparison.literal
    if literal.family is Family.NUMBER:
        return _number_test(compare, literal.value, at)
    if literal.family is Family.BINARY:
        return _binary_test(compare, literal.value, at)
    wanted, kind, value = _STORED[literal.family](literal.value)

    def test(page: _Page) -> Found:
        column = page.columns[at]
        if column.types == {kind} and column.distinct_type_names == {wanted}:
            return list(map(compare, column.values, repeat(value)))
        return [
            type(one) is kind and annotated == wanted and compare(one, value)
            for one, annotated in zip(column.values, column.type_names, strict=True)
        ]

    return test


# The stored form of a value of each family, which compares as the value does: annotation, JSON
# type, JSON value.
_STORED: Final[dict[Family, Callable[[Any], tuple[str | None, type, Any]]]] = {
    Family.STRING: lambda value: (None, str, value),
    Family.BOOLEAN: lambda value: (None, bool, value),
    Family.DATETIME: lambda value: (EdmType.DATE_TIME.value, str, iso7(value)),
    Family.GUID: lambda value: (EdmType.GUID.value, str, value),
}

_Compare = Callable[[Any, Any], bool]


def _number_test(compare: _Compare, value: Any, at: int) -> Test:
    def holds(stored: Any, annotated: str | None) -> bool:
        kind = type(stored)
        if kind is int or kind is float:
            return compare(stored, value)
        if kind is not str:
            return False
        if annotated == _INT64:
            return compare(int(stored), value)
        return annotated == _DOUBLE and compare(float(stored), value)

    def test(page: _Page) -> Found:
        column = page.columns[at]
        if column.types <= _PLAIN_NUMBERS:
            return list(map(compare, column.values, repeat(value)))
        return list(map(holds, column.values, column.type_names))

    return test


def _binary_test(compare: _Compare, value: Any, at: int) -> Test:
    def holds(stored: Any, annotated: str | None) -> bool:
        if type(stored) is not str or annotated != EdmType.BINARY.value:
            return False
        return compare(base64.b64decode(stored), value)

    return lambda page: list(map(holds, page.columns[at].values, page.columns[at].type_names))
