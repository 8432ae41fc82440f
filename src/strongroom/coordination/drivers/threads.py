"""Runs steps on threads: performs each effect against a `Store` and sends the outcome back.

Lives here: the sync driver, its two background threads per client (renewal, deadlines), and the
reset of both in a forked child.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar

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
from strongroom.coordination.errors import USED_AFTER_CLOSE
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.forking import register_for_forks
from strongroom.coordination.session.handles import Hold, log
from strongroom.coordination.session.places import LineCaller
from strongroom.coordination.session.renewal import Timetable, deadlines, renewals
from strongroom.coordination.store import Store

T = TypeVar("T")
CLOSED: Final = "the client was closed"


def run_steps(steps: Steps[T], perform: Callable[[Effect], Any]) -> T:
    """Perform steps to their end and return their result.

    Arguments:
        perform: performs one effect and returns its outcome. An exception from it is raised inside
            the steps, at the `yield` of that effect.
    """
    send = steps.send
    try:
        effect = send(None)
        while True:
            try:
                outcome = perform(effect)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result


class SyncDriver:
    """Runs the recipes of one client, each on the thread of its caller."""

    def __init__(self, store: Store, context: RecipeContext) -> None:
        self.store, self.context = store, context
        self._start()
        register_for_forks(self)

    def _start(self) -> None:
        self._renewal_sleep, self._deadline_sleep = WakeableSleep(), WakeableSleep()
        clock = self.context.clock
        self.renewal_table = Timetable(clock, self._renewal_sleep.wake)
        self.deadline_table = Timetable(clock, self._deadline_sleep.wake)
        self._threads: list[threading.Thread] = []
        self._start_lock = threading.Lock()
        self._closed = False

    def run(self, steps: Steps[T]) -> T:
        return run_steps(steps, self.perform)

    def caller(self) -> LineCaller:
        """Return the calling thread, and the task that runs on it; see `LineCaller`."""
        thread: object = threading.current_thread()
        if isinstance(thread, threading._DummyThread):
            # A thread that Python did not start: its object outlives it, and is given again with
            # its number. What is local to the thread ends with it.
            thread = _foreign.__dict__.setdefault("thread", _ForeignThread())
        task = _running_task()
        if task is None:
            return LineCaller((weakref.ref(thread),), self)
        return LineCaller((weakref.ref(thread), weakref.ref(task)), self)

    def perform(self, effect: Effect) -> Any:
        store = self.store
        kind = type(effect)
        outcome: Any
        if kind is Cas:
            outcome = store.cas(*effect)
        elif kind is Get:
            outcome = store.get(*effect)
        elif kind is Watch:
            outcome = store.watch(*effect)
        else:
            return self._perform_other(effect)
        if self.context.outage.is_ongoing and type(outcome) is not Unknown:
            self.context.outage.note_answer()
        return outcome

    def _perform_other(self, effect: Effect) -> Any:
        store, kind = self.store, type(effect)
        if isinstance(effect, Sleep):
            return time.sleep(effect.seconds)
        if isinstance(effect, AwaitSignal):
            return _await_signal(effect)
        if kind is ListKeys:
            return store.list_keys(*effect)
        if kind is Delete:
            return store.delete(*effect)
        raise TypeError(f"{effect!r} is no effect of a recipe")

    def adopt(self, hold: Hold, on_own_thread: bool = False) -> None:
        """Renew this hold from now on, and watch its deadline.

        Arguments:
            hold: the hold that was just acquired.
            on_own_thread: watch the deadline on a thread that user code cannot block. This driver
                always does.
        """
        if not self._threads:
            self._start_threads()
        hold.on_end = _Ended(self, hold.on_end)
        clock, rules = self.context.clock, self.context.rules
        wait_s = rules.renew_after_s(hold.ttl_s, clock.random())
        self.renewal_table.add(clock.boot_s() + wait_s, hold)
        self.deadline_table.add(hold.deadline_s - hold.margin_s, hold)
        if self._closed:
            hold.lose(CLOSED)  # its renewals and its deadline watch have ended with the client

    def spawn(self, steps: Steps[None], name: str) -> threading.Thread:
        """Start a daemon thread that runs the steps."""
        thread = threading.Thread(target=self._run_logged, args=(steps,), name=name, daemon=True)
        thread.start()
        return thread

    def _run_logged(self, steps: Steps[None]) -> None:
        try:
            self.run(steps)
        except Exception:
            log.exception("a background task failed")

    def _start_threads(self) -> None:
        with self._start_lock:
            if self._threads:
                return
            tasks = (
                (self._renewal_sleep, renewals(self.renewal_table, self.context.rules), "renew"),
                (self._deadline_sleep, deadlines(self.deadline_table), "deadlines"),
            )
            threads = [
                threading.Thread(
                    target=self._serve,
                    args=(sleep, steps),
                    name=f"coordination-{name}",
                    daemon=True,
                )
                for sleep, steps, name in tasks
            ]
            for thread in threads:
                thread.start()
            self._threads = threads

    def _serve(self, sleep: WakeableSleep, steps: Steps[None]) -> None:
        outcome: Any = None
        effect = steps.send(None)
        while not self._closed:
            if isinstance(effect, SleepUntil):
                sleep.wait(effect.until_s, self.context.clock.boot_s)
                effect = steps.send(None)
                continue
            try:
                outcome = self.perform(effect)
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

    def close(self) -> None:
        """Every remaining hold is lost."""
        self._closed = True
        self.context.lines.drop_all(self, USED_AFTER_CLOSE)
        for hold in self.holds():
            hold.lose(CLOSED)
        self._renewal_sleep.wake()
        self._deadline_sleep.wake()

    def after_fork(self) -> None:
        """Drop holds, take a new identity, use no inherited connection."""
        held = {id(hold): hold for hold in self.deadline_table.inherited()}
        for hold in held.values():
            hold.after_fork()
        self.context.reset()
        self.store.after_fork()
        self._start()


class _ForeignThread:
    """Stands for a thread that Python did not start."""


_foreign: Final = threading.local()


def _running_task() -> asyncio.Task[object] | None:
    loop = asyncio._get_running_loop()  # unlike the public function, it does not raise
    return None if loop is None else asyncio.current_task(loop)


def _await_signal(effect: AwaitSignal) -> None:
    event = threading.Event()
    effect.signal.call_when_set(event.set)
    event.wait(effect.timeout_s)


class _Ended:
    """The `on_end` callback of a hold: informs both timetables, then calls the previous one."""

    __slots__ = ("driver", "previous")

    def __init__(self, driver: SyncDriver, previous: Callable[[], None] | None) -> None:
        self.driver, self.previous = driver, previous

    def __call__(self) -> None:
        self.driver.renewal_table.note_ended()
        self.driver.deadline_table.note_ended()
        if self.previous is not None:
            self.previous()


class WakeableSleep:
    """Lets a background thread sleep until a given time, or until another thread wakes it."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._woken = False

    def wait(self, until_s: float | None, now_s: Callable[[], float]) -> None:
        with self._condition:
            if not self._woken:
                timeout_s = None if until_s is None else max(0.0, until_s - now_s())
                self._condition.wait(timeout_s)
            self._woken = False

    def wake(self) -> None:
        with self._condition:
            self._woken = True
            self._condition.notify()
