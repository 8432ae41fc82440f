"""The resource segment of a Table service URL: tables, entities by their keys, the batch.

    Tables   Tables('name')   name   name()   name(PartitionKey='p',RowKey='r')   $batch

Source: "Addressing Table service resources", "Query Entities"; OData 3.0 URI conventions, section
3: a quote inside a key is doubled.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError

TABLES: Final = "Tables"
BATCH: Final = "$batch"
_CALL: Final = re.compile(r"([^('\"]+)\((.*)\)", re.DOTALL)
_QUOTED: Final = r"'((?:[^']|'')*)'"
_KEY: Final = re.compile(rf"\s*{_QUOTED}\s*", re.DOTALL)
_NAMED: Final = re.compile(rf"\s*(PartitionKey|RowKey)\s*=\s*{_QUOTED}\s*(,|$)", re.DOTALL)


class TableResource(msgspec.Struct, frozen=True):
    """The resource that a segment names.

    `keyed` is None for the whole set. In the set `Tables` it is the name of one table. In another
    set it is an entity's (PartitionKey, RowKey).
    """

    name: str
    keyed: str | tuple[str, str] | None = None


def parse_resource(text: str) -> TableResource:
    """`text` is decoded."""
    match = _CALL.fullmatch(text)
    if match is None:
        if "(" in text or ")" in text:
            raise _invalid(text)
        return TableResource(text)
    name, inside = match.groups()
    if not inside.strip():
        return TableResource(name)
    if name == TABLES:
        key = _KEY.fullmatch(inside)
        if key is None:
            raise _invalid(text)
        return TableResource(name, _unquoted(key[1]))
    return TableResource(name, _keys(inside, text))


def _keys(inside: str, text: str) -> tuple[str, str]:
    keys: dict[str, str] = {}
    position, separator = 0, ","
    while separator == ",":
        part = _NAMED.match(inside, position)
        if part is None or part[1] in keys:
            raise _invalid(text)
        keys[part[1]] = _unquoted(part[2])
        position, separator = part.end(), part[3]
    if len(keys) != 2:
        raise _invalid(text)
    return keys["PartitionKey"], keys["RowKey"]


def _unquoted(text: str) -> str:
    return text.replace("''", "'")


def quoted(key: str) -> str:
    """A key as a URL has it between parentheses, not yet percent-encoded."""
    return "'" + key.replace("'", "''") + "'"


def _invalid(text: str) -> StorageError:
    return StorageError(errors.INVALID_URI, None, (("UriPath", text[:256]),))
