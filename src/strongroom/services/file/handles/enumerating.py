"""QUERY_DIRECTORY: the names of a directory, by a cursor that its handle keeps.

Lives here: the cursor, and the join of names with attributes. Must not live here: patterns
(semantics/file/wildcards.py). Sources: [MS-SMB2] section 3.3.5.18; [MS-FSA] section 2.1.5.6.3;
smb.md 2.8.

The cursor is the last name that was returned. So a name that exists during the whole scan is
returned exactly once, whatever happens to other names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from strongroom import slices
from strongroom.engines.base import Item
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses, wildcards
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import operating
from strongroom.services.file.handles.information import allocation
from strongroom.services.file.handles.model import (
    EnumeratedNode,
    Handle,
    RequestedEnumeration,
)
from strongroom.services.file.node.access import by_handle, look, share_of
from strongroom.services.file.node.origins import TreeOrigin
from strongroom.services.file.opens.open_handle import Enumeration
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.snapshots.past_states import names_at, past_attributes
from strongroom.store.core import keys
from strongroom.store.file import file_records
from strongroom.store.tree import tree_records

_PAGE_NAMES: Final = 250
# Looking up and encoding this many rows takes about a millisecond.
_JOINED_AT_ONCE: Final = 50
_DOTS: Final = (".", "..")


async def enumerate_names(
    services: Services,
    handle: Handle,
    wanted: RequestedEnumeration,
    accept: Callable[[EnumeratedNode], bool],
) -> tuple[int, bool]:
    """Pass the matching rows to `accept`, in order, until it refuses one that has no room. The next
    query begins with that row.

    Returns: how many rows were accepted, and whether this was the handle's first query. If no row
        was accepted or refused, the answer is NO_SUCH_FILE on the first query and NO_MORE_FILES on
        later ones.
    """
    with handle.operating():
        if not handle.is_directory:
            raise StorageError(file_errors.INVALID_OPEN)
        operating.check_may(handle, accesses.READ_DATA)
        pattern = wildcards.check_pattern(wanted.pattern)
        cursor = handle.enumeration
        # Two queries of one handle take turns, so that no row is returned twice.
        async with cursor.turn:
            is_first = cursor.pattern is None
            if cursor.pattern is None or wanted.restarts or wanted.reopens:
                is_same = not wanted.pattern and cursor.pattern is not None
                cursor.pattern = cursor.pattern if is_same else pattern
                cursor.dots, cursor.after = 0, None
            count = await _pass_rows(services, handle, cursor, wanted.is_single, accept)
            return count, is_first


async def _pass_rows(
    services: Services,
    handle: Handle,
    cursor: Enumeration,
    is_single: bool,
    accept: Callable[[EnumeratedNode], bool],
) -> int:
    pattern, count = cursor.pattern or wildcards.EVERYTHING, 0
    while cursor.dots < len(_DOTS):
        name = _DOTS[cursor.dots]
        if wildcards.matches(pattern, name):
            if not accept(await _dot(services, handle, name)):
                return count
            count += 1
        cursor.dots += 1
        if is_single and count:
            return count
    async for key, row in _rows(services, handle, cursor.after, pattern):
        if row is not None:
            if not accept(row):
                return count
            count += 1
        cursor.after = key
        if is_single and count:
            return count
    return count


async def _dot(services: Services, handle: Handle, name: str) -> EnumeratedNode:
    """The row of `.` or `..`. The root is its own parent."""
    is_own = name == "." or handle.is_root
    node_id = handle.node_id if is_own else handle.parent_id
    seen = await look(services, by_handle(handle.access, node_id))
    return EnumeratedNode(name, node_id, seen.record, 0)


async def _rows(
    services: Services, handle: Handle, after: bytes | None, pattern: str
) -> AsyncIterator[tuple[bytes, EnumeratedNode | None]]:
    """Yield (the key of a name, its row) in the order of the names; the row is None where the name
    does not match."""
    base, at = keys.number(handle.node_id), handle.access.snapshot
    first, until = base if after is None else after + b"\0", base + b"\xff"
    partition = keys.file_names(handle.access.generation)
    while True:
        if at is None:
            page = await services.store.read_range(partition, False, first, until, _PAGE_NAMES)
        else:
            page = await names_at(services.store, partition, (first, until), at, _PAGE_NAMES)
        for items in slices.parts(page, _JOINED_AT_ONCE):
            for key, row in await _joined(services, handle, items, pattern):
                yield key, row
            await services.turns.pause()
        if len(page) < _PAGE_NAMES:
            return
        first = page[-1].name + b"\0"


async def _joined(
    services: Services, handle: Handle, page: list[Item], pattern: str
) -> list[tuple[bytes, EnumeratedNode | None]]:
    held, generation = services.held.of(Opens), handle.access.generation
    names = [(item.name, tree_records.NAME.decode(item.value)) for item in page]
    matching = [(key, name) for key, name in names if wildcards.matches(pattern, name.name)]
    refs = [keys.file_attributes(generation, name.id) for _, name in matching]
    rows: dict[bytes, EnumeratedNode] = {}
    stored = await services.store.read(refs) if refs else []
    at = handle.access.snapshot
    for (key, name), ref, value in zip(matching, refs, stored, strict=True):
        seen = value
        if at is not None:
            seen = await past_attributes(services.store, ref.partition, value, at)
        record = file_records.FILE.of(seen)
        if record is not None:  # else it was deleted between the two reads
            reserved = held.reserved_bytes(handle.access.opens_of(name.id))
            size = 0 if record.is_directory else allocation(record.size_bytes, reserved)
            rows[key] = EnumeratedNode(name.name, name.id, record, size)
    await share_of(services, TreeOrigin(handle.access))
    return [(key, rows.get(key)) for key, _ in names]
