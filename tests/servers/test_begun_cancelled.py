"""Who is cancelled, or given up, leaves nothing behind of what was waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

import pytest

from strongroom.limits import MIB
from strongroom.values import FileSlice
from strongroom.wire.core.http import Request, Response
from tests.servers.holder import Holder, Work
from tests.servers.loopback import Served, get, no_more_than, run, serving


async def _cancelled(work: Work) -> None:
    """Begin `work`, and cancel its task before that takes over, as a connection's does."""
    holder = Holder(work)
    begun = await holder.begin()
    assert begun is not None
    begun.cancel(asyncio.CancelledError())
    holder.handed.set_result(begun)
    with pytest.raises(asyncio.CancelledError):
        await holder.task


def test_a_cancellation_reaches_what_is_waited_for() -> None:
    async def scenario() -> None:
        waited_for: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        few = asyncio.Semaphore(1)
        await few.acquire()
        ended: list[str] = []

        async def child() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0)
                ended.append("child")

        async def plain() -> None:
            await waited_for

        async def another() -> None:
            await asyncio.create_task(child())

        async def permit() -> None:
            await few.acquire()

        await _cancelled(plain)
        assert waited_for.cancelled()
        await _cancelled(another)
        assert ended == ["child"], "and is waited for"
        await _cancelled(permit)
        assert few.locked(), "nobody gave a permit back"
        few.release()
        assert not few.locked()

    run(scenario())


def test_several_may_wait_for_the_same() -> None:
    async def scenario() -> None:
        shared: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        seen: list[str] = []

        async def work() -> None:
            seen.append(await shared)

        holders = [Holder(work) for _ in range(3)]
        begun = [await holder.begin() for holder in holders]
        plain = asyncio.create_task(work())
        await asyncio.sleep(0.01)
        for holder, one in zip(holders, begun, strict=True):
            assert one is not None
            holder.handed.set_result(one)
        await asyncio.sleep(0.01)
        shared.set_result("seen")
        await asyncio.gather(plain, *(holder.task for holder in holders))
        assert seen == ["seen"] * 4

    run(scenario())


async def _begins_to_send(served: Served) -> None:
    connections = served.server._connections
    while not any(one._sender.in_kernel for one in connections):  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.01)


def test_a_slow_reader_that_is_given_up_leaves_nothing_in_the_selector(tmp_path: Path) -> None:
    async def scenario() -> None:
        large = tmp_path / "large"
        large.write_bytes(bytes(32 * MIB))

        async def slices(file: BinaryIO) -> AsyncIterator[FileSlice]:
            yield FileSlice(file, 0, 32 * MIB)

        async def handler(request: Request) -> Response:
            if request.target != "/large":
                return Response(200, [], b"well")
            file = large.open("rb")
            return Response(200, [], slices(file), 32 * MIB, finished=file.close)

        async with serving(handler) as served:
            client = await served.connect()
            await client.send(get("/large"))
            await _begins_to_send(served)
            await asyncio.sleep(0.05)
            for connection in list(served.server._connections):
                connection.give_up()
            await no_more_than(served, 0)
            for _ in range(3):  # they get the number of the socket that was closed
                other = await served.connect()
                assert (await other.ask(get())).body == b"well"

    run(scenario())
