"""Clients that send large documents, complete or not, cannot fill the memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from strongroom import limits
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import PATIENT, Client, Served, run, serving

_DOCUMENT = bytes(4 * limits.MIB)
_FIT = 3
_HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(_DOCUMENT)
_SETTINGS = replace(PATIENT, documents_bytes_max=_FIT * len(_DOCUMENT))


class _Readers:
    """A handler that reads documents whole, and answers when it is let go."""

    def __init__(self) -> None:
        self.reading = 0
        self.have = 0
        self.go = asyncio.Event()
        self._changed = asyncio.Condition()

    async def handle(self, request: Request) -> Response:
        await self._count(reading=1)
        try:
            await request.body.read_all(len(_DOCUMENT))
        finally:
            await self._count(reading=-1)
        await self._count(have=1)
        await self.go.wait()
        await self._count(have=-1)
        return Response(200)

    async def _count(self, reading: int = 0, have: int = 0) -> None:
        async with self._changed:
            self.reading += reading
            self.have += have
            self._changed.notify_all()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds."""
        async with self._changed:
            await self._changed.wait_for(holds)


async def _sent(served: Served, part: float = 1.0) -> Client:
    client = await served.connect()
    await client.send(_HEAD + _DOCUMENT[: int(len(_DOCUMENT) * part)])
    return client


def test_documents_that_have_arrived_keep_others_out() -> None:
    async def prove() -> None:
        readers = _Readers()
        async with serving(readers.handle, settings=_SETTINGS) as served:
            clients = [await _sent(served) for _ in range(_FIT)]
            await readers.until(lambda: readers.have == _FIT)
            late = await served.connect()
            answer = await late.ask(_HEAD + _DOCUMENT[: len(_DOCUMENT) // 2])
            assert (answer.status, answer.code) == (503, "ServerBusy")
            readers.go.set()
            for client in clients:
                assert (await client.answer()).status == 200
            # There is room again, as much as before.
            again = [await _sent(served) for _ in range(_FIT)]
            for client in again:
                assert (await client.answer()).status == 200

    run(prove())


def test_who_never_ends_makes_room_for_who_does() -> None:
    """Ten clients send all but the last bytes of their documents and fall silent."""

    async def prove() -> None:
        readers = _Readers()
        readers.go.set()
        async with serving(readers.handle, settings=_SETTINGS) as served:
            silent = []
            for _ in range(10):
                silent.append(await _sent(served, 0.9))
                await asyncio.sleep(0.02)
            await readers.until(lambda: readers.reading <= _FIT)
            quick = await served.connect()
            assert (await quick.ask(_HEAD + _DOCUMENT)).status == 200
            answer = await silent[0].answer()
            assert (answer.status, answer.code) == (503, "ServerBusy")

    run(prove())


def test_who_leaves_takes_its_document_along() -> None:
    async def prove() -> None:
        readers = _Readers()
        readers.go.set()
        async with serving(readers.handle, settings=_SETTINGS) as served:
            for _ in range(4 * _FIT):
                gone = await _sent(served, 0.9)
                gone.writer.close()
            await readers.until(lambda: readers.reading == 0)
            clients = [await _sent(served) for _ in range(_FIT)]
            for client in clients:
                assert (await client.answer()).status == 200

    run(prove())
