"""The condition on records that can hold matches of a $filter, for the engine.

Lives here: from an expression to a condition of a scan.

The condition is necessary and not sufficient: every match satisfies it. It depends on how an entity
is stored in its records (entity_records.py) and on how properties are encoded
(semantics/table/edm.py). The name of a property is in quotation marks, and a colon follows. In a
text, a backslash precedes each quotation mark. So these bytes occur nowhere else in the fragment.

The head of an entity with chunks satisfies every condition: a property of the filter may be stored
in a chunk. Its chunks satisfy none, so a caller that finds such a head reads again without a
condition.
"""

from __future__ import annotations

import base64
import math
from functools import lru_cache
from typing import Any, Final

import msgspec

from strongroom.engines.conditions import (
    AllOf,
    AnyOf,
    BytesWithin,
    Condition,
    Contains,
    LongerThan,
    NumberWithin,
)
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
from strongroom.semantics.table.table_predicate import PARTITION_KEY, ROW_KEY, TIMESTAMP
from strongroom.store.table import entity_records
from strongroom.values import iso7

_LEAST: Final = b""
_MOST: Final = b"\xff"  # larger than any text
# The number of bytes of a constant that are compared.
_TEXT_BYTES_MAX: Final = 64
# The byte after a quotation mark: larger than the byte that ends a text.
_AFTER_QUOTE: Final = b"#"
_FROM: Final = frozenset({Operator.EQ, Operator.GT, Operator.GE})
_UP_TO: Final = frozenset({Operator.EQ, Operator.LT, Operator.LE})
_IS_LARGE: Final = LongerThan(entity_records.HEAD_BYTES_MAX)


@lru_cache(maxsize=256)
def condition(expression: Expression) -> Condition | None:
    """Return the condition that the records of all matches satisfy; None when the filter implies
    none."""
    inner = _condition(expression)
    # The length first: where it decides, the engine need not read a large value.
    return None if inner is None else AnyOf((_IS_LARGE, inner))


def _condition(expression: Expression) -> Condition | None:
    match expression:
        case Comparison():
            return _comparison(expression)
        case BooleanProperty(name):
            return Contains(_mark(name) + b"true")
        case Conjunction(parts):
            known = tuple(one for one in map(_condition, parts) if one is not None)
            return AllOf(known) if known else None
        case Disjunction(parts):
            conditions = tuple(map(_condition, parts))
            known = tuple(one for one in conditions if one is not None)
            return AnyOf(known) if len(known) == len(conditions) else None
        case Not() | Constant():
            return None


def _comparison(comparison: Comparison) -> Condition | None:
    if comparison.name in (PARTITION_KEY, ROW_KEY):
        return None
    operator, literal = comparison.operator, comparison.literal
    if comparison.name == TIMESTAMP:
        return _timestamp(operator, literal)
    mark = _mark(comparison.name)
    is_there = Contains(mark)
    if operator is Operator.NE:
        return is_there
    if literal.family is Family.NUMBER:
        return _number(mark, operator, literal.value)
    if operator is Operator.EQ:
        return _equal(mark, literal)
    if literal.family is Family.STRING:
        return _text(mark + b'"', operator, str(literal.value))
    if literal.family is Family.DATETIME:
        return _within(mark + b'"', operator, iso7(int(literal.value)).encode())
    return is_there


def _mark(name: str) -> bytes:
    return msgspec.json.encode(name) + b":"


def _timestamp(operator: Operator, literal: Literal) -> Condition | None:
    if literal.family is not Family.DATETIME or operator is Operator.NE:
        return None
    ticks = entity_records.timestamp_bytes(int(literal.value))
    low = ticks if operator in _FROM else _LEAST
    high = ticks if operator in _UP_TO else _MOST * len(ticks)
    return BytesWithin(b"", low, high, entity_records.TIMESTAMP_AT)


def _number(mark: bytes, operator: Operator, value: Any) -> Condition:
    low = float(value) if operator in _FROM else -math.inf
    high = float(value) if operator in _UP_TO else math.inf
    plain = NumberWithin(mark, low, high, _skip_bytes(mark))
    if low <= 0 <= high:
        return plain  # every number that is stored as a text counts as 0
    text = mark + b'"'
    infinite = b"Infinity" if operator in _FROM else b"-Infinity"
    whole = NumberWithin(text, low, high, _skip_bytes(text))
    return AnyOf((plain, AllOf((Contains(text), AnyOf((whole, Contains(text + infinite)))))))


def _skip_bytes(mark: bytes) -> int:
    """Return how many bytes at a record's beginning could equal the mark by chance: those of its
    Timestamp, unless that is shorter."""
    return 0 if len(mark) > entity_records.TIMESTAMP_BYTES else entity_records.PREFIX_BYTES


def _equal(mark: bytes, literal: Literal) -> Condition:
    value: Any = literal.value
    if literal.family is Family.DATETIME:
        value = iso7(value)
    elif literal.family is Family.BINARY:
        value = base64.b64encode(value).decode("ascii")
    try:
        written = msgspec.json.encode(value)
    except UnicodeEncodeError:
        written = b'"'  # no stored text equals it
    return Contains(mark + written)


def _text(mark: bytes, operator: Operator, value: str) -> Condition:
    """Return the condition for a comparison with a text, which compares the stored bytes. Entities
    with an escaped character satisfy it too, since their bytes are ordered otherwise."""
    within = _within(mark, operator, value.encode("utf-8", "surrogatepass"))
    return AnyOf((within, Contains(b"\\")))


def _within(mark: bytes, operator: Operator, value: bytes) -> Condition:
    """Return the condition for a range of texts. A stored text ends with a quotation mark, which is
    larger than a space."""
    low, high = _LEAST, _MOST
    if operator in _FROM:
        low = value[:_TEXT_BYTES_MAX]
    else:
        short = value[:_TEXT_BYTES_MAX]
        cut = next((at for at, byte in enumerate(short) if byte <= 0x22), len(short))
        is_whole = cut < len(short) or len(value) == len(short)
        high = short[:cut] + (_AFTER_QUOTE if is_whole else _MOST)
    return BytesWithin(mark, low, high, _skip_bytes(mark))
