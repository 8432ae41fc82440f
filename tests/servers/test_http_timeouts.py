"""Slow, silent and too many clients, and the shutdown of a server."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.errors.core import StorageError
from strongroom.servers.http.life import State
from strongroom.servers.http.server import HttpSettings
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import PATIENT, QUICK, echo, get, no_more_than, put, run, serving


def test_a_silent_connection_is_closed() -> None:
    async def scenario() -> None:
        async with serving(echo, settings=QUICK) as served:
            fresh, used = await served.connect(), await served.connect()
            assert (await used.ask(get())).status == 200
            assert await fresh.ended() == b""
            assert await used.ended() == b""
            await fresh.close()
            await used.close()

    run(scenario())


@pytest.mark.parametrize("trickle", [False, True])
def test_a_head_that_takes_too_long_is_408(trickle: bool) -> None:
    async def scenario() -> None:
        async with serving(echo, settings=QUICK) as served:
            client = await served.connect()
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nx: ")
            answering = asyncio.create_task(client.answer())
            while trickle and not answering.done():
                await client.send(b"y")
                await asyncio.sleep(0.02)
            answer = await answering
            assert (answer.code, answer.header("Connection")) == ("RequestTimeout", "close")
            await client.close()

    run(scenario())


@pytest.mark.parametrize("trickle", [False, True])
def test_a_body_that_stalls_is_408(trickle: bool) -> None:
    async def scenario() -> None:
        codes = []

        async def handler(request: Request) -> Response:
            try:
                return await echo(request)
            except StorageError as error:
                codes.append(error.row.code)
                raise

        async with serving(handler, settings=QUICK) as served:
            client = await served.connect()
            await client.send(put(b"z" * 9000)[:-8000])
            answering = asyncio.create_task(client.answer())
            while trickle and not answering.done():
                await client.send(b"z")
                await asyncio.sleep(0.02)
            answer = await answering
            assert (answer.code, answer.header("Connection")) == ("RequestTimeout", "close")
            await client.close()
        assert codes == ["RequestTimeout"]

    run(scenario())


def test_a_slow_but_steady_body_is_read() -> None:
    async def scenario() -> None:
        async with serving(echo, settings=QUICK) as served:
            client = await served.connect()
            await client.send(get("/", "Content-Length: 120000", method="PUT"))
            for _ in range(12):
                await client.send(b"z" * 10_000)
                await asyncio.sleep(0.05)
            assert (await client.answer()).body.endswith(b"z" * 120_000)
            await client.close()

    run(scenario())


def test_a_slow_handler_is_no_fault_of_the_client() -> None:
    async def handler(request: Request) -> Response:
        await asyncio.sleep(1.0)
        return Response(200, [], await request.body.read_all(2**20))

    async def scenario() -> None:
        async with serving(handler, settings=QUICK) as served:
            client = await served.connect()
            await client.send(put(b"z" * 100_000)[:-1])
            await asyncio.sleep(0.9)
            assert (await client.ask(b"z")).body == b"z" * 100_000
            await client.close()

    run(scenario())


def test_an_unread_body_that_never_comes_ends_the_connection() -> None:
    async def handler(request: Request) -> Response:
        return Response(200)

    async def scenario() -> None:
        async with serving(handler, settings=QUICK) as served:
            client = await served.connect()
            answer = await client.ask(put(b"z" * 1000)[:-500])
            assert (answer.status, answer.header("Connection")) == (200, None)
            assert await client.ended() == b""
            await client.close()

    run(scenario())


def test_too_many_connections_are_told_so() -> None:
    async def scenario() -> None:
        settings = HttpSettings(connections_max=2, sweep_interval_s=0.05, linger_idle_timeout_s=0.1)
        async with serving(echo, settings=settings) as served:
            first, second = await served.connect(), await served.connect()
            for client in (first, second):
                assert (await client.ask(get())).status == 200
                await client.send(b"GET /")  # what has begun is not ended for a newcomer
            while any(  # noqa: ASYNC110 - bounded by `run`
                one._state is not State.HEAD for one in served.server._connections
            ):
                await asyncio.sleep(0.01)
            third = await served.connect()
            answer = await third.answer()
            assert (answer.code, answer.header("Connection")) == ("ServerBusy", "close")
            await third.close()
            await first.close()
            await no_more_than(served, 1)
            fourth = await served.connect()
            assert (await fourth.ask(get())).status == 200
            assert (await second.ask(get()[5:])).status == 200
            await fourth.close()
            await second.close()

    run(scenario())


def test_drain_lets_requests_finish() -> None:
    async def scenario() -> None:
        may_answer = asyncio.Event()

        async def handler(request: Request) -> Response:
            if request.path == "/slow":
                await may_answer.wait()
            return Response(200, [], await request.body.read_all(100))

        async with serving(handler) as served:
            idle, busy, half = [await served.connect() for _ in range(3)]
            assert (await idle.ask(get())).status == 200
            await busy.send(put(b"kept", target="/slow"))
            await half.send(b"PUT / HTTP/1.1\r\nHost: a\r\n")
            await asyncio.sleep(0.05)
            draining = asyncio.create_task(served.server.drain(10.0))
            assert await idle.ended() == b""
            with pytest.raises(OSError, match="Connect call failed"):
                await served.connect()
            assert not draining.done()
            answer = await half.ask(b"Content-Length: 4\r\n\r\nhalf")
            assert (answer.body, answer.header("Connection")) == (b"half", "close")
            assert not draining.done()
            may_answer.set()
            answer = await busy.answer()
            assert (answer.body, answer.header("Connection")) == (b"kept", "close")
            assert await draining
            assert served.server.connection_count == 0
            for client in (idle, busy, half):
                await client.close()

    run(scenario())


def test_drain_cuts_off_what_takes_too_long() -> None:
    async def scenario() -> None:
        cancelled = asyncio.Event()

        async def handler(request: Request) -> Response:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return Response(200)

        async with serving(handler) as served:
            client = await served.connect()
            await client.send(get())
            await asyncio.sleep(0.05)
            assert not await served.server.drain(0.1)
            assert cancelled.is_set()
            assert served.server.connection_count == 0
            assert await client.ended() == b""
            await client.close()

    run(scenario())


def test_ipv6() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], request.peer.encode())

    async def scenario() -> None:
        async with serving(handler, host="::1") as served:
            client = await served.connect()
            assert (await client.ask(get())).body == b"::1"
            await client.close()
        async with serving(handler) as served:
            client = await served.connect()
            assert (await client.ask(get())).body == b"127.0.0.1"
            await client.close()

    run(scenario())


def test_a_port_in_use_is_an_error() -> None:
    async def scenario() -> None:
        async with serving(echo, settings=PATIENT) as served:
            with pytest.raises(OSError, match="in use"):
                await served.server.listen(served.host, served.port)

    run(scenario())
