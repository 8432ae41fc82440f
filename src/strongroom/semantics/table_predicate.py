"""Whether an entity matches a $filter: an expression, compiled once, asked for many entities.

Lives here: how the values of each type compare. Must not live here: the grammar (table_filter.py),
what is read (table_intervals.py). Source: "Querying tables and entities", "Differences between
Table service and OData".

A comparison holds only between values that can be compared (`Family`): a property that an entity
does not have, or has with another type, satisfies none, `ne` neither; `not` of it then holds. The
three types of numbers compare with each other as numbers; text, keys and binary values by their
bytes (text as UTF-8), false before true. Keys are text, Timestamp is a DateTime.

Stored properties are the inside of a JSON object (edm.py). Only those that the filter names are
decoded, all entities at once; the decoder skips the others.
"""

from __future__ import annotations

import base64
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, NamedTuple

import msgspec

from strongroom.semantics import table_filter
from strongroom.semantics.edm import EdmType
from strongroom.semantics.table_filter import (
    Both,
    Comparison,
    Either,
    Expression,
    Family,
    Flag,
    Literal,
    Not,
    Operator,
)
from strongroom.values import iso7

PARTITION_KEY: Final = "PartitionKey"
ROW_KEY: Final = "RowKey"
TIMESTAMP: Final = "Timestamp"


class Candidates(NamedTuple):
    """Entities as they are stored, by column: their keys as UTF-8, their Timestamps in ticks, their
    other properties as the inside of a JSON object."""

    partition_keys: Sequence[bytes]
    row_keys: Sequence[bytes]
    timestamps: Sequence[int]
    fragments: Sequence[bytes]

    @classmethod
    def of(cls, entities: Sequence[tuple[bytes, bytes, int, bytes]]) -> Candidates:
        """Entities that are there one by one, as (partition key, row key, Timestamp, fragment)."""
        if not entities:
            return cls((), (), (), ())
        partition_keys, row_keys, timestamps, fragments = zip(*entities, strict=True)
        return cls(partition_keys, row_keys, timestamps, fragments)

    def part(self, first: int, until: int) -> Candidates:
        """Those of them from number `first` to before number `until`."""
        here = slice(first, until)
        names = self.partition_keys[here], self.row_keys[here]
        return Candidates(*names, self.timestamps[here], self.fragments[here])


class _Page(NamedTuple):
    """Entities, and the properties of each that the filter names."""

    candidates: Candidates
    named: Sequence[Any]


Test = Callable[[_Page], list[bool]]
"""test(entities) -> of each, whether it holds. A comparison runs over its column at a time, so that
no call of Python is made for a single entity where all of them have the type that is asked for."""

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


class Predicate:
    """An expression, ready to be asked.

    Arguments:
        expression: as `table_filter.parse` returns it.
    """

    def __init__(self, expression: Expression) -> None:
        names = table_filter.names(expression)
        self._names = tuple(sorted(set(names) - _SYSTEM))
        self._test = _compiled(expression, {name: at for at, name in enumerate(self._names)})

    def select(self, candidates: Candidates) -> list[bool]:
        """Which of the entities match, in their order."""
        if not self._names or not candidates.fragments:
            return self._test(_Page(candidates, ()))
        document = b"},{".join(candidates.fragments)
        decoded = _decoder(self._names).decode(b"[{" + document + b"}]")
        return self._test(_Page(candidates, decoded))


@lru_cache(maxsize=256)
def _decoder(names: tuple[str, ...]) -> msgspec.json.Decoder[list[Any]]:
    """Decodes these properties and their types; of name number i as `v<i>` and `t<i>`."""
    fields: list[tuple[str, Any, Any]] = []
    for at, name in enumerate(names):
        fields.append((f"v{at}", Any, msgspec.field(name=name, default=None)))
        kind = msgspec.field(name=f"{name}@odata.type", default=None)
        fields.append((f"t{at}", str | None, kind))
    named = msgspec.defstruct("Named", fields, gc=False)
    return msgspec.json.Decoder(list[named])  # type: ignore[valid-type]


def _compiled(expression: Expression, places: dict[str, int]) -> Test:
    if isinstance(expression, Not):
        part = _compiled(expression.part, places)
        return lambda page: list(map(operator.not_, part(page)))
    if isinstance(expression, Both | Either):
        return _joined(expression, [_compiled(part, places) for part in expression.parts])
    if isinstance(expression, Flag):
        expression = Comparison(expression.name, Operator.EQ, Literal(Family.BOOLEAN, True))
    if expression.name in _SYSTEM:
        return _system_test(expression)
    return _property_test(expression, places[expression.name])


def _joined(expression: Both | Either, parts: list[Test]) -> Test:
    join = operator.and_ if isinstance(expression, Both) else operator.or_

    def test(page: _Page) -> list[bool]:
        found = parts[0](page)
        for part in parts[1:]:
            found = list(map(join, found, part(page)))
        return found

    return test


def _never(page: _Page) -> list[bool]:
    return [False] * len(page.candidates.fragments)


_COLUMNS: Final[dict[str, Callable[[Candidates], Sequence[Any]]]] = {
    PARTITION_KEY: operator.attrgetter("partition_keys"),
    ROW_KEY: operator.attrgetter("row_keys"),
    TIMESTAMP: operator.attrgetter("timestamps"),
}


def _system_test(comparison: Comparison) -> Test:
    """A key as its bytes, Timestamp as ticks; what has another type never matches."""
    compare, literal = _OPERATIONS[comparison.operator], comparison.literal
    family = Family.DATETIME if comparison.name == TIMESTAMP else Family.STRING
    if literal.family is not family:
        return _never
    value: Any = literal.value
    if family is Family.STRING:
        value = value.encode("utf-8", "surrogatepass")
    column = _COLUMNS[comparison.name]
    return lambda page: list(map(compare, column(page.candidates), repeat(value)))


def _property_test(comparison: Comparison, at: int) -> Test:
    compare, literal = _OPERATIONS[comparison.operator], comparison.literal
    value_of, type_of = operator.attrgetter(f"v{at}"), operator.attrgetter(f"t{at}")
    if literal.family is Family.NUMBER:
        return _number_test(compare, literal.value, value_of, type_of)
    if literal.family is Family.BINARY:
        return _binary_test(compare, literal.value, value_of, type_of)
    wanted, kind, value = _STORED[literal.family](literal.value)

    def test(page: _Page) -> list[bool]:
        found = list(map(value_of, page.named))
        kinds = list(map(type_of, page.named))
        if set(map(type, found)) == {kind} and set(kinds) == {wanted}:
            return list(map(compare, found, repeat(value)))
        return [
            type(one) is kind and annotated == wanted and compare(one, value)
            for one, annotated in zip(found, kinds, strict=True)
        ]

    return test


# How a value is stored, so that the stored forms compare as the values do: annotation, JSON type,
# JSON value.
_STORED: Final[dict[Family, Callable[[Any], tuple[str | None, type, Any]]]] = {
    Family.STRING: lambda value: (None, str, value),
    Family.BOOLEAN: lambda value: (None, bool, value),
    Family.DATETIME: lambda value: (EdmType.DATE_TIME.value, str, iso7(value)),
    Family.GUID: lambda value: (EdmType.GUID.value, str, value),
}

_Get = Callable[[Any], Any]
_Compare = Callable[[Any, Any], bool]


def _number_test(compare: _Compare, value: Any, value_of: _Get, type_of: _Get) -> Test:
    def holds(found: Any, annotated: str | None) -> bool:
        kind = type(found)
        if kind is int or kind is float:
            return compare(found, value)
        if kind is not str:
            return False
        if annotated == _INT64:
            return compare(int(found), value)
        return annotated == _DOUBLE and compare(float(found), value)

    def test(page: _Page) -> list[bool]:
        found = list(map(value_of, page.named))
        if set(map(type, found)) <= _PLAIN_NUMBERS:
            return list(map(compare, found, repeat(value)))
        return list(map(holds, found, map(type_of, page.named)))

    return test


def _binary_test(compare: _Compare, value: Any, value_of: _Get, type_of: _Get) -> Test:
    def holds(found: Any, annotated: str | None) -> bool:
        if type(found) is not str or annotated != EdmType.BINARY.value:
            return False
        return compare(base64.b64decode(found), value)

    return lambda page: list(map(holds, map(value_of, page.named), map(type_of, page.named)))
