"""SMB connections that give way to newcomers: those without a logon, and never a session."""

from __future__ import annotations

import asyncio
import socket

import pytest

from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.smb.transport.connection import SmbServerConnection
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.framing import prefix
from tests.servers.smb.client import Client, Closed, connected, listener
from tests.servers.smb.messages import PLAIN, negotiate_body
from tests.servers.smb.sockets import LOOPBACK, SocketClient
from tests.servers.smb.test_conversations import run


def since(connection: SmbServerConnection) -> float | None:
    """Return since when a connection waits; None if it does not wait."""
    waiting = connection.waiting()
    return None if waiting is None else waiting.since


async def waits(client: Client) -> None:
    """Wait until the server has finished the client's requests."""
    while since(client.protocol) is None:  # noqa: ASYNC110 - bounded by `run`
        await asyncio.sleep(0)


def test_connections_without_a_logon_give_way_the_oldest_first() -> None:
    async def conversation() -> None:
        server = listener(budget=ConnectionBudget(3))
        known = await connected(server)
        silent = [Client(server), Client(server)]
        newcomer = await connected(server)
        await silent[0].closed()
        assert not silent[1].transport.is_closing()
        for client in (known, newcomer):
            assert (await client.call(Command.ECHO, PLAIN)).status == 0

    run(conversation())


def test_sessions_keep_their_places() -> None:
    async def conversation() -> None:
        server = listener(budget=ConnectionBudget(2, patience_s=0.0))
        known = [await connected(server), await connected(server)]
        await Client(server).closed()
        for client in known:
            assert (await client.call(Command.ECHO, PLAIN)).status == 0
        await known[0].call(Command.LOGOFF, PLAIN)
        await waits(known[0])
        await connected(server)
        await known[0].closed()
        assert (await known[1].call(Command.ECHO, PLAIN)).status == 0

    run(conversation())


@pytest.mark.parametrize("begins", ["negotiate", "frame"])
@pytest.mark.parametrize("patience_s", [0.0, 1000.0])
def test_a_logon_that_has_begun_gives_way_only_after_a_time(begins: str, patience_s: float) -> None:
    async def conversation() -> None:
        server = listener(budget=ConnectionBudget(1, patience_s=patience_s))
        slow = Client(server)
        if begins == "negotiate":
            await slow.negotiate()
            await waits(slow)
        else:
            slow.send_raw(prefix(99) + b"\xfeSMB")
        newcomer = Client(server)
        if patience_s:
            await newcomer.closed()
            assert not slow.transport.is_closing()
        else:
            await slow.closed()
            await newcomer.negotiate()

    run(conversation())


def test_progress_does_not_prolong_a_logon() -> None:
    async def conversation() -> None:
        client = Client(listener())
        connection = client.protocol
        began = since(connection)
        client.send_raw(prefix(99)[:3])
        assert connection.pacing.progress_at > (began or 0.0)
        assert since(connection) == began

    run(conversation())


def test_a_message_that_has_reached_the_kernel_is_not_lost() -> None:
    async def conversation() -> None:
        server = listener()
        client = await SocketClient.dial(await server.listen(LOOPBACK, 0))
        while not server.connection_count:  # noqa: ASYNC110 - bounded by `run`
            await asyncio.sleep(0.01)
        (connection,) = server._connections
        began = since(connection)
        assert began is not None
        message = client.message(Command.NEGOTIATE, negotiate_body((0x0311,), (2,), (1,)))
        found: socket.socket = client._writer.get_extra_info("socket").dup()
        # The loop has no turn between these two lines, so that only the kernel has the message.
        found.send(prefix(len(message)) + message)
        assert not connection.give_way(began)
        found.close()
        assert (await client.reply()).status == 0
        client.close()
        await server.close()

    run(conversation())


def test_newcomers_replace_silent_connections_over_sockets() -> None:
    async def conversation() -> None:
        budget = ConnectionBudget(4)
        server = listener(budget=budget)
        port = await server.listen(LOOPBACK, 0)
        known = await logged_on(port)
        silent = [await SocketClient.dial(port) for _ in range(10)]
        newcomers = [await logged_on(port) for _ in range(3)]
        assert budget.refused == 0
        for client in (known, *newcomers):
            assert (await client.call(Command.ECHO, PLAIN)).status == 0
        last = await SocketClient.dial(port)
        with pytest.raises(Closed):
            await last.negotiate()
        assert budget.refused == 1
        for client in (known, last, *silent, *newcomers):
            client.close()
        await server.close()

    run(conversation())


async def logged_on(port: int) -> SocketClient:
    """Return a client with a session."""
    client = await SocketClient.dial(port)
    assert (await client.negotiate()).status == 0
    assert (await client.log_on()).status == 0
    return client
