"""Shared by all recipes that hold a name: faces, handles and options.

Lives here: `LockOptions`; what happens at a loss; the handles `Held` and `AioHeld`; `Holdable`.
That is a context manager with `acquire` and `try_acquire`: a lock, a permit of a semaphore or a
side of a read-write lock. One object may be used by many threads or tasks at once: each block gives
back what it took itself. Must not live here: rules (the cores and keepers), any one recipe.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, Self, get_args

from strongroom.coordination.arguments import delay, number, waiting_time
from strongroom.coordination.drivers_async import AsyncDriver
from strongroom.coordination.drivers_sync import CLOSED, SyncDriver
from strongroom.coordination.effects import Steps
from strongroom.coordination.errors import CoordTimeout, LockLost, StoreRefused, Unsupported
from strongroom.coordination.handles import LOST, HeldBase, Hold, apart, log
from strongroom.coordination.recipes.waiting import Refusal

OnLost = Literal["event", "abort"] | Callable[[str], Any]
Cancel = Literal["deadline", "event", "never"]

EXIT_LOST: Final = 76
_ABORT_EARLY_S: Final = 0.1
_STDERR: Final = 2
_TOLD_BYTES_MAX: Final = 512  # what a pipe that can be written to takes at once, everywhere


@dataclass(frozen=True, slots=True)
class LockOptions:
    """How a lock behaves.

    Attributes:
        ttl_s: a holder that does not renew is over after so long; renewed at a third of it.
        wait_s: how long to wait for it; 0 tries once, None waits for ever.
        fair: first come, first served (everybody should ask so, or barge past the queue).
        lock_delay_s: after a hold that expired, wait so much longer.
        on_lost: "event" sets `lost`. "abort" ends this process shortly before somebody else can
            hold it, with exit code 76 and a message that names the lock. Or a function to call.
        strict: leaving the block raises LockLost if it was lost and the body raised nothing.
        alert: watch the record while it is held. A loss which the store can tell (broken by an
            administrator) is then known at once and not at the next renewal.
        value: JSON to show with the holder.
    """

    ttl_s: float = 15.0
    wait_s: float | None = None
    fair: bool = False
    lock_delay_s: float = 0.0
    on_lost: OnLost = "event"
    strict: bool = False
    alert: bool = False
    value: Any = None

    def __post_init__(self) -> None:
        """Make plain numbers of the times.

        Raises:
            Unsupported: something is none of what is named above.
        """
        # The class is frozen for its users; a number of another kind would spoil the record.
        give = object.__setattr__
        give(self, "ttl_s", number("ttl", self.ttl_s))
        give(self, "wait_s", waiting_time("wait", self.wait_s))
        give(self, "lock_delay_s", delay("lock_delay", self.lock_delay_s))
        if self.on_lost not in ("event", "abort") and not callable(self.on_lost):
            raise Unsupported(f"on_lost is 'event', 'abort' or a function, not {self.on_lost!r}")

    @property
    def early_s(self) -> float:
        """So long before the deadline the belief ends: a process takes a moment to be gone."""
        return min(_ABORT_EARLY_S, self.ttl_s / 20) if self.on_lost == "abort" else 0.0


def check_cancel(cancel: Cancel) -> Cancel:
    """Return what an asyncio block does at a loss.

    Raises:
        Unsupported: it is none of `Cancel`.
    """
    if cancel not in get_args(Cancel):
        raise Unsupported(f"cancel is 'deadline', 'event' or 'never', not {cancel!r}")
    return cancel


def take_up(driver: SyncDriver | AsyncDriver, hold: Hold, options: LockOptions) -> None:
    """Look after a hold from now on: renewal, deadline, what happens at a loss, the alert."""
    on_lost = options.on_lost
    if on_lost == "abort":
        hold.on_lost(lambda reason: abort_process(hold.name, reason))
    elif callable(on_lost):
        hold.on_lost(apart(on_lost))
    driver.adopt(hold, apart=on_lost == "abort")
    if options.alert:
        driver.spawn(hold.keeper.alert(hold), "coordination-alert")


def give_steps(hold: Hold) -> Steps[bool]:
    """Give back; who is interrupted or cancelled meanwhile does so once more before it goes.

    Nobody knows what came of the first try, and a hold that is not given back costs the next one a
    whole TTL.
    """
    try:
        return (yield from hold.keeper.give(hold))
    except GeneratorExit:
        raise
    except BaseException:
        yield from hold.keeper.give(hold)
        raise


def abort_process(name: str, reason: str) -> None:
    """End this process at once, without cleaning up: it must not outlive its lock."""
    told = f"strongroom: the lock {name!r} is lost ({reason}); aborting\n"
    try:
        # Standard error may be closed, or a pipe that nobody empties: nothing waits for it.
        if select.select([], [_STDERR], [], 0)[1]:
            os.write(_STDERR, told.encode(errors="backslashreplace")[:_TOLD_BYTES_MAX])
    finally:
        os._exit(EXIT_LOST)


class Held(HeldBase):
    """A hold in hand, for threads; leaving its block releases it."""

    def __init__(self, driver: SyncDriver, hold: Hold, strict: bool = False) -> None:
        super().__init__(hold)
        self._driver, self._strict = driver, strict

    def release(self) -> bool:
        """Give it back; of no effect if it is over. Return whether it was still held.

        Never raises: what cannot be given back expires.
        """
        if not self._hold.end():
            return False
        return self._driver.run(give_steps(self._hold))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
        if self._strict and error is None and self._hold.state == LOST:
            raise LockLost(self.name, self.reason)
        warn_of_loss(self._hold, error)


class AioHeld(HeldBase):
    """A hold in hand, for asyncio; leaving its block releases it.

    Arguments:
        driver: of the client.
        hold: what is held.
        cancel: with "deadline" the task in the block is cancelled as soon as the hold is over, and
            the block raises LockLost from it. With "event" the body goes on, and the block raises
            LockLost at its end. With "never" neither happens.
    """

    def __init__(self, driver: AsyncDriver, hold: Hold, cancel: Cancel = "deadline") -> None:
        super().__init__(hold)
        self._driver, self._cancel = driver, cancel
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancelled = False
        self._cancelling = 0

    async def release(self) -> bool:
        """Give it back; of no effect if it is over. Return whether it was still held."""
        if not self._hold.end():
            return False
        return await self._driver.run(give_steps(self._hold))

    async def wait_lost(self) -> str:
        """Return, once it is lost, why."""
        loop, told = asyncio.get_running_loop(), asyncio.Event()

        def tell(_: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(told.set)

        self._hold.on_lost(tell)
        await told.wait()
        return self.reason

    async def __aenter__(self) -> Self:
        if self._cancel == "deadline":
            self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
            if self._task is not None:
                self._cancelling = self._task.cancelling()
                self._hold.on_lost(self._end_body)
        return self

    def _end_body(self, reason: str) -> None:
        assert self._loop is not None
        if _running_loop() is self._loop:
            self._cancel_body(reason)
            return
        # A thread found out: one that was given the handle, or the watch over deadlines.
        with contextlib.suppress(RuntimeError):  # the loop is closed, and the body with it
            self._loop.call_soon_threadsafe(self._cancel_body, reason)

    def _cancel_body(self, reason: str) -> None:
        # A body that finds out by itself, in check(), raises by itself.
        if self._task is not None and asyncio.current_task(self._loop) is not self._task:
            self._cancelled = True
            self._task.cancel(reason)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        ours = False
        if self._cancelled and task is not None:
            ours = task.uncancel() <= self._cancelling
        await self.release()
        cancelled = ours and isinstance(error, asyncio.CancelledError)
        raises = self._cancel != "never" and (error is None or cancelled)
        if raises and self._hold.state == LOST:
            raise LockLost(self.name, self.reason) from error
        warn_of_loss(self._hold, error)


def _timeout(name: str, refusal: Refusal, options: LockOptions) -> CoordTimeout:
    tried_once = options.wait_s is not None and options.wait_s <= 0
    return CoordTimeout(name, 0.0 if tried_once else refusal.waited_s, refusal.holder)


def warn_of_loss(hold: Hold, error: BaseException | None) -> None:
    """Log a warning that a hold was lost before its block ended, unless the block's error says so.

    A record of the log and no warning of Python's, since the program did nothing wrong. A warning
    that is turned into an error would hide the error of the body.
    """
    if hold.state == LOST and not (isinstance(error, LockLost) and error.name == hold.name):
        log.warning(
            "%r, held with fence %d, was lost before its block ended (%s): what the block did"
            " afterwards may have met another holder's work; strict=True raises LockLost then",
            hold.name,
            hold.fence,
            hold.reason,
        )


def _refuse_closed(driver: SyncDriver) -> None:
    if driver.closed:
        raise StoreRefused(CLOSED)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Holdable(ABC):
    """Something to be held by name, for threads.

    Arguments:
        driver: of the client.
        name: of it.
        options: TTL, waiting time, what happens at a loss.
    """

    def __init__(self, driver: SyncDriver, name: str, options: LockOptions) -> None:
        self._driver, self.name, self.options = driver, name, options
        self._blocks: dict[int, list[Held]] = {}

    @abstractmethod
    def _steps(self, *, once: bool) -> Steps[Hold | Refusal]:
        """Take it, as each recipe does; `once`: without waiting."""

    def acquire(self) -> Held:
        """Return it held.

        Raises:
            CoordTimeout: not to be had within `wait`.
            AlreadyHeld: this client has what stands in the way, or waits for it.
            Unsupported: the store's record was made for other terms.
            StoreUnavailable, StoreRefused: the store.
        """
        outcome = self._acquire(once=False)
        if isinstance(outcome, Refusal):
            raise _timeout(self.name, outcome, self.options)
        return outcome

    def try_acquire(self) -> Held | None:
        """Return it held, or None if it is not free right now; raises like `acquire`."""
        outcome = self._acquire(once=True)
        return None if isinstance(outcome, Refusal) else outcome

    def _acquire(self, *, once: bool) -> Held | Refusal:
        driver = self._driver
        _refuse_closed(driver)
        outcome = driver.run(self._steps(once=once))
        if isinstance(outcome, Refusal):
            return outcome
        if driver.closed:
            outcome.end()
            driver.run(give_steps(outcome))
            _refuse_closed(driver)
        take_up(driver, outcome, self.options)
        return Held(self._driver, outcome, self.options.strict)

    def __enter__(self) -> Held:
        held = self.acquire()
        self._blocks.setdefault(threading.get_ident(), []).append(held)
        return held

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        thread = threading.get_ident()
        held = self._blocks[thread].pop()
        if not self._blocks[thread]:
            del self._blocks[thread]
        held.__exit__(kind, error, trace)


class AioHoldable(ABC):
    """Something to be held by name, for asyncio; see `Holdable` and `AioHeld`."""

    def __init__(
        self, driver: AsyncDriver, name: str, options: LockOptions, cancel: Cancel = "deadline"
    ) -> None:
        self._driver, self.name, self.options = driver, name, options
        self._cancel = check_cancel(cancel)
        self._blocks: dict[int, list[AioHeld]] = {}

    @abstractmethod
    def _steps(self, *, once: bool) -> Steps[Hold | Refusal]:
        """See `Holdable._steps`."""

    async def acquire(self) -> AioHeld:
        """See `Holdable.acquire`."""
        outcome = await self._acquire(once=False)
        if isinstance(outcome, Refusal):
            raise _timeout(self.name, outcome, self.options)
        return outcome

    async def try_acquire(self) -> AioHeld | None:
        """See `Holdable.try_acquire`."""
        outcome = await self._acquire(once=True)
        return None if isinstance(outcome, Refusal) else outcome

    async def _acquire(self, *, once: bool) -> AioHeld | Refusal:
        self._driver.enter_loop()
        outcome = await self._driver.run(self._steps(once=once))
        if isinstance(outcome, Refusal):
            return outcome
        take_up(self._driver, outcome, self.options)
        return AioHeld(self._driver, outcome, self._cancel)

    async def __aenter__(self) -> AioHeld:
        held = await self.acquire()
        self._blocks.setdefault(id(asyncio.current_task()), []).append(held)
        return await held.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task = id(asyncio.current_task())
        held = self._blocks[task].pop()
        if not self._blocks[task]:
            del self._blocks[task]
        await held.__aexit__(kind, error, trace)
