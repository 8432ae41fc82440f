"""The CREATE of a name that is free.

Lives here: what is created. Must not live here: the decision (node/making.py), the open of what is
created (opening.py). Source: [MS-FSA] section 2.1.5.1.1; smb.md 2.4.
"""

from __future__ import annotations

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import attributes, permissions
from strongroom.semantics.file.attributes import Attribute
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import transfers
from strongroom.services.file.handles.model import RequestedOpen
from strongroom.services.file.names.permissions import TEXT_BYTES_MAX, PermissionGiven
from strongroom.services.file.node.deciding import Applied
from strongroom.services.file.node.making import NewNode, make
from strongroom.services.file.node.origins import TreeOrigin
from strongroom.services.file.opens.open_handle import ShareAccess
from strongroom.services.tree.paths import Where
from strongroom.store.core.records import ShareRecord
from strongroom.store.file.file_records import FileRecord


async def create(
    services: Services, access: ShareAccess, where: Where, asked: RequestedOpen
) -> tuple[Where, FileRecord]:
    """Returns the name with its id, and the attributes. Raises PathChanged when the name is no
    longer free."""
    bits = attributes.check_smb(asked.attributes, is_directory=asked.must_be_directory)
    if asked.has_extended_attributes:
        raise StorageError(file_errors.EXTENDED_ATTRIBUTES_REFUSED)
    if asked.deletes_on_close and bits & Attribute.READ_ONLY:
        raise StorageError(file_errors.CANNOT_DELETE)
    if asked.permission is not None:
        permissions.check_sddl(asked.permission, TEXT_BYTES_MAX)
    permission = PermissionGiven(text=asked.permission)
    new = _OpenedNode(asked.must_be_directory, permission, bits, asked.allocation_bytes or 0)
    return await make(services, TreeOrigin(access), where, new)


class _OpenedNode(NewNode, frozen=True):
    """`allocation_bytes`: reserved for what an open creates, for which the share must have room."""

    permission: PermissionGiven
    bits: int
    allocation_bytes: int

    def made(self, share: ShareRecord, where: Where, permission: str, stamp: int) -> Applied:
        transfers.check_size(share, self.allocation_bytes)
        record = FileRecord(
            stamp,
            stamp,
            self.is_directory,
            attributes=attributes.created(self.bits, is_directory=self.is_directory),
            creation=stamp,
            access=stamp,
            write=stamp,
            change=stamp,
            permission=permission,
        )
        return record, ()
