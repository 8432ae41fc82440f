"""What begins before its task has its turn is, to itself and to the task, begun by the task."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.servers.http.protocol import Connection
from strongroom.servers.http.stages import Scheduler
from strongroom.wire.core.http import Request, Response
from tests.servers.holder import Holder, Work
from tests.servers.loopback import Client, get, no_more_than, put, run, serving


async def finish(work: Work) -> None:
    """Begin `work`, and let its task go on with it to the end."""
    holder = Holder(work)
    begun = await holder.begin()
    assert begun is not None, "it waits for something"
    holder.handed.set_result(begun)
    await holder.task


def test_what_never_waits_is_over_at_once() -> None:
    async def scenario() -> None:
        seen: list[object] = []

        async def work() -> None:
            seen.append(asyncio.current_task())

        holder = Holder(work)
        assert await holder.begin() is None
        assert seen == [holder.task]
        holder.task.cancel()

    run(scenario())


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_turns_of_the_loop_are_waited_for(turns: int) -> None:
    async def scenario() -> None:
        seen: list[int] = []

        async def work() -> None:
            for number in range(turns):
                await asyncio.sleep(0)
                seen.append(number)

        await finish(work)
        assert seen == list(range(turns))

    run(scenario())


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("failing", [False, True])
def test_a_result_or_an_error_arrives_before_or_after_the_task_takes_over(
    before: bool, failing: bool
) -> None:
    async def scenario() -> None:
        first: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        seen: list[str] = []

        def come() -> None:
            if failing:
                first.set_exception(KeyError("first"))
            else:
                first.set_result("first")

        async def work() -> None:
            try:
                seen.append(await first)
            except KeyError as error:
                seen.append(str(error.args[0]))
            await asyncio.sleep(0)
            seen.append("then")

        holder = Holder(work)
        begun = await holder.begin()
        assert begun is not None
        if before:
            come()
        holder.handed.set_result(begun)
        if not before:
            await asyncio.sleep(0.01)
            come()
        await holder.task
        assert seen == ["first", "then"]

    run(scenario())


class Ending(BaseException):
    """No Exception, as KeyboardInterrupt is none, but it does not end the loop."""


@pytest.mark.parametrize("error", [KeyError, asyncio.CancelledError, Ending])
@pytest.mark.parametrize("at_once", [True, False])
def test_an_error_is_the_task_s(at_once: bool, error: type[BaseException]) -> None:
    async def work() -> None:
        if not at_once:
            await asyncio.sleep(0.01)
        raise error("of the work")

    async def scenario() -> None:
        with pytest.raises(error, match="of the work"):
            await finish(work)

    run(scenario())


@pytest.mark.parametrize("reached", ["begun", "taken over", "further on"])
def test_a_cancellation_arrives_where_it_waits(reached: str) -> None:
    async def scenario() -> None:
        seen: list[str] = []
        step = asyncio.Event()

        async def work() -> None:
            try:
                if reached == "further on":
                    await asyncio.sleep(0)
                step.set()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                seen.append("cleaned up")
                raise

        holder = Holder(work)
        begun = await holder.begin()
        assert begun is not None
        if reached == "begun":
            begun.cancel(asyncio.CancelledError())
        holder.handed.set_result(begun)
        if reached != "begun":
            await step.wait()
            await asyncio.sleep(0)
            holder.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holder.task
        assert seen == ["cleaned up"]

    run(scenario())


def test_a_cancellation_that_is_caught_ends_well() -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return

    async def scenario() -> None:
        holder = Holder(work)
        begun = await holder.begin()
        assert begun is not None
        begun.cancel(asyncio.CancelledError())
        holder.handed.set_result(begun)
        await holder.task

    run(scenario())


def test_a_time_limit_holds_from_the_first_step_on() -> None:
    async def work() -> None:
        async with asyncio.timeout(0.02):
            await asyncio.sleep(60)

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            await finish(work)

    run(scenario())


# On connections: the second request of the only client begins early.


async def _twice(client: Client, data: bytes) -> list[int]:
    return [(await client.ask(data)).status for _ in range(2)]


@pytest.mark.parametrize("waits_s", [0.0, 0.02])
def test_requests_of_the_only_client_begin_in_the_name_of_their_task(waits_s: float) -> None:
    async def scenario() -> None:
        tasks: list[object] = []
        turns: list[bool] = []

        async def handler(request: Request) -> Response:
            tasks.append(asyncio.current_task())
            (connection,) = served.server._connections
            turns.append(connection._work._waiter is None)  # whether the task has had its turn
            if waits_s:
                async with asyncio.timeout(60):
                    await asyncio.sleep(waits_s)
            tasks.append(asyncio.current_task())
            return Response(200, [], await request.body.read_all(100))

        async with serving(handler) as served:
            client = await served.connect()
            assert await _twice(client, get()) == [200, 200]
            assert await _twice(client, put(b"body")) == [200, 200]
            (connection,) = served.server._connections
            assert tasks == [connection._work.task] * 8
            assert turns == [False] * 4
            await client.close()

    run(scenario())


class Waits:
    """The work of a connection; it notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def start(self) -> bool:
        self.told.append("start")
        return False

    def wake(self) -> None:
        self.told.append("wake")


def test_where_several_come_all_are_read_before_any_is_handled() -> None:
    async def scenario() -> None:
        scheduler = Scheduler()
        several = [Waits() for _ in range(3)]
        for waits in several:
            scheduler.take_up(waits)
        assert [waits.told for waits in several] == [[]] * 3
        await asyncio.sleep(0)
        assert [waits.told for waits in several] == [["start"]] * 3
        # The last of them is alone, unless the question comes from within a task.
        asyncio.get_running_loop().call_soon(scheduler.take_up, several[-1])
        await asyncio.sleep(0)
        assert several[-1].told == ["start"] * 2
        scheduler.take_up(several[-1])
        assert several[-1].told == ["start"] * 2

    run(scenario())


def test_a_handler_that_is_cancelled_at_once_is_not_called_again() -> None:
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


def test_one_that_is_cancelled_at_once_leaves_the_others_be() -> None:
    async def scenario() -> None:
        failing = False

        async def handler(request: Request) -> Response:
            nonlocal failing
            if failing:
                failing = False
                raise asyncio.CancelledError
            return Response(200, [], b"well")

        async with serving(handler) as served:
            clients = [await served.connect() for _ in range(3)]
            for client in clients:
                assert (await client.ask(get())).status == 200
            failing = True
            for connection in list(served.server._connections):
                connection.data_received(get())
            await no_more_than(served, 2)
            for client in clients:
                client.end_sending()
            ends = [await client.ended() for client in clients]
            assert sorted(end.endswith(b"well") for end in ends) == [False, True, True]
            assert ends.count(b"") == 1

    run(scenario())


class Fails(Waits):
    """One that cannot begin."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def start(self) -> bool:
        raise self.error


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_where_one_cannot_begin_all_are_left_to_their_tasks(
    error: type[BaseException],
) -> None:
    async def scenario() -> None:
        scheduler = Scheduler()
        several = [Waits(), Fails(error("a defect")), Waits(), Waits()]
        scheduler._starting.extend(several)
        with pytest.raises(error, match="a defect"):
            scheduler._start_all()
        told = [waits.told for waits in several]
        assert told == [["start", "wake"], ["wake"], ["wake"], ["wake"]]
        # And whoever comes then has a turn.
        after = Waits()
        scheduler.take_up(after)
        await asyncio.sleep(0)
        assert after.told == ["start"]

    run(scenario())


def test_a_connection_that_is_gone_before_its_turn_does_not_begin() -> None:
    async def scenario() -> None:
        begun: list[str] = []

        async def handler(request: Request) -> Response:
            begun.append(request.target)
            return Response(200, [], b"")

        async with serving(handler) as served:
            client, other = await served.connect(), await served.connect()
            assert (await other.ask(get("/other"))).status == 200
            last = served.server.scheduler._served_last
            connection = next(one for one in served.server._connections if one._work is not last)
            connection.data_received(get("/first"))
            connection.abort()
            await asyncio.sleep(0.01)
            assert begun == ["/other"]
            await client.close()

    run(scenario())


@pytest.mark.parametrize("waits_s", [0.0, 0.02])
def test_pipelined_requests_are_answered_in_order(waits_s: float) -> None:
    async def scenario() -> None:
        async def handler(request: Request) -> Response:
            if waits_s:
                await asyncio.sleep(waits_s)
            return Response(200, [], request.target.encode())

        async with serving(handler) as served:
            client = await served.connect()
            await client.ask(get())
            await client.send(b"".join(get(f"/{number}") for number in range(20)))
            bodies = [(await client.answer()).body for _ in range(20)]
            assert bodies == [b"/%d" % number for number in range(20)]

    run(scenario())


@pytest.mark.parametrize("waits_s", [0.0, 0.02])
def test_a_defect_of_what_began_early_is_answered(waits_s: float) -> None:
    async def scenario() -> None:
        async def handler(request: Request) -> Response:
            if waits_s:
                await asyncio.sleep(waits_s)
            raise KeyError("a defect")

        async with serving(handler) as served:
            client = await served.connect()
            assert await _twice(client, get()) == [500, 500]

    run(scenario())


def test_a_failure_to_answer_ends_the_connection_and_repeats_nothing(
    monkeypatch: pytest.MonkeyPatch,
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
            (connection,) = served.server._connections
            monkeypatch.setattr(type(connection._responder), "answer", fail)
            await client.send(get("/2"))
            assert await client.ended() == b""
            await no_more_than(served, 0)
        assert asked == ["/1", "/2"]

    run(scenario())


def test_a_failure_behind_the_answer_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async def handler(request: Request) -> Response:
            return Response(200, [], b"")

        def fail(connection: object) -> None:
            raise KeyError("a defect")

        async with serving(handler) as served:
            client = await served.connect()
            await client.ask(get("/1"))
            (connection,) = served.server._connections
            monkeypatch.setattr(type(connection), "_after_answer", fail)
            assert (await client.ask(get("/2"))).status == 200
            assert await client.ended() == b""
            await no_more_than(served, 0)
        assert "a connection failed" in caplog.text

    run(scenario())


def test_who_is_broken_off_before_the_task_takes_over_is_told() -> None:
    async def scenario() -> None:
        seen: list[str] = []

        async def handler(request: Request) -> Response:
            if request.target == "/wait":
                (connection,) = served.server._connections
                asyncio.get_running_loop().call_soon(connection.abort)
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    seen.append("cancelled")
                    raise
            return Response(200, [], b"")

        async with serving(handler) as served:
            client = await served.connect()
            await client.ask(get())
            await client.send(get("/wait"))
            assert await client.ended() == b""
            assert seen == ["cancelled"]

    run(scenario())


def test_a_body_behind_its_head_is_handled_as_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        happened: list[str] = []
        received = Connection.data_received

        def receive(connection: Connection, data: bytes) -> None:
            happened.append("arrives")
            received(connection, data)
            happened.append("has arrived")

        async def handler(request: Request) -> Response:
            await request.body.read_all(10)
            happened.append("handled")
            return Response(200, [], b"")

        monkeypatch.setattr(Connection, "data_received", receive)
        async with serving(handler) as served:
            client = await served.connect()
            await client.ask(get())
            happened.clear()
            await client.send(get("/", "Content-Length: 3", method="PUT"))
            await asyncio.sleep(0.02)
            await client.send(b"abc")
            await client.answer()
        assert happened == ["arrives", "has arrived", "arrives", "handled", "has arrived"]

    run(scenario())
