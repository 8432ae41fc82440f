"""Conditions on the face records of a scan, for engines that can filter records where they are
stored.

Lives here: the conditions as values, and the meaning of each. Must not live here: how an engine
finds the records (records/condition_sql.py of the embedded engine), what the bytes mean to a
service. Conditions are about bytes only, so that every engine can evaluate them.

A condition of a scan is a hint. A record that satisfies it is always returned. Other records may be
returned too, so the caller checks each record again. A `mark` is searched after the first
`skip_bytes` of a value, and its first occurrence counts. An empty value has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

_NUMBER: Final = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
NUMBER_BYTES_MAX: Final = 32


class Contains(msgspec.Struct, frozen=True):
    """The value contains `part`."""

    part: bytes


class NumberWithin(msgspec.Struct, frozen=True):
    """The decimal number after the mark, as a binary64 number, lies within [`low`, `high`]. It has
    at most NUMBER_BYTES_MAX characters. Anything else counts as 0."""

    mark: bytes
    low: float
    high: float
    skip_bytes: int = 0


class BytesWithin(msgspec.Struct, frozen=True):
    """The bytes after the mark lie within [`low`, `high`]. The number of bytes compared is the
    length of the longer bound."""

    mark: bytes
    low: bytes
    high: bytes
    skip_bytes: int = 0


class LongerThan(msgspec.Struct, frozen=True):
    """The value is longer than this."""

    size_bytes: int


class AllOf(msgspec.Struct, frozen=True):
    """Every part is satisfied; there must be at least one part."""

    parts: tuple[Condition, ...]


class AnyOf(msgspec.Struct, frozen=True):
    """At least one part is satisfied; there must be at least one part."""

    parts: tuple[Condition, ...]


Condition = Contains | NumberWithin | BytesWithin | LongerThan | AllOf | AnyOf


def parts_of(condition: Condition) -> Iterator[Condition]:
    """The conditions without parts of their own that one is made of."""
    if isinstance(condition, AllOf | AnyOf):
        for part in condition.parts:
            yield from parts_of(part)
    else:
        yield condition


def holds(condition: Condition, value: bytes) -> bool:
    """Return whether a record with this value satisfies a condition."""
    match condition:
        case Contains(part):
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
