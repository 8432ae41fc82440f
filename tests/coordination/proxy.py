"""A TCP proxy between clients and a server, which simulates the faults of networks.

It delays traffic, holds it back and delivers it late, resets connections and drops requests. It
also forwards a request and cuts the connection before the answer. Lives here: the proxy, on an
event loop in a thread of its own. Must not live here: the tests that use it.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from strongroom.testing.ports import HOST, free_port

T = TypeVar("T")
_CHUNK_BYTES: Final = 65536
_STOP_S: Final = 10.0


class Proxy:
    """Forwards connections to `address` to one server; a context manager.

    Arguments:
        target: host:port of the server; it need not run yet.
        seed: of the randomness.

    Attributes:
        address: host:port for the clients.
        delay_s: the delay in both directions.
        lose_requests: the share of requests that are dropped; their connection is reset.
        lose_answers: the share of requests that are forwarded, and whose connection is reset before
            their answer.
        lost_count: the number of lost requests and answers.
    """

    def __init__(self, target: str, seed: int = 0) -> None:
        host, _, port = target.rpartition(":")
        self._host, self._port = host, int(port)
        self._chance = random.Random(seed)
        self.delay_s = self.lose_requests = self.lose_answers = 0.0
        self.lost_count = 0
        self._refusing = False
        self._pairs: set[_Pair] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        own = free_port()
        self.address = f"{HOST}:{own}"
        self._run(self._listen(own))

    def hold(self) -> None:
        """Hold all traffic back from now on; connections stay open. `heal` delivers the held
        traffic."""
        self._run(self._set_open(False))

    def cut(self) -> None:
        """Reset every connection, and every new one, until `heal`."""
        self._run(self._cut(True))

    def reset(self) -> None:
        """Reset every present connection; new ones are accepted."""
        self._run(self._cut(False))

    def heal(self) -> None:
        """Stop all faults, and deliver the held traffic."""
        self.delay_s = self.lose_requests = self.lose_answers = 0.0
        self._refusing = False
        self._run(self._set_open(True))

    def close(self) -> None:
        """Stop. Idempotent."""
        if self._thread.is_alive():
            self._run(self._stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_STOP_S)
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_STOP_S)

    async def _listen(self, port: int) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._server = await asyncio.start_server(self._serve, HOST, port, backlog=1024)

    async def _stop(self) -> None:
        self._server.close()
        await self._cut(True)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _set_open(self, is_open: bool) -> None:
        if is_open:
            self._open.set()
        else:
            self._open.clear()

    async def _cut(self, refusing: bool) -> None:
        self._refusing = refusing
        for pair in tuple(self._pairs):
            pair.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = _Pair(writer)
        self._pairs.add(pair)
        try:
            await self._open.wait()
            if self._refusing:
                return
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
            pair.writers.append(far_writer)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(pair, reader, far_writer, asks=True))
                both.create_task(self._pass_on(pair, far_reader, writer, asks=False))
        except (OSError, ExceptionGroup, asyncio.CancelledError):
            pass  # the server is down, one side was reset, or the proxy stops
        finally:
            self._pairs.discard(pair)
            pair.abort()

    async def _pass_on(
        self,
        pair: _Pair,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        *,
        asks: bool,
    ) -> None:
        while data := await source.read(_CHUNK_BYTES):
            if self.delay_s:
                await asyncio.sleep(self.delay_s * self._chance.uniform(0.5, 1.5))
            await self._open.wait()
            if asks:
                if self._chance.random() < self.lose_requests:
                    self._lose(pair)
                # The answer to this request is lost, not that to an earlier one.
                pair.loses_answer = self._chance.random() < self.lose_answers
            elif pair.loses_answer:
                self._lose(pair)
            sink.write(data)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()

    def _lose(self, pair: _Pair) -> None:
        self.lost_count += 1
        pair.abort()
        raise ConnectionResetError("by this proxy")


class _Pair:
    """Both connections of one client."""

    def __init__(self, near: asyncio.StreamWriter) -> None:
        self.writers = [near]
        self.loses_answer = False

    def abort(self) -> None:
        for writer in self.writers:
            writer.transport.abort()
