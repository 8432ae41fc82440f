"""The writes among the names of a share that link, unlink and move an id.

Lives here: names, nodes, and the counts of names in directories. Must not live here: attributes,
usage, decisions.
"""

from __future__ import annotations

import msgspec

from strongroom.engines.base import Write
from strongroom.services.file.paths import PathChanged, Where
from strongroom.store.core import keys
from strongroom.store.file import file_records
from strongroom.store.file.file_records import NameRecord, NodeRecord


def linked(
    where: Where, file_id: int, parent: NodeRecord | None, node: NodeRecord
) -> tuple[Write, ...]:
    """Return the writes that give a name to an id: the name, its node, and its parent's count.

    Arguments:
        where: the name, in a parent that has the node `parent`; the root has none.
        node: of the id.

    Raises: PathChanged when the parent is gone.
    """
    name = NameRecord(file_id, where.name, node.is_directory)
    writes = [
        Write(where.refs[-1].key, file_records.NAME.encode(name)),
        Write(keys.file_node(where.generation, file_id).key, file_records.NODE.encode(node)),
    ]
    return (*writes, *counted(where, parent, 1))


def counted(where: Where, parent: NodeRecord | None, more: int) -> tuple[Write, ...]:
    """Return the write that adds `more` to the count of names in a parent. The root has no count.

    Raises: PathChanged when the parent is gone.
    """
    if where.parent == where.generation:
        return ()
    if parent is None or not parent.is_directory:
        raise PathChanged
    counted = msgspec.structs.replace(parent, children=parent.children + more)
    key = keys.file_node(where.generation, where.parent).key
    return (Write(key, file_records.NODE.encode(counted)),)
