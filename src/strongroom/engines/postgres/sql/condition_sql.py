"""Conditions of scans as SQL that PostgreSQL evaluates, so that it sends fewer records.

Lives here: the expression for each kind of condition, over the column `value`. Must not live here:
what a condition means (engines/conditions.py). A condition is a hint: where SQL cannot tell, the
record is sent. Bytes are written as hexadecimal numbers, so no text of a caller becomes SQL.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

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

# With more parts, to send the records costs less.
_PARTS_MAX: Final = 16
_NUMBER: Final = r"^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
# A longer exponent may exceed what PostgreSQL converts.
_LONG_EXPONENT: Final = "[eE][+-]?[0-9]{3}"


@lru_cache(maxsize=128)
def expression_of(condition: Condition) -> str | None:
    """Return the expression of a condition; None when it has so many parts that SQL is slower."""
    if sum(1 for _ in parts_of(condition)) > _PARTS_MAX:
        return None
    return _expression(condition)


def _expression(condition: Condition) -> str:
    match condition:
        case AllOf(parts):
            return f"({' AND '.join(map(_expression, parts))})"
        case AnyOf(parts):
            return f"({' OR '.join(map(_expression, parts))})"
        case Contains(part):
            return f"(position({_bytes(part)} IN value) > 0)"
        case LongerThan(size_bytes):
            return f"(length(value) > {size_bytes:d})"
        case BytesWithin(_, low, high, _):
            compared = f"%s BETWEEN {_bytes(low)} AND {_bytes(high)}"
            return _after_mark(condition, max(len(low), len(high)), compared)
        case NumberWithin(_, low, high, _):
            text = "substring(encode(%s, 'escape') from '" + _NUMBER + "')"
            compared = f"BETWEEN '{low!r}'::float8 AND '{high!r}'::float8"
            number = (
                f"(SELECT CASE WHEN n ~ '{_LONG_EXPONENT}' THEN true "
                f"ELSE coalesce(n::float8, 0) {compared} END FROM (SELECT {text}) AS t(n))"
            )
            return _after_mark(condition, NUMBER_BYTES_MAX, number)


def _after_mark(condition: BytesWithin | NumberWithin, length: int, compared: str) -> str:
    """Compare the bytes after the mark; a value without it, or an empty one, does not match."""
    mark = _bytes(condition.mark)
    searched = f"substr(value, {condition.skip_bytes + 1:d})"
    start = f"position({mark} IN {searched})"
    first = f"{condition.skip_bytes + len(condition.mark):d} + {start}"
    found = compared.replace("%s", f"substr(value, {first}, {length:d})")
    return f"(length(value) > 0 AND {start} > 0 AND {found})"


def _bytes(value: bytes) -> str:
    return rf"'\x{value.hex()}'::bytea"
