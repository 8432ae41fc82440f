"""Connections that give way to newcomers, over sockets: idle ones at once, slow heads later, and
requests and answers never."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.http.protocol import Connection
from strongroom.servers.telemetry import ConnectionMetrics, Telemetry
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import PATIENT, Client, Served, echo, get, put, run, serving
from tests.servers.test_tls import contexts

BODY_BYTES = 400_000


async def asked(served: Served, **named: Any) -> Client:
    """Return a client whose first request was answered."""
    client = await served.connect(**named)
    assert (await client.ask(get())).status == 200
    return client


async def refused(served: Served) -> None:
    """Connect, and check that the refusal has a reason."""
    client = await served.connect()
    answer = await client.answer()
    assert (answer.status, answer.code) == (503, "ServerBusy")
    assert b"Too many connections" in answer.body
    await client.close()


async def held(served: Served, count: int) -> None:
    """Wait until the server has so many connections."""
    while served.server.connection_count != count:  # noqa: ASYNC110 - bounded by `run`
        await asyncio.sleep(0.01)


async def parsed(served: Served) -> None:
    """Wait until each connection has received something."""
    while any(  # noqa: ASYNC110 - bounded by `run`
        one._state.name in ("NEW", "IDLE") for one in served.server._connections
    ):
        await asyncio.sleep(0.01)


def only(served: Served) -> Connection:
    """Return the server's only connection."""
    (found,) = served.server._connections
    return found


def since(connection: Connection) -> float:
    """Return since when a connection waits."""
    waiting = connection.waiting()
    assert waiting is not None
    return waiting.since


def test_newcomers_replace_the_connections_that_are_idle_longest() -> None:
    async def scenario() -> None:
        budget = ConnectionBudget(3)
        async with serving(echo, budget=budget) as served:
            idle = [await asked(served) for _ in range(3)]
            assert (await idle[0].ask(get())).status == 200  # now the second is idle longest
            newcomers = [await asked(served) for _ in range(2)]
            # They read an ordinary end, without a reset.
            assert await idle[1].reader.read() == b""
            assert await idle[2].reader.read() == b""
            for client in (idle[0], *newcomers):
                assert (await client.ask(get())).status == 200
            assert (budget.closed_for_newcomers, budget.refused) == (2, 0)
            for client in (*idle, *newcomers):
                await client.close()

    run(scenario())


def test_a_crowd_that_sends_nothing_locks_nobody_out() -> None:
    async def scenario() -> None:
        async with serving(echo, budget=ConnectionBudget(20)) as served:
            crowd = [socket.create_connection((served.host, served.port)) for _ in range(40)]
            for _ in range(40):
                await (await asked(served)).close()
            for one in crowd:
                one.close()

    run(scenario())


def test_requests_and_answers_keep_their_places() -> None:
    may_answer = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.method == "PUT":
            return Response(200, [], await request.body.read_all(100))
        await may_answer.wait()
        return Response(200, [], b"done")

    async def scenario() -> None:
        async with serving(handler, budget=ConnectionBudget(4)) as served:
            busy, body, head, expects = [await served.connect() for _ in range(4)]
            await busy.send(get())
            await body.send(put(b"x" * 10)[:-5])
            await head.send(b"GET / HTTP/1.1\r\nHost:")
            await expects.send(get("/", "Content-Length: 1", "Expect: 100-continue", method="PUT"))
            assert await expects.interim() == b"HTTP/1.1 100 Continue\r\n\r\n"
            await held(served, 4)
            await parsed(served)
            await refused(served)
            may_answer.set()
            assert (await body.ask(b"x" * 5)).body == b"x" * 10
            assert (await expects.ask(b"x")).body == b"x"
            assert (await head.ask(b" localhost\r\n\r\n")).body == b"done"
            assert (await busy.answer()).body == b"done"
            for client in (busy, body, head, expects):
                await client.close()

    run(scenario())


def test_a_head_that_is_incomplete_for_too_long_gives_way_with_a_reason() -> None:
    async def scenario() -> None:
        budget = ConnectionBudget(1, patience_s=0.0)
        async with serving(echo, budget=budget) as served:
            slow = await served.connect()
            await slow.send(b"GET / HTTP/1.1\r\n")
            await held(served, 1)
            await parsed(served)
            newcomer = await asked(served)
            assert (await slow.answer()).status == 408
            assert await slow.reader.read() == b""
            assert budget.closed_for_newcomers == 1
            await slow.close()
            await newcomer.close()

    run(scenario())


def test_a_lingering_connection_gives_way() -> None:
    """It sends on although it was answered."""

    async def handler(request: Request) -> Response:
        return Response(200 if request.method == "GET" else 400)

    async def scenario() -> None:
        budget = ConnectionBudget(1, patience_s=0.0)
        async with serving(handler, budget=budget) as served:
            lingering = await served.connect()
            answer = await lingering.ask(get("/", f"Content-Length: {10**9}", method="PUT"))
            assert (answer.status, answer.header("Connection")) == (400, "close")
            newcomer = await asked(served)
            assert await lingering.ended() == b""
            await lingering.close()
            await newcomer.close()

    run(scenario())


def test_a_request_that_has_reached_the_kernel_is_not_lost() -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            client = await asked(served)
            connection = only(served)
            began = since(connection)
            # The loop has no turn between these two lines, so that only the kernel has the request.
            client.writer.transport.get_extra_info("socket").dup().send(get("/next"))
            assert not connection.give_way(began)
            assert b"/next" in (await client.answer()).body
            assert not connection.give_way(began), "it has begun to wait anew"
            assert connection.give_way(since(connection))
            assert await client.reader.read() == b""
            await client.close()

    run(scenario())


def test_an_answer_that_its_client_has_not_read_is_not_lost() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], bytes(BODY_BYTES))

    async def scenario() -> None:
        async with serving(handler) as served:
            raw = socket.socket()
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.connect((served.host, served.port))
            await held(served, 1)
            connection = only(served)
            server_side = connection._transport.get_extra_info("socket")
            server_side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            raw.send(get())
            while connection._state.name != "IDLE":  # noqa: ASYNC110 - bounded by `run`
                await asyncio.sleep(0.01)
            assert not connection.give_way(since(connection))
            raw.setblocking(False)
            client = Client(*await asyncio.open_connection(sock=raw))
            assert len((await client.answer()).body) == BODY_BYTES
            while not connection.give_way(since(connection)):  # noqa: ASYNC110 - bounded by `run`
                await asyncio.sleep(0.01)
            await client.close()

    run(scenario())


def test_connections_of_tls_give_way_before_and_after_their_handshakes(tmp_path: Path) -> None:
    async def scenario() -> None:
        server_side, client_side = contexts(tmp_path)
        settings = replace(PATIENT, tls_shutdown_timeout_s=0.05)
        budget = ConnectionBudget(3)
        async with serving(echo, tls=server_side, settings=settings, budget=budget) as served:
            silent = [socket.create_connection((served.host, served.port)) for _ in range(6)]
            idle = [await asked(served, tls=client_side) for _ in range(3)]
            newcomer = await asked(served, tls=client_side)
            assert await idle[0].reader.read() == b""
            for client in (*idle[1:], newcomer):
                assert (await client.ask(get())).status == 200
            assert budget.closed_for_newcomers == 7
            for one in silent:
                one.close()
            for client in (*idle, newcomer):
                await client.close()

    run(scenario())


def test_two_ports_share_their_places() -> None:
    async def scenario() -> None:
        budget = ConnectionBudget(8)
        async with serving(echo, budget=budget) as one, serving(echo, budget=budget) as other:
            kept = await asked(other)
            many = [await asked(one) for _ in range(10)]  # with idle ones, more than its share
            assert one.server.connection_count == 7
            assert (await kept.ask(get())).status == 200
            second = await asked(other)  # takes the place of an idle connection of the first port
            assert (await kept.ask(get())).status == 200
            await second.close()
            for client in (*many, kept):
                await client.close()

    run(scenario())


def test_a_failed_setup_leaves_its_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        server_side, client_side = contexts(tmp_path)
        budget = ConnectionBudget(2)
        async with serving(echo, tls=server_side, budget=budget) as served:
            for _ in range(10):
                broken = await served.connect()
                await broken.send(b"\x16 this is no handshake")
                await broken.ended()
                await broken.close()
            await (await asked(served, tls=client_side)).close()
            await held(served, 0)
            assert budget.refused == 0
            assert not served.server._acceptor._places.held

    run(scenario())


@pytest.mark.parametrize("name", ["closed_for_newcomers", "refused"])
def test_operators_see_both_counts(name: str) -> None:
    budget = ConnectionBudget(1)
    telemetry = Telemetry(lambda: 0, lambda: 0)
    telemetry.add(ConnectionMetrics(budget))
    assert f"strongroom_connections_{name}_total 0.0".encode() in telemetry.exposition()[0]
    setattr(budget, name, 3)
    assert f"strongroom_connections_{name}_total 3.0".encode() in telemetry.exposition()[0]
