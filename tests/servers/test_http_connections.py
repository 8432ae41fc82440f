"""Connections: keep-alive, versions, pipelining, HEAD and smuggling, tested over sockets."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.errors.blob import BLOB_NOT_FOUND
from strongroom.errors.core import StorageError
from strongroom.servers.http.server import HttpSettings
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import PATIENT, echo, get, put, run, serving


def test_a_connection_serves_one_request_after_the_other() -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            client = await served.connect()
            for number in range(3):
                answer = await client.ask(put(b"body", f"x-N: {number}", target="/a%2Fb?c=%20"))
                assert answer.status == 200
                assert answer.body == (
                    b"PUT /a%2Fb?c=%20\nHost=localhost\nContent-Length=4\n"
                    + f"x-N={number}\n\nbody".encode()
                )
                assert answer.header("Connection") is None
            await client.close()
        assert [(e.status, e.bytes_in, e.complete) for e in served.exchanges] == [
            (200, 4, True)
        ] * 3
        assert all(e.seconds >= 0 and e.bytes_out > 50 for e in served.exchanges)

    run(scenario())


@pytest.mark.parametrize(
    ("request_bytes", "connection"),
    [
        (get("/", "Connection: close"), "close"),
        (get("/", version="1.0"), "close"),
        (get("/", "Connection: close") + get("/never"), "close"),
    ],
)
def test_the_connection_ends_when_the_client_wants(request_bytes: bytes, connection: str) -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            client = await served.connect()
            answer = await client.ask(request_bytes)
            assert answer.status == 200
            assert answer.header("Connection") == connection
            assert await client.ended() == b""
            await client.close()
        assert len(served.exchanges) == 1

    run(scenario())


def test_http_1_0_can_keep_the_connection() -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            client = await served.connect()
            for _ in range(2):
                answer = await client.ask(get("/", "Connection: keep-alive", version="1.0"))
                assert answer.header("Connection") == "keep-alive"
            await client.close()

    run(scenario())


def test_a_handler_can_end_the_connection() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"last", close=True)

    async def scenario() -> None:
        async with serving(handler) as served:
            client = await served.connect()
            answer = await client.ask(get())
            assert (answer.body, answer.header("Connection")) == (b"last", "close")
            assert await client.ended() == b""
            await client.close()

    run(scenario())


def test_pipelined_requests_are_answered_in_order_one_at_a_time() -> None:
    running = 0

    async def handler(request: Request) -> Response:
        nonlocal running
        running += 1
        assert running == 1
        number = int(request.path[1:])
        await asyncio.sleep(0.02 if number % 2 == 0 else 0)
        body = await request.body.read_all(10)
        running -= 1
        return Response(200, [], f"{number}:{len(body)}".encode())

    async def scenario() -> None:
        async with serving(handler) as served:
            client = await served.connect()
            chunked = (
                get("/2", "Transfer-Encoding: chunked", method="PUT") + b"2\r\nhi\r\n0\r\n\r\n"
            )
            await client.send(
                get("/0") + put(b"abc", target="/1") + chunked + get("/3") + put(b"", target="/4")
            )
            bodies = [(await client.answer()).body for _ in range(5)]
            assert bodies == [b"0:0", b"1:3", b"2:2", b"3:0", b"4:0"]
            await client.close()

    run(scenario())


def test_thousands_of_pipelined_requests_do_not_fill_memory() -> None:
    go_on = asyncio.Event()

    async def handler(request: Request) -> Response:
        await go_on.wait()
        return Response(200, [], b"x")

    async def scenario() -> None:
        async with serving(handler) as served:
            client = await served.connect()
            one = get("/" + "y" * 300)
            count = 100_000

            async def send_all() -> None:
                for _ in range(count // 100):
                    await client.send(one * 100)

            sending = asyncio.create_task(send_all())
            await asyncio.sleep(0.5)
            # The kernel's buffers are full and the server has stopped reading, so the client is
            # blocked.
            assert not sending.done()
            connection = next(iter(served.server._connections))
            assert len(connection._pipelined) < 2**20
            sending.cancel()
            go_on.set()
            assert (await client.answer()).body == b"x"
            assert (await client.answer()).body == b"x"
            client.writer.transport.abort()

    run(scenario())


def test_many_pipelined_requests_are_all_answered() -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            client = await served.connect()
            count = 5000
            sending = asyncio.create_task(client.send(get("/a") * (count - 1) + get("/last")))
            answers = [await client.answer() for _ in range(count)]
            await sending
            assert answers[-1].body.startswith(b"GET /last")
            await client.close()

    run(scenario())


def test_a_client_that_ended_sending_still_gets_its_answers() -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            client = await served.connect()
            await client.send(get("/1") + put(b"two", target="/2"))
            client.end_sending()
            assert (await client.answer()).body.startswith(b"GET /1")
            assert (await client.answer()).body.endswith(b"two")
            assert await client.ended() == b""
            await client.close()

    run(scenario())


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_head_has_the_head_of_get(method: str) -> None:
    async def pieces() -> object:
        yield b"unread"

    async def handler(request: Request) -> Response:
        bodies = {
            "/bytes": Response(200, [], b"12345"),
            # An iterator of bytes.
            "/stream": Response(200, [], pieces(), 5),  # type: ignore[arg-type]
            "/size": Response(200, [], b"", 1234) if method == "HEAD" else Response(200, [], b"1"),
            "/empty": Response(200),
            "/304": Response(304, [("ETag", "x")], b"must not be sent"),
            "/204": Response(204),
        }
        return bodies[request.path]

    async def scenario() -> None:
        expected = {"/bytes": "5", "/stream": "5", "/empty": "0", "/304": None, "/204": None}
        if method == "HEAD":
            expected["/size"] = "1234"
        else:
            expected.pop("/stream")
        async with serving(handler) as served:
            client = await served.connect()
            for path, length in expected.items():
                answer = await client.ask(get(path, method=method), method=method)
                assert answer.header("Content-Length") == length, path
                assert answer.header("Transfer-Encoding") is None
            assert (await client.ask(get("/bytes"))).body == b"12345"
            await client.close()

    run(scenario())


SMUGGLING = {
    "two lengths": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nContent-Length: 5\r\n\r\n",
    "length and chunks": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "obscured chunks": b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n",
    "bare LF": b"GET / HTTP/1.1\nHost: a\n\n",
    "folded": b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
    "negative": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: -6\r\n\r\n",
    "unknown coding": b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLING)
def test_smuggling_is_refused_and_what_follows_is_never_handled(name: str) -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            client = await served.connect()
            answer = await client.ask(SMUGGLING[name] + get("/smuggled"))
            assert answer.status in (400, 501)
            assert answer.header("Connection") == "close"
            assert await client.ended() == b""
            await client.close()
        assert [exchange.request for exchange in served.exchanges] == [None]

    run(scenario())


def test_what_follows_a_broken_chunk_is_never_handled() -> None:
    paths = []

    async def handler(request: Request) -> Response:
        paths.append(request.path)
        return Response(201, [], await request.body.read_all(100))

    async def scenario() -> None:
        async with serving(handler) as served:
            client = await served.connect()
            head = get("/", "Transfer-Encoding: chunked", method="PUT")
            await client.send(head + b"1\r\nab\r\n")
            await client.send(b"0\r\n\r\n" + get("/smuggled"))
            answer = await client.answer()
            assert (answer.status, answer.header("Connection")) == (400, "close")
            assert await client.ended() == b""
            await client.close()

    run(scenario())
    assert paths == ["/"]


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/" + "a" * 2000), 414),
        (get("/", *(f"x{i}: y" for i in range(300))), 431),
        (get("/", "x: " + "y" * 100_000), 431),
        (b"FROB / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ],
)
def test_bounds_are_told_even_to_clients_that_go_on_sending(
    request_bytes: bytes, status: int
) -> None:
    async def scenario() -> None:
        async with serving(echo, settings=HttpSettings(target_bytes_max=1000)) as served:
            client = await served.connect()
            answer = await client.ask(request_bytes + b"z" * 200_000)
            assert answer.status == status
            await client.close()

    run(scenario())


def test_an_unexpected_error_is_logged_without_secrets_and_the_connection_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(request: Request) -> Response:
        if request.path == "/bug":
            raise RuntimeError("a defect")
        if request.path == "/refused":
            raise StorageError(BLOB_NOT_FOUND)
        return Response(200)

    async def scenario() -> None:
        async with serving(handler) as served:
            client = await served.connect()
            answer = await client.ask(get("/bug?sig=SECRET1", "Authorization: SECRET2"))
            assert (answer.status, answer.code) == (500, "InternalError")
            assert (await client.ask(get("/refused"))).code == "BlobNotFound"
            assert (await client.ask(get("/fine"))).status == 200
            await client.close()

    run(scenario())
    assert "a defect" in caplog.text
    assert "Traceback" in caplog.text
    assert "/bug" in caplog.text
    assert "SECRET" not in caplog.text


def test_a_waiting_handler_learns_that_its_client_left() -> None:
    async def scenario() -> None:
        left = asyncio.Event()
        started = asyncio.Event()

        async def handler(request: Request) -> Response:
            request.on_disconnect(left.set)
            started.set()
            await left.wait()
            assert request.is_disconnected
            return Response(200)

        async with serving(handler, settings=PATIENT) as served:
            client = await served.connect()
            await client.send(get())
            await started.wait()
            await client.close()
            await left.wait()

    run(scenario())


def test_an_absolute_target_decides_the_host() -> None:
    """RFC 9112, 3.2.2: the Host header is ignored then."""

    async def handler(request: Request) -> Response:
        return Response(200, [], f"{request.host} {request.headers.get('host')}".encode())

    async def scenario() -> None:
        async with serving(handler) as served:
            client = await served.connect()
            for target, host in (
                ("http://acct.blob.localhost:1/a", "acct.blob.localhost:1"),
                ("HTTPS://other.example?c=d", "other.example"),
                ("http://user@other.example/a", "other.example"),
            ):
                answer = await client.ask(get(target))
                assert answer.body == f"{host} {host}".encode()
            sent = (await client.ask(get("/http://other.example/"))).body
            assert b"other.example" not in sent
            await client.close()

    run(scenario())


def test_absolute_targets_are_understood_and_kept() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], f"{request.target} {request.path} {request.query}".encode())

    async def scenario() -> None:
        async with serving(handler) as served:
            client = await served.connect()
            answer = await client.ask(get("http://localhost:1/a/b?c=d"))
            assert answer.body == b"http://localhost:1/a/b?c=d /a/b c=d"
            answer = await client.ask(get("*", method="OPTIONS"))
            assert answer.body == b"* * None"
            await client.close()

    run(scenario())
