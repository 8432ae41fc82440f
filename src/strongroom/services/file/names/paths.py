"""Paths of a share: how requests name them, and resolving them.

Lives here: the path of a request, in the share or in a snapshot, and the errors where it leads
nowhere. Must not live here: the check that a path still leads to the same id
(services/tree/paths.py), rules of names (semantics/file/names.py).

A path is resolved on committed state, in one read that follows its names. Every later read of its
file, and the decision, read these names again. If one of them leads elsewhere by then, PathChanged
is raised, and the operation is tried again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import names
from strongroom.services.core.calls import Call
from strongroom.services.core.places import generation_of, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file.opens.share_holds import require_share
from strongroom.services.file.snapshots.past_states import (
    check_snapshot_exists,
    names_on_path_at,
    require_snapshot,
)
from strongroom.services.tree.paths import Where, follow
from strongroom.store.core import keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.tree import tree_records


class OnPath(msgspec.Struct, frozen=True, kw_only=True):
    """The input of all operations on a path. `trailing_dots`: whether dots at the end of a name
    count."""

    trailing_dots: bool = False


def components(path: str, *, trailing_dots: bool) -> tuple[str, ...]:
    parts = tuple(path.split("/")) if path else ()
    if not trailing_dots:
        parts = tuple(map(names.without_trailing_dots, parts))
    names.check_path(parts)
    return parts


async def resolve(services: Services, call: Call[Any], path: tuple[str, ...]) -> Where:
    """Resolve a path of the share that a request names.

    The share itself is not read for a path that exists: what reads or changes its file checks the
    share too. A deleted share loses its names only to a sweep.
    """
    generation, snapshot = generation_of(call), call.target.snapshot
    if snapshot is not None:
        await _check_snapshot(services, call, snapshot)
    try:
        where = await walk(services, generation, path, snapshot)
    except StorageError as error:
        if error.row is file_errors.PARENT_NOT_FOUND:
            await _check_share(services, call)
        raise
    if where.entry is None and not where.is_root:
        await _check_share(services, call)
    return where


async def _check_share(services: Services, call: Call[Any]) -> None:
    """Before a name counts as missing."""
    if call.target.snapshot is None:
        await services.check_place(call)
    else:
        await check_snapshot_exists(services, call)


async def _check_snapshot(services: Services, call: Call[Any], snapshot: int) -> None:
    """Check that the share had the snapshot when the request was authorized, or has it by now."""
    share = None if call.place is None else call.place.record
    if not (isinstance(share, ShareRecord) and snapshot in share.snapshots):
        (stored,) = await services.store.read([place_ref(call)])
        require_snapshot(call, stored)


async def walk(
    services: Services, generation: int, path: tuple[str, ...], snapshot: int | None = None
) -> Where:
    """Resolve a path of a share, or of its snapshot. This gateway takes the share if no gateway has
    it, else ServerBusy is raised."""
    await require_share(services, generation)
    folded = [names.fold(name).encode() for name in path]
    if snapshot is None:
        on_path = await follow(services.store, generation, folded)
    else:
        on_path = await names_on_path_at(services.store, generation, folded, snapshot)
    where = Where.of(generation, path, on_path)
    if where is None:
        raise StorageError(file_errors.PARENT_NOT_FOUND)
    return where


async def path_of(services: Services, generation: int, node_id: int) -> tuple[str, ...] | None:
    """The present path of a directory or file, from its node up; None = it has none, or it was
    changed meanwhile."""
    found: list[str] = []
    while node_id != generation:
        (stored,) = await services.store.read([keys.file_node(generation, node_id)])
        node = tree_records.NODE.of(stored)
        if node is None:
            return None
        ref = keys.file_name(generation, node.parent, node.name)
        (stored,) = await services.store.read([ref])
        name = tree_records.NAME.of(stored)
        if name is None or name.id != node_id:
            return None
        found.append(name.name)
        node_id = node.parent
    return tuple(reversed(found))


async def find(services: Services, call: Call[Any], *, is_directory: bool) -> Where:
    """As `named`, but its file must exist. ResourceNotFound also where the name is of the other
    kind."""
    where = await named(services, call)
    is_there = where.is_root or where.entry is not None
    if not is_there or where.is_directory != is_directory:
        raise StorageError(errors.RESOURCE_NOT_FOUND)
    return where


async def named(services: Services, call: Call[Any]) -> Where:
    """Resolve the path that a request names. Its file need not exist."""
    trailing_dots = isinstance(call.input, OnPath) and call.input.trailing_dots
    path = components(call.target.blob, trailing_dots=trailing_dots)
    return await resolve(services, call, path)
