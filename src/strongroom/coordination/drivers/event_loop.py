"""Runs steps on an event loop: the asyncio counterpart of drivers/threads.py.

Lives here: the asyncio driver and its two background tasks per client. A driver belongs to the
event loop that first uses it.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from strongroom.coordination.drivers.threads import CLOSED
from strongroom.coordination.drivers.watchdog import Watchdog
from strongroom.coordination.effects import (
    AwaitSignal,
    Cas,
    Delete,
    Effect,
    Get,
    ListKeys,
    Sleep,
    SleepUntil,
    Steps,
    Unknown,
    Watch,
)
from strongroom.coordination.errors import USED_AFTER_CLOSE, ClientClosed, Unsupported
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.forking import register_for_forks
from strongroom.coordination.session.handles import Hold, log
from strongroom.coordination.session.places import LineCaller
from strongroom.coordination.session.renewal import Timetable, deadlines, renewals
from strongroom.coordination.store import AsyncStore

T = TypeVar("T")


class AsyncDriver:
    """Runs the recipes of one client on the running event loop."""

    def __init__(self, store: AsyncStore, context: RecipeContext) -> None:
        self.store, self.context = store, context
        self._start()
        register_for_forks(self)

    def _start(self) -> None:
        context = self.context
        self._renewal_sleep, self._deadline_sleep = _WakeableSleep(), _WakeableSleep()
        self.renewal_table = Timetable(context.clock, self._renewal_sleep.wake)
        self.deadline_table = Timetable(context.clock, self._deadline_sleep.wake)
        self._watchdog = Watchdog(context.clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._serving = False
        self._closed = False

    async def run(self, steps: Steps[T]) -> T:
        """If the task is cancelled, CancelledError is raised inside the steps. They may still yield
        a few effects to clean up."""
        send = steps.send
        try:
            effect = send(None)
            while True:
                try:
                    outcome = await self.perform(effect)
                except BaseException as error:
                    effect = steps.throw(error)
                else:
                    effect = send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result

    def caller(self) -> LineCaller:
        """Return the calling task, which waits in line as itself."""
        task = asyncio.current_task()
        return LineCaller(() if task is None else (weakref.ref(task),), self)

    async def perform(self, effect: Effect) -> Any:
        store = self.store
        kind = type(effect)
        outcome: Any
        if kind is Cas:
            outcome = await store.cas(*effect)
        elif kind is Get:
            outcome = await store.get(*effect)
        elif kind is Watch:
            outcome = await store.watch(*effect)
        else:
            return await self._perform_other(effect)
        if self.context.outage.is_ongoing and type(outcome) is not Unknown:
            self.context.outage.note_answer()
        return outcome

    async def _perform_other(self, effect: Effect) -> Any:
        store, kind = self.store, type(effect)
        if isinstance(effect, Sleep):
            return await asyncio.sleep(effect.seconds)
        if isinstance(effect, AwaitSignal):
            return await _await_signal(effect)
        if kind is ListKeys:
            return await store.list_keys(*effect)
        if kind is Delete:
            return await store.delete(*effect)
        raise TypeError(f"{effect!r} is no effect of a recipe")

    def adopt(self, hold: Hold, on_own_thread: bool = False) -> None:
        """Renew this hold from now on, and watch its deadline.

        Arguments:
            hold: the hold that was just acquired.
            on_own_thread: also watch the deadline on a thread, in case the event loop hangs.
        """
        if self._closed:
            hold.lose(CLOSED)
            return
        self.bind_to_running_loop()
        self._start_tasks()
        hold.on_end = _chain(self._note_end, hold.on_end)
        clock, rules = self.context.clock, self.context.rules
        wait_s = rules.renew_after_s(hold.ttl_s, clock.random())
        self.renewal_table.add(clock.boot_s() + wait_s, hold)
        self.deadline_table.add(hold.deadline_s - hold.margin_s, hold)
        if on_own_thread:
            self._watchdog.add(hold)

    def bind_to_running_loop(self) -> None:
        """Bind the driver to the running loop; call it before anything is acquired.

        Raises:
            ClientClosed: the client is closed.
            Unsupported: another loop, which is still open, renews the holds of this driver.
        """
        if self._closed:
            raise ClientClosed(USED_AFTER_CLOSE)
        running = asyncio.get_running_loop()
        if self._loop is running:
            return
        if self._loop is not None:
            if not self._loop.is_closed():
                raise Unsupported(
                    "this client's asyncio face belongs to another event loop; one of its own has"
                    " client.sibling().aio"
                )
            # The background tasks ended with their loop, so nothing renews or watches those holds.
            self.context.lines.drop_all(self, "its event loop was closed")
            for hold in self.holds():
                hold.lose("its event loop was closed")
            self._watchdog.close()
            self._start()
        self._loop = running

    def spawn(self, steps: Steps[None], name: str) -> asyncio.Task[None]:
        """The driver keeps a reference to the task."""
        task = asyncio.get_running_loop().create_task(self._run_logged(steps), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _note_end(self) -> None:
        self.renewal_table.note_ended()
        self.deadline_table.note_ended()
        self._watchdog.note_ended()

    async def _run_logged(self, steps: Steps[None]) -> None:
        try:
            await self.run(steps)
        except Exception:
            log.exception("a background task failed")

    def _start_tasks(self) -> None:
        if self._serving:
            return
        self._serving = True
        loop = asyncio.get_running_loop()
        pairs = (
            (self._renewal_sleep, renewals(self.renewal_table, self.context.rules)),
            (self._deadline_sleep, deadlines(self.deadline_table)),
        )
        for sleep, steps in pairs:
            sleep.loop = loop
            task = loop.create_task(self._serve(sleep, steps))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, sleep: _WakeableSleep, steps: Steps[None]) -> None:
        effect = steps.send(None)
        while True:
            outcome: Any = None
            if isinstance(effect, SleepUntil):
                await sleep.wait(effect.until_s, self.context.clock.boot_s)
                effect = steps.send(None)
                continue
            try:
                outcome = await self.perform(effect)
            except Exception as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(outcome)

    @property
    def closed(self) -> bool:
        """Whether the client is closed, so that no hold is renewed or watched any more."""
        return self._closed

    def holds(self) -> list[Hold]:
        """Those that are neither released nor lost."""
        return [hold for hold in self.deadline_table.holds() if hold.active]

    def after_fork(self) -> None:
        """All holds are dropped. A new event loop may use the driver again."""
        for hold in self.deadline_table.inherited():
            hold.after_fork()
        self.context.reset()
        self._start()

    async def close(self) -> None:
        """Every remaining hold is lost."""
        self._closed = True
        self.context.lines.drop_all(self, USED_AFTER_CLOSE)
        for hold in self.holds():
            hold.lose(CLOSED)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._serving = False
        self._watchdog.close()
        self._watchdog = Watchdog(self.context.clock)


async def _await_signal(effect: AwaitSignal) -> None:
    loop, is_set = asyncio.get_running_loop(), asyncio.Event()
    effect.signal.call_when_set(lambda: _set_on(loop, is_set))
    try:
        async with asyncio.timeout(effect.timeout_s):
            await is_set.wait()
    except TimeoutError:
        pass


def _set_on(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    """Set an event on its loop, from any thread.

    Raises:
        RuntimeError: the loop is closed, so nobody waits any more.
    """
    loop.call_soon_threadsafe(event.set)


def _chain(first: Callable[[], None], then: Callable[[], None] | None) -> Callable[[], None]:
    def both() -> None:
        first()
        if then is not None:
            then()

    return both


class _WakeableSleep:
    """Lets a background task sleep until a given time, or until any thread wakes it."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._event = asyncio.Event()

    async def wait(self, until_s: float | None, now_s: Callable[[], float]) -> None:
        timeout_s = None if until_s is None else max(0.0, until_s - now_s())
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()

    def wake(self) -> None:
        if self.loop is None:
            return  # no task sleeps yet: each reads its timetable before it first sleeps
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self.loop:
            self._event.set()
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._event.set)
