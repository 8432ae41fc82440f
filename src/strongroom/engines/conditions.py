"""Conditions on the face records of a scan, for engines that can leave records out where they lie.

Lives here: the conditions as values, and what each of them means. Must not live here: how an engine
finds the records (records/condition_sql.py of the embedded engine), what the bytes mean to a
service. Conditions speak of bytes only, so that every engine can read them.

A condition of a scan is a hint. A record that satisfies it is always returned. A record that does
not may be returned too, so the caller judges each record again. A `mark` is looked for behind the
first `skip_bytes` of a value, and the first one counts. An empty value has none.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

_NUMBER: Final = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
NUMBER_BYTES_MAX: Final = 32


class Has(msgspec.Struct, frozen=True):
    """The value contains `part`."""

    part: bytes


class NumberWithin(msgspec.Struct, frozen=True):
    """The decimal number that follows the mark is, as a binary64 number, neither below `low` nor
    above `high`. It has at most NUMBER_BYTES_MAX characters. Anything else counts as 0."""

    mark: bytes
    low: float
    high: float
    skip_bytes: int = 0


class BytesWithin(msgspec.Struct, frozen=True):
    """The bytes behind the mark are neither below `low` nor above `high`. So many of them count as
    the longer of the two has."""

    mark: bytes
    low: bytes
    high: bytes
    skip_bytes: int = 0


class LongerThan(msgspec.Struct, frozen=True):
    """The value is longer than this."""

    size_bytes: int


class AllOf(msgspec.Struct, frozen=True):
    """Every part is satisfied; there is at least one."""

    parts: tuple[Condition, ...]


class AnyOf(msgspec.Struct, frozen=True):
    """At least one part is satisfied; there is at least one."""

    parts: tuple[Condition, ...]


Condition = Has | NumberWithin | BytesWithin | LongerThan | AllOf | AnyOf


def holds(condition: Condition, value: bytes) -> bool:
    """Whether a record with this value satisfies a condition."""
    match condition:
        case Has(part):
            return part in value
        case LongerThan(size_bytes):
            return len(value) > size_bytes
        case AllOf(parts):
            return all(holds(part, value) for part in parts)
        case AnyOf(parts):
            return any(holds(part, value) for part in parts)
    at = value.find(condition.mark, condition.skip_bytes)
    if at < 0 or not value:
        return False
    at += len(condition.mark)
    if isinstance(condition, BytesWithin):
        length = max(len(condition.low), len(condition.high))
        return condition.low <= value[at : at + length] <= condition.high
    number = _NUMBER.match(value, at)
    return condition.low <= (float(number[0]) if number else 0.0) <= condition.high
