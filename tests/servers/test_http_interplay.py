"""Interactions of the two directions of a connection, and of the ways in which it ends."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator

import pytest

from strongroom.servers.http.server import HttpSettings
from strongroom.values import FileSlice
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import QUICK, echo, get, put, run, serving

MIB = 2**20


def test_a_generator_that_is_given_up_is_closed_before_the_response_is_finished() -> None:
    async def scenario() -> None:
        seen: list[str] = []
        over = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"z" * 65_536
            finally:
                seen.append("closed")

        def finished() -> None:
            seen.append("finished")
            over.set()

        async def handler(request: Request) -> Response:
            return Response(200, [], endless(), finished=finished)

        async with serving(handler) as served:
            client = await served.connect(limit=1000)
            await client.send(get())
            await client.reader.readexactly(500)
            client.writer.transport.abort()
            await over.wait()
        assert seen == ["closed", "finished"]

    run(scenario())


def test_a_client_that_leaves_just_before_a_file_is_sent() -> None:
    async def scenario() -> None:
        over = asyncio.Event()
        with tempfile.TemporaryFile() as file:
            file.truncate(4 * MIB)

            async def pieces() -> AsyncIterator[bytes | FileSlice]:
                connection = next(iter(served.server._connections))
                while not connection._transport.get_write_buffer_size():
                    yield b"z" * 65_536  # until the kernel's buffer is full
                yield FileSlice(file, 0, 4 * MIB)

            async def handler(request: Request) -> Response:
                return Response(200, [], pieces(), finished=over.set)

            async with serving(handler) as served:
                client = await served.connect(limit=1000)
                await client.send(get())
                await client.reader.readexactly(500)
                await asyncio.sleep(0.1)
                assert not over.is_set()
                client.writer.transport.abort()
                await over.wait()

    run(scenario())


def test_a_response_that_has_begun_is_not_interrupted_by_continue() -> None:
    async def scenario() -> None:
        async def both_ways(request: Request) -> AsyncIterator[bytes]:
            yield b"begin "
            async for chunk in request.body:
                yield chunk

        async def handler(request: Request) -> Response:
            return Response(200, [], both_ways(request), 9)

        async with serving(handler) as served:
            client = await served.connect()
            await client.send(get("/", "Content-Length: 3", "Expect: 100-continue", method="PUT"))
            await client.reader.readuntil(b"\r\n\r\n")
            assert await client.reader.readexactly(6) == b"begin "
            await client.send(b"abc")
            assert await client.reader.readexactly(3) == b"abc"
            await client.close()

    run(scenario())


def test_continue_is_left_out_when_the_client_has_begun_to_send() -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            client = await served.connect()
            data = put(b"abcdef", "Expect: 100-continue")
            await client.send(data[:-3])
            await asyncio.sleep(0.05)
            answer = await client.ask(data[-3:])
            assert answer.body.endswith(b"\n\nabcdef")
            await client.close()

    run(scenario())


def test_a_handler_that_pauses_amid_a_body_is_no_fault_of_the_client() -> None:
    async def handler(request: Request) -> Response:
        total = 0
        async for chunk in request.body:
            if total == 0:
                await asyncio.sleep(1.0)
            total += len(chunk)
        return Response(200, [], str(total).encode())

    async def scenario() -> None:
        async with serving(handler, settings=QUICK) as served:
            client = await served.connect()
            size = 8 * MIB
            await client.send(get("/", f"Content-Length: {size}", method="PUT"))
            await asyncio.sleep(0.05)  # by now the handler waits for the first bytes
            await client.send(b"z" * size)
            assert (await client.answer()).body == str(size).encode()
            await client.close()

    run(scenario())


@pytest.mark.parametrize("how", ["the client ended sending", "the server drains"])
def test_a_connection_that_was_to_go_on_can_still_end(how: str) -> None:
    async def scenario() -> None:
        go_on = asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            yield b"begin "
            await go_on.wait()
            yield b"end"

        async def handler(request: Request) -> Response:
            return Response(200, [], pieces(), 9)

        async with serving(handler, settings=HttpSettings(discard_timeout_s=3600)) as served:
            client = await served.connect()
            if how == "the server drains":
                await client.send(get())
            else:
                await client.send(put(b"unread")[:-1])
            await client.reader.readuntil(b"begin ")
            draining = None
            if how == "the server drains":
                draining = asyncio.create_task(served.server.drain(15.0))
            else:
                client.end_sending()
            await asyncio.sleep(0.05)
            go_on.set()
            assert await client.ended() == b"end"
            assert draining is None or await draining
            await client.close()

    run(scenario())


def test_the_end_is_seen_at_once_although_the_server_lingers() -> None:
    async def scenario() -> None:
        lingering = HttpSettings(linger_timeout_s=3600, linger_idle_timeout_s=3600)
        async with serving(echo, settings=lingering) as served:
            client = await served.connect()
            assert (await client.ask(b"rubbish\r\n\r\n" + b"more" * 1000)).status == 400
            assert await client.ended() == b""
            await client.close()

    run(scenario())
