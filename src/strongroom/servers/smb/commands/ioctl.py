"""IOCTL: the supported control codes, and the refusals of the others.

Lives here: one handler for each code, and the table of refusals. Must not live here: layouts
(wire/smb/requests/ioctl.py). Sources: [MS-SMB2] section 3.3.5.15; smb.md 2.7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from strongroom.errors.file import STATUS_INVALID_PARAMETER
from strongroom.servers.smb.commands import copying, pipes
from strongroom.servers.smb.commands.targets import FileTarget, PipeTarget
from strongroom.servers.smb.refusals import CloseConnection, SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.services.file.handles import snapshots, transfers
from strongroom.services.file.handles.model import Handle
from strongroom.wire.smb import statuses
from strongroom.wire.smb.requests import ioctl as wire
from strongroom.wire.smb.requests.ioctl import Fsctl, IoctlRequest
from strongroom.wire.smb.structures import MalformedMessage

_DIALECT_311: Final = 0x0311
_RANGES_MAX: Final = 4096
"""The number of allocated ranges that are read at once."""

IoctlHandler = Callable[[SmbElement, IoctlRequest], Awaitable[SmbAnswer]]


async def ioctl(element: SmbElement) -> SmbAnswer:
    request = wire.read_ioctl(element.message, element.connection.io_bytes_max)
    if request.code not in _WITHOUT_FILE:
        element.find_open(request.file_id)
    handler = _HANDLERS.get(request.code)
    if handler is None:
        raise SmbError(_REFUSED.get(request.code, statuses.STATUS_INVALID_DEVICE_REQUEST))
    return await handler(element, request)


def _answer(request: IoctlRequest, data: bytes, status: int = 0) -> SmbAnswer:
    return SmbAnswer(wire.write_ioctl_answer(request, data), status)


def _file(element: SmbElement, request: IoctlRequest) -> Handle:
    target = element.find_open(request.file_id).target
    if not isinstance(target, FileTarget):
        raise SmbError(statuses.STATUS_INVALID_DEVICE_REQUEST)
    return target.handle


async def _validate_negotiate(element: SmbElement, request: IoctlRequest) -> SmbAnswer:
    """Compare the client's NEGOTIATE with the one that arrived. A difference means that the
    messages were tampered with.

    Raises: CloseConnection for a difference, and for 3.1.1, whose keys depend on the messages.
    """
    agreed = element.connection.negotiated
    if agreed.dialect >= _DIALECT_311:
        raise CloseConnection("3.1.1 does not validate what was negotiated")
    try:
        offer = wire.read_validate_negotiate(request.data)
    except MalformedMessage as error:
        raise CloseConnection("no validation of what was negotiated") from error
    if (
        offer.capabilities != agreed.client_capabilities
        or offer.guid != agreed.client_guid
        or offer.security_mode != agreed.client_security_mode
        or offer.dialects != agreed.dialects
        or request.output_bytes_max < wire.VALIDATE_ANSWER_BYTES
    ):
        raise CloseConnection("what was negotiated is not what the client has sent")
    made = wire.write_validate_answer(
        agreed.capabilities, agreed.server_guid, agreed.security_mode, agreed.dialect
    )
    return _answer(request, made)


async def _transceive(element: SmbElement, request: IoctlRequest) -> SmbAnswer:
    target = element.find_open(request.file_id).target
    if not isinstance(target, PipeTarget):
        raise SmbError(statuses.STATUS_INVALID_DEVICE_REQUEST)
    return await pipes.transceive(element, target, request)


async def _zero_data(element: SmbElement, request: IoctlRequest) -> SmbAnswer:
    handle = _file(element, request)
    span = wire.read_zero_data(request.data)
    await transfers.zero_data(element.services, handle, span.first, span.second, element)
    return _answer(request, b"")


async def _allocated_ranges(element: SmbElement, request: IoctlRequest) -> SmbAnswer:
    handle = _file(element, request)
    span = wire.read_allocated_ranges(request.data)
    ranges, is_all = await transfers.allocated_ranges(
        element.services, handle, span.first, span.second, _RANGES_MAX
    )
    status, data = wire.write_allocated_ranges(ranges, request.output_bytes_max)
    if not is_all:
        # Else the client would take the rest of the file for holes.
        status = statuses.STATUS_BUFFER_OVERFLOW
    return _answer(request, data, status)


async def _reparse_point(element: SmbElement, request: IoctlRequest) -> SmbAnswer:
    _file(element, request)
    raise SmbError(statuses.STATUS_NOT_A_REPARSE_POINT)


async def _object_id(element: SmbElement, request: IoctlRequest) -> SmbAnswer:
    """Answer with an id that a file keeps as long as it exists. Its birth volume and birth id are
    the present ones."""
    handle = _file(element, request)
    if request.output_bytes_max < wire.OBJECT_ID_BYTES:
        raise SmbError(STATUS_INVALID_PARAMETER)
    return _answer(request, wire.write_object_id(handle.access.generation, handle.node_id))


async def _snapshots(element: SmbElement, request: IoctlRequest) -> SmbAnswer:
    """Answer with the previous versions of a share. All opens of the share have the same."""
    handle = _file(element, request)
    wire.check_snapshot_room(request.output_bytes_max)
    tokens = await snapshots.tokens(element.services, handle.access)
    return _answer(request, wire.write_snapshots(tokens, request.output_bytes_max))


# Codes whose FileId is all ones or unused.
_WITHOUT_FILE: Final = frozenset(
    (
        Fsctl.VALIDATE_NEGOTIATE_INFO,
        Fsctl.DFS_GET_REFERRALS,
        Fsctl.DFS_GET_REFERRALS_EX,
        Fsctl.QUERY_NETWORK_INTERFACE_INFO,
        Fsctl.PIPE_WAIT,
    )
)
_HANDLERS: Final[Mapping[int, IoctlHandler]] = {
    Fsctl.VALIDATE_NEGOTIATE_INFO: _validate_negotiate,
    Fsctl.PIPE_TRANSCEIVE: _transceive,
    Fsctl.SET_ZERO_DATA: _zero_data,
    Fsctl.QUERY_ALLOCATED_RANGES: _allocated_ranges,
    Fsctl.GET_REPARSE_POINT: _reparse_point,
    Fsctl.CREATE_OR_GET_OBJECT_ID: _object_id,
    Fsctl.SRV_ENUMERATE_SNAPSHOTS: _snapshots,
    Fsctl.SRV_REQUEST_RESUME_KEY: copying.request_resume_key,
    Fsctl.SRV_COPYCHUNK: copying.copy_chunks,
    Fsctl.SRV_COPYCHUNK_WRITE: copying.copy_chunks,
}
# smb.md 2.7. Codes that have no row are answered INVALID_DEVICE_REQUEST, as Windows answers codes
# that its file system does not know.
_REFUSED: Final[Mapping[int, int]] = {
    Fsctl.DFS_GET_REFERRALS: statuses.STATUS_FS_DRIVER_REQUIRED,
    Fsctl.DFS_GET_REFERRALS_EX: statuses.STATUS_FS_DRIVER_REQUIRED,
    Fsctl.LMR_REQUEST_RESILIENCY: statuses.STATUS_NOT_SUPPORTED,
    Fsctl.SRV_READ_HASH: statuses.STATUS_NOT_SUPPORTED,
    Fsctl.PIPE_WAIT: statuses.STATUS_NOT_SUPPORTED,
    Fsctl.PIPE_PEEK: statuses.STATUS_NOT_SUPPORTED,
}
