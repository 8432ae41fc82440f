"""Conversion between the services' values of a file and those of the information classes.

Lives here: ticks to FILETIMEs, and names to paths, in both directions. Must not live here: layouts
(wire/smb). Sources: [MS-FSCC] sections 2.1.1 and 2.6; smb.md 2.4, 3.3 and 3.8.
"""

from __future__ import annotations

from strongroom.errors import file as file_errors
from strongroom.semantics.file.attributes import Attribute, filetime, smb_bits
from strongroom.servers.smb.refusals import SmbError
from strongroom.services.file.handles.model import EnumeratedNode, NodeInfo
from strongroom.wire.smb.information.directory_entries import DirectoryEntry
from strongroom.wire.smb.information.file_information import NodeInformation

_SEPARATOR = "\\"


def volume_id(generation: int) -> int:
    """Return the serial number of a share as a volume: 32 bits made of its generation."""
    return (generation ^ generation >> 32) & 0xFFFF_FFFF


def attribute_bits(bits: int, *, is_directory: bool) -> int:
    return smb_bits(bits | (Attribute.DIRECTORY if is_directory else Attribute.NONE))


def information_of(info: NodeInfo, position: int = 0) -> NodeInformation:
    record = info.record
    return NodeInformation(
        creation=filetime(record.creation),
        last_access=filetime(record.access),
        last_write=filetime(record.write),
        change=filetime(record.change),
        allocation=info.allocation_bytes,
        size=info.size_bytes,
        attributes=attribute_bits(record.attributes, is_directory=info.is_directory),
        file_id=info.node_id,
        is_directory=info.is_directory,
        is_delete_pending=info.is_delete_pending,
        access=info.mask,
        mode=info.mode,
        position=position,
        path=_SEPARATOR.join(info.path),
        volume_serial=volume_id(info.share_created),
    )


def entry_of(node: EnumeratedNode) -> DirectoryEntry:
    record = node.record
    return DirectoryEntry(
        node.name,
        filetime(record.creation),
        filetime(record.access),
        filetime(record.write),
        change=filetime(record.change),
        size=record.size_bytes,
        allocation=node.allocation_bytes,
        attributes=attribute_bits(record.attributes, is_directory=record.is_directory),
        file_id=node.node_id,
    )


def path_of(name: str, *, must_be_file: bool = False) -> tuple[str, ...]:
    """Return the names of a path from the share's root; "" is the root itself.

    One separator at the end names a directory. The services check the names.

    Raises: SmbError INVALID_PARAMETER for a separator at the beginning, OBJECT_NAME_INVALID for one
        at the end of a path that must name a file.
    """
    if name.startswith(_SEPARATOR):
        raise SmbError(file_errors.STATUS_INVALID_PARAMETER)
    if name.endswith(_SEPARATOR):
        if must_be_file:
            raise SmbError(file_errors.STATUS_OBJECT_NAME_INVALID)
        name = name[:-1]
    return tuple(name.split(_SEPARATOR)) if name else ()
