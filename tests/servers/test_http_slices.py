"""Large bodies and large files of many connections do not share a turn of the event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.limits import KIB, MIB
from strongroom.servers.http.body import IncomingBody
from strongroom.servers.http.buffers import Share
from strongroom.servers.http.server import HttpServer
from strongroom.values import FileSlice
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import Served as Server
from tests.servers.loopback import get, listen_somewhere, render_error, run
from tests.services.core.test_slices import Turns, every_pause

COUNT = 8


class Connection:
    """The connection of a body, which is never asked to wait."""

    is_held_back = False

    def body_wanted(self) -> None: ...

    def pause_body(self) -> None: ...

    def resume_body(self) -> None: ...


@pytest.mark.parametrize("is_read_early", [True, False])
@pytest.mark.parametrize(("piece_bytes", "turns_least"), [(MIB, COUNT), (KIB, 1)])
def test_one_large_body_is_joined_in_a_turn(
    piece_bytes: int, turns_least: int, is_read_early: bool
) -> None:
    async def scenario() -> None:
        slices, ends = every_pause(), list[int]()
        share = Share(4 * MIB, MIB)
        bodies = [
            IncomingBody(2 * piece_bytes, Connection(), share, slices=slices) for _ in range(COUNT)
        ]

        async def read(body: IncomingBody) -> None:
            assert await body.read_all(2 * piece_bytes) == b"ab" * piece_bytes
            ends.append(turns.number)

        async with Turns() as turns:
            reading = [asyncio.create_task(read(body)) for body in bodies] if is_read_early else []
            await asyncio.sleep(0)
            for body in bodies:
                body.receive(b"ab" * (piece_bytes // 2))
                body.receive(b"ab" * (piece_bytes // 2))
            await asyncio.gather(*(reading or map(read, bodies)))
        assert len(set(ends)) == turns_least

    run(scenario())


def test_the_kernel_copies_one_piece_of_a_file_in_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(8 * MIB))

    async def handler(request: Request) -> Response:
        file = large.open("rb")

        async def pieces() -> AsyncIterator[FileSlice]:
            yield FileSlice(file, 0, 8 * MIB)

        return Response(200, [], pieces(), 8 * MIB, finished=file.close)

    async def scenario() -> None:
        loop, begun = asyncio.get_running_loop(), Counter[int]()
        send = loop.sendfile

        async def sendfile(*given: Any, **named: Any) -> int:
            begun[turns.number] += 1
            return await send(*given, **named)

        monkeypatch.setattr(loop, "sendfile", sendfile)
        server = HttpServer(handler, render_error, slices=every_pause())
        served = Server(server, "127.0.0.1", await listen_somewhere(server, "127.0.0.1"))
        async with Turns() as turns:
            clients = [await served.connect() for _ in range(4)]
            answers = await asyncio.gather(*(client.ask(get("/large")) for client in clients))
        await server.close()
        assert [len(answer.body) for answer in answers] == [8 * MIB] * 4
        assert sum(begun.values()) == 4 * 8
        # The first pause of all begins the measurement, so that turn may have two.
        assert sorted(begun.values())[:-1] == [1] * (len(begun) - 1)

    run(scenario())
