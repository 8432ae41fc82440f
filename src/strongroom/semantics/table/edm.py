"""The values of table entities: the eight primitive types, their JSON forms, their limits.

The conversion of a property's value between its form in requests and its stored form. Entities as a
whole: entities.py; documents: wire/table/odata.py. Source: "Understanding the Table service data
model", "Payload format for Table service operations", OData 3.0 JSON format.

The fragment is the form in which an entity's properties are stored and (at minimal metadata) sent.
It is the inside of a JSON object: `"Name":"x","Size@odata.type":"Edm.Int64","Size":"12"`. A type
that JSON does not show is annotated directly before its property. These are Int64, DateTime, Guid,
Binary, and a Double that JSON has no number for.
"""

from __future__ import annotations

import base64
import binascii
import enum
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from strongroom.values import INT32, TICKS_PER_S, Scalar, iso7, ticks_of

INT64: Final = (-(2**63), 2**63 - 1)
VALUE_BYTES_MAX: Final = 64 * 1024
_EARLIEST: Final = ticks_of(datetime(1601, 1, 1, tzinfo=UTC))
_LATEST: Final = ticks_of(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)) + TICKS_PER_S - 1
_DATE_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?"
    r"(?:[Zz]|([+-])(\d\d):?([0-5]\d))?",
    re.ASCII,
)
# The largest offset of a time zone from UTC (ISO 8601 as in XML Schema).
_OFFSET_MAX_S: Final = 14 * 3600
_GUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# Leading zeros are not counted: Python refuses to read thousands of them.
_INTEGER: Final = re.compile(r"([+-]?)0*([0-9]{1,20})")
_DOUBLE: Final = re.compile(
    r"[+-]?(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,5})?", re.ASCII
)
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "INF": math.inf,
                   "-INF": -math.inf}  # fmt: skip


class EdmType(enum.Enum):
    """The value is the annotation's text."""

    STRING = "Edm.String"
    BOOLEAN = "Edm.Boolean"
    INT32 = "Edm.Int32"
    INT64 = "Edm.Int64"
    DOUBLE = "Edm.Double"
    DATE_TIME = "Edm.DateTime"
    GUID = "Edm.Guid"
    BINARY = "Edm.Binary"


# Types that their JSON values show; finite Doubles are shown too.
_TYPES_SHOWN_BY_JSON: Final = (EdmType.STRING, EdmType.INT32, EdmType.BOOLEAN)

AnnotatedValue = int | float | UUID | bytes
"""A value whose type JSON does not show: Int64, DateTime in ticks (values.py), a Double that is not
finite, Guid as UUID, Binary as bytes."""
EdmValue = Scalar | AnnotatedValue


class Typed(msgspec.Struct, frozen=True):
    """A value whose type JSON does not show, with its type."""

    type: EdmType
    value: AnnotatedValue


Value = Scalar | Typed
"""The value of a property: as JSON has it where JSON tells its type (String, Boolean, Int32, and
Double where it is finite), else Typed. So each has one form, and most are never wrapped."""


class NotOfType(ValueError):
    """A text or JSON value that is invalid for the type; the message says why."""


class OutOfRange(ValueError):
    """A time before 1601 or after 9999; the text is the one that the service's error quotes."""


def value_of(raw: object, type_name: str | None) -> Value:
    """The value of a property in a request's document.

    Arguments:
        raw: the JSON value: str, bool, int or float. (null, objects and arrays are not values.)
        type_name: the text of `@odata.type`, None when it was not given.

    Raises: NotOfType, OutOfRange.
    """
    if type_name is None:
        return _natural(raw)
    try:
        kind = EdmType(type_name)
    except ValueError:
        raise NotOfType(f"{type_name[:64]} is not a type of properties") from None
    value = _of_type(raw, kind)
    if kind in _TYPES_SHOWN_BY_JSON or (isinstance(value, float) and math.isfinite(value)):
        assert isinstance(value, Scalar)
        return value
    assert not isinstance(value, (str, bool))
    return Typed(kind, value)


def _natural(raw: object) -> Value:
    if isinstance(raw, (str, bool)):
        return raw
    if isinstance(raw, int):
        return _integer(raw, INT32, EdmType.INT32)
    if isinstance(raw, float):
        return _finite(raw)
    raise NotOfType("objects and arrays are not values of properties")


def _of_type(raw: object, kind: EdmType) -> EdmValue:
    if kind is EdmType.BOOLEAN:
        return _boolean(raw)
    if kind in (EdmType.INT32, EdmType.INT64):
        return _integer(raw, INT32 if kind is EdmType.INT32 else INT64, kind)
    if kind is EdmType.DOUBLE:
        return _double(raw)
    if not isinstance(raw, str):
        raise NotOfType(f"a value of {kind.value} is a string in JSON")
    return parse(raw, kind)


def parse(text: str, kind: EdmType) -> EdmValue:
    """The value of a text: of a JSON string, or of a literal without its marks.

    Raises: NotOfType, OutOfRange.
    """
    if kind is EdmType.DATE_TIME:
        return parse_time(text)
    if kind is EdmType.GUID:
        if _GUID.fullmatch(text) is None:
            raise NotOfType("a Guid has the form 8-4-4-4-12, in hexadecimal digits")
        return UUID(text)
    if kind is EdmType.BINARY:
        return _binary(text)
    if kind is EdmType.STRING:
        return text
    return _of_type(text, kind)


def _boolean(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in ("true", "false"):
        return raw.lower() == "true"
    raise NotOfType("a Boolean is true or false")


def _integer(raw: object, bounds: tuple[int, int], kind: EdmType) -> int:
    value = parse_integer(raw) if isinstance(raw, str) else raw
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotOfType(f"the value is no {kind.value}")
    if not bounds[0] <= value <= bounds[1]:
        raise NotOfType(f"the value does not fit into {kind.value}")
    return value


def parse_integer(text: str) -> int | None:
    """An integer of decimal digits; None if the text is none, or has more digits than any type."""
    match = _INTEGER.fullmatch(text)
    return None if match is None else int(match[1] + match[2])


def _double(raw: object) -> float:
    if isinstance(raw, str):
        if raw in _SPECIAL:
            return _SPECIAL[raw]
        if _DOUBLE.fullmatch(raw):
            raw = float(raw)
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise NotOfType("the value is no Edm.Double")
    try:
        return _finite(float(raw))
    except OverflowError:
        raise NotOfType("the value does not fit into Edm.Double") from None


def _finite(value: float) -> float:
    # A value that is meant to be infinite is a text; an infinite number here was too large.
    if not math.isfinite(value):
        raise NotOfType("the value does not fit into Edm.Double")
    return value


def _binary(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NotOfType("a value of Edm.Binary is base64") from None


def parse_hex(text: str) -> bytes:
    """The bytes of a binary literal in a filter."""
    if _HEX.fullmatch(text) is None:
        raise NotOfType("a binary constant has two hexadecimal digits for each byte")
    return bytes.fromhex(text)


def parse_time(text: str) -> int:
    """The ticks of an ISO 8601 time. Seven digits of the fraction count, and more are cut. Without
    a zone it is UTC.

    Raises: NotOfType; OutOfRange before 1601.
    """
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        raise NotOfType("a DateTime has the form 2013-08-09T18:55:48.3402073Z")
    year, month, day, hour, minute, second, fraction, sign, off_hours, off_minutes = match.groups()
    clock = int(hour or 0), int(minute or 0), int(second or 0)
    try:
        moment = datetime(int(year), int(month), int(day), *clock, tzinfo=UTC)
    except ValueError as error:
        raise NotOfType(str(error)) from None
    offset_s = (int(off_hours or 0) * 60 + int(off_minutes or 0)) * 60
    if offset_s > _OFFSET_MAX_S:
        raise NotOfType("a time is at most 14 hours away from UTC")
    ticks = ticks_of(moment) + int((fraction or "0").ljust(7, "0")[:7])
    ticks += (offset_s if sign == "-" else -offset_s) * TICKS_PER_S
    if not _EARLIEST <= ticks <= _LATEST:
        raise OutOfRange(f"{moment:%m/%d}/{moment.year:04} {moment:%H:%M:%S}")
    return ticks


def fragment(properties: Mapping[str, Value]) -> bytes:
    """Properties in their stored form: the inside of a JSON object. If the JSON value does not show
    a property's type, an annotation precedes it."""
    if Typed not in map(type, properties.values()):
        return msgspec.json.encode(dict(properties))[1:-1]
    members: dict[str, object] = {}
    for name, value in properties.items():
        if isinstance(value, Typed):
            members[f"{name}@odata.type"] = value.type.value
            members[name] = _json_text(value)
        else:
            members[name] = value
    return msgspec.json.encode(members)[1:-1]


def pair(name: str, value: Value) -> bytes:
    """In the form of `fragment`."""
    return fragment({name: value})


def _json_text(typed: Typed) -> str:
    """The JSON string of a value whose type is annotated."""
    kind, value = typed.type, typed.value
    if kind is EdmType.DATE_TIME:
        assert isinstance(value, int)
        return iso7(value)
    if kind is EdmType.BINARY:
        assert isinstance(value, bytes)
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else "-" * (value < 0) + "Infinity"
    return str(value)


_SIZES_BYTES: Final[dict[type | EdmType, int]] = {
    bool: 1,
    int: 4,
    float: 8,
    EdmType.INT64: 8,
    EdmType.DOUBLE: 8,
    EdmType.DATE_TIME: 8,
    EdmType.GUID: 16,
}


def untyped(value: Value) -> EdmValue:
    return value.value if isinstance(value, Typed) else value


def size_bytes(value: Value) -> int:
    """The size that counts for a value: a string in UTF-16, binary data unencoded."""
    content = untyped(value)
    if isinstance(content, str):
        return 2 * len(content) if content.isascii() else len(content.encode("utf-16-le"))
    if isinstance(content, bytes):
        return len(content)
    return _SIZES_BYTES[value.type if isinstance(value, Typed) else type(value)]
