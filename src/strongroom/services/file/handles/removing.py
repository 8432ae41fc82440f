"""The deletion of a file or directory whose last open has left while its deletion was pending.

Must not live here: when a deletion is due (semantics/file/deletion.py). Source: [MS-FSA] section
2.1.5.4; smb.md 3.4.
"""

from __future__ import annotations

import msgspec

from strongroom.engines.base import Commit, Step, Write
from strongroom.services.core.decisions import UNDECODED, Decision, Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.names.node_writes import directory_touched, used
from strongroom.services.file.node.access import ByHandle
from strongroom.services.file.opens.changes import Watches, removed
from strongroom.services.file.snapshots.past_states import with_past_states
from strongroom.services.file.snapshots.sweep import sweep_step
from strongroom.services.tree.paths import PathChanged
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, UsageRecord
from strongroom.store.tree import tree_records
from strongroom.store.tree.tree_records import NameRecord, NodeRecord
from strongroom.values import Purpose


async def remove(services: Services, access: ByHandle, path: tuple[str, ...]) -> None:
    """Nothing happens if the name is gone, or if other names lie below it by now. `path` is for
    directory watches."""
    generation = access.generation
    node_ref = keys.file_node(generation, access.id)
    while True:
        (stored,) = await services.store.read([node_ref])
        node = tree_records.NODE.of(stored)
        if node is None:
            return
        reads = Reads()
        decision = _Remove(
            keys.file_names(generation),
            reads.refs,
            Purpose.FREEING,
            access=access,
            seen=node,
            node=reads.add(node_ref, tree_records.NODE),
            name=reads.add(keys.file_name(generation, node.parent, node.name), tree_records.NAME),
            parent=reads.add(keys.file_node(generation, node.parent), tree_records.NODE),
            share=reads.add(access.origin.share_ref, records.SHARE),
            usage=reads.add(share_keys.share_usage(generation), file_records.USAGE),
            parent_attributes=reads.add(
                keys.file_attributes(generation, node.parent), file_records.FILE
            ),
        )
        # Snapshots keep the attributes as they are before the deletion.
        reads.add(access.attributes_ref, UNDECODED)
        try:
            gone = await services.commit(decision)
        except PathChanged:
            continue
        services.work.set()
        if gone:
            change = removed(path, is_directory=node.is_directory)
            services.held.of(Watches).report(generation, change)
        return


class _Remove(Decision[bool], frozen=True):
    """The result says whether the name was removed."""

    access: ByHandle
    seen: NodeRecord
    node: ReadOne[NodeRecord]
    name: ReadOne[NameRecord]
    parent: ReadOne[NodeRecord]
    share: ReadOne[ShareRecord]
    usage: ReadOne[UsageRecord]
    parent_attributes: ReadOne[FileRecord]

    def decide(self, found: Found, stamp: int) -> Commit[bool]:
        node, seen, access = found[self.node], self.seen, self.access
        share = found[self.share]
        if share is None or share.generation != access.generation:
            return Commit(False)  # it has been deleted, and a sweep removes its names and nodes
        if node is None or node.children:
            return Commit(False)
        is_same = (node.parent, node.name) == (seen.parent, seen.name)
        if not is_same or found[self.name] is None:
            raise PathChanged
        writes = [Write(self.node.ref.key, None), Write(self.name.ref.key, None)]
        above = found[self.parent]
        if above is not None:
            fewer = msgspec.structs.replace(above, children=above.children - 1)
            writes.append(Write(self.parent.ref.key, tree_records.NODE.encode(fewer)))
        writes += used(share, found[self.usage], -node.size_bytes)
        steps = (
            # The job comes first, so that a crash leaves nothing that no job removes.
            sweep_step(access.generation, access.id, stamp),
            Step(self.partition, tuple(writes)),
            Step(access.partition, (Write(keys.FILE_KEY, None),)),
            *directory_touched(share.generation, node.parent, found[self.parent_attributes], stamp),
        )
        return with_past_states(share, self.reads, found, Commit(True, steps), stamp)
