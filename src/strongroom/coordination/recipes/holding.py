"""The options, handles and base classes of all recipes that hold a name.

Lives here: `LockOptions`; the reactions to a loss; the handles `Held` and `AioHeld`; `Holdable`. A
`Holdable` is a context manager with `acquire` and `try_acquire`: a lock, a permit of a semaphore,
or a side of a read-write lock. Many threads or tasks may use one object at once: each block
releases its own hold.
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

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.effects import Steps
from strongroom.coordination.errors import (
    USED_AFTER_CLOSE,
    AlreadyHeld,
    ClientClosed,
    CoordTimeout,
    LockLost,
    Unsupported,
)
from strongroom.coordination.options.arguments import delay, number, waiting_time
from strongroom.coordination.recipes.waiting import NotAcquired
from strongroom.coordination.session.handles import LOST, HeldBase, Hold, log, run_on_own_thread

OnLost = Literal["event", "abort"] | Callable[[str], Any]
Cancel = Literal["deadline", "event", "never"]

EXIT_LOST: Final = 76
_ABORT_EARLY_S: Final = 0.1
_STDERR: Final = 2
_MESSAGE_BYTES_MAX: Final = 512  # a writable pipe takes so much at once, on every system


@dataclass(frozen=True, slots=True)
class LockOptions:
    """The options of a lock, and of other holds.

    Attributes:
        ttl_s: a hold that is not renewed ends after so many seconds. It is renewed after a third of
            them.
        wait_s: how many seconds to wait for the hold; 0 tries once, None waits for ever.
        fair: first come, first served. All clients of a lock should set it: one without it passes
            the queue.
        lock_delay_s: how many seconds longer to wait after a hold that expired.
        on_lost: "event" sets `lost`. "abort" ends this process with exit code 76 and a message that
            names the lock. It does so shortly before another client can hold it. A function is
            called with the reason.
        strict: leaving the block raises LockLost if the hold was lost and the body raised nothing.
        alert: watch the record while it is held. A loss that the store can show (an administrator
            broke the lock) is then known at once and not at the next renewal.
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
        """Convert the times to plain numbers.

        Raises:
            Unsupported: an option has none of the values named above.
        """
        # The class is frozen for its users. A number of another type would spoil the record.
        set_field = object.__setattr__
        set_field(self, "ttl_s", number("ttl", self.ttl_s))
        set_field(self, "wait_s", waiting_time("wait", self.wait_s))
        set_field(self, "lock_delay_s", delay("lock_delay", self.lock_delay_s))
        if self.on_lost not in ("event", "abort") and not callable(self.on_lost):
            raise Unsupported(f"on_lost is 'event', 'abort' or a function, not {self.on_lost!r}")

    @property
    def margin_s(self) -> float:
        """The seconds by which a hold ends before its deadline: ending a process takes time."""
        return min(_ABORT_EARLY_S, self.ttl_s / 20) if self.on_lost == "abort" else 0.0


def check_cancel(cancel: Cancel) -> Cancel:
    """Return `cancel`, which says what an asyncio block does at a loss. Raises: Unsupported."""
    if cancel not in get_args(Cancel):
        raise Unsupported(f"cancel is 'deadline', 'event' or 'never', not {cancel!r}")
    return cancel


def start_renewal(driver: SyncDriver | AsyncDriver, hold: Hold, options: LockOptions) -> None:
    """Start the work of a hold: renewal, deadline watch, the reaction to a loss, the alert."""
    on_lost = options.on_lost
    if on_lost == "abort":
        hold.on_lost(lambda reason: abort_process(hold.name, reason))
    elif callable(on_lost):
        hold.on_lost(run_on_own_thread(on_lost))
    driver.adopt(hold, on_own_thread=on_lost == "abort")
    if options.alert:
        driver.spawn(hold.keeper.watch_for_loss(hold), "coordination-alert")


def release_steps(hold: Hold) -> Steps[bool]:
    """Release a hold; return whether it was still held. Repeat the release after an interruption.

    The outcome of an interrupted release is unknown. A hold that is not released costs the next
    holder a whole TTL.
    """
    try:
        return (yield from hold.keeper.release(hold))
    except GeneratorExit:
        raise
    except BaseException:
        yield from hold.keeper.release(hold)
        raise


def begin_hold(driver: SyncDriver, hold: Hold, options: LockOptions) -> None:
    """Start the work of a hold, or release it and raise: nobody would renew it, nor give it back.

    Raises:
        RuntimeError: the system starts no more threads.
    """
    try:
        start_renewal(driver, hold, options)
    except BaseException:
        hold.end()
        driver.run(release_steps(hold))
        raise


async def begin_aio_hold(driver: AsyncDriver, hold: Hold, options: LockOptions) -> None:
    """As `begin_hold`, on an event loop."""
    try:
        start_renewal(driver, hold, options)
    except BaseException:
        hold.end()
        await driver.run(release_steps(hold))
        raise


def abort_process(name: str, reason: str) -> None:
    """End this process at once, without cleaning up: it must not run longer than its lock lasts."""
    message = f"strongroom: the lock {name!r} is lost ({reason}); aborting\n"
    try:
        # Standard error may be closed, or a full pipe that nobody reads: do not wait for it.
        if select.select([], [_STDERR], [], 0)[1]:
            os.write(_STDERR, message.encode(errors="backslashreplace")[:_MESSAGE_BYTES_MAX])
    finally:
        os._exit(EXIT_LOST)


class Held(HeldBase):
    """The handle of a hold, for threads; leaving its block releases the hold."""

    def __init__(self, driver: SyncDriver, hold: Hold, strict: bool = False) -> None:
        super().__init__(hold)
        self._driver, self._strict = driver, strict

    def release(self) -> bool:
        """Release the hold; return whether it was still held. No effect if it is over.

        Never raises: a hold that cannot be released expires.
        """
        if not self._hold.end():
            return False
        return self._driver.run(release_steps(self._hold))

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
    """The handle of a hold, for asyncio; leaving its block releases the hold.

    Arguments:
        driver: of the client.
        hold: what is held.
        cancel: with "deadline" the task in the block is cancelled as soon as the hold is lost, and
            the block raises LockLost. With "event" the body continues, and the block raises
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
        """Release the hold; return whether it was still held. No effect if it is over."""
        if not self._hold.end():
            return False
        return await self._driver.run(release_steps(self._hold))

    async def wait_lost(self) -> str:
        """Wait until the hold is lost; return the reason."""
        loop, is_lost = asyncio.get_running_loop(), asyncio.Event()

        def on_loss(_: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(is_lost.set)

        self._hold.on_lost(on_loss)
        await is_lost.wait()
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
        # The loss was noticed on a thread: by one that uses the handle, or by the deadline watch.
        with contextlib.suppress(RuntimeError):  # the loop is closed, and the body with it
            self._loop.call_soon_threadsafe(self._cancel_body, reason)

    def _cancel_body(self, reason: str) -> None:
        # A body that notices the loss in its own check() raises LockLost there.
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
        is_own_cancel = False
        if self._cancelled and task is not None:
            is_own_cancel = task.uncancel() <= self._cancelling
        await self.release()
        cancelled = is_own_cancel and isinstance(error, asyncio.CancelledError)
        raises = self._cancel != "never" and (error is None or cancelled)
        if raises and self._hold.state == LOST:
            raise LockLost(self.name, self.reason) from error
        warn_of_loss(self._hold, error)


def _timeout(name: str, failure: NotAcquired, options: LockOptions) -> CoordTimeout:
    tried_once = options.wait_s is not None and options.wait_s <= 0
    return CoordTimeout(name, 0.0 if tried_once else failure.waited_s, failure.holder)


def warn_of_loss(hold: Hold, error: BaseException | None) -> None:
    """Log a warning that a hold was lost before its block ended, unless the block's error says so.

    This is a log record and not a Python warning, since the program did nothing wrong. A Python
    warning that is turned into an error would hide the error of the body.
    """
    if hold.state == LOST and not (isinstance(error, LockLost) and error.name == hold.name):
        log.warning(
            "%r, held with fence %d, was lost before its block ended (%s): what the block did"
            " afterwards may have met another holder's work; strict=True raises LockLost then",
            hold.name,
            hold.fence,
            hold.reason,
        )


def _words(holdable: object, name: str, options: LockOptions) -> str:
    """Return how a lock or another object that is held by name is shown."""
    wait = "waits for ever" if options.wait_s is None else f"waits {options.wait_s:g} s"
    return f"<{type(holdable).__name__} {name!r}, ttl {options.ttl_s:g} s, {wait}>"


def _refuse_closed(driver: SyncDriver | AsyncDriver) -> None:
    if driver.closed:
        raise ClientClosed(USED_AFTER_CLOSE)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Holdable(ABC):
    """The base class of objects that are held by name, for threads.

    Arguments:
        driver: of the client.
        name: of the lock, semaphore or other object.
        options: TTL, waiting time, what happens at a loss.
    """

    def __init__(self, driver: SyncDriver, name: str, options: LockOptions) -> None:
        self._driver, self.name, self.options = driver, name, options
        self._blocks: dict[int, list[Held]] = {}

    def __repr__(self) -> str:
        return _words(self, self.name, self.options)

    @abstractmethod
    def _steps(self, *, once: bool) -> Steps[Hold | NotAcquired]:
        """Return the recipe's steps that take the hold; with `once` they do not wait."""

    def acquire(self) -> Held:
        """Wait for the hold; return its handle.

        Raises:
            CoordTimeout: the hold was not free within `wait`.
            AlreadyHeld: this thread holds it, or waits for it already. Other threads and tasks of
                the client wait in line.
            Unsupported: the store's record has other terms, such as another number of permits.
            StoreUnavailable, StoreRefused: the store did not answer, or refused.
            ClientClosed: the client was closed, before the call or during the wait.
        """
        outcome = self._acquire(once=False)
        if isinstance(outcome, NotAcquired):
            raise _timeout(self.name, outcome, self.options)
        return outcome

    def try_acquire(self) -> Held | None:
        """Return the handle, or None if the hold is not free now; raises like `acquire`.

        It is not free either if this thread holds it.
        """
        try:
            outcome = self._acquire(once=True)
        except AlreadyHeld:
            return None
        return None if isinstance(outcome, NotAcquired) else outcome

    def _acquire(self, *, once: bool) -> Held | NotAcquired:
        driver = self._driver
        _refuse_closed(driver)
        outcome = driver.run(self._steps(once=once))
        if isinstance(outcome, NotAcquired):
            return outcome
        if driver.closed:
            outcome.end()
            driver.run(release_steps(outcome))
            _refuse_closed(driver)
        begin_hold(driver, outcome, self.options)
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
    """The base class of objects that are held by name, for asyncio.

    See `Holdable` and `AioHeld`.
    """

    def __init__(
        self, driver: AsyncDriver, name: str, options: LockOptions, cancel: Cancel = "deadline"
    ) -> None:
        self._driver, self.name, self.options = driver, name, options
        self._cancel = check_cancel(cancel)
        self._blocks: dict[int, list[AioHeld]] = {}

    def __repr__(self) -> str:
        return _words(self, self.name, self.options)

    @abstractmethod
    def _steps(self, *, once: bool) -> Steps[Hold | NotAcquired]:
        """As `Holdable._steps`."""

    async def acquire(self) -> AioHeld:
        """Wait for the hold; return its handle."""
        outcome = await self._acquire(once=False)
        if isinstance(outcome, NotAcquired):
            raise _timeout(self.name, outcome, self.options)
        return outcome

    async def try_acquire(self) -> AioHeld | None:
        """Return the handle, or None if the hold is not free now."""
        try:
            outcome = await self._acquire(once=True)
        except AlreadyHeld:
            return None
        return None if isinstance(outcome, NotAcquired) else outcome

    async def _acquire(self, *, once: bool) -> AioHeld | NotAcquired:
        self._driver.bind_to_running_loop()
        outcome = await self._driver.run(self._steps(once=once))
        if isinstance(outcome, NotAcquired):
            return outcome
        if self._driver.closed:
            outcome.end()
            await self._driver.run(release_steps(outcome))
            _refuse_closed(self._driver)
        await begin_aio_hold(self._driver, outcome, self.options)
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
