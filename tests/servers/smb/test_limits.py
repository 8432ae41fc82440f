"""The limits on a client's use of the server: connections, sessions, memory and time; and
delays."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from strongroom.auth.accounts import Account
from strongroom.servers.smb.security import logon_delays
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.life import SmbPhase
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.framing import prefix
from strongroom.wire.smb.statuses import STATUS_INSUFFICIENT_RESOURCES, STATUS_LOGON_FAILURE
from tests.servers.smb.client import (
    ACCOUNT,
    OTHER_KEY,
    PATIENCE_S,
    Client,
    Closed,
    OneAccount,
    connected,
    listener,
)
from tests.servers.smb.commands import TestCommands, create, file_id_of, of_open, transfer
from tests.servers.smb.messages import (
    PLAIN,
    negotiate_body,
    negotiate_message,
    session_setup_body,
)
from tests.servers.smb.sockets import LOOPBACK, SocketClient
from tests.servers.smb.test_conversations import run


def test_connections_are_bounded_in_all_and_for_each_address() -> None:
    async def conversation() -> None:
        server = listener(connections_max=3, connections_per_address_max=2)
        kept = [await connected(server, "10.0.0.1") for _ in range(2)]
        await Client(server, "10.0.0.1").closed()
        kept.append(await connected(server, "10.0.0.2"))
        await Client(server, "10.0.0.3").closed()
        assert server.connection_count == 3
        kept[0].transport.close()
        await kept[0].closed()
        await Client(server, "10.0.0.1").negotiate()
        assert server.connection_count == 3

    run(conversation())


@pytest.mark.parametrize("logs_on", [False, True])
@pytest.mark.parametrize("sent", [b"", prefix(99) + b"\xfeSMB", b"GET / HTTP/1.1\r\n"])
def test_a_connection_frees_its_memory_when_it_ends(sent: bytes, *, logs_on: bool) -> None:
    async def conversation() -> None:
        server = listener()
        client = await SocketClient.dial(await server.listen(LOOPBACK, 0))
        while not server.connection_count:  # noqa: ASYNC110 - bounded by `run`
            await asyncio.sleep(0.01)
        (connection,) = map(weakref.ref, server._connections)
        if logs_on:
            await client.negotiate()
            assert (await client.log_on()).status == 0
        client.send_raw(sent)
        client.close()
        while server.connection_count:  # noqa: ASYNC110 - bounded by `run`
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)  # the task that ended the connection is finished too
        assert connection() is None
        await server.close()

    gc.disable()  # so that nothing that is part of a cycle is freed
    try:
        run(conversation())
    finally:
        gc.enable()


def test_who_has_not_logged_on_sends_one_request_at_a_time() -> None:
    async def conversation() -> None:
        client = Client(listener())
        message = client.message(Command.NEGOTIATE, negotiate_body((0x0311,), (2,), ()), credits=9)
        client.send(message, protects="")
        granted = [(await client.reply()).header.credits]
        for command, body in (
            (Command.SESSION_SETUP, session_setup_body(negotiate_message())),
            (Command.SESSION_SETUP, session_setup_body(b"no token")),
            (Command.LOGOFF, PLAIN),
        ):
            client.session_id = 0 if command == Command.SESSION_SETUP else 7
            client.send(client.message(command, body, credits=500), protects="")
            granted.append((await client.reply()).header.credits)
        assert granted == [1, 1, 1, 1]
        known = await connected(listener())
        assert (await known.call(Command.ECHO, PLAIN, credits=500)).header.credits == 500

    run(conversation())


def test_a_frame_before_authentication_is_small() -> None:
    async def conversation() -> None:
        client = Client(listener())
        await client.negotiate()
        client.send_raw(prefix(SmbSettings().first_frames_bytes_max + 1))
        await client.closed()

    run(conversation())


def test_a_frame_after_authentication_holds_the_largest_write_and_no_more() -> None:
    async def conversation() -> None:
        commands = TestCommands()
        client = await connected(listener(commands.table()))
        file_id = file_id_of((await client.call(Command.CREATE, create())).body)
        size = SmbSettings().io_bytes_max
        body = transfer(file_id, size) + bytes(size)
        assert (await client.call(Command.WRITE, body, credit_charge=16)).status == 0
        client.send_raw(prefix(SmbSettings().frames_bytes_max + 1))
        await client.closed()
        assert client.server._busy_bytes == 0

    run(conversation())


def test_who_is_not_authenticated_in_time_is_gone() -> None:
    async def conversation() -> None:
        server = listener(stalled_s=1000)
        now = asyncio.get_running_loop().time()
        late, known = Client(server), await connected(server)
        await late.negotiate()
        server.sweep(now + 44)
        assert not late.transport.is_closing()
        server.sweep(now + 60)
        await late.closed()
        server.sweep(now + 999)
        assert (await known.call(Command.ECHO, PLAIN)).status == 0

    run(conversation())


def test_a_frame_that_stalls_ends_its_connection() -> None:
    async def conversation() -> None:
        server = listener()
        client, quiet = await connected(server), await connected(server)
        client.send_raw(prefix(1000) + b"\xfdSMB")
        now = asyncio.get_running_loop().time()
        server.sweep(now + 30)
        assert not client.transport.is_closing()
        server.sweep(now + 120)
        await client.closed()
        assert not quiet.transport.is_closing()

    run(conversation())


def test_a_client_that_does_not_read_its_answers_is_not_read_from_and_ends() -> None:
    async def conversation() -> None:
        server = listener()
        client = await connected(server)
        client.protocol.pause_writing()
        reads = [client.transport.reads]
        client.protocol.resume_writing()
        reads.append(client.transport.reads)
        assert reads == [False, True]
        client.protocol.pause_writing()
        server.sweep(asyncio.get_running_loop().time() + 120)
        await client.closed()

    run(conversation())


def test_a_client_that_sends_no_more_and_does_not_read_its_answers_ends() -> None:
    async def conversation() -> None:
        commands = TestCommands()
        server = listener(commands.table())
        client = await SocketClient.dial(await server.listen(LOOPBACK, 0))
        await client.negotiate()
        await client.log_on()
        await client.connect()
        (connection,) = server._connections
        client.pause_reading()
        while not connection._transport.get_write_buffer_size():
            connection._transport.write(bytes(256 * 1024))
            await asyncio.sleep(0.05)  # the sockets may still take some
        client.send_eof()
        while connection._phase is not SmbPhase.CLOSING:  # noqa: ASYNC110 - bounded by `run`
            await asyncio.sleep(0.01)
        now = asyncio.get_running_loop().time()
        server.sweep(now + 30)
        assert server.shared.sessions
        server.sweep(now + 120)
        async with asyncio.timeout(PATIENCE_S):
            while server.connection_count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert not server.shared.sessions
        client.close()
        await server.close()

    run(conversation())


def test_requests_in_work_hold_bounded_memory() -> None:
    async def conversation() -> None:
        commands = TestCommands()
        server = listener(commands.table(), buffered_bytes_max=300)
        client, other = await connected(server), await connected(server)
        file_id = file_id_of((await client.call(Command.CREATE, create())).body)
        for _ in range(3):
            client.send(client.message(Command.CHANGE_NOTIFY, of_open(file_id)))
        seen = (server.is_full, client.transport.reads, other.transport.reads)
        assert seen == (True, False, True)
        client.transport.close()
        await client.closed()
        assert server._busy_bytes == 0
        assert (await other.call(Command.ECHO, PLAIN)).status == 0

    run(conversation())


def test_who_waits_for_changes_is_served_whatever_others_hold() -> None:
    """A file browser always has a CHANGE_NOTIFY that waits."""

    async def conversation() -> None:
        commands = TestCommands()
        server = listener(commands.table(), buffered_bytes_max=600)
        client, other = await connected(server), await connected(server)
        file_id = file_id_of((await client.call(Command.CREATE, create())).body)
        theirs = file_id_of((await other.call(Command.CREATE, create())).body)
        client.send(client.message(Command.CHANGE_NOTIFY, of_open(file_id)))
        for _ in range(6):
            other.send(other.message(Command.CHANGE_NOTIFY, of_open(theirs)))
        assert server.is_full
        client.send(client.message(Command.FLUSH, of_open(file_id)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert Command.FLUSH in commands.handled
        for one in (client, other):
            one.transport.close()
            await one.closed()

    run(conversation())


def test_sessions_of_a_connection_are_bounded() -> None:
    async def conversation() -> None:
        client = await connected(listener(sessions_max=2))
        token = session_setup_body(b"NTLMSSP\0\1\0\0\0\1\0\x08\x20")
        for status in (0xC000_0016, STATUS_INSUFFICIENT_RESOURCES):
            message = client.message(Command.SESSION_SETUP, token, session_id=0)
            client.send(message, protects="")
            assert (await client.reply()).status == status

    run(conversation())


def test_who_fails_too_often_is_refused_whatever_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async def conversation() -> None:
        server = listener()
        monkeypatch.setattr(logon_delays, "WAIT_MAX_S", -1.0)
        for _ in range(logon_delays.UNDELAYED_FAILURES_MAX):
            client = Client(server, "10.0.0.1")
            await client.negotiate()
            assert (await client.log_on(key=b"wrong")).status == STATUS_LOGON_FAILURE
        for user in (ACCOUNT.name, "nobody"):
            client = Client(server, "10.0.0.1")
            await client.negotiate()
            assert (await client.log_on(user=user)).status == STATUS_LOGON_FAILURE
        other = Client(server, "10.0.0.2")
        await other.negotiate()
        assert (await other.log_on()).status == 0
        assert server.shared.counts.logon_failures == logon_delays.UNDELAYED_FAILURES_MAX + 2

    run(conversation())


def test_a_wait_before_a_proof_ends_with_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def conversation() -> None:
        monkeypatch.setattr(logon_delays, "UNDELAYED_FAILURES_MAX", 1)
        monkeypatch.setattr(logon_delays, "DELAY_PER_FAILURE_S", 30.0)
        server = listener()
        client = Client(server)
        await client.negotiate()
        assert (await client.log_on(key=b"wrong")).status == STATUS_LOGON_FAILURE
        waiting = Client(server)
        await waiting.negotiate()
        logging_on = asyncio.ensure_future(waiting.log_on())
        for _ in range(100_000):
            if waiting.session_id:
                break
            await asyncio.sleep(0)
        waiting.transport.close()
        with pytest.raises(Closed):
            await logging_on
        await waiting.closed()
        assert not server.shared.sessions

    run(conversation())


def test_an_account_that_is_replaced_while_serving_counts_from_then_on() -> None:
    async def conversation() -> None:
        accounts = OneAccount()
        server = listener(accounts=accounts)
        accounts.account = Account(ACCOUNT.name, (b"a new key",))
        for key, status in ((OTHER_KEY, STATUS_LOGON_FAILURE), (b"a new key", 0)):
            client = Client(server)
            await client.negotiate()
            assert (await client.log_on(key=key)).status == status

    run(conversation())


def test_idle_connections_are_closed_to_free_memory() -> None:
    async def conversation() -> None:
        server = listener()
        known, idle = await connected(server), Client(server)
        server.close_idle()
        await idle.closed()
        assert (await known.call(Command.ECHO, PLAIN)).status == 0

    run(conversation())


def test_a_start_in_smb1_leads_to_smb3_or_to_the_end() -> None:
    async def conversation() -> None:
        for names, leads in ((b"\2NT LM 0.12\0\2SMB 2.???\0", True), (b"\2SMB 2.002\0", False)):
            client = Client(listener())
            head = b"\xffSMB\x72" + bytes(27) + b"\0"
            client.send_frame(head + len(names).to_bytes(2, "little") + names)
            if not leads:
                await client.closed()
                continue
            reply = await client.reply()
            assert (reply.status, reply.header.message_id) == (0, 0)
            assert reply.body[4:6] == b"\xff\x02"
            client.next_id = 1
            assert (await client.negotiate()).status == 0
            assert (await client.log_on()).status == 0
            assert (await client.connect()).status == 0

    run(conversation())


def test_a_negotiate_that_failed_may_be_followed_by_a_better_one() -> None:
    async def conversation() -> None:
        client = Client(listener())
        body = negotiate_body((0x0202,), (), ())
        client.send(client.message(Command.NEGOTIATE, body), protects="")
        assert (await client.reply()).status
        assert (await client.negotiate()).status == 0

    run(conversation())
