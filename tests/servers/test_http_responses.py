"""Response bodies over sockets: pieces, files, failures; `finished` is called exactly once."""

from __future__ import annotations

import asyncio
import socket
import struct
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import BinaryIO

import pytest

from strongroom.errors.blob import BLOB_NOT_FOUND
from strongroom.errors.core import StorageError
from strongroom.servers.http.send import Sender, plan_response
from strongroom.servers.http.send_bodies import BodySender
from strongroom.servers.http.turns import RequestTurns
from strongroom.slices import SliceTurns
from strongroom.values import FileSlice
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import QUICK, Handler, get, no_more_than, run, serving

MIB = 2**20
CONTENT = bytes(range(256)) * (20 * 4096)  # 20 MiB


@pytest.fixture(name="file", scope="module")
def _file() -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as file:
        file.write(CONTENT)
        file.flush()
        yield file


class Finish:
    """Counts the calls of `finished`."""

    def __init__(self) -> None:
        self.calls = 0
        self.event = asyncio.Event()

    def __call__(self) -> None:
        self.calls += 1
        self.event.set()


async def pieces_of(*pieces: bytes | FileSlice) -> AsyncIterator[bytes | FileSlice]:
    for piece in pieces:
        yield piece


def answering(*responses: Response) -> Handler:
    """Return a handler that answers with these responses, one after the other."""
    remaining = list(responses)

    async def handler(request: Request) -> Response:
        return remaining.pop(0)

    return handler


@pytest.mark.parametrize("size", [0, 1, 70_000, 5 * MIB])
def test_bytes_of_any_size(size: int) -> None:
    async def scenario() -> None:
        finish = Finish()
        async with serving(answering(Response(200, [], CONTENT[:size], finished=finish))) as served:
            client = await served.connect()
            answer = await client.ask(get())
            assert answer.body == CONTENT[:size]
            assert answer.header("Content-Length") == str(size)
            await client.close()
        assert finish.calls == 1
        assert served.exchanges[0].bytes_out > size

    run(scenario())


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_pieces_and_file_slices_in_order(file: BinaryIO, known: bool, version: str) -> None:
    async def scenario() -> None:
        slices = [(0, 10), (5, 60_000), (1, 200_000), (7, 3 * MIB + 1), (0, 0), (100, 5)]
        pieces: list[bytes | FileSlice] = [b"first", b"", b"x" * 300_000]
        pieces += [FileSlice(file, offset, length) for offset, length in slices]
        pieces.append(b"last")
        expected = b"first" + b"x" * 300_000
        expected += b"".join(CONTENT[o : o + n] for o, n in slices) + b"last"
        size = len(expected) if known else None
        finish = Finish()
        response = Response(206, [], pieces_of(*pieces), size, finished=finish)
        async with serving(answering(response, Response(200, [], b"next"))) as served:
            client = await served.connect()
            answer = await client.ask(get(version=version))
            assert answer.body == expected
            framing = (answer.header("Content-Length"), answer.header("Transfer-Encoding"))
            if known:
                assert framing == (str(len(expected)), None)
            else:
                assert framing == (None, "chunked" if version == "1.1" else None)
            if version == "1.1":
                assert (await client.ask(get())).body == b"next"
            else:
                assert await client.ended() == b""
            await client.close()
        assert finish.calls == 1

    run(scenario())


def test_clients_share_a_file(file: BinaryIO) -> None:
    async def handler(request: Request) -> Response:
        offset = int(request.path[1:])
        return Response(200, [], pieces_of(FileSlice(file, offset, 4 * MIB)), 4 * MIB)

    async def scenario() -> None:
        async with serving(handler) as served:

            async def fetch(offset: int) -> None:
                client = await served.connect()
                answer = await client.ask(get(f"/{offset}"))
                assert answer.body == CONTENT[offset : offset + 4 * MIB]
                await client.close()

            await asyncio.gather(*(fetch(offset) for offset in range(0, 80, 10)))

    run(scenario())


async def failing(first: bytes) -> AsyncIterator[bytes | FileSlice]:
    if first:
        yield first
    await asyncio.sleep(0)
    raise RuntimeError("the disk is on fire")


@pytest.mark.parametrize("size", [None, 1000])
def test_a_body_that_fails_midway_never_looks_complete(size: int | None) -> None:
    async def scenario() -> None:
        finish = Finish()
        response = Response(200, [], failing(b"some"), size, finished=finish)
        async with serving(answering(response)) as served:
            client = await served.connect()
            answer = await client.ask(get())
            assert (answer.status, answer.complete) == (200, False)
            await client.close()
        assert finish.calls == 1
        assert [e.complete for e in served.exchanges] == [False]

    run(scenario())


def test_a_body_that_fails_at_once_becomes_an_error(caplog: pytest.LogCaptureFixture) -> None:
    def missing() -> bytes:
        raise StorageError(BLOB_NOT_FOUND)

    async def refusing() -> AsyncIterator[bytes]:
        yield missing()

    async def scenario() -> None:
        finish = Finish()
        responses = (
            Response(200, [], failing(b""), 9, finished=finish),
            Response(200, [], refusing(), 9, finished=finish),
            Response(206, [], pieces_of(b"whole"), 5),
        )
        async with serving(answering(*responses)) as served:
            client = await served.connect()
            assert (await client.ask(get())).code == "InternalError"
            assert (await client.ask(get())).code == "BlobNotFound"
            answer = await client.ask(get())
            assert (answer.status, answer.body) == (206, b"whole")
            await client.close()
        assert finish.calls == 2
        assert [e.status for e in served.exchanges] == [500, 404, 206]

    run(scenario())
    assert "the disk is on fire" in caplog.text


def test_a_body_of_the_wrong_length_is_broken_off(file: BinaryIO) -> None:
    async def scenario() -> None:
        end = len(CONTENT)
        bodies: list[tuple[bytes | FileSlice, ...]] = [
            (b"abc",),
            (b"abc", b"defghijklm"),
            (b"1", FileSlice(file, end - 1, 9)),
            (b"1", FileSlice(file, end - 70_000, 100_000)),
        ]
        for pieces in bodies:
            size = 10 if len(pieces) == 1 or isinstance(pieces[1], bytes) else 1 + pieces[1].length
            async with serving(answering(Response(200, [], pieces_of(*pieces), size))) as served:
                client = await served.connect()
                try:
                    answer = await client.ask(get())
                    assert not answer.complete or answer.status == 500
                except ConnectionError:
                    pass  # aborted before the head arrived, which is no complete answer either
                await client.close()

    run(scenario())


@pytest.mark.parametrize("what", ["pieces", "slice", "bytes"])
def test_a_client_that_leaves_stops_the_response(what: str, file: BinaryIO) -> None:
    produced = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal produced
        while True:
            produced += 1
            yield b"z" * 65_536

    async def scenario() -> None:
        finish = Finish()
        response = {
            "pieces": Response(200, [], endless(), finished=finish),
            "slice": Response(
                200, [], pieces_of(FileSlice(file, 0, len(CONTENT))), len(CONTENT), finished=finish
            ),
            "bytes": Response(200, [], CONTENT, finished=finish),
        }[what]
        async with serving(answering(response)) as served:
            client = await served.connect(limit=1000)
            await client.send(get())
            await client.reader.readexactly(500)
            await asyncio.sleep(0.1)
            held_back = produced
            await asyncio.sleep(0.1)
            assert produced == held_back, "a slow client must hold the producer back"
            assert finish.calls == 0
            client.writer.transport.abort()
            await finish.event.wait()
        assert finish.calls == 1
        assert [e.complete for e in served.exchanges] == [False]

    run(scenario())


def test_nothing_is_written_to_a_connection_that_is_known_to_be_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first failed write is reported. asyncio logs a warning for each later write."""

    async def scenario() -> None:
        produced = 0
        client = socket.socket()

        async def pieces() -> AsyncIterator[bytes]:
            nonlocal produced
            yield b"first"
            # The client resets the connection, and the loop has no turn to notice it.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            for _ in range(24):
                produced += 1
                yield b"more"

        finish = Finish()
        async with serving(answering(Response(200, [], pieces(), finished=finish))) as served:
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(client, (served.host, served.port))
            await loop.sock_sendall(client, get())
            await finish.event.wait()
        assert produced < 5
        assert [e.complete for e in served.exchanges] == [False]

    run(scenario())
    assert caplog.messages == []


@pytest.mark.parametrize("what", ["pieces", "slice", "bytes"])
def test_a_client_that_stops_reading_is_given_up(what: str, file: BinaryIO) -> None:
    async def scenario() -> None:
        finish = Finish()
        size = len(CONTENT)
        whole = FileSlice(file, 0, size)
        response = {
            "pieces": Response(200, [], pieces_of(*[CONTENT[:MIB]] * 20), size, finished=finish),
            "slice": Response(200, [], pieces_of(whole), size, finished=finish),
            "bytes": Response(200, [], CONTENT, finished=finish),
        }[what]
        async with serving(answering(response), settings=QUICK) as served:
            client = await served.connect(limit=1000)
            await client.send(get())
            await finish.event.wait()
            await no_more_than(served, 0)
            client.writer.transport.abort()
        assert finish.calls == 1
        assert [e.complete for e in served.exchanges] == [False]

    run(scenario())


def test_a_slow_but_steady_reader_is_served(file: BinaryIO) -> None:
    async def scenario() -> None:
        size = 8 * MIB
        response = Response(200, [], pieces_of(FileSlice(file, 0, size)), size)
        async with serving(answering(response), settings=QUICK) as served:
            client = await served.connect(limit=2**16)
            await client.send(get())
            received = await client.reader.readuntil(b"\r\n\r\n")
            received = b""
            while len(received) < size:
                received += await client.reader.readexactly(min(MIB, size - len(received)))
                await asyncio.sleep(0.1)
            assert received == CONTENT[:size]
            await client.close()

    run(scenario())


def test_a_response_to_nobody_is_finished_too() -> None:
    async def scenario() -> None:
        finish = Finish()
        may_answer = asyncio.Event()
        started = asyncio.Event()

        async def handler(request: Request) -> Response:
            started.set()
            await may_answer.wait()
            return Response(200, [], pieces_of(b"x"), 1, finished=finish)

        async with serving(handler) as served:
            client = await served.connect()
            await client.send(get())
            await started.wait()
            client.writer.transport.abort()
            await asyncio.sleep(0.05)
            may_answer.set()
            await finish.event.wait()
        assert finish.calls == 1

    run(scenario())


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "a\0b"])
def test_a_header_can_never_split_a_response(value: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        finish = Finish()
        response = Response(200, [("Content-Type", value)], b"x", finished=finish)
        async with serving(answering(response)) as served:
            client = await served.connect()
            answer = await client.ask(get())
            assert (answer.status, answer.header("Set-Cookie")) == (500, None)
            await client.close()
        assert finish.calls == 1

    run(scenario())
    assert "line end" in caplog.text


def test_headers_go_out_as_given_and_framing_is_ours() -> None:
    async def scenario() -> None:
        headers = [
            ("x-ms-meta-CaSe", "v\xe4lue"),
            ("x-MS-meta-case", "\u2603"),
            ("Content-Length", "999"),
            ("Connection", "close"),
        ]
        response = Response(299, headers, b"abc", reason="Very\r\nFine")
        async with serving(answering(response)) as served:
            client = await served.connect()
            answer = await client.ask(get())
            assert (answer.status, answer.reason, answer.body) == (299, "Very  Fine", b"abc")
            assert ("x-MS-meta-case", "\u2603".encode().decode("latin-1")) in answer.headers
            assert answer.header("Content-Length") == "3"
            assert answer.header("Connection") is None
            await client.close()

    run(scenario())


class FastReader(asyncio.Transport):
    """A transport whose client reads as fast as the server writes."""

    def __init__(self) -> None:
        self.written_bytes = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written_bytes += len(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False


def test_a_large_answer_to_a_fast_reader_holds_up_nobody() -> None:
    async def scenario() -> None:
        loop, transport = asyncio.get_running_loop(), FastReader()
        turns = RequestTurns(lambda call: loop.call_soon(call))
        sender = Sender(transport, loop, turns)
        bodies = BodySender(sender, transport, loop, SliceTurns(), tls=False)
        response = Response(200, [], bytes(16 * MIB))
        plan = plan_response(response, method="GET", http_1_0=False, keep_alive=True)
        sending = asyncio.create_task(bodies.send(plan, response))
        before = 0
        while not sending.done():
            await asyncio.sleep(0)
            assert transport.written_bytes - before <= MIB + len(plan.head)
            before = transport.written_bytes
        assert transport.written_bytes == 16 * MIB + len(plan.head)

    run(scenario())
