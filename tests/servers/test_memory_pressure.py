"""Failed allocations: the memory that is freed, the uploads that are refused, the process's end."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from strongroom.engines.embedded.disk.threads import started_pool
from strongroom.errors.core import StorageError
from strongroom.servers import memory_pressure
from strongroom.servers.connections.accepting import Acceptor
from strongroom.servers.http.server import HttpServer
from strongroom.servers.memory_pressure import GIVE_UP_S, Pressure
from strongroom.values import Health
from strongroom.wire.core.http import Headers, Request, Response
from tests.app.bodies import Bytes
from tests.servers.loopback import PATIENT, get, listen_somewhere, render_error, run, serving


class Process:
    """A process with a manual clock."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.released = 0
        self.why: list[str] = []
        releases = (self._fail, self._release)
        self.pressure = Pressure(lambda: self.now_s, releases, self.why.append)

    def _fail(self) -> None:
        raise MemoryError

    def _release(self) -> None:
        self.released += 1


def upload(size_bytes: int | None) -> Request:
    body = Bytes(b"")
    body.size_bytes = size_bytes
    return Request("PUT", "/c/b", Headers(()), body)


def test_what_can_be_released_is_but_not_all_the_time() -> None:
    process = Process()
    for _ in range(50):
        process.pressure.allocation_failed()
    assert process.released == 1, "one release that fails does not keep the others from it"
    process.now_s += 2
    process.pressure.allocation_failed()
    assert process.released == 2


@pytest.mark.parametrize("size_bytes", [None, 10_000_000])
def test_uploads_are_refused_for_a_while_and_small_ones_never(size_bytes: int | None) -> None:
    process = Process()
    process.pressure.refuse_upload(upload(size_bytes))
    process.pressure.allocation_failed()
    process.pressure.refuse_upload(upload(0))
    process.pressure.refuse_upload(upload(1000))
    with pytest.raises(StorageError) as refused:
        process.pressure.refuse_upload(upload(size_bytes))
    assert refused.value.row.code == "ServerBusy"
    process.now_s += 10
    process.pressure.refuse_upload(upload(size_bytes))


def test_a_process_that_serves_nobody_gives_up() -> None:
    process = Process()
    for _ in range(10):
        process.pressure.allocation_failed()
        process.now_s += GIVE_UP_S / 10
    assert process.why == []
    process.pressure.allocation_failed()
    assert "memory ran out" in process.why[0]


def test_a_process_that_serves_somebody_goes_on() -> None:
    process = Process()
    for _ in range(100):
        process.pressure.allocation_failed()
        process.now_s += GIVE_UP_S / 10
        process.pressure.request_served()
    assert process.why == []


def test_a_process_that_nobody_asks_goes_on() -> None:
    process = Process()
    process.pressure.allocation_failed()
    for _ in range(20):
        process.now_s += GIVE_UP_S / 5
        process.pressure.observe_health(Health.SERVING)
    assert process.why == []
    for _ in range(20):
        process.pressure.allocation_failed()
        process.now_s += GIVE_UP_S / 10
        process.pressure.observe_health(Health.SERVING)
    assert process.why


def test_an_engine_that_stalls_counts_although_others_are_served() -> None:
    process = Process()
    process.pressure.allocation_failed()
    process.pressure.observe_health(Health.STALLED)
    process.pressure.request_served()
    process.now_s += GIVE_UP_S + 1
    process.pressure.observe_health(Health.STALLED)
    assert len(process.why) == 1
    well = Process()
    well.pressure.observe_health(Health.STALLED)
    well.pressure.observe_health(Health.SERVING)
    well.pressure.request_served()
    well.now_s += GIVE_UP_S + 1
    well.pressure.observe_health(Health.SERVING)
    assert well.why == []


def test_the_engine_is_asked_while_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_pressure, "_POLL_INTERVAL_S", 0.001)
    process = Process()
    asked = 0

    async def health() -> Health:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise MemoryError
        process.now_s += GIVE_UP_S / 2
        return Health.STALLED

    async def scenario() -> None:
        watching = asyncio.create_task(process.pressure.watch(health))
        await asyncio.sleep(0.02)
        assert asked == 0, "nobody asks a process that is well"
        process.pressure.allocation_failed()
        while not process.why:  # noqa: ASYNC110 - bounded by `run`
            await asyncio.sleep(0.001)
        watching.cancel()

    run(scenario())
    assert asked >= 3


def test_the_loop_reports_failed_allocations_and_clients_that_have_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    process = Process()
    loop = asyncio.new_event_loop()
    gone = OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
    with caplog.at_level(logging.WARNING):
        process.pressure.handle(loop, {"message": "m", "exception": gone})
        assert [*caplog.records, process.released] == [0]
        process.pressure.handle(loop, {"message": "m", "exception": MemoryError()})
        assert [process.released] == [1]
        process.pressure.handle(loop, {"message": "broken", "exception": ValueError("x")})
    assert [one.getMessage() for one in caplog.records][-1] == "broken"
    loop.close()


def test_a_handler_without_memory_is_busy_and_the_loop_hears_of_it() -> None:
    heard: list[object] = []

    async def handler(request: Request) -> Response:
        raise MemoryError

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: heard.append(context["exception"]))
        async with serving(handler) as served:
            client = await served.connect()
            answer = await client.ask(get())
            assert (answer.status, answer.code) == (503, "ServerBusy")
            await client.close()

    run(scenario())
    assert [type(one) for one in heard] == [MemoryError]


def test_connections_are_accepted_again_after_one_for_which_there_was_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[object] = []
    begin = Acceptor._begin
    left = 1

    def failing(self: Acceptor, *given: object) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise MemoryError
        begin(self, *given)  # type: ignore[arg-type]  # passed on as they came

    async def handler(request: Request) -> Response:
        return Response(200, [], b"")

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: heard.append(context["exception"]))
        server = HttpServer(handler, render_error, settings=PATIENT)
        port = await listen_somewhere(server, "127.0.0.1")
        _, first = await asyncio.open_connection("127.0.0.1", port)
        reader, second = await asyncio.open_connection("127.0.0.1", port)
        second.write(get())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        first.close()
        second.close()
        await server.close()

    monkeypatch.setattr(Acceptor, "_begin", failing)
    run(scenario())
    assert [type(one) for one in heard] == [MemoryError]


def test_a_pool_has_all_of_its_threads_before_there_is_work() -> None:
    pool = started_pool(3, "test-pool")
    try:
        assert len(pool._threads) == 3
        for _ in range(20):
            pool.submit(int).result(10)
        assert len(pool._threads) == 3
    finally:
        pool.shutdown()


def test_a_start_that_is_interrupted_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    submit, submitted = ThreadPoolExecutor.submit, list[Future[Any]]()

    def interrupted(self: ThreadPoolExecutor, *given: Any) -> Any:
        if len(submitted) == 2:
            raise KeyboardInterrupt
        submitted.append(submit(self, *given))
        return submitted[-1]

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        started_pool(3, "interrupted")
    for one in submitted:
        assert isinstance(one.exception(timeout=30), threading.BrokenBarrierError)
