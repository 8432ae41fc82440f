"""List Directories and Files: one page of a directory, in the order of folded names.

Lives here: the join of names with attributes. Must not live here: XML (wire/). Source: "List
Directories and Files"; reference file.md 4.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines.base import Item
from strongroom.semantics.core.listing import START, Position
from strongroom.semantics.file import names
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.services.file import nodes
from strongroom.services.file.admission import Opens
from strongroom.services.file.nodes import NodeView
from strongroom.services.file.paths import OnPath
from strongroom.store.core import keys
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, NameRecord

TIMESTAMPS: Final = "timestamps"
ETAG: Final = "etag"
ATTRIBUTES: Final = "attributes"
PERMISSION_KEY: Final = "permissionkey"
INCLUDES: Final = frozenset((TIMESTAMPS, ETAG, ATTRIBUTES, PERMISSION_KEY))
_JOINED_AT_ONCE: Final = 250


class ListDirectory(OnPath, frozen=True, kw_only=True):
    """Input of List Directories and Files; `start` is the decoded marker. `is_extended` asks for
    ids beside what `include` asks for."""

    prefix: str = ""
    start: Position = START
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()
    is_extended: bool = False


class NodeRow(msgspec.Struct, frozen=True):
    """One directory or file of a list."""

    name: NameRecord
    record: FileRecord


class DirectoryPage(msgspec.Struct, frozen=True):
    """Result: rows, and where the next page begins (None = nothing is left)."""

    view: NodeView
    rows: tuple[NodeRow, ...]
    marker: Position | None


async def list_directory(services: Services, call: Call[ListDirectory]) -> DirectoryPage:
    """List Directories and Files. What is deleted between the look at the names and the look at
    the attributes is left out.

    Raises: StorageError ResourceNotFound, ParentNotFound, ShareNotFound.
    """
    given = call.input
    view = await nodes.view(services, call, is_directory=True)
    if names.utf16_units(given.prefix) > names.COMPONENT_UNITS_MAX:
        return DirectoryPage(view, (), None)  # no name is so long
    generation, directory = view.where.generation, view.where.id
    prefix = names.fold(given.prefix).encode("utf-8", "surrogatepass")
    base = keys.number(directory)
    first = base + max(given.start[0], prefix)
    until = base + prefix + b"\xff"
    page = await services.store.read_range(
        keys.file_names(generation), False, first, until, given.max_results + 1
    )
    marker: Position | None = None
    if len(page) > given.max_results:
        marker = (keys.folded_name(page.pop().name), b"")
    return DirectoryPage(view, await _joined(services, generation, page), marker)


async def _joined(services: Services, generation: int, page: list[Item]) -> tuple[NodeRow, ...]:
    opens, rows = services.held.of(Opens), list[NodeRow]()
    for at in range(0, len(page), _JOINED_AT_ONCE):
        found = [file_records.NAME.decode(item.value) for item in page[at : at + _JOINED_AT_ONCE]]
        refs = [keys.file_attributes(generation, name.id) for name in found]
        for name, ref, record in zip(found, refs, await services.store.read(refs), strict=True):
            attributes = file_records.FILE.of(record)
            if attributes is not None and opens.is_listed(ref.partition):
                rows.append(NodeRow(name, attributes))
        await asyncio.sleep(0)
    return tuple(rows)
