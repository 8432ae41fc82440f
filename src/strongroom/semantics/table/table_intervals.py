"""The intervals of keys in which the matches of a $filter can lie.

From an expression to sorted, disjoint intervals over (PartitionKey, RowKey), and how they are cut.
Whether an entity matches: table_predicate.py. Source: "Query timeout and pagination", "Design for
querying": point, range and partition queries by keys.

Comparisons of other properties are taken as true, so the intervals are a necessary condition: no
match lies outside, and other entities may lie inside. Keys are compared by their UTF-8 bytes. No
key has a character below U+0020. So `key + 0x01` lies after a key and all records stored with it
(keys.py), and before the next key.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from strongroom.semantics.table.table_filter import (
    BooleanProperty,
    Comparison,
    Conjunction,
    Constant,
    Expression,
    Family,
    Not,
    Operator,
)
from strongroom.semantics.table.table_predicate import PARTITION_KEY, ROW_KEY

Position = tuple[bytes, bytes]
"""(PartitionKey, RowKey); need not be those of an entity."""

START: Final[Position] = (b"", b"")
_AFTER_KEY: Final = b"\x01"
# Longer texts are no keys; the limit keeps positions within those of an engine.
_KEY_BYTES_MAX: Final = 2048
_BOXES_MAX: Final = 128
_CROSSED_MAX: Final = 1024


class Interval(NamedTuple):
    """The positions with `first` <= position < `until`; `until` None = to the end."""

    first: Position
    until: Position | None

    def is_point(self) -> bool:
        """Whether it can hold only one entity, the one at `first`."""
        return self.until == (self.first[0], self.first[1] + _AFTER_KEY)


class _Range(NamedTuple):
    """The keys with first <= key < until."""

    first: bytes
    until: bytes | None

    def is_point(self) -> bool:
        return self.until == self.first + _AFTER_KEY


class _Box(NamedTuple):
    """A range of PartitionKeys, and in each of these partitions a range of RowKeys."""

    partitions: _Range
    rows: _Range


_ALL_KEYS: Final = _Range(b"", None)
_EVERYWHERE: Final = _Box(_ALL_KEYS, _ALL_KEYS)
ALL: Final = (Interval(START, None),)
"""The whole table."""


@lru_cache(maxsize=256)
def intervals(expression: Expression | None) -> tuple[Interval, ...]:
    """Sorted, disjoint intervals that hold every matching entity; None = all entities."""
    if expression is None:
        return ALL
    return _merged(_interval(box) for box in _boxes(expression, negated=False))


def cut(
    found: Iterable[Interval], first: Position = START, until: Position | None = None
) -> tuple[Interval, ...]:
    """The parts of sorted intervals that lie within first <= position < until."""
    kept = []
    for interval in found:
        begin = max(interval.first, first)
        end = _least(interval.until, until)
        if end is None or begin < end:
            kept.append(Interval(begin, end))
    return tuple(kept)


def from_key(partition_key: str, row_key: str | None) -> Position:
    """The first position that is not before a key. Without a RowKey, the position is the
    partition's beginning."""
    return _lower(partition_key, True), b"" if row_key is None else _lower(row_key, True)


def through_key(partition_key: str, row_key: str | None) -> Position:
    """The end of the positions that are not after a key. Without a RowKey, it is the end of the
    partition."""
    if row_key is None:
        return _upper(partition_key, True), b""
    return _lower(partition_key, True), _upper(row_key, True)


def by_partition(found: Iterable[Interval]) -> tuple[tuple[Interval, ...], ...]:
    """Sorted intervals in groups: intervals that share a partition are in one group."""
    groups: list[tuple[Interval, ...]] = []
    for interval in found:
        until = groups[-1][-1].until if groups else START
        if until is not None and until > (interval.first[0], b""):
            groups[-1] += (interval,)
        else:
            groups.append((interval,))
    return tuple(groups)


def _boxes(expression: Expression, negated: bool) -> list[_Box]:
    """Boxes that hold all keys for which the expression (or its negation) can hold."""
    if isinstance(expression, Not):
        return _boxes(expression.part, not negated)
    if isinstance(expression, Constant):
        return [_EVERYWHERE] if expression.value is not negated else []
    if isinstance(expression, BooleanProperty):
        no_key = not negated and expression.name in (PARTITION_KEY, ROW_KEY)
        return [] if no_key else [_EVERYWHERE]
    if isinstance(expression, Comparison):
        return _compared(expression, negated)
    parts = [_boxes(part, negated) for part in expression.parts]
    if isinstance(expression, Conjunction) is negated:
        return _bounded([box for part in parts for box in part])
    boxes = [_EVERYWHERE]
    for part in parts:
        if len(boxes) * len(part) > _CROSSED_MAX:
            part = _hull(part)
        crossed = (_common(one, other) for one in boxes for other in part)
        boxes = _bounded([box for box in crossed if box is not None])
    return boxes


def _bounded(boxes: list[_Box]) -> list[_Box]:
    """Remove duplicates. Return the one box around all when there are too many."""
    boxes = list(dict.fromkeys(boxes))
    if _EVERYWHERE in boxes:
        return [_EVERYWHERE]
    return boxes if len(boxes) <= _BOXES_MAX else _hull(boxes)


def _hull(boxes: list[_Box]) -> list[_Box]:
    return [_Box(_around(box.partitions for box in boxes), _around(box.rows for box in boxes))]


def _around(ranges: Iterable[_Range]) -> _Range:
    firsts, untils = zip(*ranges, strict=True)
    return _Range(min(firsts), None if None in untils else max(untils))


_NEGATED: Final = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.GT: Operator.LE,
    Operator.GE: Operator.LT,
    Operator.LT: Operator.GE,
    Operator.LE: Operator.GT,
}


def _compared(comparison: Comparison, negated: bool) -> list[_Box]:
    if comparison.name not in (PARTITION_KEY, ROW_KEY):
        return [_EVERYWHERE]
    literal = comparison.literal
    if literal.family is not Family.STRING:
        return [_EVERYWHERE] if negated else []
    assert isinstance(literal.value, str)
    operator = _NEGATED[comparison.operator] if negated else comparison.operator
    ranges = _ranges(operator, literal.value)
    if comparison.name == PARTITION_KEY:
        return [_Box(one, _ALL_KEYS) for one in ranges]
    return [_Box(_ALL_KEYS, one) for one in ranges]


def _ranges(operator: Operator, key: str) -> list[_Range]:
    if operator is Operator.EQ:
        ranges = [_Range(_lower(key, True), _upper(key, True))]
    elif operator is Operator.NE:
        ranges = [_Range(b"", _upper(key, False)), _Range(_lower(key, False), None)]
    elif operator in (Operator.LT, Operator.LE):
        ranges = [_Range(b"", _upper(key, operator is Operator.LE))]
    else:
        ranges = [_Range(_lower(key, operator is Operator.GE), None)]
    return [one for one in ranges if one.until is None or one.first < one.until]


def _lower(key: str, inclusive: bool) -> bytes:
    """Where the keys begin that are greater than a text, or equal to it. No key contains a NUL or
    is too long, so the rest of such a text does not count."""
    beginning, nul, _ = key.partition("\0")
    name = beginning.encode("utf-8", "surrogatepass")
    if len(name) > _KEY_BYTES_MAX:
        return name[:_KEY_BYTES_MAX]
    return name if inclusive and not nul else name + _AFTER_KEY


def _upper(key: str, inclusive: bool) -> bytes:
    """Where the keys end that are less than a text, or equal to it."""
    beginning, nul, _ = key.partition("\0")
    name = beginning.encode("utf-8", "surrogatepass")
    if len(name) > _KEY_BYTES_MAX:
        return name[:_KEY_BYTES_MAX] + b"\xff"
    return name + _AFTER_KEY if inclusive or nul else name


def _common(one: _Box, other: _Box) -> _Box | None:
    partitions = _meet(one.partitions, other.partitions)
    rows = _meet(one.rows, other.rows)
    return None if partitions is None or rows is None else _Box(partitions, rows)


def _meet(one: _Range, other: _Range) -> _Range | None:
    first = max(one.first, other.first)
    until = one.until if other.until is None else other.until
    if one.until is not None and other.until is not None:
        until = min(one.until, other.until)
    return None if until is not None and first >= until else _Range(first, until)


def _interval(box: _Box) -> Interval:
    """The smallest interval around a box. In its first partition it begins at the first row; in a
    box of a single partition it also ends at the last row."""
    partitions, rows = box
    first = (partitions.first, rows.first)
    if partitions.is_point() and rows.until is not None:
        return Interval(first, (partitions.first, rows.until))
    return Interval(first, None if partitions.until is None else (partitions.until, b""))


def _merged(found: Iterable[Interval]) -> tuple[Interval, ...]:
    merged: list[Interval] = []
    for interval in sorted(found, key=lambda one: one.first):
        last = merged[-1] if merged else None
        if last is None or (last.until is not None and last.until < interval.first):
            merged.append(interval)
        elif last.until is not None:
            until = None if interval.until is None else max(last.until, interval.until)
            merged[-1] = Interval(last.first, until)
    return tuple(merged)


def _least(one: Position | None, other: Position | None) -> Position | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
