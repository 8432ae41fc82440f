"""Locks: at most one holder per name, with a fencing token, for threads and for asyncio.

Lives here: `Lock` and `AioLock`, and the handles `Held` and `AioHeld`, which every recipe with a
long hold uses. Must not live here: the rules (lock_core.py, lock_keeper.py).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, Self

from strongroom.coordination.context import Context
from strongroom.coordination.drivers_async import AsyncDriver
from strongroom.coordination.drivers_sync import SyncDriver
from strongroom.coordination.errors import CoordTimeout, LockLost
from strongroom.coordination.handles import LOST, HeldBase, Hold, apart
from strongroom.coordination.names import key_of
from strongroom.coordination.recipes.lock_core import Acquisition, Refusal, Wanted

OnLost = Literal["event", "abort"] | Callable[[str], Any]
Cancel = Literal["deadline", "event", "never"]

EXIT_LOST = 76
_ABORT_EARLY_S = 0.1


@dataclass(frozen=True, slots=True)
class LockOptions:
    """How a lock behaves.

    Attributes:
        ttl_s: a holder that does not renew is over after so long; renewed at a third of it.
        wait_s: how long to wait for it; 0 tries once, None waits for ever.
        fair: first come, first served (everybody should ask so, or barge past the queue).
        lock_delay_s: after a hold that expired, wait so much longer.
        on_lost: "event" sets `lost`; "abort" ends this process, with exit code 76 and a message
            that names the lock, shortly before somebody else can hold it; or a function to call.
        strict: leaving the block raises LockLost if it was lost and the body raised nothing.
        alert: watch the record while it is held, so that a loss which the store can tell (broken by
            an administrator) is known at once and not at the next renewal.
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


def wanted_lock(context: Context, kind: str, name: str, options: LockOptions) -> Wanted:
    """Return what these options ask for.

    Raises:
        Unsupported: the store cannot keep such a TTL.
        BadName: see names.py.
    """
    context.check_ttl(options.ttl_s)
    if options.fair:
        context.check_fair()
    abort = options.on_lost == "abort"
    return Wanted(
        key=key_of(kind, name),
        name=name,
        ttl_s=options.ttl_s,
        wait_s=options.wait_s,
        fair=options.fair,
        lock_delay_s=options.lock_delay_s,
        value=options.value,
        early_s=min(_ABORT_EARLY_S, options.ttl_s / 20) if abort else 0.0,
    )


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
        return self._driver.run(self._hold.keeper.give(self._hold))

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


class AioHeld(HeldBase):
    """A hold in hand, for asyncio; leaving its block releases it.

    Arguments:
        driver: of the client.
        hold: what is held.
        cancel: "deadline": the task in the block is cancelled as soon as the hold is over, and
            the block raises LockLost from it. "event": the body goes on, the block raises LockLost
            at its end. "never": neither.
    """

    def __init__(self, driver: AsyncDriver, hold: Hold, cancel: Cancel = "deadline") -> None:
        super().__init__(hold)
        self._driver, self._cancel = driver, cancel
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self._cancelling = 0

    async def release(self) -> bool:
        """Give it back; of no effect if it is over. Return whether it was still held."""
        if not self._hold.end():
            return False
        return await self._driver.run(self._hold.keeper.give(self._hold))

    async def wait_lost(self) -> str:
        """Return, once it is lost, why."""
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        self._hold.on_lost(lambda _: loop.call_soon_threadsafe(told.set))
        await told.wait()
        return self.reason

    async def __aenter__(self) -> Self:
        if self._cancel == "deadline":
            self._task = asyncio.current_task()
            if self._task is not None:
                self._cancelling = self._task.cancelling()
                self._hold.on_lost(self._cancel_body)
        return self

    def _cancel_body(self, reason: str) -> None:
        # A body that finds out by itself, in check(), raises by itself.
        if self._task is not None and asyncio.current_task() is not self._task:
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
        if self._hold.state != LOST or self._cancel == "never":
            return
        if error is None or (ours and isinstance(error, asyncio.CancelledError)):
            raise LockLost(self.name, self.reason) from error


class Lock:
    """A lock by name, for threads. Not reentrant: see `AlreadyHeld`.

    Arguments:
        driver: of the client.
        name: any text.
        options: see `LockOptions`.
        kind: the kind of key; locks of two kinds do not meet.
    """

    def __init__(
        self, driver: SyncDriver, name: str, options: LockOptions, kind: str = "lock"
    ) -> None:
        self._driver, self.name, self.options = driver, name, options
        self._wanted = wanted_lock(driver.context, kind, name, options)
        self._held: Held | None = None

    def acquire(self) -> Held:
        """Return it held.

        Raises:
            CoordTimeout: not to be had within `wait`.
            AlreadyHeld: this client has it or waits for it.
            StoreUnavailable, StoreRefused: the store.
        """
        outcome = self._acquire(self._wanted)
        if isinstance(outcome, Refusal):
            raise CoordTimeout(self.name, outcome.waited_s, outcome.holder)
        return outcome

    def try_acquire(self) -> Held | None:
        """Return it held, or None if it is not free right now; raises like `acquire`."""
        outcome = self._acquire(replace(self._wanted, wait_s=0.0))
        return None if isinstance(outcome, Refusal) else outcome

    def _acquire(self, wanted: Wanted) -> Held | Refusal:
        driver = self._driver
        outcome = driver.run(Acquisition(driver.context, wanted).steps())
        if isinstance(outcome, Refusal):
            return outcome
        _arm(outcome, self.options.on_lost)
        driver.adopt(outcome)
        if self.options.alert:
            driver.spawn(outcome.keeper.alert(outcome), "coordination-alert")
        return Held(driver, outcome, self.options.strict)

    def __enter__(self) -> Held:
        self._held = self.acquire()
        return self._held

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        held, self._held = self._held, None
        assert held is not None
        held.__exit__(kind, error, trace)


class AioLock:
    """A lock by name, for asyncio; see `Lock` and `AioHeld`."""

    def __init__(
        self,
        driver: AsyncDriver,
        name: str,
        options: LockOptions,
        cancel: Cancel = "deadline",
        kind: str = "lock",
    ) -> None:
        self._driver, self.name, self.options, self._cancel = driver, name, options, cancel
        self._wanted = wanted_lock(driver.context, kind, name, options)
        self._held: AioHeld | None = None

    async def acquire(self) -> AioHeld:
        """See `Lock.acquire`."""
        outcome = await self._acquire(self._wanted)
        if isinstance(outcome, Refusal):
            raise CoordTimeout(self.name, outcome.waited_s, outcome.holder)
        return outcome

    async def try_acquire(self) -> AioHeld | None:
        """See `Lock.try_acquire`."""
        outcome = await self._acquire(replace(self._wanted, wait_s=0.0))
        return None if isinstance(outcome, Refusal) else outcome

    async def _acquire(self, wanted: Wanted) -> AioHeld | Refusal:
        driver = self._driver
        outcome = await driver.run(Acquisition(driver.context, wanted).steps())
        if isinstance(outcome, Refusal):
            return outcome
        _arm(outcome, self.options.on_lost)
        driver.adopt(outcome)
        if self.options.alert:
            driver.spawn(outcome.keeper.alert(outcome), "coordination-alert")
        return AioHeld(driver, outcome, self._cancel)

    async def __aenter__(self) -> AioHeld:
        self._held = await self.acquire()
        return await self._held.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        held, self._held = self._held, None
        assert held is not None
        await held.__aexit__(kind, error, trace)


def _arm(hold: Hold, on_lost: OnLost) -> None:
    """Arrange what is to happen when the hold is lost."""
    if on_lost == "abort":
        hold.on_lost(lambda reason: abort_process(hold.name, reason))
    elif callable(on_lost):
        hold.on_lost(apart(on_lost))


def abort_process(name: str, reason: str) -> None:
    """End this process at once, without cleaning up: it must not outlive its lock."""
    os.write(2, f"strongroom: the lock {name!r} is lost ({reason}); aborting\n".encode())
    os._exit(EXIT_LOST)
