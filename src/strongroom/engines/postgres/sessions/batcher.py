"""Several calls of one turn of the event loop as one statement.

Lives here: `Batcher`. Must not live here: the statements (records.py, contents/).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

A = TypeVar("A")
R = TypeVar("R")


class Batcher(Generic[A, R]):
    """Collects the calls of one turn of the loop, and those that come while all lanes are busy.

    Arguments:
        execute: answers several calls by one statement, in their order.
        lanes: how many statements may be under way.
        batch_max: how many calls become one statement.
    """

    def __init__(
        self,
        execute: Callable[[Sequence[A]], Awaitable[Sequence[R]]],
        lanes: int,
        batch_max: int = 256,
    ) -> None:
        self._execute = execute
        self._idle = lanes
        self._batch_max = batch_max
        self._calls: deque[tuple[A, asyncio.Future[R]]] = deque()
        self._is_scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()

    def call(self, argument: A) -> asyncio.Future[R]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        self._calls.append((argument, answer))
        if not self._is_scheduled and self._idle:
            self._is_scheduled = True
            loop.call_soon(self._start)
        return answer

    def _start(self) -> None:
        self._is_scheduled = False
        while self._calls and self._idle:
            count = min(self._batch_max, len(self._calls))
            batch = [self._calls.popleft() for _ in range(count)]
            self._idle -= 1
            task = asyncio.ensure_future(self._answer(batch))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._idle += 1
        self._start()

    async def _answer(self, batch: Sequence[tuple[A, asyncio.Future[R]]]) -> None:
        try:
            results = await self._execute([argument for argument, _ in batch])
        except Exception as error:  # whatever it is, each caller is told
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
                    answer.exception()  # its caller may have gone
            return
        for (_, answer), result in zip(batch, results, strict=True):
            if not answer.done():
                answer.set_result(result)

    async def drain(self) -> None:
        """Return when all calls are answered."""
        while self._tasks or self._calls:
            self._start()
            await asyncio.gather(*self._tasks, return_exceptions=True)
