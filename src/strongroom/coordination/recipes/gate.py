"""Gates: nodes wait at a gate, and all of them continue at once when it is opened.

Lives here: the classes for threads and for asyncio. Also how a hint (a bus's message) shortens the
wait on a store that can only be polled. Must not live here: the flag (gate_core.py), buses.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.errors import StoreUnavailable, waited_in_vain
from strongroom.coordination.hints import Hints
from strongroom.coordination.options.arguments import waiting_time
from strongroom.coordination.recipes.gate_core import (
    KIND,
    GateView,
    open_steps,
    read_steps,
    rearm_steps,
    wait_steps,
)
from strongroom.coordination.recipes.waiting import Backoff
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.session.context import RecipeContext


class Gate:
    """A gate by name, for threads.

    Arguments:
        driver: of the client.
        name: of the gate.
        hints: a message bus beside the store (`hints.multicast`). Every opening is published on it.
            `wait` listens to it only if the store has to be polled; otherwise the store's watch
            wakes the waiters. An error of the bus is logged, and no call fails because of it.
    """

    def __init__(self, driver: SyncDriver, name: str, hints: Hints | None = None) -> None:
        self.name = name
        self._driver, self._hints = driver, hints
        self._key = key_of(KIND, name)

    def wait(self, timeout: float | None = None, generation: int | None = None) -> Any:
        """Wait until the gate is open; return the payload that it was opened with.

        Arguments:
            timeout: at most so many seconds; None = for ever.
            generation: the generation to wait for, which may be past; None = the current one.

        Raises: CoordTimeout, StoreRefused, CorruptRecord.
        """
        context = self._driver.context
        if self._hints is None or context.promises.watch != "poll":
            steps = wait_steps(context, self.name, self._key, timeout, generation)
            return self._driver.run(steps).payload
        return self._wait_hinted(self._hints, _HintedWait(context, self.name, timeout, generation))

    def _wait_hinted(self, hints: Hints, waiting: _HintedWait) -> Any:
        notified = threading.Event()
        stop: Callable[[], None] | None = None
        try:
            while True:
                notified.clear()
                try:
                    view, _ = self._driver.run(read_steps(self._key))
                    if waiting.passes(view):
                        return view.payload
                    pause_s = waiting.pause_s()
                except StoreUnavailable as error:
                    pause_s = waiting.pause_s(error)
                if stop is None:
                    # A caller that finds the gate open needs no bus. One that has to wait
                    # subscribes first and then reads again, so that it misses no opening.
                    stop = hints.subscribe(self._key, notified.set)
                else:
                    notified.wait(pause_s)
        finally:
            if stop is not None:
                stop()

    def open(self, payload: Any = None) -> GateView:
        """Open the gate for all waiters, and for later ones until it is re-armed. Idempotent.

        Arguments:
            payload: what waiters receive: anything that JSON can hold.

        Raises: StoreUnavailable if the gate is not known to be open, StoreRefused, CorruptRecord.
        """
        view = self._driver.run(open_steps(self._driver.context, self._key, payload))
        if self._hints is not None:
            self._hints.publish(self._key)
        return view

    def rearm(self) -> GateView:
        """Close the gate for nodes that come from now on; nodes that have passed are not affected.

        Raises: as open.
        """
        return self._driver.run(rearm_steps(self._driver.context, self._key))

    def show(self) -> GateView:
        """Return the gate's state. Raises: StoreUnavailable, StoreRefused, CorruptRecord."""
        return self._driver.run(read_steps(self._key))[0]


class AioGate:
    """A gate by name, for asyncio; see Gate. Each waiter costs one task.

    Arguments:
        driver, name, hints: as of Gate. The hints' calls, which may block, run on threads.
    """

    def __init__(self, driver: AsyncDriver, name: str, hints: Hints | None = None) -> None:
        self.name = name
        self._driver, self._hints = driver, hints
        self._key = key_of(KIND, name)

    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - as of Gate
        generation: int | None = None,
    ) -> Any:
        """Wait until the gate is open; return the payload that it was opened with."""
        context = self._driver.context
        if self._hints is None or context.promises.watch != "poll":
            steps = wait_steps(context, self.name, self._key, timeout, generation)
            return (await self._driver.run(steps)).payload
        waiting = _HintedWait(context, self.name, timeout, generation)
        return await self._wait_hinted(self._hints, waiting)

    async def _wait_hinted(self, hints: Hints, waiting: _HintedWait) -> Any:
        notified = asyncio.Event()
        stop: Callable[[], None] | None = None
        try:
            while True:
                notified.clear()
                try:
                    view, _ = await self._driver.run(read_steps(self._key))
                    if waiting.passes(view):
                        return view.payload
                    pause_s = waiting.pause_s()
                except StoreUnavailable as error:
                    pause_s = waiting.pause_s(error)
                if stop is None:
                    stop = await self._subscribe(hints, notified)
                    continue
                try:
                    async with asyncio.timeout(pause_s):
                        await notified.wait()
                except TimeoutError:
                    continue
        finally:
            if stop is not None:
                stop()

    async def _subscribe(self, hints: Hints, notified: asyncio.Event) -> Callable[[], None]:
        loop = asyncio.get_running_loop()
        notify = _ThreadsafeSetter(loop, notified)
        future = loop.run_in_executor(None, hints.subscribe, self._key, notify)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # The subscription will still be made, and no caller is left to end it.
            future.add_done_callback(_unsubscribe_late)
            raise

    async def open(self, payload: Any = None) -> GateView:
        """Open the gate for all waiters, and for later ones until it is re-armed. Idempotent."""
        view = await self._driver.run(open_steps(self._driver.context, self._key, payload))
        if self._hints is not None:
            await asyncio.to_thread(self._hints.publish, self._key)
        return view

    async def rearm(self) -> GateView:
        """Close the gate for nodes that come from now on."""
        return await self._driver.run(rearm_steps(self._driver.context, self._key))

    async def show(self) -> GateView:
        """Return the gate's state; see Gate.show."""
        return (await self._driver.run(read_steps(self._key)))[0]


class _HintedWait:
    """The state of one wait with a bus beside the store, for threads and tasks alike."""

    def __init__(
        self, context: RecipeContext, name: str, timeout_s: float | None, generation: int | None
    ) -> None:
        self._clock, self._backoff, self._name = context.clock, Backoff(context), name
        self._timeout_s = waiting_time("timeout", timeout_s)
        self._generation = generation
        self._began_s = context.clock.monotonic_s()

    def passes(self, view: GateView) -> bool:
        if self._generation is None:
            self._generation = view.generation
        return view.lets_through(self._generation)

    def pause_s(self, error: StoreUnavailable | None = None) -> float:
        """Return how long to sleep until the next read without a message. Raises: CoordTimeout."""
        pause_s = self._backoff.retry_delay_s(error) if error else self._backoff.poll_delay_s()
        if self._timeout_s is None:
            return pause_s
        passed_s = self._clock.monotonic_s() - self._began_s
        if passed_s >= self._timeout_s:
            raise waited_in_vain("gate", "was not opened", self._name, passed_s)
        return min(pause_s, self._timeout_s - passed_s)


class _ThreadsafeSetter:
    """A callback that sets an event of a loop, from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, notified: asyncio.Event) -> None:
        self._loop, self._notified = loop, notified

    def __call__(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._notified.set)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more


def _unsubscribe_late(future: asyncio.Future[Callable[[], None]]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result()()
