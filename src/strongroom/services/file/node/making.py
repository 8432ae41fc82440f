"""The creation of a directory or file under a free name.

Attributes are written first, and the name last. So no name ever leads to nothing. A crash between
the two leaves an attribute record of a few hundred bytes that no name refers to.
"""

from __future__ import annotations

import msgspec

from strongroom.engines.base import Commit, Step, Write
from strongroom.engines.endings import to_its_end
from strongroom.services.core.decisions import Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.names.node_writes import parent_ref, parent_touched, used
from strongroom.services.file.names.permissions import DEFAULT_KEY, PermissionGiven, PermissionRead
from strongroom.services.file.node.deciding import Applied
from strongroom.services.file.node.origins import ShareOrigin
from strongroom.services.file.opens.changes import Watches, added
from strongroom.services.file.snapshots.past_states import with_past_states
from strongroom.services.tree.linking import linked
from strongroom.services.tree.paths import Where
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, UsageRecord
from strongroom.store.tree import tree_records
from strongroom.store.tree.tree_records import NameRecord, NodeRecord


class NewNode(msgspec.Struct, frozen=True):
    """A directory or file that is to be made. It is a value, which the decision holds."""

    is_directory: bool

    @property
    def size_bytes(self) -> int:
        return 0

    @property
    def permission(self) -> PermissionGiven:
        raise NotImplementedError

    def made(self, share: ShareRecord, where: Where, permission: str, stamp: int) -> Applied:
        """Return the attributes, and the steps that come first. It is pure. `permission` is a key.
        `stamp` is the commit's, and becomes the id."""
        raise NotImplementedError


async def make(
    services: Services, origin: ShareOrigin, where: Where, new: NewNode
) -> tuple[Where, FileRecord]:
    """Create a directory or file under a name, and report it, also if the caller is cancelled
    meanwhile. Returns the name with its id, and the attributes. Raises PathChanged when the name is
    no longer free."""
    origin, reads, generation = origin.at_serial_point(), Reads(), where.generation
    decision = _Make(
        keys.file_names(generation),
        reads.refs,
        origin.purpose,
        origin=origin,
        where=where,
        new=new,
        share=reads.add(origin.share_ref, records.SHARE),
        parent=reads.add(keys.file_node(generation, where.parent), tree_records.NODE),
        parent_attributes=reads.add(parent_ref(where), file_records.FILE),
        usage=reads.add(share_keys.share_usage(generation), file_records.USAGE),
        on_path=where.read(reads),
        permission=new.permission.read(reads, generation),
    )

    async def commit() -> tuple[Where, FileRecord]:
        made = await origin.submit(services, decision)
        change = added(where.stored, is_directory=new.is_directory)
        services.held.of(Watches).report(generation, change)
        return made

    return await to_its_end(commit())


class _Make(Decision[tuple[Where, FileRecord]], frozen=True):
    origin: ShareOrigin
    where: Where
    new: NewNode
    share: ReadOne[ShareRecord]
    parent: ReadOne[NodeRecord]
    parent_attributes: ReadOne[FileRecord]
    usage: ReadOne[UsageRecord]
    on_path: ReadAll[NameRecord]
    permission: PermissionRead

    def decide(self, found: Found, stamp: int) -> Commit[tuple[Where, FileRecord]]:
        where, new = self.where, self.new
        share = self.origin.share_in(found, self.share)
        where.check(found, self.on_path)
        self.origin.guard(None, stamp)
        permission, stored = self.permission.chosen(DEFAULT_KEY, found)
        record, first = new.made(share, where, permission, stamp)
        entry = NameRecord(stamp, where.name, new.is_directory)
        made = msgspec.structs.replace(where, ids=(*where.ids, stamp), entry=entry)
        attributes = Write(keys.FILE_KEY, file_records.FILE.encode(record))
        node = NodeRecord(where.parent, where.folded, new.is_directory, 0, new.size_bytes)
        counted = used(share, found[self.usage], new.size_bytes)
        steps = (
            *stored,
            *first,
            Step(keys.file(where.generation, stamp), (attributes,)),
            Step(self.partition, (*linked(where, stamp, found[self.parent], node), *counted)),
            *parent_touched(where, found[self.parent_attributes], stamp),
        )
        return with_past_states(share, self.reads, found, Commit((made, record), steps), stamp)
