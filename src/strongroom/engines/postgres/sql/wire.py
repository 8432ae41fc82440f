"""Values as PostgreSQL sends them in binary form: arrays of numbers, of bytes, of truth values.

Lives here: the encoding of parameters and the decoding of results, for the few types that the
engine uses. Source: PostgreSQL's `array_send`, `int8send`, `byteasend` and their counterparts; the
numbers of types are those of the catalogue `pg_type`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

BOOL: Final = 16
BYTEA: Final = 17
INT8: Final = 20
INT4: Final = 23
TEXT: Final = 25
BOOLS: Final = 1000
BYTEAS: Final = 1001
INT8S: Final = 1016

_HEADER: Final = struct.Struct(">iIIii")
_EMPTY: Final = struct.Struct(">iII")
_LENGTH: Final = struct.Struct(">i")
_NULL: Final = _LENGTH.pack(-1)
_INT4: Final = struct.Struct(">i")
_INT8: Final = struct.Struct(">q")
_INT8_ITEM: Final = struct.Struct(">iq")
_TRUTHS: Final = (_LENGTH.pack(1) + b"\0", _LENGTH.pack(1) + b"\1")


def int4(number: int) -> bytes:
    return _INT4.pack(number)


def int8(number: int) -> bytes:
    return _INT8.pack(number)


def int8s(numbers: Sequence[int | None]) -> bytes:
    """An array of 64-bit numbers; None is NULL."""
    item = _INT8_ITEM.pack
    return _array(INT8, (_NULL if one is None else item(8, one) for one in numbers), len(numbers))


def byteas(values: Sequence[bytes | memoryview | None]) -> bytes:
    """An array of byte strings; None is NULL."""
    length = _LENGTH.pack
    parts: list[bytes | memoryview] = []
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts += (length(len(value)), value)
    return _array(BYTEA, parts, len(values))


def bools(values: Sequence[bool]) -> bytes:
    return _array(BOOL, (_TRUTHS[one] for one in values), len(values))


def _array(kind: int, parts: Iterable[bytes | memoryview], count: int) -> bytes:
    """One dimension that begins at 1, and may hold NULLs."""
    if not count:
        return _EMPTY.pack(0, 0, kind)
    return b"".join((_HEADER.pack(1, 1, kind, count, 1), *parts))


def number_of(value: bytes) -> int:
    """A number of 32 or 64 bits."""
    return int.from_bytes(value, "big", signed=True)


def numbers_of(value: bytes) -> list[int]:
    """An array of 64-bit numbers without NULLs."""
    if len(value) < _HEADER.size:
        return []
    count = _HEADER.unpack_from(value)[3]
    items = _INT8_ITEM.iter_unpack(value[_HEADER.size : _HEADER.size + count * _INT8_ITEM.size])
    return [number for _, number in items]
