"""Conditions of scans as SQL that SQLite evaluates by itself, without a Python call for each
record.

Lives here: the expression for each kind of condition. Must not live here: what a condition means
(engines/conditions.py), the statements around it (face_scan.py).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple

from strongroom.engines.conditions import (
    NUMBER_BYTES_MAX,
    AllOf,
    AnyOf,
    BytesWithin,
    Condition,
    Contains,
    LongerThan,
    NumberWithin,
    parts_of,
)

# Each part costs about a tenth of a microsecond per record. With more of them, to read the record
# costs less.
_PARTS_MAX: Final = 16
# SQLite reads a decimal number to at least 15 digits, and Python to the nearest binary64 number.
_ROUNDING: Final = 1e-13
_LEAST: Final = 1e-300

Value = bytes | int | float


class SqlExpression(NamedTuple):
    """An expression over the column `value`, and the values for its placeholders."""

    sql: str
    values: tuple[Value, ...]


@lru_cache(maxsize=128)
def expression_of(condition: Condition) -> SqlExpression | None:
    """Return the expression of a condition; None when the condition has so many parts that SQL is
    slower."""
    if sum(1 for _ in parts_of(condition)) > _PARTS_MAX:
        return None
    return _expression(condition)


def _expression(condition: Condition) -> SqlExpression:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            expressions = [_expression(part) for part in parts]
            joint = " AND " if isinstance(condition, AllOf) else " OR "
            values = tuple(value for expression in expressions for value in expression.values)
            return SqlExpression(
                "(" + joint.join(expression.sql for expression in expressions) + ")", values
            )
        case Contains(part):
            return SqlExpression("instr(value, ?)", (part,))
        case LongerThan(size_bytes):
            return SqlExpression("length(value) > ?", (size_bytes,))
        case BytesWithin(_, low, high, _):
            sql, values = _bytes_after_mark(condition, max(len(low), len(high)))
            return SqlExpression(f"({sql} BETWEEN ? AND ?)", (*values, low, high))
        case NumberWithin(_, low, high, _):
            sql, values = _bytes_after_mark(condition, NUMBER_BYTES_MAX)
            compared, bounds = _between(_below(low), -_below(-high))
            return SqlExpression(f"(CAST({sql} AS REAL) {compared})", (*values, *bounds))


def _bytes_after_mark(condition: NumberWithin | BytesWithin, length: int) -> SqlExpression:
    """Return an expression for the bytes after the mark. In a value without the mark it yields
    other bytes. The scan may then return too many records, which is allowed."""
    skip_bytes, mark = condition.skip_bytes, condition.mark
    if not skip_bytes:
        return SqlExpression("substr(value, instr(value, ?) + ?, ?)", (mark, len(mark), length))
    sql = "substr(value, instr(substr(value, ?), ?) + ?, ?)"
    return SqlExpression(sql, (skip_bytes + 1, mark, skip_bytes + len(mark), length))


def _between(low: float, high: float) -> SqlExpression:
    """Return the end of an expression: a comparison with the bounds, except with an infinite one
    that every number satisfies."""
    if low == -math.inf:
        return SqlExpression("<= ?", (high,))
    if high == math.inf:
        return SqlExpression(">= ?", (low,))
    return SqlExpression("BETWEEN ? AND ?", (low, high))


def _below(bound: float) -> float:
    """Lower by more than SQLite's rounding error."""
    return bound - abs(bound) * _ROUNDING - _LEAST if math.isfinite(bound) else bound
