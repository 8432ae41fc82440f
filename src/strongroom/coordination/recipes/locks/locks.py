"""Several locks at once: all of them or none, always taken in the same order.

Lives here: `Locks`, `AioLocks` and their handle.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from types import TracebackType

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.recipes.holding import Cancel, LockOptions, check_cancel
from strongroom.coordination.recipes.locks.lock import AioLock, Lock
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import HeldBase


class HeldMany:
    """The handle of several holds.

    Attributes:
        holds: the handles by name.
    """

    def __init__(self, holds: Mapping[str, HeldBase]) -> None:
        self.holds = dict(holds)

    @property
    def fences(self) -> dict[str, int]:
        """The fencing token of each lock, by name."""
        return {name: held.fence for name, held in self.holds.items()}

    def remaining(self) -> float:
        """Return for how many seconds all of them are certainly held."""
        return min(held.remaining() for held in self.holds.values())

    def check(self) -> None:
        """Raise unless all of the locks are held at this time.

        Raises:
            LockLost: names the first lock that is not held.
        """
        for held in self.holds.values():
            held.check()


class Locks:
    """Locks under several names, for threads: a context manager over all of them.

    Arguments:
        driver: of the client.
        names: at least one; duplicates count once.
        options: for each lock; `wait_s` is for all of them together.
    """

    def __init__(self, driver: SyncDriver, names: Sequence[str], options: LockOptions) -> None:
        self._driver, self._names, self._options = driver, _sorted_names(names), options
        self._blocks: dict[int, list[ExitStack]] = {}

    def __enter__(self) -> HeldMany:
        """Take all locks, or raise as `Lock.acquire` does and hold none of them."""
        budget = _WaitBudget(self._driver.context, self._options)
        with ExitStack() as stack:
            holds = {
                name: stack.enter_context(Lock(self._driver, name, budget.options()))
                for name in self._names
            }
            self._blocks.setdefault(threading.get_ident(), []).append(stack.pop_all())
        return HeldMany(holds)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        thread = threading.get_ident()
        stack = self._blocks[thread].pop()
        if not self._blocks[thread]:
            del self._blocks[thread]
        stack.__exit__(kind, error, trace)


class AioLocks:
    """Locks under several names, for asyncio; see `Locks`."""

    def __init__(
        self,
        driver: AsyncDriver,
        names: Sequence[str],
        options: LockOptions,
        cancel: Cancel = "deadline",
    ) -> None:
        self._driver, self._names, self._options = driver, _sorted_names(names), options
        self._cancel = check_cancel(cancel)
        self._blocks: dict[int, list[AsyncExitStack]] = {}

    async def __aenter__(self) -> HeldMany:
        budget = _WaitBudget(self._driver.context, self._options)
        async with AsyncExitStack() as stack:
            holds: dict[str, HeldBase] = {}
            for name in self._names:
                lock = AioLock(self._driver, name, budget.options(), self._cancel)
                holds[name] = await stack.enter_async_context(lock)
            self._blocks.setdefault(id(asyncio.current_task()), []).append(stack.pop_all())
        return HeldMany(holds)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task = id(asyncio.current_task())
        stack = self._blocks[task].pop()
        if not self._blocks[task]:
            del self._blocks[task]
        await stack.__aexit__(kind, error, trace)


class _WaitBudget:
    """The waiting time that several locks share."""

    def __init__(self, context: RecipeContext, options: LockOptions) -> None:
        self._clock, self._options = context.clock, options
        self._start_s = self._clock.monotonic_s()

    def options(self) -> LockOptions:
        wait_s = self._options.wait_s
        if wait_s is None:
            return self._options
        spent_s = self._clock.monotonic_s() - self._start_s
        return replace(self._options, wait_s=max(0.0, wait_s - spent_s))


def _sorted_names(names: Sequence[str]) -> list[str]:
    if not names:
        raise ValueError("name at least one lock")
    return sorted(set(names))
