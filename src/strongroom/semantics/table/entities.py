"""Entities: which entities may be stored, and the effect of each write on them.

Limits of keys and properties, insert, update, merge, delete and the two upserts as one pure
function, entity tags as numbers. Source: "Understanding the Table service data model", the pages of
the seven writing operations; reference sections 3 to 5.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from strongroom.errors import core as errors
from strongroom.errors import table as table_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.table import edm, property_names
from strongroom.semantics.table.edm import Typed, Value

PROPERTIES_MAX: Final = 252
KEY_CHARS_MAX: Final = 512
ENTITY_BYTES_MAX: Final = 1024 * 1024
KEYS: Final = ("PartitionKey", "RowKey")
_KEY_ILLEGAL: Final = re.compile("[/\\\\#?\x00-\x1f\x7f-\x9f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ANNOTATION: Final = "@odata.type"
_Members = dict[str, msgspec.Raw]
_MEMBERS: Final = msgspec.json.Decoder(_Members)


Properties = Mapping[str, Value]
"""Properties of an entity in order: the value of each name. Nobody changes one that was handed on:
a decision that is made again must see the same."""


class EntityChange(enum.Enum):
    INSERT = "insert"
    """There must be none."""
    UPDATE = "update"
    """Replaces one that is there, with the tag that was given."""
    MERGE = "merge"
    """Changes some properties of one that is there, with the tag that was given."""
    DELETE = "delete"
    """Removes one that is there, with the tag that was given."""
    INSERT_OR_REPLACE = "insert or replace"
    INSERT_OR_MERGE = "insert or merge"


MERGES: Final = (EntityChange.MERGE, EntityChange.INSERT_OR_MERGE)


class StoredEntity(msgspec.Struct, frozen=True):
    """The stored form of an entity: its Timestamp in ticks, its properties as a fragment
    (edm.py)."""

    timestamp: int
    fragment: bytes


class EntityWrite(msgspec.Struct, frozen=True):
    """A requested write. `match` is the Timestamp that the entity must still have; None = any."""

    change: EntityChange
    properties: Properties = {}
    match: int | None = None


def check_key(name: str, key: str) -> None:
    r"""Check a PartitionKey or RowKey: up to 512 UTF-16 characters, none of `/ \ # ?`, no control
    characters; it may be empty."""
    if not key.isascii() and _SURROGATE.search(key):
        raise invalid(f"The {name} is not well-formed text.")
    # A character counts two at most, so only texts near the limit are measured.
    if 2 * len(key) > KEY_CHARS_MAX and _utf16_chars(key) > KEY_CHARS_MAX:
        raise StorageError(table_errors.PROPERTY_VALUE_TOO_LARGE)
    if _KEY_ILLEGAL.search(key):
        raise out_of_range(name, key)


def require_keys(partition_key: str | None, row_key: str | None) -> tuple[str, str]:
    """Both keys, which an insert must have."""
    if partition_key is None or row_key is None:
        raise StorageError(table_errors.PROPERTIES_NEED_VALUE)
    return partition_key, row_key


def check_names(names: Collection[str]) -> None:
    if len(names) > PROPERTIES_MAX:
        raise StorageError(table_errors.TOO_MANY_PROPERTIES)
    if property_names.are_surely_valid(names):
        return
    for error in map(property_names.name_error, names):
        if error is not None:
            raise StorageError(error)


def check_values(properties: Properties) -> None:
    for name, value in properties.items():
        if type(value) is str:
            if not value.isascii() and _SURROGATE.search(value):
                raise invalid(f"The value of {name} is not well-formed text.")
            # A character counts four bytes at most, so only texts near the limit are measured.
            may_be_large = 4 * len(value) > edm.VALUE_BYTES_MAX
        else:
            may_be_large = type(value) is Typed
        if may_be_large and edm.size_bytes(value) > edm.VALUE_BYTES_MAX:
            raise StorageError(table_errors.PROPERTY_VALUE_TOO_LARGE)


def invalid(reason: str) -> StorageError:
    return StorageError(errors.INVALID_INPUT, f"{errors.INVALID_INPUT.message} {reason}")


def out_of_range(name: str, value: str) -> StorageError:
    """The service's wording for keys and times."""
    message = f"The '{name}' parameter of value '{value[:1024]}' is out of range."
    return StorageError(errors.OUT_OF_RANGE_INPUT, message)


def decide(
    stored: StoredEntity | None, wanted: EntityWrite, partition_key: str, row_key: str
) -> bytes | None:
    """The fragment that the entity has after a write; None = the entity is deleted."""
    change = wanted.change
    if change is EntityChange.INSERT:
        if stored is not None:
            raise StorageError(table_errors.ENTITY_ALREADY_EXISTS)
    elif change not in (EntityChange.INSERT_OR_REPLACE, EntityChange.INSERT_OR_MERGE):
        if stored is None:
            raise StorageError(errors.RESOURCE_NOT_FOUND)
        if wanted.match is not None and wanted.match != stored.timestamp:
            raise StorageError(table_errors.UPDATE_CONDITION_NOT_SATISFIED)
    if change is EntityChange.DELETE:
        return None
    properties: Properties | None = None
    if change in MERGES and stored is not None:
        fragment, count = _merged(stored.fragment, wanted.properties)
    else:
        properties = wanted.properties
        fragment, count = edm.fragment(properties), len(properties)
    if count > PROPERTIES_MAX:
        raise StorageError(table_errors.TOO_MANY_PROPERTIES)
    _check_size(fragment, properties, partition_key, row_key)
    return fragment


def _merged(fragment: bytes, properties: Properties) -> tuple[bytes, int]:
    """The stored properties, each replaced by a given one of the same name, with the new ones
    added; and their number."""
    members = members_of(fragment)
    pairs = {name: edm.pair(name, value) for name, value in properties.items()}
    parts: list[bytes] = []
    count = 0
    for name, raw in members.items():
        if name.endswith(_ANNOTATION):
            continue
        count += 1
        pair = pairs.pop(name, None)
        if pair is None:
            kind = members.get(name + _ANNOTATION)
            pair = b"%b:%b" % (msgspec.json.encode(name), bytes(raw))
            if kind is not None:
                label = msgspec.json.encode(name + _ANNOTATION)
                pair = b"%b:%b,%b" % (label, bytes(kind), pair)
        parts.append(pair)
    parts.extend(pairs.values())
    return b",".join(parts), count + len(pairs)


def members_of(fragment: bytes) -> _Members:
    """The members of a fragment in order, annotations included, each value as raw JSON."""
    return _MEMBERS.decode(b"{%b}" % fragment)


def _check_size(
    fragment: bytes, properties: Properties | None, partition_key: str, row_key: str
) -> None:
    """Check the size of an entity.

    Arguments:
        properties: the properties in the fragment; None = it is decoded if they are needed.
    """
    # A character has at least one byte in the fragment, and counts two here. Only entities near the
    # limit are measured.
    if 4 * len(fragment) > ENTITY_BYTES_MAX // 2:
        measured = 4 + 2 * (_utf16_chars(partition_key) + _utf16_chars(row_key))
        members = properties_of(fragment) if properties is None else properties
        measured += sum(itertools.starmap(_member_bytes, members.items()))
        if measured > ENTITY_BYTES_MAX:
            raise StorageError(table_errors.ENTITY_TOO_LARGE)


def _member_bytes(name: str, value: Value) -> int:
    """The size of one property in an entity: 8 bytes, its name and its value. A value of varying
    length counts 4 bytes more. Source: "Understanding the Table service data model"."""
    varies = isinstance(edm.untyped(value), (str, bytes))
    return 8 + 2 * _utf16_chars(name) + edm.size_bytes(value) + (4 if varies else 0)


def properties_of(fragment: bytes) -> dict[str, Value]:
    members = members_of(fragment)
    properties: dict[str, Value] = {}
    for name, raw in members.items():
        if name.endswith(_ANNOTATION):
            continue
        kind = members.get(name + _ANNOTATION)
        type_name = None if kind is None else msgspec.json.decode(kind, type=str)
        properties[name] = edm.value_of(msgspec.json.decode(raw), type_name)
    return properties


def _utf16_chars(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text) + sum(character > "\uffff" for character in text)
