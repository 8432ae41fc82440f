"""SMB commands as a client sends them, and a way to run them by handlers without a socket.

A client with a socket is in sockets.py.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, Protocol

from strongroom.errors.core import StorageError
from strongroom.semantics.file.accesses import Disposition
from strongroom.servers.smb.commands import table
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import (
    Needs,
    Negotiated,
    SmbAnswer,
    SmbElement,
)
from strongroom.servers.smb.state.sessions import SmbSession, TreeConnect
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import opening
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import FILE_ID, HEADER_BYTES, FileId, Header, write_header
from strongroom.wire.smb.information import file_information as info
from strongroom.wire.smb.refusals import SmbRefusal
from strongroom.wire.smb.requests import (
    ioctl,
    lock,
    oplock_break,
    query_directory,
    query_info,
    transfers,
)
from strongroom.wire.smb.requests.create import CreateAnswer, CreateRequest
from strongroom.wire.smb.structures import MalformedMessage
from tests.servers.smb import client_codecs
from tests.services import container_calls as given
from tests.services import file_calls

RULES = table.FILE_COMMANDS
IO_BYTES_MAX = 1 << 20
FULL = 0x1F01FF
STATUS_INVALID_PARAMETER = 0xC000000D


class Connection:
    """A connection that records the notices sent to it."""

    def __init__(self, services: Services, guid: bytes) -> None:
        self.services = services
        self.negotiated = Negotiated(
            dialect=0x0311,
            client_guid=guid,
            client_capabilities=0,
            client_security_mode=1,
            dialects=(0x0311,),
            server_guid=b"s" * 16,
            capabilities=6,
            security_mode=1,
            cipher=2,
            signing=2,
        )
        self.peer = "127.0.0.1:50000"
        self.is_alive = True
        self.io_bytes_max = IO_BYTES_MAX
        self.breaks: list[tuple[bytes, bool]] = []

    def send_break(self, session: SmbSession, body: bytes, *, of_lease: bool) -> None:
        self.breaks.append((body, of_lease))


class _Handlers:
    """A session with one tree, whose commands are run by their handlers."""

    def __init__(self, services: Services, name: str, access: Any) -> None:
        self.on = services
        self.connection = Connection(services, name.encode().ljust(16, b"-"))
        ids = itertools.count(1)
        self.session = SmbSession(77, lambda: next(ids))
        self.session.account = given.ACCOUNT
        self.tree = self.session.add_tree("share", access)
        self.interims = 0
        self.waits = asyncio.Event()

    def element(self, command: Command, body: bytes, tree: TreeConnect | None = None) -> SmbElement:
        """Return an element as the connection passes it to a handler, after its checks."""
        header = Header(command=command, session_id=77, tree_id=self.tree.id)
        message = memoryview(write_header(header) + body)
        element = SmbElement(
            header, message, self.connection, is_encrypted=True, interim=self._interim
        )
        element.session, element.tree = self.session, tree or self.tree
        rule = RULES.get(command)
        if rule is not None and rule.needs is Needs.OPEN:
            assert rule.file_id_offset is not None
            assert len(body) >= rule.request_size & ~1
            file_id = FILE_ID.read(message, HEADER_BYTES + rule.file_id_offset)
            element.open = self.session.find_open(file_id)
        return element

    def _interim(self, element: SmbElement) -> None:
        self.interims += 1
        self.waits.set()

    async def send(self, command: Command, body: bytes) -> SmbAnswer:
        return await RULES[command].handler(self.element(command, body))


class SmbCalls(Protocol):
    """A client's commands, one per method.

    All raise SmbError, or the errors of handlers if there is no connection.
    """

    async def send(self, command: Command, body: bytes) -> SmbAnswer: ...

    async def open(
        self, name: str, disposition: int = Disposition.OPEN, chain: bytes = b"", **more: Any
    ) -> CreateAnswer:
        request = CreateRequest(
            access=more.pop("access", FULL),
            share=more.pop("share", 7),
            disposition=disposition,
            name=name,
            **more,
        )
        answer = await self.send(Command.CREATE, client_codecs.write_create(request, chain))
        return client_codecs.read_create_answer(message_of(answer))

    async def create(self, name: str, data: bytes = b"", **more: Any) -> FileId:
        made = await self.open(name, Disposition.CREATE, **more)
        if data:
            await self.write(made.file_id, 0, data)
        return made.file_id

    async def mkdir(self, name: str) -> FileId:
        return await self.create(name, options=1)

    async def close(self, file_id: FileId, *, wants_attributes: bool = False) -> Any:
        body = client_codecs.write_close(transfers.CloseRequest(file_id, wants_attributes))
        return client_codecs.read_close_answer(message_of(await self.send(Command.CLOSE, body)))

    async def write(self, file_id: FileId, offset: int, data: bytes) -> int:
        request = transfers.WriteRequest(file_id, offset, memoryview(data), False, False)
        answer = await self.send(Command.WRITE, client_codecs.write_write(request))
        return client_codecs.read_write_answer(message_of(answer))

    async def read(self, file_id: FileId, offset: int, length: int, minimum: int = 0) -> bytes:
        request = transfers.ReadRequest(file_id, offset, length, minimum, False)
        answer = await self.send(Command.READ, client_codecs.write_read(request))
        return bytes(client_codecs.read_read_answer(message_of(answer)))

    async def names(self, file_id: FileId, pattern: str = "*", **more: Any) -> list[str]:
        """Return the names of one answer, in the information class that has only names."""
        request = query_directory.QueryDirectoryRequest(
            12, more.get("flags", 0), file_id, pattern, more.get("room", 65536)
        )
        body = client_codecs.write_query_directory(request)
        data = client_codecs.read_buffer_answer(
            message_of(await self.send(Command.QUERY_DIRECTORY, body))
        )
        found, at = [], 0
        while True:
            length = int.from_bytes(data[at + 8 : at + 12], "little")
            found.append(bytes(data[at + 12 : at + 12 + length]).decode("utf-16-le"))
            following = int.from_bytes(data[at : at + 4], "little")
            if not following:
                return found
            at += following

    async def query(
        self, file_id: FileId, info_type: int, kind: int, room: int = 65536, additional: int = 0
    ) -> tuple[int, bytes]:
        request = query_info.QueryInfoRequest(info_type, kind, file_id, room, additional)
        answer = await self.send(Command.QUERY_INFO, client_codecs.write_query_info(request))
        return answer.status, bytes(client_codecs.read_buffer_answer(message_of(answer)))

    async def change(
        self, file_id: FileId, kind: int, data: bytes, info_type: int = 1, additional: int = 0
    ) -> None:
        request = query_info.SetInfoRequest(info_type, kind, file_id, memoryview(data), additional)
        await self.send(Command.SET_INFO, client_codecs.write_set_info(request))

    async def rename(self, file_id: FileId, path: str, *, replaces: bool = False) -> None:
        await self.change(
            file_id, 10, client_codecs.write_rename(info.RenameChange(path, replaces))
        )

    async def dispose(self, file_id: FileId, *, deletes: bool = True) -> None:
        await self.change(file_id, 13, bytes((deletes,)))

    async def control(
        self, code: int, file_id: FileId, data: bytes = b"", room: int = 4096
    ) -> bytes:
        request = ioctl.IoctlRequest(code, file_id, memoryview(data), room)
        answer = await self.send(Command.IOCTL, client_codecs.write_ioctl(request))
        return bytes(client_codecs.read_ioctl_answer(message_of(answer)))

    async def lock(self, file_id: FileId, *elements: tuple[int, int, int]) -> None:
        ranges = tuple(lock.LockElement(*one) for one in elements)
        await self.send(Command.LOCK, client_codecs.write_lock(lock.LockRequest(file_id, ranges)))

    async def acknowledge(self, file_id: FileId, level: int) -> None:
        body = oplock_break.write_oplock_break(oplock_break.OplockBreak(file_id, level))
        await self.send(Command.OPLOCK_BREAK, body)


class SmbCaller(_Handlers, SmbCalls):
    """A client whose commands are run by their handlers."""


def message_of(answer: SmbAnswer) -> memoryview:
    """Return an answer after a header."""
    body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    return memoryview(bytes(HEADER_BYTES) + body)


async def caller(on: Services, name: str = "ann") -> SmbCaller:
    """Return a session that has connected to the share."""
    access = await opening.connect_share(on, given.ACCOUNT, file_calls.SHARE)
    return SmbCaller(on, name, access)


async def status(outcome: Any) -> int:
    """Return the NTSTATUS of a refusal; 0 = success."""
    try:
        await asyncio.wait_for(outcome, 60)
    except (SmbError, SmbRefusal) as refused:
        return refused.status
    except MalformedMessage:
        return STATUS_INVALID_PARAMETER
    except StorageError as error:
        if error.row.ntstatus is None:
            raise
        return error.row.ntstatus
    return 0
