"""The deletion of a file or directory whose last open has left while its deletion was pending.

Lives here: the decision. Must not live here: when a deletion is due (semantics/file/deletion.py).
Source: [MS-FSA] section 2.1.5.4; smb.md 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from strongroom.engines.base import Commit, Record, Step, Write
from strongroom.services.core.decisions import Decision
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.deciding import NodePlace
from strongroom.services.file.held.changes import Watches, removed
from strongroom.services.file.node_writes import directory_touched, used
from strongroom.services.file.past_states import with_past_states
from strongroom.services.file.paths import PathChanged
from strongroom.services.file.sweep import sweep_step
from strongroom.store.core import keys, records, share_keys
from strongroom.store.file import file_records
from strongroom.store.file.file_records import NodeRecord
from strongroom.values import Purpose


async def remove(services: Services, place: NodePlace, path: tuple[str, ...]) -> None:
    """Remove a name. Nothing happens if the name is gone, or if other names lie below it by now.

    Arguments:
        path: its path, for directory watches.
    """
    generation = place.access.generation
    node_ref = keys.file_node(generation, place.node_id)
    while True:
        node = file_records.NODE.of((await services.store.read([node_ref]))[0])
        if node is None:
            return
        reads = [
            node_ref,
            keys.file_name(generation, node.parent, node.name),
            keys.file_node(generation, node.parent),
            keys.share(place.access.account, place.access.share),
            share_keys.share_usage(generation),
            keys.file_attributes(generation, node.parent),
            place.refs[1],
        ]
        partition = keys.file_names(generation)
        try:
            gone = await services.commit(_Remove(partition, reads, Purpose.FREEING, place, node))
        except PathChanged:
            continue
        services.work.set()
        if gone:
            change = removed(path, is_directory=node.is_directory)
            services.held.of(Watches).report(generation, change)
        return


class _Remove(Decision[bool], frozen=True):
    """The decision that removes a name, and the attributes after it. The result says whether it was
    removed."""

    place: NodePlace
    node: NodeRecord

    def run(self, found: Sequence[Record | None], stamp: int) -> Commit[bool]:
        """See Decision.run. Raises: PathChanged when the file has another name by now."""
        node, place = file_records.NODE.of(found[0]), self.place
        if node is None or node.children:
            return Commit(False)
        name = file_records.NAME.of(found[1])
        if (node.parent, node.name) != (self.node.parent, self.node.name) or name is None:
            raise PathChanged
        writes = [Write(self.reads[0].key, None), Write(self.reads[1].key, None)]
        above = file_records.NODE.of(found[2])
        if above is not None:
            fewer = msgspec.structs.replace(above, children=above.children - 1)
            writes.append(Write(self.reads[2].key, file_records.NODE.encode(fewer)))
        share = records.SHARE.of(found[3])
        if share is None or share.generation != place.access.generation:
            return Commit(False)  # the share has been deleted, and its files with it
        writes += used(share, found[4], -node.size_bytes)
        steps = (
            # The job comes first, so that a crash leaves nothing that no job removes.
            sweep_step(place.access.generation, place.node_id, stamp),
            Step(self.partition, tuple(writes)),
            Step(place.partition, (Write(keys.FILE_KEY, None),)),
            *directory_touched(share.generation, node.parent, found[5], stamp),
        )
        return with_past_states(share, self.reads, found, Commit(True, steps), stamp)
