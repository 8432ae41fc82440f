"""QUERY_INFO and SET_INFO of files, shares as volumes, and security descriptors.

Lives here: from the request to the services and back, and which rights a class needs. Must not live
here: layouts (wire/smb/information). Sources: [MS-SMB2] sections 3.3.5.20 and 3.3.5.21; smb.md 2.10
and 2.11.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from strongroom.semantics.file import accesses
from strongroom.semantics.file.attributes import filetime
from strongroom.servers.smb.commands.nodes import information_of, path_of, volume_id
from strongroom.servers.smb.commands.pipes import PIPE_NODE
from strongroom.servers.smb.commands.targets import (
    FileTarget,
    PipeTarget,
    check_may,
    file_of,
    handle_of,
    open_of,
)
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.services.file.handles import information as services_information
from strongroom.services.file.handles import renaming
from strongroom.services.file.handles.model import Handle, RequestedAttributes, RequestedRename
from strongroom.services.file.handles.volumes import volume
from strongroom.wire.smb import statuses
from strongroom.wire.smb.information import file_information as classes
from strongroom.wire.smb.information import security_descriptors as descriptors
from strongroom.wire.smb.information.file_information import (
    FileChange,
    FileClass,
    Information,
)
from strongroom.wire.smb.information.filesystem_information import (
    VolumeInformation,
    check_volume_query,
    query_volume,
)
from strongroom.wire.smb.information.sddl import parse_sddl, sddl
from strongroom.wire.smb.information.sids import NAMED
from strongroom.wire.smb.requests.query_directory import write_buffer_answer
from strongroom.wire.smb.requests.query_info import (
    SET_INFO_ANSWER,
    InfoType,
    QueryInfoRequest,
    SetInfoRequest,
    read_query_info,
    read_set_info,
)

_DIALECT_311: Final = 0x0311
# Class -> the right that it needs ([MS-FSA] 2.1.5.12). All others need none.
_RIGHTS: Final[Mapping[int, int]] = {
    FileClass.BASIC: accesses.READ_ATTRIBUTES,
    FileClass.ALL: accesses.READ_ATTRIBUTES,
    FileClass.NETWORK_OPEN: accesses.READ_ATTRIBUTES,
    FileClass.ATTRIBUTE_TAG: accesses.READ_ATTRIBUTES,
    FileClass.FULL_EA: accesses.READ_EA,
}
# AdditionalInformation -> the right that reads, and the one that writes it ([MS-SMB2] 3.3.5.20.3
# and 3.3.5.21.3).
_READ_RIGHTS: Final = (
    (
        descriptors.OWNER | descriptors.GROUP | descriptors.DACL | descriptors.LABEL,
        accesses.READ_CONTROL,
    ),
    (descriptors.SACL, accesses.ACCESS_SYSTEM_SECURITY),
)
_WRITE_RIGHTS: Final = (
    (descriptors.OWNER | descriptors.GROUP | descriptors.LABEL, accesses.WRITE_OWNER),
    (descriptors.DACL, accesses.WRITE_DAC),
    (descriptors.SACL, accesses.ACCESS_SYSTEM_SECURITY),
)


async def query_info(element: SmbElement) -> SmbAnswer:
    request = read_query_info(element.message, element.connection.io_bytes_max)
    if request.info_type == InfoType.FILE:
        information = await _query_file(element, request)
    elif request.info_type == InfoType.FILESYSTEM:
        information = await _query_volume(element, request)
    elif request.info_type == InfoType.SECURITY:
        return await _query_security(element, request)
    else:
        raise SmbError(statuses.STATUS_NOT_SUPPORTED)
    status, data = information.truncated(request.output_bytes_max)
    return SmbAnswer(write_buffer_answer(data), status)


async def _query_file(element: SmbElement, request: QueryInfoRequest) -> Information:
    kind = request.information_class
    has_names = element.connection.negotiated.dialect >= _DIALECT_311
    if isinstance(open_of(element).target, PipeTarget):
        classes.check_query(kind, has_normalized_names=has_names)
        return classes.query(kind, PIPE_NODE)
    file = file_of(element)
    if kind in _RIGHTS:
        check_may(file.handle, _RIGHTS[kind])
    classes.check_query(kind, has_normalized_names=has_names)
    info = await services_information.attributes(element.services, file.handle)
    return classes.query(kind, information_of(info, file.handle.position))


async def _query_volume(element: SmbElement, request: QueryInfoRequest) -> Information:
    check_volume_query(request.information_class)
    handle = handle_of(element)
    share = await volume(element.services, handle.access)
    shown = VolumeInformation(
        share.label,
        filetime(share.created),
        volume_id(handle.access.generation),
        share.quota_bytes,
        share.used_bytes,
    )
    return query_volume(request.information_class, shown)


async def _query_security(element: SmbElement, request: QueryInfoRequest) -> SmbAnswer:
    """Answer with the security descriptor. It is never truncated: without room for it, the refusal
    has the size that it needs."""
    handle = handle_of(element)
    _check_rights(handle, request.additional, _READ_RIGHTS)
    text = await services_information.security(element.services, handle)
    shown = descriptors.parts_of(parse_sddl(text), request.additional)
    data = descriptors.write_descriptor(shown)
    if len(data) > request.output_bytes_max:
        needed = struct.pack("<I", len(data))
        raise SmbError(statuses.STATUS_BUFFER_TOO_SMALL, needed)
    return SmbAnswer(write_buffer_answer(data))


def _check_rights(handle: Handle, parts: int, rights: tuple[tuple[int, int], ...]) -> None:
    for named, right in rights:
        if parts & named:
            check_may(handle, right)


async def set_info(element: SmbElement) -> SmbAnswer:
    request = read_set_info(element.message, element.connection.io_bytes_max)
    if request.info_type == InfoType.FILE:
        change = classes.read_change(request.information_class, request.data)
        await _change_file(element, file_of(element), change)
    elif request.info_type == InfoType.SECURITY:
        await _set_security(element, request)
    else:
        raise SmbError(statuses.STATUS_NOT_SUPPORTED)
    return SmbAnswer(SET_INFO_ANSWER)


async def _change_file(element: SmbElement, file: FileTarget, change: FileChange) -> None:
    services, handle = element.services, file.handle
    if isinstance(change, classes.BasicInformation):
        attributes = RequestedAttributes(
            change.creation,
            change.last_access,
            change.last_write,
            change.change,
            change.attributes,
        )
        await services_information.set_basic(services, handle, attributes)
    elif isinstance(change, classes.RenameChange):
        renamed = RequestedRename(path_of(change.path), change.replace_if_exists)
        await renaming.rename(services, handle, renamed, element)
    elif isinstance(change, classes.DispositionChange):
        await renaming.set_disposition(services, handle, delete=change.deletes, request=element)
    elif isinstance(change, classes.AllocationChange):
        await services_information.set_allocation(services, handle, change.size, element)
    elif isinstance(change, classes.EndOfFileChange):
        await services_information.set_end_of_file(services, handle, change.size, element)
    elif isinstance(change, classes.PositionChange):
        file.handle.position = change.position
    elif isinstance(change, classes.ModeChange):
        handle.mode = handle.mode & ~classes.SETTABLE_MODE | change.mode


async def _set_security(element: SmbElement, request: SetInfoRequest) -> None:
    """Replace the named parts of the stored security descriptor."""
    handle = handle_of(element)
    _check_rights(handle, request.additional, _WRITE_RIGHTS)
    descriptor = descriptors.read_descriptor(request.data)

    def merged(text: str) -> str:
        whole = descriptors.with_parts(parse_sddl(text), descriptor, request.additional)
        return sddl(whole, owner=NAMED["BA"], group=NAMED["BA"])

    await services_information.set_security(element.services, handle, merged, element)
