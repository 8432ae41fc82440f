"""Paths: the ids that the names of a tree lead through, and the check that they still do.

Lives here: a path that was resolved. Must not live here: what a path leads to, how requests name
it, and which names are valid.

Names are followed on committed state. Every later read and the decision read them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from strongroom.engines.base import Engine, Partition, Record, Ref
from strongroom.services.core.decisions import Found, ReadAll, Reads
from strongroom.store.core import keys
from strongroom.store.tree import tree_records
from strongroom.store.tree.tree_records import NameRecord


class PathChanged(Exception):
    """A path, or what it leads to, has changed since an operation was prepared from it. So the
    operation is tried again."""


class Where(msgspec.Struct, frozen=True):
    """A path whose parents exist.

    Attributes:
        generation: of the tree; it is the id of the root, too.
        components: its names, from the root down; none = the root.
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

    @classmethod
    def of(
        cls, generation: int, path: tuple[str, ...], found: Sequence[tuple[Ref, Record | None]]
    ) -> Where | None:
        """Return a path whose names were followed; None = a parent is missing.

        Arguments:
            found: what Engine.follow has returned.
        """
        if len(found) < len(path):
            return None
        entries = [tree_records.NAME.of(record) for _, record in found]
        named = zip(path, entries, strict=True)
        return cls(
            generation,
            path,
            refs=tuple([ref for ref, _ in found]),
            ids=tuple([one.id for one in entries if one is not None]),
            stored=tuple([name if one is None else one.name for name, one in named]),
            records=tuple([record for _, record in found]),
            entry=entries[-1] if entries else None,
        )

    @property
    def is_root(self) -> bool:
        """Whether it is the root directory."""
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
    def folded(self) -> str:
        """The last name, as the keys have it."""
        return keys.folded_name(self.refs[-1].key.name).decode()

    @property
    def is_directory(self) -> bool:
        """Whether it leads to a directory."""
        return self.is_root or (self.entry is not None and self.entry.is_directory)

    def read(self, reads: Reads) -> ReadAll[NameRecord]:
        """Add the reads of the names, which `check` needs."""
        return reads.add_all(self.refs, tree_records.NAME)

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


async def follow(
    engine: Engine, generation: int, folded: Sequence[bytes]
) -> list[tuple[Ref, Record | None]]:
    """Follow names from the root of a tree, as Engine.follow does.

    Arguments:
        folded: the names, as the keys have them.
    """
    names, root = keys.file_names(generation), keys.number(generation)
    return await engine.follow(names, tree_records.NAME_LINKS, root, folded)
