"""Changed frames of SMB, before and after authentication: each is answered, or ends its connection.

No handler raises an exception that is no answer of the protocol. All state of a connection is freed
when it ends. One million frames in `make proof`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import sys
from collections.abc import Sequence
from typing import cast

import pytest

from strongroom.auth.accounts import Account
from strongroom.clock import ManualClock
from strongroom.semantics.file.accesses import Disposition
from strongroom.servers.smb.commands.table import FILE_COMMANDS
from strongroom.servers.smb.security.encryption import SessionCipher
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.listener import SmbListener
from strongroom.services.file.handles.opening import connect_share
from strongroom.services.file.opens.opens import Opens
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.framing import prefix
from strongroom.wire.smb.header import ALL_ONES, FileId, Header, read_header, write_header
from strongroom.wire.smb.requests.create import CreateRequest
from strongroom.wire.smb.requests.oplock_break import LeaseBreakAck, write_lease_acknowledgment
from strongroom.wire.smb.structures import Piece
from strongroom.wire.smb.transform import TRANSFORM_BYTES, TransformHeader, write_transform
from tests.effort import scaled
from tests.fuzz.smb_frames import RECORDED, Changes, addressed, is_whole
from tests.servers.smb import client_codecs
from tests.servers.smb.client import KEY, Client, Closed, OneAccount, Reply
from tests.servers.smb.messages import (
    PLAIN,
    first_token,
    negotiate_body,
    negotiate_message,
    session_setup_body,
)
from tests.services import container_calls, file_calls

FRAMES = 1_000_000
_SHORT = 4_000
_BATCH = 25
_PER_CONNECTION = 1_000
# A server that has seen so many is replaced: what frames left behind makes each listing longer.
_PER_SERVER = 2_000
_LEASE_NOTICE_BYTES = 44
_PROGRESS = 50_000
_LOST_BLOCKS_MAX = 100_000
_COMMANDS = {
    *("CREATE", "CLOSE", "FLUSH", "READ", "WRITE", "LOCK", "IOCTL", "ECHO", "QUERY_DIRECTORY"),
    *("CHANGE_NOTIFY", "QUERY_INFO", "SET_INFO", "OPLOCK_BREAK", "TREE_CONNECT"),
}


def frames() -> int:
    return FRAMES if scaled(6) == 6 else _SHORT


async def _server() -> SmbListener:
    return SmbListener(
        await file_calls.services(),
        OneAccount(Account(container_calls.ACCOUNT, (KEY,))),
        ManualClock(),
        SmbSettings(connections_max=100_000, connections_per_address_max=100_000),
        connect_share=connect_share,
        commands=FILE_COMMANDS,
    )


def _check_well(caplog: pytest.LogCaptureFixture) -> None:
    """No handler met an exception that it does not know, and no task was lost with one."""
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR], caplog.text[:3000]


async def _check_gone(server: SmbListener) -> None:
    """Nothing outlives the connections but what a client may come back to, for some minutes."""
    assert not server.shared.sessions and not server._connections and server._busy_bytes == 0
    services = server.shared.services
    held = services.held.of(Opens)
    for _ in range(10_000):
        if not held.handles and not held._nodes:
            break
        services.store.advance(60)
        await asyncio.sleep(0)
    assert not held.handles and not held._nodes and not held.leases


class InTheClear:
    """Frames that look encrypted and are not: what is below the ciphers is fuzzed faster."""

    def __init__(self, session_id: int) -> None:
        self._session_id = session_id

    def next_nonce(self) -> bytes:
        return bytes(12)

    def seal(self, nonce: bytes, pieces: Sequence[Piece]) -> list[Piece]:
        size = sum(map(len, pieces))
        return [write_transform(nonce, size, self._session_id), *pieces]

    def open(self, header: TransformHeader, frame: memoryview) -> memoryview:
        return frame[TRANSFORM_BYTES:]


class _Session:
    """A connection that is fuzzed after authentication."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.opens: list[FileId] = []
        self.notices: list[Reply] = []
        self.cipher = InTheClear(client.session_id)
        client.server.shared.sessions[client.session_id][1].cipher = self.cipher
        client.cipher = cast("SessionCipher", self.cipher)

    @classmethod
    async def start(cls, server: SmbListener) -> _Session:
        client = Client(server)
        await client.negotiate()
        assert not (await client.log_on(user=container_calls.ACCOUNT)).status
        assert not (await client.connect(file_calls.SHARE)).status
        session = cls(client)
        # Names of their own: what others left behind may be read-only, or of the other kind.
        own = f"{client.session_id:016x}"
        for name, options in ((f"file {own}", 0), (f"directory {own}", 1), ("", 1)):
            request = CreateRequest(
                access=0x1F01FF,
                share=7,
                disposition=Disposition.OPEN_IF,
                name=name,
                options=options,
            )
            body = client_codecs.write_create(request)
            session._look(await client.call(Command.CREATE, body))
        assert len(session.opens) == 3
        return session

    def send(self, changes: Changes) -> None:
        client = self.client
        sent, client.next_id = addressed(
            changes.frame(), client.next_id, client.session_id, client.tree_id, self.opens
        )
        client.send_frame(b"".join(self.cipher.seal(self.cipher.next_nonce(), [sent])))

    async def settle(self) -> bool:
        """Read all answers, and return whether the connection is still open. A session may have
        ended."""
        client = self.client
        try:
            sent = client.next_id
            client.send(client.message(Command.ECHO, PLAIN))
            while True:
                for reply in await client.replies():
                    self._look(reply)
                    if reply.header.message_id == sent:
                        return not reply.status and await self._has_tree()
        except Closed:
            return False

    def acknowledge(self, chance: random.Random) -> None:
        """Answer most breaks as a client should."""
        for notice in self.notices:
            if chance.random() < 0.7:
                # A lease's notice goes on with the new state, an oplock's is its answer as well.
                is_lease = len(notice.body) == _LEASE_NOTICE_BYTES
                key, new = notice.body[8:24], int.from_bytes(notice.body[28:32], "little")
                answer = write_lease_acknowledgment(LeaseBreakAck(key, new))
                body = answer if is_lease else notice.body
                self.client.send(self.client.message(Command.OPLOCK_BREAK, body))
        self.notices = []

    def _look(self, reply: Reply) -> None:
        if reply.header.message_id == ALL_ONES:
            self.notices.append(reply)
        if reply.header.command == Command.CREATE and not reply.status:
            self.opens.append(FileId(*_halves(reply.body)))
            del self.opens[3:-5]

    async def _has_tree(self) -> bool:
        found = self.client.server.shared.sessions.get(self.client.session_id)
        return found is not None and self.client.tree_id in found[1].trees


def _halves(body: bytes) -> tuple[int, int]:
    return int.from_bytes(body[64:72], "little"), int.from_bytes(body[72:80], "little")


async def fuzz_connection(server: SmbListener, changes: Changes) -> int:
    """Fuzz one connection until it ends. Returns: how many frames were sent."""
    session, count, goes_on = await _Session.start(server), 0, True
    while goes_on and count < _PER_CONNECTION:
        for _ in range(_BATCH):
            session.send(changes)
            count += 1
            await asyncio.sleep(0)
            if session.client.transport.is_closing():
                break
        # Unacknowledged breaks end after 35 seconds.
        server.shared.services.store.advance(changes.random.randrange(20))
        goes_on = await session.settle()
        session.acknowledge(changes.random)
    session.client.transport.close()
    await session.client.closed()
    return count


@pytest.mark.timeout(4 * 3600)
def test_after_authentication(caplog: pytest.LogCaptureFixture) -> None:
    answered: set[str] = set()
    refused: set[int] = set()

    async def fuzz_server(changes: Changes) -> int:
        server, sent = await _server(), 0
        while sent < _PER_SERVER:
            sent += await fuzz_connection(server, changes)
            assert not server.shared.sessions
            _check_well(caplog)
        await _check_gone(server)
        counts = server.shared.counts.requests
        answered.update(command for command, status in counts if not status)
        refused.update(status for _, status in counts)
        # Each INTERNAL_ERROR has a line with its cause, and there is one cause only.
        failed = {command: n for (command, status), n in counts.items() if status == 0xC000_00E5}
        lines = sum("CHANGE_NOTIFY in the middle" in line for line in caplog.messages)
        assert sum(failed.values()) == lines and set(failed) <= {"CHANGE_NOTIFY"}
        caplog.clear()
        return sent

    async def fuzz() -> None:
        changes, sent, blocks = Changes(1), 0, 0
        while sent < frames():
            sent += await fuzz_server(changes)
            gc.collect()
            if sent // _PROGRESS > (sent - _PER_SERVER) // _PROGRESS:
                print(f"{sent} frames", flush=True)
            if sent < frames() // 2:
                blocks = sys.getallocatedblocks()
        assert not blocks or sys.getallocatedblocks() < blocks + _LOST_BLOCKS_MAX

    with caplog.at_level(logging.WARNING):
        asyncio.run(fuzz())
    # The frames have come as far as the handlers: every command was answered with success.
    assert sorted(_COMMANDS - answered) == []
    assert len(refused) > 15


def _openings() -> list[bytes]:
    """The messages of an authentication, as frames."""

    def message(command: Command, number: int, body: bytes) -> bytes:
        return write_header(Header(command=command, credits=1, message_id=number)) + body

    names = b"\2NT LM 0.12\0\2SMB 2.???\0"
    smb1 = b"\xffSMB\x72" + bytes(27) + b"\0" + len(names).to_bytes(2, "little") + names
    ntlm = negotiate_message()
    return [
        smb1,
        message(Command.NEGOTIATE, 0, negotiate_body((0x0300, 0x0311), (1, 2), (1, 2))),
        message(Command.SESSION_SETUP, 1, session_setup_body(ntlm)),
        message(Command.SESSION_SETUP, 1, session_setup_body(first_token(ntlm))),
    ]


@pytest.mark.timeout(4 * 3600)
def test_before_authentication(caplog: pytest.LogCaptureFixture) -> None:
    async def fuzz() -> None:
        server = await _server()
        changes, openings = Changes(2), _openings()
        for number in range(frames() // 4):
            client = Client(server)
            steps = openings[1 : 1 + number % 4] if number % 3 else [openings[0], *openings[1:3]]
            spoilt = changes.random.randrange(len(steps)) if steps else 0
            for at, step in enumerate(steps):
                frame = bytearray(step)
                if at >= spoilt:
                    frame = changes.any_bytes(frame)
                client.send_raw(prefix(len(frame)) + bytes(frame))
                await asyncio.sleep(0)
                if client.transport.is_closing():
                    break
            client.transport.close()
            await client.closed()
        _check_well(caplog)
        assert not server.shared.sessions and server._busy_bytes == 0

    with caplog.at_level(logging.WARNING):
        asyncio.run(fuzz())


def test_what_is_recorded_can_be_read() -> None:
    assert all(is_whole(frame) for frame in RECORDED)
    assert len({read_header(frame).command for frame in RECORDED}) >= 10
