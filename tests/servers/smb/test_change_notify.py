"""CHANGE_NOTIFY: the notices of a client that watches a directory."""

from __future__ import annotations

import asyncio
import struct

from strongroom.servers.smb.state.declarations import SmbAnswer
from strongroom.wire.smb import statuses
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.change_notify import ChangeNotifyRequest
from tests.servers.smb import client_codecs
from tests.servers.smb import command_calls as smb
from tests.servers.smb.command_calls import SmbCaller
from tests.services import container_calls as given
from tests.services import file_calls

FILE_NAMES = 0x1


async def asked(ann: SmbCaller, file_id: FileId, room: int = 4096) -> asyncio.Task[SmbAnswer]:
    """A request, once it was answered PENDING."""
    ann.waits.clear()
    body = client_codecs.write_change_notify(
        ChangeNotifyRequest(file_id, room, FILE_NAMES, watches_tree=True)
    )
    task = asyncio.ensure_future(ann.send(Command.CHANGE_NOTIFY, body))
    async with asyncio.timeout(60):
        await ann.waits.wait()
    return task


def entries(answer: SmbAnswer) -> list[tuple[int, str]]:
    data, found = bytes(client_codecs.read_buffer_answer(smb.message_of(answer))), []
    while data:
        after, action, length = struct.unpack_from("<III", data)
        found.append((action, data[12 : 12 + length].decode("utf-16-le")))
        data = data[after:] if after else b""
    return found


def test_changes_are_sent_with_paths_below_the_directory() -> None:
    async def scenario() -> None:
        ann = await smb.caller(await file_calls.services())
        await ann.close(await ann.mkdir("d"))
        folder = (await ann.open("d")).file_id
        waiting = await asked(ann, folder)
        await file_calls.create(ann.on, "d/über")
        assert entries(await waiting) == [(1, "über")]
        await ann.close(await ann.mkdir("d\\e"))
        await ann.close(await ann.create("d\\e\\f"))
        await file_calls.delete(ann.on, "d/über")
        assert entries(await (await asked(ann, folder))) == [(1, "e\\f"), (2, "über")]
        waiting = await asked(ann, folder, room=13)
        await file_calls.create(ann.on, "d/g")
        answer = await waiting
        assert answer.status == statuses.STATUS_NOTIFY_ENUM_DIR and entries(answer) == []
        waiting = await asked(ann, folder)
        await ann.close(folder)
        assert (await waiting).status == statuses.STATUS_NOTIFY_CLEANUP

    given.run(scenario)
