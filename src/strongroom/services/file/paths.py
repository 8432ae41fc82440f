"""Paths: resolving a path to the ids it leads through, and checking it again in a decision.

Lives here: the walk over names, and the check at the serial point that each name still leads to the
same id. Must not live here: attributes, rules of names (semantics/file/names.py).

A path is resolved on committed state, name by name. The decision reads these names again. If one of
them leads elsewhere by then, it raises PathChanged, and the operation is tried again.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import msgspec

from strongroom import errors, file_errors
from strongroom.engines.base import Partition, Ref
from strongroom.errors import StorageError
from strongroom.semantics.file import names
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Found, ReadAll, Reads
from strongroom.services.core.places import check_place, generation_of, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file.held.share_holds import require_share
from strongroom.services.file.past_states import name_at, require_snapshot
from strongroom.store.core import keys
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
        entry: the record of the last name; None = the name is free, or the path is the root.
    """

    generation: int
    components: tuple[str, ...]
    refs: tuple[Ref, ...]
    ids: tuple[int, ...]
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

    Raises: StorageError ShareNotFound, ParentNotFound; what authorizing raises.
    """
    (share,) = await services.store.read([place_ref(call)])
    check_place(call, share)
    snapshot = call.target.snapshot
    if snapshot is not None:
        require_snapshot(call, share)
    return (await walk(services, generation_of(call), path, snapshot))[0]


async def walk(
    services: Services, generation: int, path: tuple[str, ...], snapshot: int | None = None
) -> tuple[Where, tuple[str, ...]]:
    """Resolve a path of a share. This gateway takes the share if no gateway has it.

    Arguments:
        snapshot: the share's snapshot in which the path is resolved; None = the share itself.

    Returns: where the path leads, and its names as they are stored. A name that is free is returned
        as it was requested.

    Raises: StorageError ParentNotFound, ServerBusy (another gateway serves the share).
    """
    await require_share(services, generation)
    at, refs, ids, stored = generation, list[Ref](), list[int](), list[str]()
    entry: NameRecord | None = None
    for index, name in enumerate(path):
        ref = keys.file_name(generation, at, names.fold(name))
        if snapshot is None:
            (found,) = await services.store.read([ref])
        else:
            found = await name_at(services.store, ref, snapshot)
        entry = file_records.NAME.of(found)
        refs.append(ref)
        stored.append(name if entry is None else entry.name)
        is_last = index == len(path) - 1
        if not is_last and (entry is None or not entry.is_directory):
            raise StorageError(file_errors.PARENT_NOT_FOUND)
        if entry is not None:
            at = entry.id
            ids.append(at)
    return Where(generation, path, tuple(refs), tuple(ids), entry), tuple(stored)


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
