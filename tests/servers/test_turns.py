"""Requests that arrive together run together, and their answers are sent together. A single request
does not wait. Each runs in a task of its own, and every end of that task is handled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from strongroom.limits import MIB
from strongroom.servers.http import turns
from strongroom.servers.http.protocol import Connection
from strongroom.servers.http.turns import RequestTurns
from strongroom.values import FileSlice
from strongroom.wire.core.http import Request, Response
from tests.servers.loopback import Client, Served, get, no_more_than, put, run, serving


class Loop:
    """A loop's `call_soon`, which keeps the functions for the next turn."""

    def __init__(self) -> None:
        self.next_turn: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.next_turn.append(callback)

    def turn(self) -> None:
        due, self.next_turn = self.next_turn, []
        for callback in due:
            callback()


# The policy by itself.


@pytest.mark.parametrize("count", [1, 2, 3])
def test_only_a_request_by_itself_is_alone(count: int) -> None:
    policy = RequestTurns(Loop().call_soon)
    for _ in range(count):
        policy.begin()
    assert policy.is_alone == (count == 1)
    for _ in range(count - 1):
        policy.end()
    assert policy.is_alone


def test_answers_leave_with_the_last_request() -> None:
    sent: list[bytes] = []
    policy = RequestTurns(Loop().call_soon)
    for _ in range(3):
        policy.begin()
    for number in range(3):
        policy.defer_write(sent.append, b"%d" % number)
        assert not sent
        policy.end()
    assert sent == [b"0", b"1", b"2"]


def test_answers_leave_in_the_next_turn_at_the_latest() -> None:
    sent: list[bytes] = []
    loop = Loop()
    policy = RequestTurns(loop.call_soon)
    policy.begin()
    policy.begin()
    policy.defer_write(sent.append, b"answer")
    policy.end()
    assert not sent
    loop.turn()
    assert sent == [b"answer"]
    policy.defer_write(sent.append, b"next")
    loop.turn()
    assert sent == [b"answer", b"next"]


def test_many_answers_leave_at_once_and_each_only_once() -> None:
    sent: list[bytes] = []
    loop = Loop()
    policy = RequestTurns(loop.call_soon)
    policy.begin()
    policy.begin()
    for number in range(turns.WAITING_MAX + 2):
        policy.defer_write(sent.append, b"%d" % number)
    assert sent == [b"%d" % number for number in range(turns.WAITING_MAX)]
    loop.turn()
    loop.turn()
    policy.write_deferred()
    assert sent == [b"%d" % number for number in range(turns.WAITING_MAX + 2)]


# On connections.


async def _clients(served: Served, count: int) -> list[Client]:
    """Return idle connections that have been served once."""
    clients = [await served.connect() for _ in range(count)]
    for client in clients:
        assert (await client.ask(get("/first"))).status == 200
    return clients


def _connections(served: Served, count: int) -> list[Connection]:
    found = list(served.server._connections)
    assert len(found) == count
    return found


@pytest.mark.parametrize("count", [1, 3, 2 * turns.WAITING_MAX + 3])
@pytest.mark.parametrize("steps", [0, 1, 20])
def test_all_that_arrive_in_one_turn_are_read_before_any_is_handled(count: int, steps: int) -> None:
    async def scenario() -> None:
        begun: list[str] = []

        async def handler(request: Request) -> Response:
            begun.append(request.target)
            for _ in range(steps):
                await asyncio.sleep(0)
            return Response(200, [], request.target.encode())

        async with serving(handler) as served:
            clients = await _clients(served, count)
            begun.clear()
            for connection in _connections(served, count):
                connection.data_received(get("/second"))
            assert not begun
            for client in clients:
                assert (await client.answer()).body == b"/second"
            assert begun == ["/second"] * count

    run(scenario())


@pytest.mark.parametrize("failure", [KeyError("a defect"), asyncio.CancelledError()])
def test_one_that_fails_leaves_the_others_be(failure: BaseException) -> None:
    async def scenario() -> None:
        failing: list[str] = []

        async def handler(request: Request) -> Response:
            if request.target == "/second" and not failing:
                failing.append(request.target)
                raise failure
            return Response(200, [], b"well")

        async with serving(handler) as served:
            clients = await _clients(served, 3)
            for connection in _connections(served, 3):
                connection.data_received(get("/second"))
            for client in clients:
                client.end_sending()
            ends = [await client.ended() for client in clients]
            assert sum(end.endswith(b"well") for end in ends) == 2
            await no_more_than(served, 0)
        assert served.server.turns.is_alone

    run(scenario())


Then = Callable[[Connection], object]


@pytest.mark.parametrize(
    "then",
    [
        lambda connection: connection.eof_received(),
        lambda connection: connection.close_if_idle(),
        lambda connection: connection.data_received(b"no request\r\n\r\n"),
        lambda connection: connection.abort(),
        lambda connection: connection.expire(),
    ],
    ids=["the client sends no more", "drained", "refused", "aborted", "expired"],
)
def test_an_answer_leaves_before_whatever_ends_its_connection(then: Then) -> None:
    async def scenario() -> None:
        answered, waits = asyncio.Event(), asyncio.Event()
        waited: list[bool] = []

        async def handler(request: Request) -> Response:
            if request.target == "/waits":
                waits.set()
                await answered.wait()
            return Response(200, [], b"the answer")

        async with serving(handler) as served:
            (client,) = await _clients(served, 1)
            (connection,) = _connections(served, 1)
            other = await served.connect()
            await other.send(get("/waits"))
            await waits.wait()

            def end() -> None:
                waited.append(bool(served.server.turns._waiting))
                then(connection)

            # The answer waits until the loop's next turn, since another request is running.
            connection.data_received(get("/second"))
            asyncio.get_running_loop().call_soon(end)
            assert (await client.answer()).body == b"the answer"
            assert waited == [True]
            answered.set()
            assert (await other.answer()).status == 200

    run(scenario())


def test_what_comes_while_a_request_waits_does_not_wake_it() -> None:
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
            (client,) = await _clients(served, 1)
            steps.clear()
            await client.send(get("/waits", "Content-Length: 4", method="PUT"))
            for piece in (b"bo", b"dy", get("/next")):
                await client.send(piece)
                await asyncio.sleep(0.01)
            assert steps == ["/waits"]
            awaited.set_result(b"the answer")
            assert (await client.answer()).body == b"the answer"
            assert (await client.answer()).status == 200
            assert steps == ["/waits", "over", "/next"]

    run(scenario())


@pytest.mark.parametrize("waits", [False, True])
def test_a_handler_is_the_current_task_and_may_have_a_time_limit(waits: bool) -> None:
    async def scenario() -> None:
        async def handler(request: Request) -> Response:
            async with asyncio.timeout(60):
                if waits:
                    await asyncio.sleep(0.01)
                return Response(200, [], await request.body.read_all(100))

        async with serving(handler) as served:
            client = await served.connect()
            for _ in range(3):
                assert (await client.ask(put(b"body"))).body == b"body"

    run(scenario())


# How a task ends.


@pytest.mark.parametrize("reached", ["before it begins", "where it waits", "when that is over"])
def test_a_connection_that_is_aborted_ends_its_request(reached: str) -> None:
    async def scenario() -> None:
        awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        seen: list[str] = []
        begun = asyncio.Event()

        async def handler(request: Request) -> Response:
            if request.target == "/second":
                seen.append("begun")
                begun.set()
                try:
                    await awaited
                except asyncio.CancelledError:
                    seen.append("cancelled")
                    raise
                seen.append("over")
            return Response(200, [], b"")

        async with serving(handler) as served:
            (client,) = await _clients(served, 1)
            (connection,) = _connections(served, 1)
            connection.data_received(put(b"b" * 10, target="/second")[:-1])
            if reached != "before it begins":
                await begun.wait()
            if reached == "when that is over":
                awaited.set_result(None)
            connection.abort()
            assert await client.ended() == b""
            await no_more_than(served, 0)
            assert served.server.turns.is_alone
            assert served.server.buffers._bodies == 0
        assert seen == ([] if reached == "before it begins" else ["begun", "cancelled"])

    run(scenario())


def test_a_handler_that_cancels_itself_is_not_called_again() -> None:
    async def scenario() -> None:
        asked: list[str] = []

        async def handler(request: Request) -> Response:
            asked.append(request.target)
            if request.target == "/2":
                raise asyncio.CancelledError
            return Response(200, [], b"")

        async with serving(handler) as served:
            client = await served.connect()
            assert (await client.ask(get("/1"))).status == 200
            await client.send(get("/2"))
            assert await client.ended() == b""
            await no_more_than(served, 0)
        assert asked == ["/1", "/2"]

    run(scenario())


def test_a_failure_to_answer_ends_the_connection_and_repeats_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        asked: list[str] = []

        async def handler(request: Request) -> Response:
            asked.append(request.target)
            return Response(200, [], b"")

        async def fail(*given: object, **more: object) -> None:
            raise KeyError("a defect")

        async with serving(handler) as served:
            client = await served.connect()
            await client.ask(get("/1"))
            (connection,) = _connections(served, 1)
            monkeypatch.setattr(type(connection._responder), "answer", fail)
            await client.send(get("/2"))
            assert await client.ended() == b""
            await no_more_than(served, 0)
        assert asked == ["/1", "/2"]
        assert "a connection failed" in caplog.text

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
                assert connection._handling is not None
                connection._handling.give_up()
            await no_more_than(served, 0)
            for _ in range(3):  # the new connections reuse the closed socket's number
                other = await served.connect()
                assert (await other.ask(get())).body == b"well"

    run(scenario())
