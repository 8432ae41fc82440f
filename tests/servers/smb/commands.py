"""Commands for tests: opens that only record their events, and requests that wait.

They replace the commands on files in tests of the connection. CREATE opens, unless its body asks
for a failure or a wait. READ answers the requested number of bytes. CHANGE_NOTIFY waits until it is
cancelled or its open ends.
"""

from __future__ import annotations

import asyncio
import struct

from strongroom.errors.file import STATUS_ACCESS_DENIED
from strongroom.semantics.file.durability import DisconnectReason
from strongroom.servers.smb.refusals import CloseConnection, SmbError
from strongroom.servers.smb.state.declarations import (
    CommandRule,
    CommandTable,
    Needs,
    SmbAnswer,
    SmbElement,
)
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import FILE_ID, PLACEHOLDER, FileId
from strongroom.wire.smb.statuses import STATUS_BUFFER_OVERFLOW, STATUS_NOTIFY_CLEANUP

CREATE, FAIL, WAIT, CRASH, CUT = b"okay", b"fail", b"wait", b"crsh", b"cut!"


class Target:
    """The object of an open in the tests."""

    path = ("file",)

    def __init__(self) -> None:
        self.reasons: list[DisconnectReason] = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin_wait(self, reason: DisconnectReason) -> bool:
        self.reasons.append(reason)
        return False

    async def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


class TestCommands:
    """A table of commands, and the opens that they have created."""

    __test__ = False

    def __init__(self) -> None:
        self.targets: list[Target] = []
        self.handled: list[Command] = []
        self.release = asyncio.Event()
        self.waits = asyncio.Event()

    def table(self) -> CommandTable:
        rules = (
            CommandRule(Command.CREATE, 8, Needs.TREE, self._create),
            CommandRule(Command.CLOSE, 20, Needs.OPEN, self._close, 4, allowed_when_expired=True),
            CommandRule(Command.FLUSH, 20, Needs.OPEN, self._echo, 4),
            CommandRule(
                Command.READ, 24, Needs.OPEN, self._read, 4, payload=_length, is_large=True
            ),
            CommandRule(
                Command.WRITE,
                24,
                Needs.OPEN,
                self._echo,
                4,
                payload=_length,
                is_large=True,
                checks_channel_sequence=True,
            ),
            CommandRule(Command.CHANGE_NOTIFY, 20, Needs.OPEN, self._notify, 4),
            CommandRule(Command.QUERY_INFO, 20, Needs.OPEN, self._overflow, 4),
        )
        return {rule.command: rule for rule in rules}

    async def _create(self, element: SmbElement) -> SmbAnswer:
        self.handled.append(Command.CREATE)
        wish = bytes(element.body[4:8])
        if wish == FAIL:
            raise SmbError(STATUS_ACCESS_DENIED)
        if wish == CRASH:
            raise KeyError("a defect")
        if wish == CUT:
            raise CloseConnection("the client broke a rule")
        if wish == WAIT:
            await element.pending()
            await element.wait_or_cancel(self.release.wait())
        assert element.tree is not None
        target = Target()
        self.targets.append(target)
        made = element.session.add_open(element.tree, target, len(self.targets))
        body = struct.pack("<HH", 8, 0) + FILE_ID.write(made.file_id)
        return SmbAnswer(body, file_id=made.file_id)

    async def _close(self, element: SmbElement) -> SmbAnswer:
        self.handled.append(Command.CLOSE)
        assert element.open is not None
        element.session.remove_open(element.open)
        return SmbAnswer(b"\x3c\0\0\0", file_id=element.open.file_id)

    async def _echo(self, element: SmbElement) -> SmbAnswer:
        self.handled.append(Command(element.header.command))
        return SmbAnswer(b"\4\0\0\0")

    async def _read(self, element: SmbElement) -> SmbAnswer:
        self.handled.append(Command.READ)
        size = _length(element.body)
        return SmbAnswer((b"\x11\0\0\0", memoryview(bytes(size))))

    async def _overflow(self, element: SmbElement) -> SmbAnswer:
        return SmbAnswer(b"part", STATUS_BUFFER_OVERFLOW)

    async def _notify(self, element: SmbElement) -> SmbAnswer:
        self.handled.append(Command.CHANGE_NOTIFY)
        assert element.open is not None and isinstance(element.open.target, Target)
        await element.pending()
        self.waits.set()
        await element.wait_or_cancel(asyncio.shield(element.open.target.ended))
        raise SmbError(STATUS_NOTIFY_CLEANUP)


def _length(body: memoryview) -> int:
    return int.from_bytes(body[20:24], "little")


def create(wish: bytes = CREATE) -> bytes:
    """Return the body of a CREATE of these tests."""
    return struct.pack("<HH", 8, 0) + wish


def of_open(file_id: FileId = PLACEHOLDER) -> bytes:
    """Return the body of CLOSE, FLUSH, CHANGE_NOTIFY or QUERY_INFO."""
    return struct.pack("<HH", 20, 0) + FILE_ID.write(file_id)


def transfer(file_id: FileId, size: int) -> bytes:
    """Return the body of READ or WRITE."""
    return struct.pack("<HH", 24, 0) + FILE_ID.write(file_id) + struct.pack("<I", size)


def file_id_of(body: bytes) -> FileId:
    """Return the FileId in the answer of a CREATE."""
    return FILE_ID.read(body, 4)
