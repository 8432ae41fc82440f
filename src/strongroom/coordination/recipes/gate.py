"""Gates: nodes that were started ahead wait, and all go at once when somebody opens.

Lives here: the faces for threads and for asyncio, and how a hint (a message of a bus) shortens the
wait where the store can only be polled. Must not live here: the flag (gate_core.py).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Protocol

from strongroom.coordination.drivers_async import AsyncDriver
from strongroom.coordination.drivers_sync import SyncDriver
from strongroom.coordination.errors import CoordTimeout, StoreUnavailable
from strongroom.coordination.names import key_of
from strongroom.coordination.recipes.gate_core import (
    KIND,
    GateView,
    look_steps,
    open_steps,
    rearm_steps,
    wait_steps,
)
from strongroom.coordination.recipes.waiting import Pace


class Hints(Protocol):
    """A multicast channel: whatever is said on it means "look now", and may get lost."""

    def publish(self, topic: str) -> None:
        """Tell everybody who listens; failing is no error of the gate."""
        ...

    def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
        """Call `heard`, from any thread, at every message from now on; returns how to stop it."""
        ...


class Gate:
    """A gate for threads.

    Arguments:
        driver: of the client.
        name: of the gate.
        hints: a message bus beside the store; None where the store itself wakes its waiters.
    """

    def __init__(self, driver: SyncDriver, name: str, hints: Hints | None = None) -> None:
        self.name = name
        self._driver, self._hints = driver, hints
        self._key = key_of(KIND, name)

    def wait(self, timeout: float | None = None, generation: int | None = None) -> Any:
        """Wait until the gate is open; returns the payload that it was opened with.

        Arguments:
            timeout: at most so many seconds; None = for ever.
            generation: wait for this one, which may be past; None = the one that is there now.

        Raises: CoordTimeout, StoreRefused, CorruptRecord.
        """
        context = self._driver.context
        if self._hints is None:
            steps = wait_steps(context, self.name, self._key, timeout, generation)
            return self._driver.run(steps).payload
        heard = threading.Event()
        # Listening first, looking second: what is said in between is not missed.
        stop = self._hints.subscribe(self._key, heard.set)
        try:
            return self._wait_hinted(heard, timeout, generation)
        finally:
            stop()

    def _wait_hinted(
        self, heard: threading.Event, timeout: float | None, generation: int | None
    ) -> Any:
        clock, pace = self._driver.context.clock, Pace(self._driver.context)
        began = clock.monotonic_s()
        while True:
            heard.clear()
            pause_s = pace.poll_s()
            try:
                view, _ = self._driver.run(look_steps(self._key))
                generation = view.generation if generation is None else generation
                if view.lets_through(generation):
                    return view.payload
            except StoreUnavailable:
                pause_s = pace.trouble_s()
            passed_s = clock.monotonic_s() - began
            if timeout is not None and passed_s >= timeout:
                raise CoordTimeout(self.name, passed_s)
            heard.wait(pause_s if timeout is None else min(pause_s, timeout - passed_s))

    def open(self, payload: Any = None) -> GateView:
        """Let everybody through; whoever comes later too, until it is re-armed. Idempotent.

        Arguments:
            payload: what waiters are told: anything that JSON can hold.

        Raises: StoreUnavailable when it is not known to be open, StoreRefused, CorruptRecord.
        """
        view = self._driver.run(open_steps(self._driver.context, self._key, payload))
        if self._hints is not None:
            self._hints.publish(self._key)
        return view

    def rearm(self) -> GateView:
        """Close it for those who come from now on; those who were let through are gone.

        Raises: as open.
        """
        return self._driver.run(rearm_steps(self._driver.context, self._key))

    def show(self) -> GateView:
        """The gate as it is. Raises: StoreUnavailable, StoreRefused, CorruptRecord."""
        return self._driver.run(look_steps(self._key))[0]


class AioGate:
    """A gate for asyncio; see Gate. A waiter costs a task.

    Arguments:
        driver, name, hints: as of Gate.
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
        """See Gate.wait."""
        context = self._driver.context
        if self._hints is None:
            steps = wait_steps(context, self.name, self._key, timeout, generation)
            return (await self._driver.run(steps)).payload
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        stop = self._hints.subscribe(self._key, lambda: _tell(loop, heard))
        try:
            return await self._wait_hinted(heard, timeout, generation)
        finally:
            stop()

    async def _wait_hinted(
        self,
        heard: asyncio.Event,
        timeout: float | None,  # noqa: ASYNC109 - as of Gate
        generation: int | None,
    ) -> Any:
        clock, pace = self._driver.context.clock, Pace(self._driver.context)
        began = clock.monotonic_s()
        while True:
            heard.clear()
            pause_s = pace.poll_s()
            try:
                view, _ = await self._driver.run(look_steps(self._key))
                generation = view.generation if generation is None else generation
                if view.lets_through(generation):
                    return view.payload
            except StoreUnavailable:
                pause_s = pace.trouble_s()
            passed_s = clock.monotonic_s() - began
            if timeout is not None and passed_s >= timeout:
                raise CoordTimeout(self.name, passed_s)
            try:
                async with asyncio.timeout(
                    pause_s if timeout is None else min(pause_s, timeout - passed_s)
                ):
                    await heard.wait()
            except TimeoutError:
                continue

    async def open(self, payload: Any = None) -> GateView:
        """See Gate.open."""
        view = await self._driver.run(open_steps(self._driver.context, self._key, payload))
        if self._hints is not None:
            self._hints.publish(self._key)
        return view

    async def rearm(self) -> GateView:
        """See Gate.rearm."""
        return await self._driver.run(rearm_steps(self._driver.context, self._key))

    async def show(self) -> GateView:
        """See Gate.show."""
        return (await self._driver.run(look_steps(self._key)))[0]


def _tell(loop: asyncio.AbstractEventLoop, heard: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(heard.set)
