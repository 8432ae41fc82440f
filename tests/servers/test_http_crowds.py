"""Connections up to the limit and above it, and clients that disconnect before their answers."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest
from msgspec.structs import replace

from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import PATIENT, Answer, Client, Served, echo, get, put, run, serving

LIMIT = 100
FIRST = 80
CROWD = 200


def test_a_connection_that_is_being_made_counts_once() -> None:
    async def scenario() -> None:
        async with serving(echo, settings=replace(PATIENT, connections_max=LIMIT)) as served:
            server, loop = served.server, asyncio.get_running_loop()
            open_ones: list[socket.socket] = []
            make, made = loop.connect_accepted_socket, 0

            def enter(count: int) -> None:
                address = served.host, served.port
                open_ones.extend(socket.create_connection(address) for _ in range(count))

            async def make_and_count(*given: Any, **named: Any) -> object:
                nonlocal made
                made += 1
                if made == FIRST:  # more come while so many are there and being made
                    enter(LIMIT - FIRST)
                return await make(*given, **named)

            loop.connect_accepted_socket = make_and_count  # type: ignore[assignment]  # a double
            enter(FIRST)
            while server.connection_count < LIMIT:  # noqa: ASYNC110 - bounded by `run`
                await asyncio.sleep(0.01)
            for one in open_ones:
                assert (await client_on(one)).status == 200
            for one in open_ones:
                one.close()

    run(scenario())


async def client_on(connection: socket.socket) -> Answer:
    """Send a request on an open connection, and return its answer."""
    connection.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=connection.dup())
    client = Client(reader, writer)
    answer = await client.ask(get())
    await client.close()
    return answer


def test_whoever_is_too_many_reads_why_also_behind_a_body() -> None:
    waits = asyncio.Event()

    async def handler(request: Request) -> Response:
        await waits.wait()
        return Response(200, [], b"")

    async def refused(served: Served, body: bytes) -> None:
        client = await served.connect()
        await client.send(put(body))
        answer = await client.answer()
        assert (answer.status, answer.code) == (503, "ServerBusy")
        assert b"Too many connections" in answer.body
        # The connection ends without a reset, which would raise and may destroy the answer.
        assert await client.reader.read() == b""
        await client.close()

    async def scenario() -> None:
        async with serving(handler, settings=replace(PATIENT, connections_max=4)) as served:
            inside = [await served.connect() for _ in range(4)]
            for client in inside:
                await client.send(get())
            while served.server.connection_count < 4:  # noqa: ASYNC110 - bounded by `run`
                await asyncio.sleep(0.01)
            bodies = (bytes(300_000 if number % 20 == 0 else 10) for number in range(CROWD))
            await asyncio.gather(*(refused(served, body) for body in bodies))
            waits.set()
            for client in inside:
                assert (await client.answer()).status == 200
                await client.close()

    run(scenario())


@pytest.mark.parametrize("body", [b"", bytes(100_000)])
def test_a_client_that_has_gone_is_no_error(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """The client disconnects while its request is handled, before the loop can notice.

    So the write of the answer is the first to fail: the client's kernel resets the connection.
    """
    clients: list[socket.socket] = []
    complaints: list[dict[str, Any]] = []

    async def handler(request: Request) -> Response:
        clients.pop().close()
        return Response(400, [], b"no")

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))
        async with serving(handler) as served:
            client = socket.create_connection((served.host, served.port))
            clients.append(client)
            # The unread rest is too long to keep the connection.
            client.sendall(get("/", "Content-Length: 100000000", method="PUT") + body)
            while clients or served.server.connection_count:  # noqa: ASYNC110 - bounded by `run`
                await asyncio.sleep(0.01)

    with caplog.at_level(logging.WARNING):
        run(scenario())
    assert complaints == []
    assert caplog.records == []
