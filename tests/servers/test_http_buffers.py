"""The memory of bodies: shares of one total, which are released when their handlers end."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from strongroom.errors.core import INCOMPLETE_BODY, StorageError
from strongroom.servers.free_memory import MemoryReturn
from strongroom.servers.http.body import IncomingBody
from strongroom.servers.http.buffers import SHARE_BYTES_MIN, BodyBuffers, Share
from strongroom.store.blob.bodies import received
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import get, run, serving


class _Transport(asyncio.BaseTransport):
    max_size = 10**9


class _Source:
    is_held_back = False

    def body_wanted(self) -> None:
        pass

    def pause_body(self) -> None:
        pass

    def resume_body(self) -> None:
        pass


def test_each_body_of_a_crowd_holds_and_reads_less() -> None:
    buffers = BodyBuffers(256 * 1024, 1024 * 1024)
    transport = _Transport()
    shares = [buffers.begin(transport).high_bytes for _ in range(1000)]
    assert shares[:4] == [256 * 1024] * 4
    assert shares[7] == 128 * 1024
    assert shares[-1] == SHARE_BYTES_MIN == transport.max_size
    assert shares == sorted(shares, reverse=True)
    for _ in range(1000):
        buffers.end()
    assert buffers.begin(transport).high_bytes == 256 * 1024 == transport.max_size


def test_a_body_counts_until_its_handler_is_over() -> None:
    seen: list[str] = []
    goes_on = asyncio.Event()

    async def handler(request: Request) -> Response:
        seen.append(request.method)
        await goes_on.wait()
        return Response(200, [], b"")

    async def scenario() -> None:
        async with serving(handler) as served:
            buffers = served.server.buffers
            clients = [await served.connect() for _ in range(3)]
            for client in clients:
                await client.send(get("/", "Content-Length: 100", method="PUT"))
            while len(seen) < 3:  # noqa: ASYNC110 - bounded by `run`
                await asyncio.sleep(0.01)
            assert buffers._bodies == 3
            clients[0].writer.transport.abort()
            goes_on.set()
            for client in clients[1:]:
                assert (await client.answer()).status == 200
                await client.close()
            while buffers._bodies:  # noqa: ASYNC110 - bounded by `run`
                await asyncio.sleep(0.01)

    run(scenario())


def test_a_body_that_failed_is_freed_without_the_collector() -> None:
    async def scenario() -> None:
        buffers = BodyBuffers(1000, 10_000)
        body = IncomingBody(100, _Source(), Share(1000, 100), None, buffers)
        body.receive(b"x" * 50)
        body.fail(StorageError(INCOMPLETE_BODY))
        with pytest.raises(StorageError):
            await body.read_all(1000)
        body.release()
        assert body._error is not None
        gone = weakref.ref(body._error)
        del body
        assert gone() is None

    gc.disable()
    try:
        run(scenario())
    finally:
        gc.enable()


def test_what_arrived_unread_goes_with_the_handler() -> None:
    body = IncomingBody(100, _Source(), Share(1000, 100))
    body.receive(b"x" * 50)
    body.release()
    assert not body._chunks
    assert body.left_bytes == 50


def test_no_chunk_is_kept_while_the_client_is_waited_for() -> None:
    class Chunk(bytearray):
        """Bytes that can be watched."""

    watched: list[weakref.ref[Chunk]] = []

    async def arriving() -> object:
        for _ in range(3):
            chunk = Chunk(b"x")
            watched.append(weakref.ref(chunk))
            yield chunk
            del chunk
            assert watched[-1]() is None, "somebody holds what was handed on"

    async def scenario() -> None:
        first = Chunk(b"y")
        watched.append(weakref.ref(first))
        head = [first]
        del first
        taken = 0
        # A list of pieces.
        async for chunk in received._chain(head, arriving()):  # type: ignore[arg-type]
            taken += len(chunk)
            del chunk
        assert taken == 4
        assert watched[0]() is None

    run(scenario())


def test_memory_is_given_back_while_there_is_more_than_at_the_least() -> None:
    trimmed: list[int] = []
    now = [50_000_000]
    memory = MemoryReturn(lambda: now[0], lambda: trimmed.append(now[0]))
    memory.check()
    assert trimmed == []
    now[0] = 90_000_000
    memory.check()
    now[0] = 70_000_000
    memory.check()
    assert trimmed == [90_000_000, 70_000_000]
    now[0] = 40_000_000
    memory.check()
    now[0] = 50_000_000
    memory.check()
    assert trimmed == [90_000_000, 70_000_000, 50_000_000]
