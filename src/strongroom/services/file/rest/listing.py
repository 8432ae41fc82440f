"""List Directories and Files: one page of a directory, in the order of folded names.

Lives here: the join of names with attributes. Source: "List Directories and Files"; reference
file.md 4.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines.base import Item
from strongroom.semantics.core.listing import START, Position
from strongroom.semantics.file import names
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.rest import nodes
from strongroom.services.file.rest.nodes import NodeView
from strongroom.services.file.snapshots.past_states import (
    check_snapshot_exists,
    names_at,
    past_attributes,
)
from strongroom.store.core import keys
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.store.tree import tree_records
from strongroom.store.tree.tree_records import NameRecord

TIMESTAMPS: Final = "timestamps"
ETAG: Final = "etag"
ATTRIBUTES: Final = "attributes"
PERMISSION_KEY: Final = "permissionkey"
INCLUDES: Final = frozenset((TIMESTAMPS, ETAG, ATTRIBUTES, PERMISSION_KEY))
# Looking up this many records takes half a millisecond.
_JOINED_AT_ONCE: Final = 64


class ListDirectory(OnPath, frozen=True, kw_only=True):
    """`start`: the decoded marker. `is_extended`: whether ids are returned beside what `include`
    asks for."""

    prefix: str = ""
    start: Position = START
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()
    is_extended: bool = False


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    name: NameRecord
    record: FileRecord


class DirectoryPage(msgspec.Struct, frozen=True):
    """`marker`: where the next page begins; None = this is the last page."""

    view: NodeView
    rows: tuple[NodeRow, ...]
    marker: Position | None


async def list_directory(services: Services, call: Call[ListDirectory]) -> DirectoryPage:
    """A name that is deleted between the read of the names and that of the attributes is left
    out."""
    request = call.input
    view = await nodes.view(services, call, is_directory=True)
    if names.utf16_units(request.prefix) > names.COMPONENT_UNITS_MAX:
        return DirectoryPage(view, (), None)  # no name is so long
    generation, directory = view.where.generation, view.where.id
    prefix = names.fold(request.prefix).encode("utf-8", "surrogatepass")
    base = keys.number(directory)
    span = base + max(request.start[0], prefix), base + prefix + b"\xff"
    count, partition, at = (
        request.max_results + 1,
        keys.file_names(generation),
        call.target.snapshot,
    )
    if at is None:
        page = await services.store.read_range(partition, False, *span, count)
    else:
        page = await names_at(services.store, partition, span, at, count)
    marker: Position | None = None
    if len(page) > request.max_results:
        marker = (keys.folded_name(page.pop().name), b"")
    rows = await _joined(services, generation, page, at)
    if at is not None:
        await check_snapshot_exists(services, call)
    return DirectoryPage(view, rows, marker)


async def _joined(
    services: Services, generation: int, page: list[Item], at: int | None
) -> tuple[NodeRow, ...]:
    """`at`: the snapshot that is listed; None = the share as it is now."""
    opens, rows = services.held.of(Opens), list[NodeRow]()
    for begin in range(0, len(page), _JOINED_AT_ONCE):
        items = page[begin : begin + _JOINED_AT_ONCE]
        entries = [tree_records.NAME.decode(item.value) for item in items]
        refs = [keys.file_attributes(generation, name.id) for name in entries]
        for name, ref, record in zip(entries, refs, await services.store.read(refs), strict=True):
            seen = record
            if at is not None:
                seen = await past_attributes(services.store, ref.partition, record, at)
            attributes = file_records.FILE.of(seen)
            is_listed = opens.is_listed(ref.partition) if at is None else True
            if attributes is not None and is_listed:
                rows.append(NodeRow(name, attributes))
        await services.turns.pause()
    return tuple(rows)
