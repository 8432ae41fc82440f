"""The JSON documents of the Table service's answers, at the three levels of metadata.

At minimal metadata an entity is its keys followed by its stored fragment (semantics/table/edm.py),
so a page is a join of bytes. The other levels and `$select` decode the fragment. Source: "Query
Entities", "Query Tables", "Payload format for Table service operations"; reference section 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import quote

import msgspec

from strongroom.slices import parts
from strongroom.values import TICKS_PER_S, Entity, iso7
from strongroom.wire.table.odata import Metadata, etag_text
from strongroom.wire.table.table_path import quoted

_ANNOTATION: Final = "@odata.type"
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NULL: Final = b"null"
# Writing this many takes some tenths of a millisecond.
_ROWS_AT_ONCE: Final = 128
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_.~!*()-]*", re.ASCII).fullmatch
Names = tuple[str, ...] | None


class TableAddress(msgspec.Struct, frozen=True):
    """The address of entities or tables.

    It is the endpoint's URL with a slash at its end, the account, and the table's name (`Tables`
    for the list of tables).
    """

    endpoint: str
    account: str
    name: str


def entity(item: Entity, level: Metadata, place: TableAddress, select: Names = None) -> bytes:
    context = _context(level, f"{place.endpoint}$metadata#{place.name}/@Element")
    return b"{" + _joined(context, _members(item, level, place, select)) + b"}"


def entities(
    items: Iterable[Entity], level: Metadata, place: TableAddress, select: Names = None
) -> Iterator[bytes]:
    """The JSON document of a page of entities in pieces."""
    context = _context(level, f"{place.endpoint}$metadata#{place.name}")
    if level is Metadata.MINIMAL and select is None:
        return _page(context, map(_minimal, parts(items, _ROWS_AT_ONCE)))
    rows = (_members(item, level, place, select) for item in items)
    return _page(context, parts(rows, _ROWS_AT_ONCE))


def _page(context: bytes, groups: Iterable[list[bytes]]) -> Iterator[bytes]:
    """A document of rows: groups of rows, each row given by its members."""
    yield b"{" + _joined(context, b'"value":[')
    comma = b""
    for rows in groups:
        yield comma + b"{" + b"},{".join(rows) + b"}"
        comma = b","
    yield b"]}"


def table(name: str, level: Metadata, place: TableAddress) -> bytes:
    context = _context(level, f"{place.endpoint}$metadata#Tables/@Element")
    return b"{" + _joined(context, _table(name, level, place)) + b"}"


def tables(names: Iterable[str], level: Metadata, place: TableAddress) -> Iterator[bytes]:
    """The JSON document of a page of tables in pieces."""
    context = _context(level, f"{place.endpoint}$metadata#Tables")
    rows = (_table(name, level, place) for name in names)
    return _page(context, parts(rows, _ROWS_AT_ONCE))


def _context(level: Metadata, url: str) -> bytes:
    return b"" if level is Metadata.NONE else b'"odata.metadata":' + _encode(url)


def _joined(*parts: bytes) -> bytes:
    return b",".join([part for part in parts if part])


def _table(name: str, level: Metadata, place: TableAddress) -> bytes:
    shown = b'"TableName":' + _encode(name)
    if level is not Metadata.FULL:
        return shown
    link = f"Tables('{name}')"
    return _joined(_links(f"{place.account}.Tables", place.endpoint, link), shown)


def _links(kind: str, endpoint: str, link: str) -> bytes:
    return b'"odata.type":%b,"odata.id":%b,"odata.editLink":%b' % (
        _encode(kind),
        _encode(endpoint + link),
        _encode(link),
    )


def _minimal(items: Iterable[Entity]) -> list[bytes]:
    """The members of each entity at minimal metadata. One expression writes an entity: a page may
    have a thousand of them."""
    written = []
    for item in items:
        second, fraction = divmod(item.timestamp, TICKS_PER_S)
        shown, escaped = _second_texts(second)
        rest = b"%07dZ" % fraction
        members = (
            b'"odata.etag":"W/\\"datetime\'%b%b\'\\"","PartitionKey":%b,"RowKey":%b,'
            b'"Timestamp":"%b%b",%b'
        ) % (
            escaped, rest, _encode(item.partition_key), _encode(item.row_key),
            shown, rest, item.fragment,
        )  # fmt: skip
        written.append(members if item.fragment else members[:-1])
    return written


def _moment(timestamp: int) -> bytes:
    second, fraction = divmod(timestamp, TICKS_PER_S)
    return _second_texts(second)[0] + b"%07dZ" % fraction


@lru_cache(maxsize=4096)
def _second_texts(second: int) -> tuple[bytes, bytes]:
    """A second as texts before its fraction: as a Timestamp and as an entity tag have it."""
    shown = iso7(second * TICKS_PER_S)[:20].encode()
    return shown, shown.replace(b":", b"%3A")


def _members(item: Entity, level: Metadata, place: TableAddress, select: Names) -> bytes:
    if level is Metadata.MINIMAL and select is None:
        return _minimal((item,))[0]
    parts: list[bytes] = []
    if level is Metadata.FULL:
        link = entity_link(place.name, item.partition_key, item.row_key)
        parts.append(_links(f"{place.account}.{place.name}", place.endpoint, link))
    if level is not Metadata.NONE:
        parts.append(b'"odata.etag":' + _encode(etag_text(item.timestamp)))
    shown = _own(item, level)
    for name, raw in _decode(b"{" + item.fragment + b"}").items():
        shown[name] = bytes(raw)
    return _joined(*parts, *_selected(shown, level, select))


def _own(item: Entity, level: Metadata) -> dict[str, bytes]:
    """The keys and Timestamp as members. Timestamp has a type at full metadata only."""
    members = {
        "PartitionKey": _encode(item.partition_key),
        "RowKey": _encode(item.row_key),
    }
    if level is Metadata.FULL:
        members[f"Timestamp{_ANNOTATION}"] = b'"Edm.DateTime"'
    members["Timestamp"] = b'"' + _moment(item.timestamp) + b'"'
    return members


def _selected(shown: dict[str, bytes], level: Metadata, select: Names) -> Iterable[bytes]:
    """The selected members; a property that the entity does not have is null.

    A selected name that cannot be a property is left out. So OData's own members depend on the
    level alone, and none is repeated.
    """
    for name in shown if select is None else select:
        if "@" in name or name.startswith("odata."):
            continue
        kind = shown.get(name + _ANNOTATION)
        if kind is not None and level is not Metadata.NONE:
            yield _encode(name + _ANNOTATION) + b":" + kind
        yield _encode(name) + b":" + shown.get(name, _NULL)


def entity_link(table: str, partition_key: str, row_key: str) -> str:
    """An entity's URL relative to the endpoint."""
    return f"{table}(PartitionKey={_url_key(partition_key)},RowKey={_url_key(row_key)})"


def _url_key(key: str) -> str:
    # Most keys need no quoting: RFC 3986, section 2.3, and the characters that OData leaves
    # unquoted.
    if _PLAIN_KEY(key):
        return f"'{key}'"
    return quote(quoted(key), safe="'!~*()")
