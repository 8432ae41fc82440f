"""Clients that request large answers and do not read them: the held answers are bounded."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from strongroom import limits
from strongroom.clock import ManualClock
from strongroom.engines.base import Page as ScanPage
from strongroom.engines.base import Position
from strongroom.engines.conditions import Condition
from strongroom.engines.memory import MemoryEngine
from strongroom.semantics.core import listing
from strongroom.services.core.pages import fill
from strongroom.services.core.runner import Services
from strongroom.store.core import keys
from strongroom.testing.contract.subject import face, put
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import PATIENT, Served, no_more_than, run, serving

_ASK = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
_BODY = bytes(8 * limits.MIB)
_HELD = 3


async def _large(request: Request) -> Response:
    return Response(200, [], _BODY)


def _ask_and_sleep(served: Served) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", served.port))
    client.sendall(_ASK)
    return client


def test_the_oldest_unread_answers_are_broken_off() -> None:
    settings = replace(PATIENT, answers_bytes_max=_HELD * len(_BODY))

    async def prove() -> None:
        async with serving(_large, settings=settings) as served:
            sleepers = []
            for _ in range(10):
                sleepers.append(_ask_and_sleep(served))
                await asyncio.sleep(0.02)
            await no_more_than(served, _HELD)
            reader = await served.connect()
            answer = await reader.ask(_ASK)
            assert answer.complete
            assert len(answer.body) == len(_BODY)
            for sleeper in sleepers:
                sleeper.close()

    run(prove())


def test_those_who_read_are_never_broken_off() -> None:
    settings = replace(PATIENT, answers_bytes_max=_HELD * len(_BODY))

    async def prove() -> None:
        async with serving(_large, settings=settings) as served:
            reader = await served.connect()
            for _ in range(2 * _HELD):
                answer = await reader.ask(_ASK)
                assert answer.complete

    run(prove())


def test_a_body_of_many_tiny_pieces_lets_others_have_their_turn() -> None:
    pieces = 2_000
    turns = [0, 0]

    async def tiny() -> AsyncIterator[bytes]:
        before = turns[0]
        for _ in range(pieces):
            yield b"x"
        turns[1] = turns[0] - before

    async def handler(request: Request) -> Response:
        return Response(200, [], tiny(), pieces)

    async def others() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    async def prove() -> None:
        async with serving(handler) as served:
            busy = asyncio.create_task(others())
            answer = await (await served.connect()).ask(_ASK)
            busy.cancel()
            assert answer.body == b"x" * pieces
            assert turns[1] > 20

    run(prove())


class _ShortScans(MemoryEngine):
    """Scans that end after a few records, as scans of large ones do."""

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int = 0,
        where: Condition | None = None,
    ) -> ScanPage:
        return await super().scan(keyspace, first, until, max_records, 5_000)


def _rows(found: ScanPage) -> list[tuple[bytes, bytes, bytes | None]]:
    return [(name, key, name) for name, key, _, _ in found.rows()]


def test_a_page_of_large_records_ends_early_and_the_next_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LIST_SCANNED_BYTES_MAX", 20_000)
    names = [b"%02d" % number for number in range(45)]

    async def prove() -> None:
        store = _ShortScans(ManualClock())
        for name in names:
            await put(store, (face(keys.HEAD_KEY.name, name), bytes(2_000)))
        start: listing.Position | None = listing.START
        found: list[object] = []
        while start is not None:
            page = listing.PageBuilder[bytes]("", "", len(names), start)
            await fill(Services(store, ManualClock()), b"k", page, _rows)
            assert 5 < len(page.items) < 20
            found += page.items
            start = page.marker
        assert found == names

    asyncio.run(prove())
