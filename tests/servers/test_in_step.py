"""A crowd's requests go their way in step, and their answers leave together; nobody alone waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from strongroom.servers.http import outbox, stages
from strongroom.servers.http.outbox import Outbox
from strongroom.servers.http.protocol import Connection
from strongroom.servers.http.stages import IN_STEP_MAX, go_in_step, stretch_ends
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import Client, Served, get, no_more_than, run, serving


async def _crowd(served: Served, count: int) -> list[Client]:
    """Connections that the server knows, none of which was served last."""
    clients = [await served.connect() for _ in range(count)]
    for client in clients:
        assert (await client.ask(get("/first"))).status == 200
    last = await served.connect()
    assert (await last.ask(get("/first"))).status == 200
    await last.close()
    served.server.scheduler._served_last = None
    await no_more_than(served, count)
    return clients


def _connections(served: Served, count: int) -> list[Connection]:
    found = list(served.server._connections)
    assert len(found) == count
    return found


def test_all_come_to_the_end_of_a_stretch_before_one_goes_on() -> None:
    async def scenario() -> None:
        steps: list[str] = []

        async def handler(request: Request) -> Response:
            for stretch in ("a", "b", "c"):
                if request.target != "/first":
                    steps.append(stretch)
                await stretch_ends()
            return Response(200, [], request.target.encode())

        async with serving(handler) as served:
            clients = await _crowd(served, 4)
            for connection in _connections(served, 4):
                connection.data_received(get("/second"))
            for client in clients:
                assert (await client.answer()).body == b"/second"
            assert steps == [*"aaaa", *"bbbb", *"cccc"]

    run(scenario())


def test_who_is_alone_lets_nobody_come_first() -> None:
    async def scenario() -> None:
        seen: list[bool] = []

        async def handler(request: Request) -> Response:
            other: list[str] = []
            asyncio.get_running_loop().call_soon(other.append, "turn")
            await stretch_ends()
            seen.append(bool(other))
            return Response(200, [], b"")

        async with serving(handler) as served:
            client = await served.connect()
            for _ in range(3):
                assert (await client.ask(get())).status == 200
        assert seen == [False] * 3

    run(scenario())


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("turns", [1, 2, 20])
def test_one_that_asks_for_turns_of_the_loop_gets_them(count: int, turns: int) -> None:
    async def scenario() -> None:
        async def handler(request: Request) -> Response:
            for _ in range(turns):
                await asyncio.sleep(0)
            return Response(200, [], b"%d" % turns)

        async with serving(handler) as served:
            clients = await _crowd(served, count)
            for connection in _connections(served, count):
                connection.data_received(get("/second"))
            for client in clients:
                assert (await client.answer()).body == b"%d" % turns

    run(scenario())


def test_a_large_crowd_goes_in_several() -> None:
    begun: list[int] = []

    def go(one: int) -> bool:
        begun.append(one)
        return one == 1

    assert go_in_step(range(3), go) == [1]
    assert begun[:3] == [0, 1, 2]
    assert set(begun[3:]) == {1}

    async def scenario() -> None:
        async def handler(request: Request) -> Response:
            return Response(200, [], request.target.encode())

        count = 2 * IN_STEP_MAX + 3
        async with serving(handler) as served:
            clients = await _crowd(served, count)
            for connection in _connections(served, count):
                connection.data_received(get("/second"))
            for client in clients:
                assert (await client.answer()).body == b"/second"

    run(scenario())


@pytest.mark.parametrize("ended", ["cancelled", "failed"])
def test_one_that_ends_within_a_stretch_holds_up_nobody(ended: str) -> None:
    async def scenario() -> None:
        failing: list[str] = []

        async def handler(request: Request) -> Response:
            await stretch_ends()
            if request.target != "/first" and not failing:
                failing.append(request.target)
                raise asyncio.CancelledError if ended == "cancelled" else KeyError("a defect")
            return Response(200, [], b"well")

        async with serving(handler) as served:
            clients = await _crowd(served, 3)
            for connection in _connections(served, 3):
                connection.data_received(get("/second"))
            if ended == "cancelled":
                await no_more_than(served, 3)
            for client in clients:
                client.end_sending()
            ends = [await client.ended() for client in clients]
            assert sum(end.endswith(b"well") for end in ends) == 2
        assert not stages._crowds

    run(scenario())


def test_a_crowd_that_cannot_go_on_leaves_no_crowd_behind() -> None:
    def fails(one: int) -> bool:
        raise KeyError(one)

    with pytest.raises(KeyError):
        go_in_step((1, 2), fails)
    assert not stages._crowds


def test_what_waits_leaves_in_order_and_when_it_is_many() -> None:
    async def scenario() -> None:
        sent: list[bytes] = []
        box = Outbox(asyncio.get_running_loop().call_soon)
        for number in range(outbox.WAITING_MAX + 2):
            box.put(sent.append, b"%d" % number)
        assert sent == [b"%d" % number for number in range(outbox.WAITING_MAX)]
        await asyncio.sleep(0)
        assert len(sent) == outbox.WAITING_MAX + 2
        box.empty()
        assert len(sent) == outbox.WAITING_MAX + 2

    run(scenario())


Then = Callable[[Connection], object]


@pytest.mark.parametrize(
    "then",
    [
        lambda connection: connection.eof_received(),
        lambda connection: connection.close_if_idle(),
        lambda connection: connection.data_received(b"no request\r\n\r\n"),
        lambda connection: connection.abort(),
        lambda connection: connection.expire(0.0),
    ],
    ids=["the client sends no more", "drained", "refused", "aborted", "expired"],
)
def test_an_answer_leaves_before_whatever_ends_its_connection(then: Then) -> None:
    async def scenario() -> None:
        async def handler(request: Request) -> Response:
            return Response(200, [], b"the answer")

        async with serving(handler) as served:
            (client,) = await _crowd(served, 1)
            (connection,) = _connections(served, 1)
            waited: list[bool] = []

            def answer_and_end() -> None:
                connection.data_received(get("/second"))
                served.server.scheduler._start_all()
                waited.append(bool(served.server.scheduler.outbox._waiting))
                then(connection)

            asyncio.get_running_loop().call_soon(answer_and_end)
            assert (await client.answer()).body == b"the answer"
            assert waited == [True]

    run(scenario())


@pytest.mark.parametrize("count", [0, 2])
def test_what_comes_while_a_request_waits_does_not_wake_it(count: int) -> None:
    async def scenario() -> None:
        awaited: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        steps: list[str] = []

        async def handler(request: Request) -> Response:
            steps.append(request.target)
            if request.target != "/waits":
                return Response(200, [], b"")
            body = await awaited
            steps.append("over")
            return Response(200, [], body)

        async with serving(handler) as served:
            clients = await _crowd(served, 1 + count)
            del steps[:]
            await clients[0].send(b"PUT /waits HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")
            for piece in (b"bo", b"dy", get("/next")):
                await asyncio.sleep(0.01)
                await clients[0].send(piece)
            for client in clients[1:]:
                assert (await client.ask(get("/other"))).status == 200
            assert steps == ["/waits", *["/other"] * count]
            awaited.set_result(b"the answer")
            assert (await clients[0].answer()).body == b"the answer"
            assert (await clients[0].answer()).status == 200
            assert steps[1 + count :] == ["over", "/next"]

    run(scenario())


@pytest.mark.parametrize("is_over", [False, True])
def test_one_that_waits_is_cancelled_where_it_waits(is_over: bool) -> None:
    async def scenario() -> None:
        awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ended: list[str] = []

        async def handler(request: Request) -> Response:
            if request.target == "/waits":
                try:
                    await awaited
                except asyncio.CancelledError:
                    ended.append("cancelled")
                    raise
                ended.append("over")
            return Response(200, [], b"")

        async with serving(handler) as served:
            (client,) = await _crowd(served, 1)
            (connection,) = _connections(served, 1)
            await client.send(get("/waits"))
            await asyncio.sleep(0.02)
            if is_over:
                awaited.set_result(None)
            connection.abort()
            assert await client.ended() == b""
            await served.server.close()
            assert ended == ["cancelled"]

    run(scenario())
