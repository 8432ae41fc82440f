"""CLOSE, FLUSH, READ and WRITE.

Lives here: from the request to the services and back. Must not live here: refusals that depend on
the file (services/file/handles). Sources: [MS-SMB2] sections 3.3.5.10 to 3.3.5.13; smb.md 2.5.
"""

from __future__ import annotations

from strongroom.servers.smb.commands import pipes
from strongroom.servers.smb.commands.nodes import information_of
from strongroom.servers.smb.commands.targets import (
    FileTarget,
    PipeTarget,
    file_of,
    handle_of,
    open_of,
    owner_of,
)
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.services.file.handles import closing
from strongroom.services.file.handles import transfers as services_transfers
from strongroom.wire.smb import statuses
from strongroom.wire.smb.information.file_information import network_open
from strongroom.wire.smb.requests import transfers as wire


async def close(element: SmbElement) -> SmbAnswer:
    """The FileId is invalid from here on."""
    request = wire.read_close(element.message)
    gone = open_of(element)
    if not element.session.remove_open(gone):
        raise SmbError(statuses.STATUS_FILE_CLOSED)
    if isinstance(gone.target, PipeTarget):
        gone.target.close()
        return SmbAnswer(wire.write_close_answer(None), file_id=gone.file_id)
    assert isinstance(gone.target, FileTarget)
    handle = gone.target.handle
    owner_of(element).closed(handle)
    info = await closing.close(element.services, handle, wants_attributes=request.wants_attributes)
    node = None if info is None else network_open(information_of(info))
    return SmbAnswer(wire.write_close_answer(node), file_id=gone.file_id)


async def flush(element: SmbElement) -> SmbAnswer:
    """A pipe has nothing to flush."""
    wire.read_flush(element.message)
    if not isinstance(open_of(element).target, PipeTarget):
        await services_transfers.flush(element.services, handle_of(element), element)
    return SmbAnswer(wire.FLUSH_ANSWER)


async def read(element: SmbElement) -> SmbAnswer:
    request = wire.read_read(element.message, element.connection.io_bytes_max)
    target = open_of(element).target
    if isinstance(target, PipeTarget):
        return await pipes.read_pipe(element, target, request)
    file = file_of(element)
    pieces = await services_transfers.read(
        element.services, file.handle, request.offset, request.length, element
    )
    length = sum(map(len, pieces))
    file.handle.position = request.offset + length
    if length < request.minimum:
        raise SmbError(statuses.STATUS_END_OF_FILE)
    return SmbAnswer((wire.write_read_answer(length), *pieces))


async def write(element: SmbElement) -> SmbAnswer:
    """It is durable when it is answered, whatever its flags are."""
    request = wire.read_write(element.message, element.connection.io_bytes_max)
    target = open_of(element).target
    if isinstance(target, PipeTarget):
        await pipes.write_pipe(element, target, request.data)
    else:
        await services_transfers.write(
            element.services, handle_of(element), request.offset, request.data, element
        )
    return SmbAnswer(wire.write_write_answer(len(request.data)))
