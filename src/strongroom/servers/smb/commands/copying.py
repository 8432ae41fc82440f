"""Copies within the server: resume keys, and SRV_COPYCHUNK.

Lives here: both control codes. Must not live here: their layouts (wire/smb/requests/ioctl.py).
Sources: [MS-SMB2] sections 3.3.5.15.5 and 3.3.5.15.6; smb.md 2.7.

A resume key names an open of the caller's session. It is the open's FileId, half of which is
random, so that no table of keys is needed.
"""

from __future__ import annotations

import struct
from typing import Final

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses
from strongroom.servers.smb.commands.targets import FileTarget, check_may
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.services.file.handles import transfers
from strongroom.services.file.handles.model import Handle
from strongroom.wire.smb import statuses
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests import ioctl as wire
from strongroom.wire.smb.requests.ioctl import CopyChunk, Fsctl, IoctlRequest

_KEY: Final = struct.Struct("<QQ8x")


async def request_resume_key(element: SmbElement, request: IoctlRequest) -> SmbAnswer:
    """Raises: SmbError INVALID_PARAMETER if the answer has no room for it."""
    source = element.find_open(request.file_id)
    if not isinstance(source.target, FileTarget):
        raise SmbError(statuses.STATUS_INVALID_DEVICE_REQUEST)
    if request.output_bytes_max < wire.RESUME_KEY_ANSWER_BYTES:
        raise SmbError(file_errors.STATUS_INVALID_PARAMETER)
    key = _KEY.pack(source.file_id.persistent, source.file_id.volatile)
    return SmbAnswer(wire.write_ioctl_answer(request, wire.write_resume_key(key)))


async def copy_chunks(element: SmbElement, request: IoctlRequest) -> SmbAnswer:
    """Copy ranges of one open to another, in order. Each range is durable when its copy is done.

    A range that ends behind the end of the source is answered INVALID_VIEW_SIZE.
    """
    if request.output_bytes_max < wire.COPY_ANSWER_BYTES:
        raise SmbError(file_errors.STATUS_INVALID_PARAMETER)
    target = _file(element, request.file_id)
    copy = wire.read_copy_chunks(request.data)
    if copy is None:
        body = wire.write_ioctl_answer(request, wire.COPY_LIMITS)
        return SmbAnswer(body, file_errors.STATUS_INVALID_PARAMETER)
    source = _source(element, copy.source_key)
    check_may(source, accesses.READ_DATA | accesses.EXECUTE)
    check_may(target, accesses.WRITE_DATA | accesses.APPEND_DATA)
    if request.code == Fsctl.SRV_COPYCHUNK:
        check_may(target, accesses.READ_DATA)
    count, total, status = 0, 0, statuses.STATUS_SUCCESS
    for chunk in copy.chunks:
        status = await _copy(element, source, target, chunk)
        if status:
            break
        count, total = count + 1, total + chunk.length
    copied = wire.write_copy_answer(count, total)
    return SmbAnswer(wire.write_ioctl_answer(request, copied), status)


def _file(element: SmbElement, file_id: FileId) -> Handle:
    target = element.find_open(file_id).target
    if not isinstance(target, FileTarget) or target.handle.is_directory:
        raise SmbError(statuses.STATUS_INVALID_DEVICE_REQUEST)
    return target.handle


def _source(element: SmbElement, key: bytes) -> Handle:
    """Return the handle of the open that a key names. It may be of another tree of the session."""
    try:
        target = element.session.find_open(FileId(*_KEY.unpack(key))).target
    except SmbError:
        raise SmbError(file_errors.STATUS_OBJECT_NAME_NOT_FOUND) from None
    if not isinstance(target, FileTarget) or target.handle.is_directory:
        raise SmbError(file_errors.STATUS_OBJECT_NAME_NOT_FOUND)
    return target.handle


async def _copy(element: SmbElement, source: Handle, target: Handle, chunk: CopyChunk) -> int:
    """Copy one chunk. Returns its status; the answer counts only the chunks before one that
    failed."""
    services = element.services
    try:
        pieces = await transfers.read(services, source, chunk.source_offset, chunk.length, element)
        data = b"".join(pieces)
        if len(data) < chunk.length:
            return statuses.STATUS_INVALID_VIEW_SIZE
        await transfers.write(services, target, chunk.target_offset, data, element)
    except StorageError as error:
        status = error.row.ntstatus
        if status == statuses.STATUS_END_OF_FILE:
            return statuses.STATUS_INVALID_VIEW_SIZE
        return file_errors.STATUS_UNSUCCESSFUL if status is None else status
    return statuses.STATUS_SUCCESS
