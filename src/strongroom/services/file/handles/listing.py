"""List Handles and Force Close Handles: SMB's handles, as REST lists and closes them.

Lives here: which handles a request selects, and one page of them. Must not live here: opens
(opens/opens.py), the end of a handle (closing.py). Source: "List Handles", "Force Close Handles";
reference file.md 5, smb.md 4.5.

A REST operation's own entry lasts one request, and is no handle.
"""

from __future__ import annotations

from typing import Any

import msgspec

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError, invalid_header
from strongroom.semantics.core.listing import START, Position
from strongroom.semantics.file import accesses
from strongroom.semantics.file.accesses import Use
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import closing
from strongroom.services.file.names import paths
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.opens.open_handle import Handle, ShareAccess
from strongroom.services.file.opens.opens import Opens
from strongroom.services.tree.paths import Where
from strongroom.store.core import keys

_RECURSIVE = "x-ms-recursive"
_RIGHTS = ((Use.READ, "Read"), (Use.WRITE, "Write"), (Use.DELETE, "Delete"))


class ListHandles(OnPath, frozen=True, kw_only=True):
    """`is_recursive`: handles below a directory are listed too. `start`: the decoded marker."""

    is_recursive: bool = False
    max_results: int = 5000
    start: Position = START


class CloseHandles(OnPath, frozen=True, kw_only=True):
    """`handle` is the id to close, None = every one."""

    is_recursive: bool = False
    handle: int | None = None


class Closed(msgspec.Struct, frozen=True):
    count: int = 0
    failed: int = 0


class HandleRow(msgspec.Struct, frozen=True):
    """`opened`, `reconnected`: in ticks. `rights`: those of Read, Write and Delete that the handle
    has."""

    id: int
    path: str
    node_id: int
    parent_id: int
    session_id: int
    client_ip: str
    opened: int
    reconnected: int | None
    rights: tuple[str, ...]


class HandlePage(msgspec.Struct, frozen=True):
    """The marker is None on the last page."""

    rows: tuple[HandleRow, ...]
    marker: Position | None = None


async def list_handles(services: Services, call: Call[ListHandles]) -> HandlePage:
    """In the order of their ids."""
    request = call.input
    where = await _named(services, call)
    handles = _selected_handles(services, call, where)
    left = [one for one in handles if keys.number(one.id) >= request.start[0]]
    rows = tuple(map(_row, left[: request.max_results]))
    if len(left) == len(rows):
        return HandlePage(rows)
    return HandlePage(rows, (keys.number(left[len(rows)].id), b""))


async def close_handles(services: Services, call: Call[CloseHandles]) -> Closed:
    """Their waiting requests end, and their locks and caches are released."""
    request = call.input
    where = await _named(services, call)
    handles = _selected_handles(services, call, where)
    chosen = [one for one in handles if request.handle is None or one.id == request.handle]
    return Closed(await closing.close_all(services, chosen))


async def _named(services: Services, call: Call[Any]) -> Where:
    where = await paths.named(services, call)
    if where.entry is None and not where.is_root:
        raise StorageError(errors.RESOURCE_NOT_FOUND)
    if call.input.is_recursive and not where.is_directory:
        raise invalid_header(_RECURSIVE, "true", "A file has nothing below it.")
    return where


def _selected_handles(services: Services, call: Call[Any], where: Where) -> list[Handle]:
    """In the share, or in the snapshot that the request names."""
    held, target = services.held.of(Opens), call.target
    access = ShareAccess(target.account, target.container, where.generation, target.snapshot)
    handles = held.handles_on(access.opens_of(where.id))
    if call.input.is_recursive:
        handles += held.handles_below(where.generation, where.components, target.snapshot)
    return sorted((one for one in handles if not one.is_closed), key=lambda one: one.id)


def _row(handle: Handle) -> HandleRow:
    uses = accesses.uses_of(handle.mask)
    return HandleRow(
        handle.id,
        "/".join(handle.path),
        handle.node_id,
        handle.parent_id,
        session_id=handle.client.session_id,
        client_ip=handle.client.peer,
        opened=handle.opened,
        reconnected=handle.client.reconnected,
        rights=tuple(name for use, name in _RIGHTS if uses & use),
    )
