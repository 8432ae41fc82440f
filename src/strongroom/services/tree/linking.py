"""The writes among the names of a tree that link, unlink and move an id.

Lives here: names, nodes, and the counts of names in directories. Must not live here: what the names
lead to, decisions.
"""

from __future__ import annotations

import msgspec

from strongroom.engines.base import Key, Write
from strongroom.services.core.decisions import Found, ReadAll, ReadOne, Reads
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import keys
from strongroom.store.tree import tree_records
from strongroom.store.tree.tree_records import NameRecord, NodeRecord


def linked(
    where: Where, node_id: int, parent: NodeRecord | None, node: NodeRecord
) -> tuple[Write, ...]:
    """Return the writes that give a name to an id: the name, its node, and its parent's count.

    Arguments:
        where: the name, in a parent that has the node `parent`; the root has none.
        node: of the id.

    Raises: PathChanged when the parent is gone.
    """
    name = NameRecord(node_id, where.name, node.is_directory)
    return (
        Write(where.refs[-1].key, tree_records.NAME.encode(name)),
        Write(keys.file_node(where.generation, node_id).key, tree_records.NODE.encode(node)),
        *_counted(where, parent, 1),
    )


def unlinked(where: Where, parent: NodeRecord | None) -> tuple[Write, ...]:
    """Return the writes that remove a name and its node, and count one name less in its parent.

    Raises: PathChanged when the parent is gone.
    """
    node = keys.file_node(where.generation, where.id)
    return (
        Write(where.refs[-1].key, None),
        Write(node.key, None),
        *_counted(where, parent, -1),
    )


def _counted(where: Where, parent: NodeRecord | None, more: int) -> tuple[Write, ...]:
    """Return the write that adds `more` to the count of names in a parent. The root has no count.

    Raises: PathChanged when the parent is gone.
    """
    if where.parent == where.generation:
        return ()
    if parent is None or not parent.is_directory:
        raise PathChanged
    counted = msgspec.structs.replace(parent, children=parent.children + more)
    key = keys.file_node(where.generation, where.parent).key
    return (Write(key, tree_records.NODE.encode(counted)),)


class NameMove(msgspec.Struct, frozen=True):
    """A name that an id leaves, and the name that it gets."""

    source: Where
    target: Where

    @property
    def replaced(self) -> int | None:
        """The id that has the new name, if it is not the source's; None = nothing is replaced."""
        entry = self.target.entry
        return None if entry is None or entry.id == self.source.id else entry.id


class NameMoveReads(msgspec.Struct, frozen=True):
    """What a move reads among the names: both paths, and nodes.

    Attributes:
        source_parent, target_parent: of both directories; the root has no node.
        replaced: the node that is replaced; None = nothing is.
    """

    source_path: ReadAll[NameRecord]
    source_parent: ReadOne[NodeRecord]
    target_path: ReadAll[NameRecord]
    target_parent: ReadOne[NodeRecord]
    moved: ReadOne[NodeRecord]
    replaced: ReadOne[NodeRecord] | None

    @classmethod
    def of(cls, reads: Reads, move: NameMove) -> NameMoveReads:
        """Add these reads."""
        source, target, generation = move.source, move.target, move.source.generation

        def node(node_id: int) -> ReadOne[NodeRecord]:
            return reads.add(keys.file_node(generation, node_id), tree_records.NODE)

        return cls(
            source.read(reads),
            node(source.parent),
            target.read(reads),
            node(target.parent),
            node(source.id),
            None if move.replaced is None else node(move.replaced),
        )

    def check(self, found: Found, move: NameMove) -> NodeRecord:
        """Check that both paths are as they were resolved. Return the node that moves. Raises:
        PathChanged."""
        move.source.check(found, self.source_path)
        move.target.check(found, self.target_path)
        node = found[self.moved]
        if node is None:
            raise PathChanged
        return node

    def replaced_in(self, found: Found) -> NodeRecord | None:
        """Return the node that is replaced. Raises: PathChanged when it is gone."""
        if self.replaced is None:
            return None
        node = found[self.replaced]
        if node is None:
            raise PathChanged
        return node

    def writes(self, found: Found, move: NameMove, node: NodeRecord) -> tuple[Write, ...]:
        """Return the writes of the move.

        The old name is removed, the new one is added, and both directories' counts change.

        Arguments:
            node: the node that moves.

        Raises: PathChanged when one of the directories, or what is replaced, has been deleted.
        """
        source, target = move.source, move.target
        moved = msgspec.structs.replace(node, parent=target.parent, name=target.folded)
        name = NameRecord(source.id, target.name, node.is_directory)
        writes: dict[Key, bytes | None] = {
            source.refs[-1].key: None,
            self.moved.ref.key: tree_records.NODE.encode(moved),
        }
        writes[target.refs[-1].key] = tree_records.NAME.encode(name)
        if self.replaced is not None:
            writes[self.replaced.ref.key] = None
        return (
            *(Write(key, value) for key, value in writes.items()),
            *self._counts(found, move),
        )

    def _counts(self, found: Found, move: NameMove) -> tuple[Write, ...]:
        """Return the writes of the directories' counts that change. The root has no count."""
        counts = {move.source.parent: -1}
        if move.replaced is None:
            target = move.target.parent
            counts[target] = counts.get(target, 0) + 1
        writes = []
        for parent, read in (
            (move.source.parent, self.source_parent),
            (move.target.parent, self.target_parent),
        ):
            more = counts.pop(parent, 0)
            if more and parent != move.source.generation:
                directory = found[read]
                if directory is None:
                    raise PathChanged
                counted = msgspec.structs.replace(directory, children=directory.children + more)
                writes.append(Write(read.ref.key, tree_records.NODE.encode(counted)))
        return tuple(writes)
