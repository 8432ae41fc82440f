"""The commit of a CREATE for a name that is free.

Lives here: the decision. Must not live here: the open of what is created (opening.py). Source:
[MS-FSA] section 2.1.5.1.1; smb.md 2.4.

Attributes are written first, and the name last, so that no name ever leads to nothing.
"""

from __future__ import annotations

import msgspec

from strongroom.engines.base import Commit, Full, Step, Write
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import attributes, names, permissions
from strongroom.semantics.file.attributes import Attribute
from strongroom.services.core.decisions import Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.creating import linked
from strongroom.services.file.handles import transfers
from strongroom.services.file.handles.model import RequestedOpen, ShareAccess
from strongroom.services.file.node.origins import tree_share
from strongroom.services.file.node_writes import parent_ref, parent_touched
from strongroom.services.file.past_states import with_past_states
from strongroom.services.file.paths import Where
from strongroom.services.file.permissions import DEFAULT_KEY, PermissionGiven, PermissionRead
from strongroom.store.core import keys, records
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, NameRecord, NodeRecord
from strongroom.values import Purpose


async def create(
    services: Services, access: ShareAccess, where: Where, asked: RequestedOpen
) -> tuple[Where, FileRecord]:
    """Create a directory or file.

    Returns: its name with its id, and its attributes.

    Raises: PathChanged when the name is no longer free; StorageError EAS_NOT_SUPPORTED,
        CANNOT_DELETE, FileInvalidPermission, DISK_FULL, SHARE_GONE.
    """
    bits = attributes.check_smb(asked.attributes, is_directory=asked.must_be_directory)
    if asked.has_extended_attributes:
        raise StorageError(file_errors.EXTENDED_ATTRIBUTES_REFUSED)
    if asked.deletes_on_close and bits & Attribute.READ_ONLY:
        raise StorageError(file_errors.CANNOT_DELETE)
    if asked.permission is not None:
        permissions.check_sddl(asked.permission)
    generation, reads = where.generation, Reads()
    decision = _Create(
        keys.file_names(generation),
        reads.refs,
        Purpose.GROWTH,
        access=access,
        where=where,
        asked=asked,
        bits=bits,
        share=reads.add(keys.share(access.account, access.share), records.SHARE),
        parent=reads.add(keys.file_node(generation, where.parent), file_records.NODE),
        parent_attributes=reads.add(parent_ref(where), file_records.FILE),
        on_path=where.read(reads),
        permission=PermissionGiven(text=asked.permission).read(reads, generation),
    )
    try:
        return await services.commit(decision)
    except Full as full:
        raise StorageError(file_errors.DISK_FULL, str(full)) from None


class _Create(Decision[tuple[Where, FileRecord]], frozen=True, kw_only=True):
    """The decision that creates a directory or file under a free name."""

    access: ShareAccess
    where: Where
    asked: RequestedOpen
    bits: int
    share: ReadOne[ShareRecord]
    parent: ReadOne[NodeRecord]
    parent_attributes: ReadOne[FileRecord]
    on_path: ReadAll[NameRecord]
    permission: PermissionRead

    def decide(self, found: Found, stamp: int) -> Commit[tuple[Where, FileRecord]]:
        """See Decision.decide. Raises: PathChanged."""
        where, is_directory = self.where, self.asked.must_be_directory
        share = tree_share(self.access, found[self.share])
        where.check(found, self.on_path)
        transfers.check_size(share, self.asked.allocation_bytes or 0)
        key, first = self.permission.chosen(DEFAULT_KEY, found)
        record = FileRecord(
            stamp,
            stamp,
            is_directory,
            attributes=attributes.created(self.bits, is_directory=is_directory),
            creation=stamp,
            access=stamp,
            write=stamp,
            change=stamp,
            permission=key,
        )
        entry = NameRecord(stamp, where.name, is_directory)
        node = NodeRecord(where.parent, names.fold(where.name), is_directory)
        made = msgspec.structs.replace(where, ids=(*where.ids, stamp), entry=entry)
        steps = (
            *first,
            Step(
                keys.file(where.generation, stamp),
                (Write(keys.FILE_KEY, file_records.FILE.encode(record)),),
            ),
            Step(self.partition, linked(where, stamp, found[self.parent], node)),
            *parent_touched(where, found[self.parent_attributes], stamp),
        )
        return with_past_states(share, self.reads, found, Commit((made, record), steps), stamp)
