"""Clients that try to exhaust the server: slow ones, greedy ones, and ones that disconnect."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import Any

import pytest

from strongroom.semantics.file.durability import DisconnectReason
from strongroom.servers.smb.commands import targets
from strongroom.servers.smb.commands.table import FILE_COMMANDS
from strongroom.servers.smb.state.declarations import CommandTable, SmbAnswer, SmbElement
from strongroom.servers.smb.state.sessions import SharedLimit
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.listener import SmbListener
from strongroom.testing.ports import HOST, free_port
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.framing import prefix
from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.statuses import STATUS_INSUFFICIENT_RESOURCES
from tests.servers.smb import command_calls as smb
from tests.servers.smb.client import SHARE, Client, Closed, connected, listener
from tests.servers.smb.commands import TestCommands, create, file_id_of, transfer
from tests.servers.smb.messages import PLAIN, tree_connect_body
from tests.servers.smb.test_conversations import run
from tests.servers.smb.test_pipe_commands import run as run_with_pipes
from tests.services.service_engine import settle
from tests.wire.smb.test_pipe import bind

PIECE_BYTES = 256 * 1024
CHARGE = 4


class GreedyReads:
    """READ waits until the test lets it go, and then answers as much as it is asked for.

    Attributes:
        begun: how many have been begun.
    """

    def __init__(self) -> None:
        self.begun = 0
        self.release = asyncio.Event()
        self._commands = TestCommands()

    def table(self) -> CommandTable:
        rules = dict(self._commands.table())
        rules[Command.READ] = replace(
            rules[Command.READ], handler=self._read, has_large_answer=True
        )
        return rules

    async def _read(self, element: SmbElement) -> SmbAnswer:
        self.begun += 1
        await self.release.wait()
        return SmbAnswer((b"\x11\0\0\0", memoryview(bytes(PIECE_BYTES))))


async def with_reads(reads: GreedyReads, **settings: Any) -> tuple[SmbListener, Client, FileId]:
    """A client with an open and credits enough for many reads."""
    server = listener(reads.table(), **settings)
    client = await connected(server)
    file_id = file_id_of((await client.call(Command.CREATE, create())).body)
    assert (await client.call(Command.ECHO, PLAIN, credits=4096)).status == 0
    return server, client, file_id


def ask(client: Client, file_id: FileId, count: int) -> None:
    for _ in range(count):
        body = transfer(file_id, PIECE_BYTES)
        client.send(client.message(Command.READ, body, credit_charge=CHARGE, credits=CHARGE))


def test_answers_that_requests_may_have_count_as_memory() -> None:
    """Small requests for large answers, all at once."""

    async def conversation() -> None:
        reads = GreedyReads()
        server, client, file_id = await with_reads(reads, busy_bytes_max=4 * PIECE_BYTES)
        ask(client, file_id, 64)
        await settle()
        assert reads.begun <= 6
        assert not client.transport.reads
        reads.release.set()
        for _ in range(64):
            assert (await client.reply()).status == 0
        await settle()
        assert reads.begun == 64
        assert server._busy_bytes == 0
        assert client.transport.reads

    run(conversation())


def test_nothing_is_begun_for_who_does_not_read_the_answers() -> None:
    async def conversation() -> None:
        reads = GreedyReads()
        reads.release.set()
        server, client, file_id = await with_reads(reads)
        client.protocol.pause_writing()
        ask(client, file_id, 32)
        await settle()
        assert reads.begun == 0
        client.protocol.resume_writing()
        for _ in range(32):
            assert (await client.reply()).status == 0
        assert server._busy_bytes == 0

    run(conversation())


def test_one_request_is_begun_for_each_client_whatever_the_others_hold() -> None:
    async def conversation() -> None:
        reads = GreedyReads()
        server, client, file_id = await with_reads(reads, buffered_bytes_max=2 * PIECE_BYTES)
        ask(client, file_id, 8)
        await settle()
        greedy = reads.begun
        assert greedy < 8
        other = await connected(server)
        assert (await other.call(Command.ECHO, PLAIN)).status == 0
        reads.release.set()
        for _ in range(8):
            assert (await client.reply()).status == 0
        assert server._busy_bytes == 0

    run(conversation())


def test_requests_that_wait_are_forgotten_with_their_connection() -> None:
    async def conversation() -> None:
        reads = GreedyReads()
        server, client, file_id = await with_reads(reads, busy_bytes_max=2 * PIECE_BYTES)
        ask(client, file_id, 16)
        await settle()
        begun = reads.begun
        client.transport.close()
        reads.release.set()
        await client.closed()
        assert (reads.begun, server._busy_bytes, server.connection_count) == (begun, 0, 0)

    run(conversation())


def test_a_frame_that_asks_for_more_than_a_connection_may_have_is_its_end() -> None:
    async def conversation() -> None:
        reads = GreedyReads()
        _, client, file_id = await with_reads(reads, busy_bytes_max=2 * PIECE_BYTES)
        body = transfer(file_id, PIECE_BYTES)
        client.send(*(client.message(Command.READ, body, credit_charge=CHARGE) for _ in range(4)))
        with pytest.raises(Closed):
            await client.reply()
        assert reads.begun == 0

    run(conversation())


def test_each_command_with_a_large_answer_says_so() -> None:
    large = {rule.command for rule in FILE_COMMANDS.values() if rule.has_large_answer}
    expected = {Command.READ, Command.IOCTL, Command.QUERY_DIRECTORY, Command.QUERY_INFO}
    assert large == expected


def test_a_frame_that_comes_byte_by_byte_is_given_up() -> None:
    async def conversation() -> None:
        server = listener()
        client, quiet = await connected(server), await connected(server)
        now = asyncio.get_running_loop().time()
        client.send_raw(prefix(1000) + b"\xfdSMB")
        for second in range(40, 400, 40):
            # A byte has come just now.
            client.protocol.pacing.progress_at = now + second
            server.sweep(now + second)
            if client.transport.is_closing():
                break
        else:
            raise AssertionError("it may take for ever")
        settings = SmbSettings()
        assert second > settings.stalled_s + settings.frames_bytes_max / (16 * 1024) - 40
        await client.closed()
        server.sweep(now + 4000)
        assert not quiet.transport.is_closing(), "who sends nothing is not slow"

    run(conversation())


def test_frames_that_come_whole_are_never_slow() -> None:
    async def conversation() -> None:
        server = listener()
        client = await connected(server)
        client.protocol.pacing.frame_began_at -= 10_000
        assert (await client.call(Command.ECHO, PLAIN)).status == 0
        assert client.cipher is not None
        message = client.message(Command.ECHO, PLAIN)
        whole = b"".join(client.cipher.seal(client.cipher.next_nonce(), [message]))
        frame = prefix(len(whole)) + whole
        client.send_raw(frame[:2])
        client.protocol.pacing.frame_began_at -= 10_000
        # The end of one frame comes with the beginning of the next.
        client.send_raw(frame[2:] + prefix(1000) + b"\xfdSMB")
        server.sweep(asyncio.get_running_loop().time() + 50)
        assert not client.transport.is_closing()

    run(conversation())


def test_a_client_that_vanished_is_noticed_by_the_kernel() -> None:
    """The client sends no FIN, so its opens and locks would otherwise stay for ever."""

    async def conversation() -> None:
        server = listener()
        port = await server.listen(HOST, free_port())
        _, writer = await asyncio.open_connection(HOST, port)
        for _ in range(1_000_000):
            if server.connection_count:
                break
            await asyncio.sleep(0)
        (connection,) = server._connections
        assert connection._transport is not None
        found = connection._transport.get_extra_info("socket")
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        writer.close()
        await server.close()

    run(conversation())


def test_tree_connects_of_all_sessions_are_bounded() -> None:
    async def conversation() -> None:
        server = listener()
        server.shared.trees = SharedLimit(4)
        first, second = await connected(server), await connected(server)
        body = tree_connect_body(rf"\\server\{SHARE}")
        for client, status in ((first, 0), (second, 0), (first, STATUS_INSUFFICIENT_RESOURCES)):
            assert (await client.call(Command.TREE_CONNECT, body)).status == status
        assert (await second.call(Command.TREE_DISCONNECT, PLAIN)).status == 0
        assert (await first.call(Command.TREE_CONNECT, body)).status == 0
        for client in (first, second):
            client.transport.close()
            await client.closed()
        assert server.shared.trees.remaining == 4

    run(conversation())


def test_pipes_of_all_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_ALL_PIPES_MAX", 2)

    async def scenario(ann: smb.SmbCaller) -> None:
        pipes = [(await ann.open("srvsvc")).file_id for _ in range(2)]
        assert await smb.status(ann.open("srvsvc")) == STATUS_INSUFFICIENT_RESOURCES
        await ann.close(pipes[0])
        await ann.open("wkssvc")
        await ann.session.end(DisconnectReason.LOGGED_OFF)
        assert ann.on.held.of(targets.PipeLimit).remaining == 2

    run_with_pipes(scenario)


def test_no_further_call_is_carried_out_while_results_wait() -> None:
    async def scenario(ann: smb.SmbCaller) -> None:
        pipe = (await ann.open("srvsvc")).file_id
        for _ in range(64):
            await ann.write(pipe, 0, bind())
        assert await smb.status(ann.write(pipe, 0, bind())) != 0

    run_with_pipes(scenario)
