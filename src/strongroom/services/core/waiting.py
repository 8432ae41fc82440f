"""Waiting for a change instead of polling: the one mechanism behind `x-strongroom-wait`.

Lives here: the loop that decides, sleeps, and decides again. It sleeps until a durable commit, a
given time or the limit. Must not live here: the order of the waiters (waiters.py, turns.py).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from strongroom.engines.base import EngineError, Ref, StorageEngine
from strongroom.errors.core import StorageError
from strongroom.services.core.calls import RequestClient
from strongroom.services.core.process_state import ProcessState
from strongroom.services.core.turns import NotInTurn
from strongroom.services.core.waiters import FirstWaiter, PlaceInLine, Waiters
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


class Waiting:
    """Waits for changes of one engine's records. `stop` ends every wait with the waiter's last
    error."""

    def __init__(self, engine: StorageEngine, disposable: ProcessState) -> None:
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
        thing: Ref,
        wait_s: float,
        timeout_error: StorageError,
        attempt: Callable[[FirstWaiter | None], Awaitable[T]],
        client: RequestClient | None = None,
    ) -> T:
        """As `until_answered`, but in order of arrival among the waiters for one thing, over all
        gateways.

        Arguments:
            timeout_error: is raised when the time is over before the waiter's turn has come.
            attempt: gets what it has to know of the other gateways' waiters; None = this gateway
                is alone.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        disconnected = _disconnection(client)
        waiter = self._disposable.of(Waiters).enter(thing)

        async def attempt_in_turn() -> T:
            return await self._attempt_in_turn(waiter, deadline, timeout_error, attempt)

        try:
            await self._take_ticket(waiter, deadline)
            if not waiter.at_front.done():
                first = asyncio.FIRST_COMPLETED
                left_s = max(0.0, deadline - loop.time())
                await asyncio.wait(
                    (waiter.at_front, disconnected), timeout=left_s, return_when=first
                )
                if disconnected.done() or not waiter.at_front.done():
                    raise timeout_error
            return await self._until_answered(
                max(0.0, deadline - loop.time()), attempt_in_turn, disconnected
            )
        finally:
            # A ticket that cannot be removed only delays others, and only until its time is over.
            with contextlib.suppress(EngineError):
                await waiter.leave(self._engine)

    async def _take_ticket(self, waiter: PlaceInLine, deadline: float) -> None:
        """Do nothing while this gateway is alone, or if the waiter has a ticket."""
        if waiter.ticket is None and not self._engine.gateways.is_alone:
            left_s = deadline - asyncio.get_running_loop().time()
            waiter.ticket = await self._disposable.of(Waiters).ticket(self._engine, left_s)

    async def _attempt_in_turn(
        self,
        waiter: PlaceInLine,
        deadline: float,
        timeout_error: StorageError,
        attempt: Callable[[FirstWaiter | None], Awaitable[T]],
    ) -> T:
        """Run one attempt of the gateway's first waiter, whose ticket is written if it must
        wait."""
        await self._take_ticket(waiter, deadline)
        own, line = waiter.ticket, waiter.line
        if own is None:
            return await attempt(None)
        first = FirstWaiter(self._engine, line, own)
        try:
            result = await attempt(first)
        except NotInTurn as early:
            await line.write_ticket(self._engine, own, ends_plenty=False)
            raise MustWait(timeout_error, [early.watched], early.now, early.until) from None
        except MustWait:
            await line.write_ticket(self._engine, own, ends_plenty=first.saw_plenty)
            raise
        except (EngineError, asyncio.CancelledError):
            line.passed_on(first.follower, is_certain=False)
            raise
        # While there is plenty, a ticket is not always passed on.
        line.passed_on(first.follower, is_certain=not first.found_plenty)
        return result

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
