"""Waiting for a change instead of polling: the one mechanism behind `x-strongroom-wait`.

Lives here: the loop that decides, sleeps, and decides again. It sleeps until a durable commit, a
given time or the limit. The queues that serve the waiters of one gateway in order of arrival live
here too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from strongroom.engines.base import Engine, Ref
from strongroom.errors.core import StorageError
from strongroom.services.core.calls import RequestClient
from strongroom.services.core.process_state import ProcessState
from strongroom.values import TICKS_PER_S

T = TypeVar("T")


class MustWait(Exception):
    """The answer would be `error` now, but a change may lead to a better one.

    Arguments:
        error: the answer when the waiting time is over.
        watched: (record, version seen) pairs: a change of any of them triggers a new attempt.
        now: store time of the decision, in ticks.
        until: the tick at which to try again even if nothing is committed, or None.
    """

    def __init__(
        self,
        error: StorageError,
        watched: Sequence[tuple[Ref, int | None]],
        now: int = 0,
        until: int | None = None,
    ) -> None:
        super().__init__(error.row.code)
        self.error = error
        self.watched = watched
        self.now = now
        self.until = until


class QueuePlace:
    """A waiter's place in a queue; made by `Turns.take`. `at_front` is done once all earlier
    waiters have left."""

    __slots__ = ("_queue", "_queues", "_ref", "at_front")

    def __init__(self, queues: dict[Ref, deque[QueuePlace]], ref: Ref) -> None:
        self.at_front: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues = queues
        self._queue = queues.setdefault(ref, deque())
        self._ref = ref
        self._queue.append(self)
        if self._queue[0] is self:
            self.at_front.set_result(None)

    def leave(self) -> None:
        was_first = self._queue[0] is self
        self._queue.remove(self)
        if not self._queue:
            del self._queues[self._ref]
        elif was_first and not self._queue[0].at_front.done():
            self._queue[0].at_front.set_result(None)


class Turns:
    """The queues of waiters for each record, in order of arrival.

    This is disposable state. After it was cleared, waiters in an old queue keep their order. Later
    waiters start a new queue. The first waiters of both queues are served concurrently.
    """

    def __init__(self) -> None:
        self._queues: dict[Ref, deque[QueuePlace]] = {}

    def take(self, ref: Ref) -> QueuePlace:
        return QueuePlace(self._queues, ref)


class Waiting:
    """Waits for changes of one engine's records. `stop` ends every wait with the waiter's last
    error."""

    def __init__(self, engine: Engine, disposable: ProcessState) -> None:
        self._engine = engine
        self._disposable = disposable
        self._stopping = False
        self._clients: dict[int, RequestClient] = {}

    @property
    def clients(self) -> Sequence[RequestClient]:
        """Return the clients whose requests wait at this moment, for people to look at."""
        return tuple(self._clients.values())

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    def stop(self) -> None:
        """Let no waiter continue. Wake all waiters afterwards (the engine's `close`, `advance`)."""
        self._stopping = True

    async def until_answered(
        self,
        wait_s: float,
        attempt: Callable[[], Awaitable[T]],
        client: RequestClient | None = None,
    ) -> T:
        """Run `attempt` until it does not raise MustWait.

        When `wait_s` is over or the client has disconnected, the error of its last MustWait is
        raised.
        """
        disconnected = _disconnection(client)
        if client is None:
            return await self._until_answered(wait_s, attempt, disconnected)
        self._clients[id(client)] = client
        try:
            return await self._until_answered(wait_s, attempt, disconnected)
        finally:
            self._clients.pop(id(client), None)

    async def _until_answered(
        self, wait_s: float, attempt: Callable[[], Awaitable[T]], disconnected: asyncio.Future[None]
    ) -> T:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while True:
            wakes = self._engine.wakes
            try:
                return await attempt()
            except MustWait as must_wait:
                left_s = deadline - loop.time()
                if left_s <= 0 or self._stopping or disconnected.done():
                    raise must_wait.error from None
                if must_wait.until is not None:
                    # Wake one tick late rather than early: at `until` itself the state has changed.
                    wake_s = (must_wait.until - must_wait.now + 1) / TICKS_PER_S
                    left_s = min(left_s, max(wake_s, 0.001))
                await self._sleep(must_wait.watched, left_s, disconnected, wakes)
                if disconnected.done():
                    # The client has disconnected: nothing may be acquired for it.
                    raise must_wait.error from None

    async def in_turn(
        self,
        ref: Ref,
        wait_s: float,
        timeout_error: StorageError,
        attempt: Callable[[], Awaitable[T]],
        client: RequestClient | None = None,
    ) -> T:
        """As `until_answered`, but in order of arrival among the waiters for one record at this
        gateway. `timeout_error` is raised when the time is over before the waiter's turn has come.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        disconnected = _disconnection(client)
        place = self._disposable.of(Turns).take(ref)
        try:
            if not place.at_front.done():
                first = asyncio.FIRST_COMPLETED
                await asyncio.wait(
                    (place.at_front, disconnected), timeout=wait_s, return_when=first
                )
                if disconnected.done() or not place.at_front.done():
                    raise timeout_error
            return await self._until_answered(
                max(0.0, deadline - loop.time()), attempt, disconnected
            )
        finally:
            place.leave()

    async def _sleep(
        self,
        watched: Sequence[tuple[Ref, int | None]],
        timeout_s: float,
        disconnected: asyncio.Future[None],
        wakes: int,
    ) -> None:
        """Sleep, unless the clock was moved or a stop began since the engine counted `wakes`."""
        sleepers = [
            asyncio.ensure_future(self._engine.wait(ref, version, timeout_s))
            for ref, version in watched
        ]
        try:
            # The sleepers are registered only during this pause, so an earlier wake of all sleepers
            # did not reach them.
            await asyncio.sleep(0)
            if self._engine.wakes == wakes:
                await asyncio.wait((*sleepers, disconnected), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for sleeper in sleepers:
                sleeper.cancel()
            await asyncio.gather(*sleepers, return_exceptions=True)


def _disconnection(client: RequestClient | None) -> asyncio.Future[None]:
    """Return a future that is done once the client has disconnected."""
    disconnected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if client is not None:
        client.on_disconnect(lambda: None if disconnected.done() else disconnected.set_result(None))
    return disconnected
