"""Request bodies over sockets: 100-continue, back-pressure, early ends, unread bodies."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from strongroom.errors.core import CONTAINER_NOT_FOUND, StorageError
from strongroom.servers.http.body import LINES_IN_A_ROW
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import Client, echo, get, put, run, serving

MIB = 2**20


async def digest(request: Request) -> Response:
    """Read the whole body and answer with its digest."""
    checksum = hashlib.sha256()
    async for chunk in request.body:
        checksum.update(chunk)
    return Response(201, [], checksum.hexdigest().encode())


async def refuse(request: Request) -> Response:
    """Refuse without reading the body."""
    raise StorageError(CONTAINER_NOT_FOUND)


@pytest.mark.parametrize("is_slow", [False, True])
def test_tiny_chunks_hold_up_nobody(is_slow: bool) -> None:
    """A read full of tiny chunks is decoded in parts, with turns of the loop in between."""
    count = 20 * LINES_IN_A_ROW
    turns: list[int] = []

    async def handler(request: Request) -> Response:
        if is_slow:
            await asyncio.sleep(0.05)
        body = b"".join([piece async for piece in request.body])
        turns.append(turn)
        return Response(200, [], b"%d" % len(body))

    turn = 0

    async def scenario() -> None:
        nonlocal turn
        async with serving(handler) as served:
            client = await served.connect()
            assert (await client.ask(get())).body == b"0"
            (connection,) = served.server._connections
            head = get("/", "Transfer-Encoding: chunked", method="PUT")
            turns.clear()
            answering = asyncio.create_task(client.answer())
            chunked = head + b"1\r\nx\r\n" * count + b"0\r\n\r\n"
            connection.data_received(chunked + get("/next"))
            while not turns:
                turn += 1
                await asyncio.sleep(0)
            assert turns[0] > count // LINES_IN_A_ROW
            assert (await answering).body == b"%d" % count
            assert (await client.answer()).body == b"0"

    run(scenario())


def test_what_comes_behind_chunks_that_wait_is_taken_behind_them() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"".join([piece async for piece in request.body]))

    async def scenario() -> None:
        async with serving(handler) as served:
            client = await served.connect()
            await client.ask(get())
            (connection,) = served.server._connections
            digits = b"0123456789" * (LINES_IN_A_ROW // 2)
            data = b"".join(b"1\r\n%c\r\n" % digit for digit in digits) + b"0\r\n\r\n"
            # A TLS transport delivers decrypted bytes even while reading is paused.
            connection.data_received(get("/", "Transfer-Encoding: chunked", method="PUT"))
            for start in range(0, len(data), 7001):
                connection.data_received(data[start : start + 7001])
            assert (await client.answer()).body == digits

    run(scenario())


@pytest.mark.parametrize("size", [0, 1, 65_536, 262_144, 5 * MIB + 1])
@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_arrive_whole(size: int, chunked: bool) -> None:
    body = hashlib.sha256(b"x").digest() * (size // 32) + b"y" * (size % 32)

    def framed() -> bytes:
        if not chunked:
            return put(body)
        parts = [body[i : i + 70_001] for i in range(0, size, 70_001)]
        coded = b"".join(b"%X\r\n%s\r\n" % (len(part), part) for part in parts)
        return get("/", "Transfer-Encoding: Chunked", method="PUT") + coded + b"0\r\n\r\n"

    async def scenario() -> None:
        async with serving(digest) as served:
            client = await served.connect()
            for _ in range(2):
                answer = await client.ask(framed())
                assert answer.status == 201
                assert answer.body == hashlib.sha256(body).hexdigest().encode()
            await client.close()
        assert served.exchanges[0].bytes_in == size

    run(scenario())


def test_a_body_that_trickles_arrives_whole() -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            client = await served.connect()
            for byte in put(b"slow but steady"):
                await client.send(bytes([byte]))
                await asyncio.sleep(0)
            assert (await client.answer()).body.endswith(b"\n\nslow but steady")
            await client.close()

    run(scenario())


def test_continue_is_sent_when_the_handler_begins_to_read() -> None:
    async def scenario() -> None:
        may_read = asyncio.Event()

        async def handler(request: Request) -> Response:
            await may_read.wait()
            return Response(201, [], await request.body.read_all(100))

        async with serving(handler) as served:
            client = await served.connect()
            await client.send(get("/", "Content-Length: 3", "Expect: 100-continue", method="PUT"))
            waiting = asyncio.create_task(client.interim())
            await asyncio.sleep(0.05)
            assert not waiting.done()
            may_read.set()
            assert await waiting == b"HTTP/1.1 100 Continue\r\n\r\n"
            answer = await client.ask(b"abc")
            assert (answer.status, answer.body) == (201, b"abc")
            assert answer.header("Connection") is None
            assert (await client.ask(put(b"again"))).body == b"again"
            await client.close()

    run(scenario())


def test_continue_is_left_out_when_the_body_is_already_here() -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            client = await served.connect()
            answer = await client.ask(put(b"abc", "Expect: 100-continue"))
            assert answer.status == 200
            await client.close()

    run(scenario())


@pytest.mark.parametrize("then", ["nothing", "body", "body and more"])
def test_a_refusal_before_the_body_ends_the_connection(then: str) -> None:
    async def scenario() -> None:
        async with serving(refuse) as served:
            client = await served.connect()
            await client.send(get("/", "Content-Length: 30", "Expect: 100-continue", method="PUT"))
            answer = await client.answer()
            assert (answer.code, answer.header("Connection")) == ("ContainerNotFound", "close")
            if then != "nothing":
                # Bytes that the client sends now are not parsed as a request.
                await client.send(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n  ")
            assert await client.ended() == b""
            await client.close()
        assert len(served.exchanges) == 1

    run(scenario())


def test_a_small_body_that_nobody_reads_is_thrown_away() -> None:
    async def scenario() -> None:
        async with serving(refuse) as served:
            client = await served.connect()
            for _ in range(3):
                await client.send(put(b"z" * 500_000)[:-400_000])
                answer = await client.answer()
                assert (answer.status, answer.header("Connection")) == (404, None)
                await client.send(b"z" * 400_000)
            assert (await client.ask(get("/next"))).status == 404
            await client.close()

    run(scenario())


def test_a_large_body_that_nobody_reads_does_not_hide_the_answer() -> None:
    async def scenario() -> None:
        async with serving(refuse) as served:
            client = await served.connect()
            size = 64 * MIB
            # Like most clients, this one sends the whole body before it reads the answer.
            await client.send(get("/", f"Content-Length: {size}", method="PUT"))
            for _ in range(64):
                await client.send(b"z" * MIB)
            answer = await client.answer()
            assert (answer.code, answer.header("Connection")) == ("ContainerNotFound", "close")
            assert await client.ended() == b""
            await client.close()

    run(scenario())


def test_a_chunked_body_that_nobody_reads_ends_the_connection() -> None:
    async def scenario() -> None:
        async with serving(refuse) as served:
            client = await served.connect()
            await client.send(get("/", "Transfer-Encoding: chunked", method="PUT") + b"5\r\nab")
            answer = await client.answer()
            assert (answer.status, answer.header("Connection")) == (404, "close")
            await client.close()

    run(scenario())


def test_too_large_a_body_is_refused_before_it_is_read() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], await request.body.read_all(10))

    async def scenario() -> None:
        async with serving(handler) as served:
            client = await served.connect()
            assert (await client.ask(put(b"0123456789"))).body == b"0123456789"
            assert (await client.ask(put(b"0123456789a"))).code == "RequestBodyTooLarge"
            chunked = get("/", "Transfer-Encoding: chunked", method="PUT")
            answer = await client.ask(chunked + b"6\r\n012345\r\n5\r\n6789a\r\n0\r\n\r\n")
            assert answer.code == "RequestBodyTooLarge"
            await client.close()

    run(scenario())


def test_a_slow_handler_holds_the_client_back() -> None:
    async def scenario() -> None:
        may_read = asyncio.Event()
        body_of: list[Request] = []

        async def handler(request: Request) -> Response:
            body_of.append(request)
            await may_read.wait()
            return await digest(request)

        async with serving(handler) as served:
            client = await served.connect()
            body = b"q" * (64 * MIB)
            sending = asyncio.create_task(client.send(put(body)))
            await asyncio.sleep(0.5)
            assert not sending.done()
            # The double has this attribute.
            assert body_of[0].body.received_bytes < 2 * MIB  # type: ignore[attr-defined]
            may_read.set()
            await sending
            assert (await client.answer()).body == hashlib.sha256(body).hexdigest().encode()
            await client.close()

    run(scenario())


@pytest.mark.parametrize("how", ["close", "abort", "end sending"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_that_ends_early(how: str, chunked: bool) -> None:
    async def scenario() -> None:
        seen = asyncio.get_running_loop().create_future()

        async def handler(request: Request) -> Response:
            try:
                return await digest(request)
            except StorageError as error:
                seen.set_result(error.row.code)
                raise

        async with serving(handler) as served:
            client = await served.connect()
            framing = "Transfer-Encoding: chunked" if chunked else "Content-Length: 100"
            await client.send(get("/", framing, method="PUT") + b"1f\r\nonly this")
            await asyncio.sleep(0.02)
            await _end(client, how)
            assert await seen == "IncompleteBody"
            if how == "end sending":
                answer = await client.answer()
                assert (answer.code, answer.header("Connection")) == ("IncompleteBody", "close")
                await client.close()

    run(scenario())


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_came_ahead_and_ends_early_is_refused_at_once(chunked: bool) -> None:
    async def scenario() -> None:
        may_answer = asyncio.Event()

        async def handler(request: Request) -> Response:
            if request.method == "GET":
                await may_answer.wait()
                return Response(200, [], b"")
            return await digest(request)

        async with serving(handler) as served:
            client = await served.connect()
            framing = "Transfer-Encoding: chunked" if chunked else "Content-Length: 100"
            cut = get("/", framing, method="PUT") + b"1f\r\nonly this"
            await client.send(get("/") + cut)
            client.end_sending()
            await asyncio.sleep(0.02)
            may_answer.set()
            assert (await client.answer()).status == 200
            answer = await client.answer()
            assert (answer.code, answer.header("Connection")) == ("IncompleteBody", "close")
            assert await client.ended() == b""
            await client.close()

    run(scenario())


def test_who_begins_after_the_client_has_stopped_sending_is_told() -> None:
    async def scenario() -> None:
        may_answer = asyncio.Event()
        told: list[str] = []

        async def handler(request: Request) -> Response:
            await may_answer.wait()
            request.on_disconnect(lambda: told.append(request.target))
            return Response(200, [], b"")

        async with serving(handler) as served:
            client = await served.connect()
            await client.send(get("/1") + get("/2"))
            client.end_sending()
            await asyncio.sleep(0.02)
            may_answer.set()
            assert [(await client.answer()).status for _ in range(2)] == [200, 200]
            assert told == ["/1", "/2"]
            await client.close()

    run(scenario())


async def _end(client: Client, how: str) -> None:
    if how == "abort":
        client.writer.transport.abort()
    elif how == "close":
        await client.close()
    else:
        client.end_sending()
