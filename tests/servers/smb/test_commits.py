"""The commits of commands over SMB: one for each change, shared by requests in flight together.

The store lies on a simulated disk, which notes each sync of the log and what was answered by then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from strongroom.auth.accounts import Account
from strongroom.clock import ManualClock
from strongroom.engines.embedded.commit import writer_turns
from strongroom.operations.file import share
from strongroom.semantics.file.accesses import Disposition
from strongroom.servers.smb.commands.table import FILE_COMMANDS
from strongroom.servers.smb.state.declarations import SmbAnswer
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.listener import SmbListener
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.opening import connect_share
from strongroom.services.file.shares.shares import CreateShare
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.header import PLACEHOLDER, RELATED_OPERATIONS, FileId
from strongroom.wire.smb.information import file_information as info
from strongroom.wire.smb.information.file_information import FileClass
from strongroom.wire.smb.requests import query_info, transfers
from strongroom.wire.smb.requests.create import CreateRequest
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import store_on
from tests.servers.smb import client_codecs
from tests.servers.smb.client import KEY, Client, OneAccount
from tests.servers.smb.command_calls import FULL, SmbCalls
from tests.services import container_calls as given
from tests.services import file_calls

SMALL, LARGE = bytes(4096), bytes(70_000)
COUNT = 8
WRITTEN = 130_000_000_000_000_000


class NotedDisk(Disk):
    """A disk that notes its syncs.

    Attributes:
        caller: the client whose answers are counted.
        commits: for each sync of the log, how many answers it had been sent by then.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.caller: Caller | None = None
        self.commits: list[int] = []

    def synced(self, path: str) -> None:
        super().synced(path)
        if path.endswith("-wal") and self.caller is not None:
            self.commits.append(self.caller.answers)


class Caller(SmbCalls):
    """A client of all commands, in memory.

    Attributes:
        answers: how many frames the server has sent.
    """

    def __init__(self, server: SmbListener) -> None:
        self.client = Client(server)
        self.answers = 0
        self._write = self.client.transport.write
        self.client.transport.write = self._counted  # type: ignore[method-assign]

    def _counted(self, data: Any) -> None:
        self.answers += 1
        self._write(data)

    async def mount(self) -> None:
        await self.client.negotiate()
        assert not (await self.client.log_on(user=given.ACCOUNT)).status
        assert not (await self.client.connect(file_calls.SHARE)).status

    async def send(self, command: Command, body: bytes) -> SmbAnswer:
        self.begin(command, body)
        return await self.answer()

    def begin(self, command: Command, body: bytes) -> None:
        """Send a request without waiting for its answer."""
        self.client.send(self.client.message(command, body, credit_charge=2, credits=64))

    async def answer(self) -> SmbAnswer:
        """Return the next answer."""
        reply = await self.client.reply()
        assert not reply.status, hex(reply.status)
        return SmbAnswer(reply.body)


def run(tmp_path: Path, scenario: Callable[[Caller, NotedDisk], Awaitable[None]]) -> None:
    """Run a scenario with a mounted share on a disk."""

    async def started() -> None:
        disk = NotedDisk(tmp_path)
        async with store_on(disk) as store:
            on = Services(store, ManualClock())
            await file_calls.run(on, share.CREATE_SHARE, "", CreateShare())
            server = SmbListener(
                on,
                OneAccount(Account(given.ACCOUNT, (KEY,))),
                ManualClock(),
                SmbSettings(),
                connect_share=connect_share,
                commands=FILE_COMMANDS,
            )
            ann = disk.caller = Caller(server)
            await ann.mount()
            disk.commits.clear()
            await scenario(ann, disk)
            ann.client.transport.close()
            await ann.client.closed()

    given.run(started)


@pytest.fixture(autouse=True)
def long_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """No group ends early because the machine is slow."""
    monkeypatch.setattr(writer_turns, "GROUP_TIME_S", 60.0)


def create_body(name: str) -> bytes:
    request = CreateRequest(access=FULL, share=7, disposition=Disposition.CREATE, name=name)
    return client_codecs.write_create(request)


def write_body(file_id: FileId, offset: int = 0, data: bytes = SMALL) -> bytes:
    request = transfers.WriteRequest(file_id, offset, memoryview(data), False, False)
    return client_codecs.write_write(request)


def attributes_body(file_id: FileId) -> bytes:
    data = client_codecs.write_basic_change(info.BasicInformation(0, 0, WRITTEN, 0, 0x20))
    request = query_info.SetInfoRequest(1, FileClass.BASIC, file_id, memoryview(data))
    return client_codecs.write_set_info(request)


def close_body(file_id: FileId) -> bytes:
    return client_codecs.write_close(transfers.CloseRequest(file_id, False))


async def opened(ann: Caller, count: int) -> list[FileId]:
    return [await ann.create(f"file-{number}") for number in range(count)]


def test_each_change_is_one_commit_and_a_close_is_none(tmp_path: Path) -> None:
    async def scenario(ann: Caller, disk: NotedDisk) -> None:
        async def commits(work: Awaitable[Any]) -> int:
            before = len(disk.commits)
            await work
            return len(disk.commits) - before

        assert await commits(ann.create("a")) == 1
        file_id = (await ann.open("a")).file_id
        assert await commits(ann.write(file_id, 0, SMALL)) == 1
        assert await commits(ann.write(file_id, 0, LARGE)) == 1
        assert await commits(ann.send(Command.SET_INFO, attributes_body(file_id))) == 1
        assert await commits(ann.change(file_id, FileClass.END_OF_FILE, bytes(8))) == 1
        assert await commits(ann.change(file_id, FileClass.ALLOCATION, bytes(8))) == 0
        assert await commits(ann.send(Command.FLUSH, client_codecs.write_flush(file_id))) == 0
        assert await commits(ann.close(file_id, wants_attributes=True)) == 0
        assert await commits(ann.open("a")) == 0
        assert await commits(ann.open("a", Disposition.OVERWRITE_IF)) == 1

    run(tmp_path, scenario)


def test_the_last_write_time_that_was_set_outlives_the_close(tmp_path: Path) -> None:
    async def scenario(ann: Caller, disk: NotedDisk) -> None:
        file_id = await ann.create("a")
        await ann.send(Command.SET_INFO, attributes_body(file_id))
        await ann.write(file_id, 0, SMALL)
        before = len(disk.commits)
        closed = await ann.close(file_id, wants_attributes=True)
        assert (closed.last_write, closed.size) == (WRITTEN, len(SMALL))
        assert len(disk.commits) == before

    run(tmp_path, scenario)


def test_a_close_that_deletes_the_file_is_one_commit(tmp_path: Path) -> None:
    async def scenario(ann: Caller, disk: NotedDisk) -> None:
        file_id = await ann.create("a")
        await ann.dispose(file_id)
        before = len(disk.commits)
        await ann.close(file_id)
        assert len(disk.commits) == before + 1

    run(tmp_path, scenario)


@pytest.mark.parametrize("command", [Command.CREATE, Command.WRITE, Command.SET_INFO])
def test_requests_in_flight_together_share_a_commit(tmp_path: Path, command: Command) -> None:
    async def scenario(ann: Caller, disk: NotedDisk) -> None:
        if command == Command.CREATE:
            bodies = [create_body(f"file-{number}") for number in range(COUNT)]
        else:
            body = write_body if command == Command.WRITE else attributes_body
            bodies = [body(file_id) for file_id in await opened(ann, COUNT)]
        disk.commits.clear()
        for one in bodies:
            ann.begin(command, one)
        for _ in bodies:
            await ann.answer()
        assert len(disk.commits) == 1

    run(tmp_path, scenario)


def test_writes_in_flight_to_one_file_share_a_commit(tmp_path: Path) -> None:
    async def scenario(ann: Caller, disk: NotedDisk) -> None:
        file_id = await ann.create("a")
        parts = [bytes([number]) * len(SMALL) for number in range(COUNT)]
        disk.commits.clear()
        for number, part in enumerate(parts):
            ann.begin(Command.WRITE, write_body(file_id, number * len(SMALL), part))
        for _ in parts:
            await ann.answer()
        assert len(disk.commits) == 1
        assert await ann.read(file_id, 0, COUNT * len(SMALL)) == b"".join(parts)

    run(tmp_path, scenario)


def test_no_change_is_answered_before_its_commit_is_synced(tmp_path: Path) -> None:
    async def scenario(ann: Caller, disk: NotedDisk) -> None:
        answered = ann.answers
        file_id = await ann.create("a")
        await ann.write(file_id, 0, SMALL)
        await ann.send(Command.SET_INFO, attributes_body(file_id))
        await ann.change(file_id, FileClass.END_OF_FILE, bytes(8))
        await ann.dispose(file_id)
        await ann.close(file_id)
        # The disposition lies in memory until the close.
        assert disk.commits == [answered + number for number in (0, 1, 2, 3, 5)]

    run(tmp_path, scenario)


def test_a_chain_is_answered_when_all_of_its_changes_are_synced(tmp_path: Path) -> None:
    async def scenario(ann: Caller, disk: NotedDisk) -> None:
        answered = ann.answers
        steps = (
            (Command.CREATE, create_body("a")),
            (Command.WRITE, write_body(PLACEHOLDER)),
            (Command.SET_INFO, attributes_body(PLACEHOLDER)),
            (Command.CLOSE, close_body(PLACEHOLDER)),
        )
        ann.client.send(
            *(
                ann.client.message(command, body, flags=RELATED_OPERATIONS if number else 0)
                for number, (command, body) in enumerate(steps)
            )
        )
        assert [one.status for one in await ann.client.replies()] == [0, 0, 0, 0]
        assert disk.commits == [answered] * 3

    run(tmp_path, scenario)
