"""The JSON documents that clients of the Table service send: an entity, the name of a table.

A body becomes its properties in order, each with its annotated type. The meaning of the values:
semantics/table/edm.py. Source: "Inserting and updating entities", "Create Table"; OData 3.0 JSON
format, annotations.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from strongroom.errors import core as errors
from strongroom.errors import table as table_errors
from strongroom.errors.core import StorageError
from strongroom.slices import Steps, run_to_completion
from strongroom.values import INT32, Scalar

_ANNOTATION: Final = "@odata.type"
_OWN: Final = "odata."
_TIMESTAMP: Final = "Timestamp"
# Far more than an entity may have: null properties count here too, and are not stored.
_PROPERTIES_READ_MAX: Final = 4096
# A longer body is checked before it is decoded to Python objects, which are many times larger.
LONG_BYTES: Final = 128 * 1024
# The end of a name, followed by an object or array. In a text the quotation mark is escaped.
_NESTED: Final = re.compile(rb'(?<!\\)"[ \t\r\n]*:[ \t\r\n]*[\[{]')
# Nested values are searched for in so many bytes at once, in some tenths of a millisecond. The last
# of them are searched again with the next, for a value that begins there.
_SEARCHED_BYTES: Final = 8 * 1024
_SEARCHED_TWICE_BYTES: Final = 256
_QUOTES_MAX: Final = 4 * 2 * _PROPERTIES_READ_MAX
_NESTED_BYTES_MAX: Final = 64 * 1024
_RAW_DECODER: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
PLAIN_BYTES_MAX: Final = 16 * 1024
_Int32 = Annotated[int, msgspec.Meta(ge=INT32[0], le=INT32[1])]
_PLAIN: Final = msgspec.json.Decoder(dict[str, str | bool | _Int32 | float | None])
_SPACE: Final = " \t\n\r"  # RFC 8259, section 2
_SPACED_COLONS: Final = (b" :", b"\t:", b"\n:", b"\r:")


class SentEntity(msgspec.Struct, frozen=True):
    """The properties of an entity as they were sent, in order.

    They are the JSON values (None = null), and the type annotations of some properties.

    `is_plain`: no property is null or has a type annotation. Each value is a text, a Boolean, a
    number of 32 bits, or a finite Double. A text is well-formed, and no longer than the
    PLAIN_BYTES_MAX of its document.
    """

    values: dict[str, Scalar | None]
    types: Mapping[str, str] = {}
    is_plain: bool = False


def read_entity(body: bytes) -> SentEntity:
    """As `entity_steps`, without a pause."""
    return run_to_completion(entity_steps(body))


def entity_steps(body: bytes) -> Steps[SentEntity]:
    """The properties of an entity.

    OData's own members are left out. So are Timestamp, which only the service sets, and type
    annotations without a property.
    """
    plain = _plain_values(body)
    if plain is not None:
        plain.pop(_TIMESTAMP, None)
        return SentEntity(plain, is_plain=None not in plain.values())
    values, types = _values_and_types((yield from _members(body)))
    if len(values) > _PROPERTIES_READ_MAX:
        raise StorageError(table_errors.TOO_MANY_PROPERTIES)
    return SentEntity(values, {name: types[name] for name in values if name in types})


def _plain_values(body: bytes) -> dict[str, Scalar | None] | None:
    """The values of a small document without special members, as most entities are.

    All values are plain or null. No name is repeated, and none is an annotation or OData's own.

    Returns: None when the document must be parsed member by member.
    """
    if len(body) > PLAIN_BYTES_MAX:
        return None
    # Names of OData, and escapes, which could hide them.
    if b"@" in body or b"odata." in body or b"\\u" in body:
        return None
    try:
        values = _PLAIN.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return values if _has_unique_names(len(values), body) else None


def _has_unique_names(count: int, body: bytes) -> bool:
    """Whether the document certainly has no more members than `count`, the distinct ones.

    Each member has a colon after its name. Texts may contain colons too. If no colon has white
    space before it, only colons right after a quotation mark are counted. The colon of each member
    is among these.
    """
    if body.count(b":") == count:
        return True
    return body.count(b'":') == count and not any(map(body.__contains__, _SPACED_COLONS))


def _values_and_types(members: _Object) -> tuple[dict[str, Any], dict[str, str]]:
    """Split the members into values and the type annotations of some of them."""
    values: dict[str, Scalar | None] = {}
    types: dict[str, str] = {}
    for name, value in members:
        if name.endswith(_ANNOTATION):
            if not isinstance(value, str):
                raise _invalid(f"{name[:300]} must be a string.")
            typed = name.removesuffix(_ANNOTATION)
            if typed in types:
                raise StorageError(table_errors.DUPLICATE_PROPERTIES_SPECIFIED)
            types[typed] = value
        elif "@" in name or name.startswith(_OWN) or name == _TIMESTAMP:
            continue
        elif name in values:
            raise StorageError(table_errors.DUPLICATE_PROPERTIES_SPECIFIED)
        elif isinstance(value, (tuple, list)):
            raise _invalid(f"The value of {name[:300]} is an object or array.")
        else:
            assert value is None or isinstance(value, (str, bool, int, float))
            values[name] = value
    return values, types


def read_table_name(body: bytes) -> str:
    members = run_to_completion(_members(body))
    values = [value for name, value in members if name == "TableName"]
    if len(values) > 1:
        raise StorageError(table_errors.DUPLICATE_PROPERTIES_SPECIFIED)
    if not values or not isinstance(values[0], str) or not values[0]:
        raise StorageError(table_errors.PROPERTIES_NEED_VALUE)
    return values[0]


# A JSON object as a tuple of members, so that repeated names are visible; arrays are lists.
_Object = tuple[tuple[str, Any], ...]


def _no_constant(name: str) -> object:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=tuple, parse_constant=_no_constant)


def _refuse_too_large(body: bytes) -> Steps[None]:
    """Refuse early a long document that cannot be an entity, which consists of a few long texts."""
    # Each name has an unescaped quotation mark before it, and a text has two. Counting them takes a
    # tenth of the time of parsing all members.
    if (yield from _has_many_quotes(body)):
        # A nested value that lies further behind is not searched for; then the number of members is
        # reported.
        if (yield from _has_nested_value(body, LONG_BYTES)):
            raise _invalid("A value in the body is an object or array.")
        raise StorageError(table_errors.TOO_MANY_PROPERTIES)
    try:
        members = _RAW_DECODER.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return  # the full parse decides
    yield
    if len(members) > 2 * _PROPERTIES_READ_MAX:
        raise StorageError(table_errors.TOO_MANY_PROPERTIES)
    for name, raw in members.items():
        value = bytes(raw)
        if len(value) > _NESTED_BYTES_MAX and value[:1] in b"[{":
            raise _invalid(f"The value of {name[:300]} is an object or array.")


def _has_nested_value(body: bytes, end: int) -> Steps[bool]:
    """Whether a member before the offset `end` has an object or array as its value."""
    for start in range(0, end, _SEARCHED_BYTES):
        searched_from = max(0, start - _SEARCHED_TWICE_BYTES)
        if _NESTED.search(body, searched_from, start + _SEARCHED_BYTES) is not None:
            return True
        yield
    return False


def _has_many_quotes(body: bytes) -> Steps[bool]:
    """Whether a document has more unescaped quotation marks than those of an entity. The count
    stops as soon as that is certain."""
    quotes = 0
    for start in range(0, len(body), LONG_BYTES):
        end = start + LONG_BYTES
        # An escape that begins in the part before ends here.
        quotes += body.count(b'"', start, end) - body.count(b'\\"', max(0, start - 1), end)
        if quotes > _QUOTES_MAX:
            return True
        yield
    return False


def _members(body: bytes) -> Steps[_Object]:
    if len(body) > LONG_BYTES:
        yield from _refuse_too_large(body)
        yield
    try:
        text = body.removeprefix(codecs.BOM_UTF8).decode().strip(_SPACE)
        members, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        end = -1
    if end < 0 or end != len(text):
        raise _invalid("The body is not a JSON document.")
    if not isinstance(members, tuple):
        raise _invalid("The body is not a JSON object.")
    if len(body) > LONG_BYTES:
        yield
    return members


def _invalid(reason: str) -> StorageError:
    return StorageError(errors.INVALID_INPUT, f"{errors.INVALID_INPUT.message} {reason}")
