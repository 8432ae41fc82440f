"""CLOSE, lost connections and forced closes: the end of a handle and of all that depends on it.

Must not live here: what the last close deletes (removing.py), the rules of leaving
(semantics/file/opens.py). Sources: [MS-SMB2] sections 3.3.5.10 and 3.3.4.17; [MS-FSA] section
2.1.5.4; smb.md 2.5 and 3.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from strongroom.engines.base import EngineError
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import opens
from strongroom.semantics.file.deletion import FileFacts
from strongroom.semantics.file.oplocks import Cause
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import information
from strongroom.services.file.handles.model import Handle, NodeInfo
from strongroom.services.file.opens.changes import Watches
from strongroom.services.file.opens.opens import Opens
from strongroom.store.core import keys
from strongroom.store.core.records import DamagedRecord
from strongroom.store.tree import tree_records


async def close(
    services: Services, handle: Handle, *, wants_attributes: bool = False
) -> NodeInfo | None:
    """Close a handle: release its locks and cache, and delete the file if its deletion is pending.
    The close is completed even if the caller is cancelled.

    Returns: the attributes before the close, if they are wanted (SMB2_CLOSE_FLAG_POSTQUERY_ATTRIB).
        None when they cannot be read: the share or the snapshot was deleted, they are damaged, or
        the engine cannot serve now.

    Raises: StorageError HANDLE_CLOSED. The engine's errors when a pending deletion cannot be
        carried out now: the handle is closed all the same, and the file stays.
    """
    info = None
    try:
        if wants_attributes:
            with suppress(StorageError, EngineError, DamagedRecord):
                info = await information.attributes(services, handle)
    except asyncio.CancelledError:
        # No client can name the handle any more, so nobody else would close it.
        if not handle.is_closed:
            begin(services, handle)
        raise
    if handle.is_closed:
        raise StorageError(file_errors.HANDLE_CLOSED)
    ending = _begun(services, handle)
    if ending is not None:
        await asyncio.shield(ending)
    return info


def begin(services: Services, handle: Handle) -> asyncio.Task[None]:
    """Begin to close a handle that is not being closed yet. The task is done when it is closed.

    No further operation of the handle begins, and its waiting requests end with an error. The table
    of opens changes in a later turn of the loop only, so a caller may begin to wait for the change.
    """
    _forbid_operations(services, handle)
    return services.held.of(Opens).tasks.spawn(_end(services, handle))


def _begun(services: Services, handle: Handle) -> asyncio.Task[None] | None:
    """Close a handle at once, unless that has to wait for anything. Returns: a task that is done
    when the handle is closed; None = it is closed now."""
    _forbid_operations(services, handle)
    held = services.held.of(Opens)
    if not handle.life.is_idle or _depends_on_names(held, handle):
        return held.tasks.spawn(_end(services, handle))
    return _leave(services, handle, is_empty=True)


def _forbid_operations(services: Services, handle: Handle) -> None:
    handle.life.close()
    services.held.of(Watches).forget(handle)


def _depends_on_names(held: Opens, handle: Handle) -> bool:
    """Whether the close of a directory deletes it if no names are below it."""
    return handle.is_directory and bool(held.table(handle.partition).deletion.on_close)


async def _end(services: Services, handle: Handle) -> None:
    held = services.held.of(Opens)
    await handle.life.until_idle()
    is_empty = not _depends_on_names(held, handle) or await _is_empty(services, handle)
    removal = _leave(services, handle, is_empty=is_empty)
    if removal is not None:
        await removal


def _leave(services: Services, handle: Handle, *, is_empty: bool) -> asyncio.Task[None] | None:
    """Remove the handle's entry from the table of opens. Returns: the removal of the file, if it
    goes with this handle."""
    held = services.held.of(Opens)
    if handle.id not in held.handles:
        return None  # Its open has failed, and its entry has left the table.
    is_root = handle.node_id == handle.access.generation
    facts = FileFacts(handle.is_directory, is_empty=is_empty, is_root=is_root)
    removal = held.remove_entry(handle.partition, handle.id, facts)
    if held.table(handle.partition).deletion.is_pending:
        services.held.of(Watches).deleted(handle)
        _ask_others_to_close(services, handle)
    return removal


def _ask_others_to_close(services: Services, handle: Handle) -> None:
    """Make clients that only cache a handle close it, since the file goes with its last handle.
    This does not wait for them."""
    held, file = services.held.of(Opens), handle.partition
    outcome = opens.break_caches_without_open(held.table(file), Cause.NAME_CHANGE, but=handle.key)
    held.put(file, outcome.table)
    held.notify(services, file, outcome.notices)


async def _is_empty(services: Services, handle: Handle) -> bool:
    """Whether no names are below a directory. One that cannot be read now counts as not empty, so
    that it is not deleted."""
    ref = keys.file_node(handle.access.generation, handle.node_id)
    try:
        (stored,) = await services.store.read([ref])
        node = tree_records.NODE.of(stored)
    except (EngineError, DamagedRecord):
        return False
    return node is not None and not node.children


async def close_all(services: Services, handles: Iterable[Handle]) -> int:
    """Handles that are being closed already are passed over. Returns how many were closed."""
    ends = [begin(services, handle) for handle in handles if not handle.is_closed]
    if ends:
        await asyncio.shield(asyncio.gather(*ends, return_exceptions=True))
    return len(ends)
