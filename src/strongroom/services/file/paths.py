"""Paths: resolving a path to the ids it leads through, and checking it again in a decision.

Lives here: the walk over names, and the check at the serial point that each name still leads to the
same id. Must not live here: attributes, rules of names (semantics/file/names.py).

A path is resolved on committed state, in one read that follows its names. Every later read of its
file, and the decision, read these names again. If one of them leads elsewhere by then, PathChanged
is raised, and the operation is tried again.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import msgspec

from strongroom.engines.base import Partition, Record, Ref
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import names
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Found, ReadAll, Reads
from strongroom.services.core.places import generation_of, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file.held.share_holds import require_share
from strongroom.services.file.past_states import (
    check_snapshot_exists,
    names_on_path_at,
    require_snapshot,
)
from strongroom.store.core import keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import NameRecord


class PathChanged(Exception):
    """The path has changed since an operation was prepared from it, so the operation is tried
    again."""


class OnPath(msgspec.Struct, frozen=True, kw_only=True):
    """The input that all operations on a path share.

    Attributes:
        trailing_dots: whether dots at the end of a name count.
    """

    trailing_dots: bool = False


class Where(msgspec.Struct, frozen=True):
    """A path whose parents exist.

    Attributes:
        components: its names, from the share's root down; none = the root.
        refs: the addresses of the records of these names.
        ids: the ids that the names lead to; the last is missing if the last name is free.
        stored: the names as they are stored; one that is free is as it was requested.
        records: the records as they were read.
        entry: the record of the last name; None = the name is free, or the path is the root.
    """

    generation: int
    components: tuple[str, ...]
    refs: tuple[Ref, ...]
    ids: tuple[int, ...]
    stored: tuple[str, ...]
    records: tuple[Record | None, ...]
    entry: NameRecord | None = None

    @property
    def is_root(self) -> bool:
        """Whether it is the share's root directory."""
        return not self.components

    @property
    def parent(self) -> int:
        """The id of the directory that has the last name; 0 = the path is the root itself."""
        if self.is_root:
            return 0
        return self.generation if len(self.components) == 1 else self.ids[len(self.components) - 2]

    @property
    def id(self) -> int:
        """The id that the path leads to; if its last name is free, its parent's."""
        return self.ids[-1] if self.ids else self.generation

    @property
    def partition(self) -> Partition:
        """The partition of the file or directory that the path leads to."""
        return keys.file(self.generation, self.id)

    @property
    def name(self) -> str:
        """The last name, as it was requested."""
        return self.components[-1]

    @property
    def is_directory(self) -> bool:
        """Whether it leads to a directory."""
        return self.is_root or (self.entry is not None and self.entry.is_directory)

    def read(self, reads: Reads) -> ReadAll[NameRecord]:
        """Add the reads of the names, which `check` needs."""
        return reads.add_all(self.refs, file_records.NAME)

    def check(self, found: Found, on_path: ReadAll[NameRecord]) -> None:
        """Check that the names still lead to the same ids. Raises PathChanged.

        Arguments:
            on_path: the names, as `read` has added them.
        """
        if tuple(found.records(on_path)) == self.records:
            return
        for name, expected in zip_longest(found[on_path], self.ids):
            if (None if name is None else name.id) != expected:
                raise PathChanged


def components(path: str, *, trailing_dots: bool) -> tuple[str, ...]:
    """Split a path of a REST request into its names.

    Raises: InvalidResourceName, InvalidFileOrDirectoryPathName.
    """
    found = tuple(path.split("/")) if path else ()
    if not trailing_dots:
        found = tuple(map(names.without_trailing_dots, found))
    names.check_path(found)
    return found


async def resolve(services: Services, call: Call[Any], path: tuple[str, ...]) -> Where:
    """Resolve a path of the share that a request names.

    The share itself is not read for a path that exists: what reads or changes its file checks the
    share too. A deleted share loses its names only to a sweep.

    Raises: StorageError ShareNotFound, ParentNotFound; what authorizing raises.
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
    """Check that the share, or its snapshot, still exists, before a name counts as missing."""
    if call.target.snapshot is None:
        await services.check_place(call)
    else:
        await check_snapshot_exists(services, call)


async def _check_snapshot(services: Services, call: Call[Any], snapshot: int) -> None:
    """Check that the share had the snapshot when the request was authorized, or has it by now."""
    share = None if call.place is None else call.place.record
    if not (isinstance(share, ShareRecord) and snapshot in share.snapshots):
        (found,) = await services.store.read([place_ref(call)])
        require_snapshot(call, found)


async def walk(
    services: Services, generation: int, path: tuple[str, ...], snapshot: int | None = None
) -> Where:
    """Resolve a path of a share. This gateway takes the share if no gateway has it.

    Arguments:
        snapshot: the share's snapshot in which the path is resolved; None = the share itself.

    Raises: StorageError ParentNotFound, ServerBusy (another gateway serves the share).
    """
    await require_share(services, generation)
    folded = [names.fold(name).encode() for name in path]
    root, links = keys.number(generation), file_records.NAME_LINKS
    if snapshot is None:
        found = await services.store.follow(keys.file_names(generation), links, root, folded)
    else:
        found = await names_on_path_at(services.store, generation, folded, snapshot)
    entries = [file_records.NAME.of(record) for _, record in found]
    if len(entries) < len(path):
        raise StorageError(file_errors.PARENT_NOT_FOUND)
    stored = [name if one is None else one.name for name, one in zip(path, entries, strict=True)]
    return Where(
        generation,
        path,
        refs=tuple([ref for ref, _ in found]),
        ids=tuple([one.id for one in entries if one is not None]),
        stored=tuple(stored),
        records=tuple([record for _, record in found]),
        entry=entries[-1] if entries else None,
    )


async def find(services: Services, call: Call[Any], *, is_directory: bool) -> Where:
    """Return the path of the directory or file that a request names.

    Raises: StorageError ResourceNotFound, also where the name is of the other kind; as `resolve`.
    """
    where = await named(services, call)
    is_there = where.is_root or where.entry is not None
    if not is_there or where.is_directory != is_directory:
        raise StorageError(errors.RESOURCE_NOT_FOUND)
    return where


async def named(services: Services, call: Call[Any]) -> Where:
    """Resolve the path that a request names. Its file need not exist. Raises: as `resolve` and
    `components`."""
    trailing_dots = isinstance(call.input, OnPath) and call.input.trailing_dots
    path = components(call.target.blob, trailing_dots=trailing_dots)
    return await resolve(services, call, path)
