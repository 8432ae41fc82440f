"""Pipes of IPC$: opening them, and calls through them by WRITE, READ and IOCTL.

Lives here: what the commands do with a pipe. Must not live here: the calls (wire/smb/rpc). Sources:
[MS-SMB2] sections 3.3.5.9, 3.3.5.12, 3.3.5.13 and 3.3.5.15.10; smb.md 2.3 and 2.7.
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.servers.smb.commands.targets import PipeLimit, PipeTarget
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.services.file.handles.volumes import share_names
from strongroom.wire.smb import statuses
from strongroom.wire.smb.information.file_information import (
    NetworkOpenInformation,
    NodeInformation,
)
from strongroom.wire.smb.requests.create import CreateAnswer, CreateRequest, write_create_answer
from strongroom.wire.smb.requests.ioctl import IoctlRequest, write_ioctl_answer
from strongroom.wire.smb.requests.transfers import ReadRequest, write_read_answer
from strongroom.wire.smb.rpc.calls import Inventory, ListedShare
from strongroom.wire.smb.rpc.interfaces import INTERFACES

_NORMAL: Final = 0x80
_OPENED: Final = 1
_PIPE_BUSY: Final = 0xC000_00AE
_SERVER_NAME: Final = "STRONGROOM"
_NODE: Final = NetworkOpenInformation(0, 0, 0, 0, allocation=0, size=0, attributes=_NORMAL)
PIPE_NODE: Final = NodeInformation(
    creation=0,
    last_access=0,
    last_write=0,
    change=0,
    allocation=4096,
    size=0,
    attributes=_NORMAL,
    file_id=0,
    is_directory=False,
)
"""The attributes and times of a pipe in answers to QUERY_INFO."""


def open_pipe(element: SmbElement, request: CreateRequest) -> SmbAnswer:
    """Open one of the pipes, whatever the case of its name.

    Raises: StorageError OBJECT_NAME_NOT_FOUND for any other name; SmbError INSUFFICIENT_RESOURCES.
    """
    name = request.name.removeprefix("\\").lower()
    if name not in INTERFACES:
        raise StorageError(errors.RESOURCE_NOT_FOUND)
    assert element.tree is not None
    limit = element.services.held.of(PipeLimit)
    limit.acquire()
    target = PipeTarget(name, limit)
    persistent = int.from_bytes(element.services.clock.random_bytes(8), "little")
    try:
        made = element.session.add_open(element.tree, target, persistent)
    except SmbError:
        target.close()
        raise
    answer = CreateAnswer(oplock_level=0, action=_OPENED, node=_NODE, file_id=made.file_id)
    return SmbAnswer(write_create_answer(answer), file_id=made.file_id)


async def write_pipe(element: SmbElement, target: PipeTarget, data: memoryview) -> None:
    """Carry out the calls that these bytes complete."""
    account = element.session.account
    names = await share_names(element.services, account)
    shares = tuple(ListedShare(name) for name in names)
    if target.ended:
        raise SmbError(statuses.STATUS_PIPE_DISCONNECTED)
    try:
        target.pipe.write(data, Inventory(_SERVER_NAME, shares, account))
    finally:
        # Calls before bytes that were refused have results.
        target.written.set()


async def read_pipe(element: SmbElement, target: PipeTarget, request: ReadRequest) -> SmbAnswer:
    """Answer with the next bytes of a result. Wait for one if there is none."""
    while not target.pipe.unread_bytes:
        if target.ended:
            raise SmbError(statuses.STATUS_PIPE_DISCONNECTED)
        target.written.clear()
        await element.pending()
        await element.wait_or_cancel(target.written.wait())
    data, is_cut = target.pipe.read(request.length)
    status = statuses.STATUS_BUFFER_OVERFLOW if is_cut else statuses.STATUS_SUCCESS
    return SmbAnswer(write_read_answer(len(data)) + data, status)


async def transceive(element: SmbElement, target: PipeTarget, request: IoctlRequest) -> SmbAnswer:
    """Carry out FSCTL_PIPE_TRANSCEIVE: a call and its result in one. Raises: SmbError PIPE_BUSY."""
    if target.pipe.unread_bytes:
        raise SmbError(_PIPE_BUSY)
    await write_pipe(element, target, request.data)
    data, is_cut = target.pipe.read(request.output_bytes_max)
    status = statuses.STATUS_BUFFER_OVERFLOW if is_cut else statuses.STATUS_SUCCESS
    return SmbAnswer(write_ioctl_answer(request, data), status)
