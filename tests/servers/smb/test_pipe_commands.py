"""Pipes of IPC$: opened by name, called by WRITE and READ or by one IOCTL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from strongroom.errors import file as file_errors
from strongroom.operations.file import share
from strongroom.services.file.handles.volumes import share_names
from strongroom.services.file.shares.share_snapshots import SnapshotShare
from strongroom.services.file.shares.shares import CreateShare
from strongroom.wire.smb import statuses
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests import transfers
from tests.servers.smb import client_codecs
from tests.servers.smb import command_calls as smb
from tests.servers.smb.client import PATIENCE_S
from tests.servers.smb.command_calls import SmbCaller
from tests.services import container_calls as given
from tests.services import file_calls
from tests.wire.smb.test_pipe import bind, call, enum_stub

TRANSCEIVE = 0x11C017


def run(scenario: Callable[[SmbCaller], Awaitable[None]]) -> None:
    async def started() -> None:
        ann = await smb.caller(await file_calls.services())
        ann.tree = ann.session.add_tree("IPC$", None)
        await scenario(ann)

    given.run(started)


async def _read(ann: SmbCaller, pipe: FileId, length: int) -> tuple[int, bytes]:
    request = transfers.ReadRequest(pipe, 0, length, 0, False)
    answer = await ann.send(Command.READ, client_codecs.write_read(request))
    return answer.status, bytes(client_codecs.read_read_answer(smb.message_of(answer)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("srvsvc", 0), ("WKSSVC", 0), ("\\srvsvc", 0),
        ("", file_errors.STATUS_OBJECT_NAME_NOT_FOUND),
        ("samr", file_errors.STATUS_OBJECT_NAME_NOT_FOUND),
        ("..\\srvsvc", file_errors.STATUS_OBJECT_NAME_NOT_FOUND),
    ],
)  # fmt: skip
def test_pipes_are_opened_by_their_names_only(name: str, expected: int) -> None:
    async def scenario(ann: SmbCaller) -> None:
        assert await smb.status(ann.open(name)) == expected

    run(scenario)


def test_a_call_lists_the_shares_of_the_account() -> None:
    async def scenario(ann: SmbCaller) -> None:
        pipe = (await ann.open("srvsvc")).file_id
        assert await ann.write(pipe, 0, bind()) == len(bind())
        status, answer = await _read(ann, pipe, 4096)
        assert (status, answer[2]) == (0, 12)
        await ann.write(pipe, 0, call(15, enum_stub(1)))
        status, head = await _read(ann, pipe, 30)
        assert (status, len(head)) == (statuses.STATUS_BUFFER_OVERFLOW, 30)
        status, rest = await _read(ann, pipe, 4096)
        assert status == 0
        assert file_calls.SHARE.encode("utf-16-le") in head + rest
        await ann.close(pipe)
        assert await smb.status(_read(ann, pipe, 1)) == statuses.STATUS_FILE_CLOSED

    run(scenario)


def test_a_share_is_listed_once_whatever_lies_beside_it() -> None:
    async def scenario(ann: SmbCaller) -> None:
        await file_calls.run(ann.on, share.SNAPSHOT_SHARE, "", SnapshotShare())
        await file_calls.run(ann.on, share.SNAPSHOT_SHARE, "", SnapshotShare())
        await file_calls.run(ann.on, share.CREATE_SHARE, "", CreateShare(), share="other")
        assert await share_names(ann.on, given.ACCOUNT) == [file_calls.SHARE, "other"]

    run(scenario)


def test_one_control_code_calls_and_answers() -> None:
    async def scenario(ann: SmbCaller) -> None:
        pipe = (await ann.open("srvsvc")).file_id
        await ann.control(TRANSCEIVE, pipe, bind())
        answer = await ann.control(TRANSCEIVE, pipe, call(15, enum_stub(1)), room=30)
        assert len(answer) == 30
        busy = ann.control(TRANSCEIVE, pipe, call(15, enum_stub(1)))
        assert await smb.status(busy) == 0xC00000AE
        _, rest = await _read(ann, pipe, 4096)
        assert file_calls.SHARE.encode("utf-16-le") in answer + rest

    run(scenario)


def test_a_read_waits_for_a_result_or_for_the_end_of_the_pipe() -> None:
    async def scenario(ann: SmbCaller) -> None:
        pipe = (await ann.open("srvsvc")).file_id
        waiting = asyncio.ensure_future(_read(ann, pipe, 4096))
        await ann.waits.wait()
        await ann.write(pipe, 0, bind())
        assert (await waiting)[1][2] == 12
        ann.waits.clear()
        waiting = asyncio.ensure_future(_read(ann, pipe, 4096))
        await ann.waits.wait()
        await ann.close(pipe)
        assert await smb.status(waiting) == statuses.STATUS_PIPE_DISCONNECTED

    run(scenario)


def test_a_read_gets_the_result_of_a_call_before_bytes_that_are_refused() -> None:
    async def scenario(ann: SmbCaller) -> None:
        pipe = (await ann.open("srvsvc")).file_id
        waiting = asyncio.ensure_future(_read(ann, pipe, 4096))
        await ann.waits.wait()
        written = ann.write(pipe, 0, bind() + b"\xff" * 16)
        assert await smb.status(written) == file_errors.STATUS_INVALID_PARAMETER
        async with asyncio.timeout(PATIENCE_S):
            assert (await waiting)[1][2] == 12

    run(scenario)


def test_a_pipe_is_no_file() -> None:
    async def scenario(ann: SmbCaller) -> None:
        pipe = (await ann.open("srvsvc")).file_id
        device = statuses.STATUS_INVALID_DEVICE_REQUEST
        assert await smb.status(ann.names(pipe)) == device
        assert await smb.status(ann.lock(pipe, (0, 1, 0x11))) == device
        assert await smb.status(ann.control(0x140078, pipe)) == device
        assert await smb.status(ann.rename(pipe, "x")) == device
        assert await smb.status(ann.query(pipe, 2, 7)) == device
        assert (await ann.query(pipe, 1, 5))[0] == 0
        assert await smb.status(ann.write(pipe, 0, b"\xff" * 16)) == (
            file_errors.STATUS_INVALID_PARAMETER
        )

    run(scenario)
