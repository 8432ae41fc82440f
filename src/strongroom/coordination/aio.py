"""The asyncio client: the same recipes as client.py, awaited.

Lives here: the factories, and nothing else.
"""

from __future__ import annotations

from typing import Any

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.hints import Hints
from strongroom.coordination.recipes.election import AioElection
from strongroom.coordination.recipes.gate import AioGate
from strongroom.coordination.recipes.holding import Cancel, LockOptions, OnLost
from strongroom.coordination.recipes.ids.ids import AioIds, GeneratorCache, IdsOptions
from strongroom.coordination.recipes.locks.inspect_locks import break_steps, list_steps, show_steps
from strongroom.coordination.recipes.locks.lock import AioLock
from strongroom.coordination.recipes.locks.lock_state import LockView
from strongroom.coordination.recipes.locks.locks import AioLocks
from strongroom.coordination.recipes.locks.rwlock import AioRwLock
from strongroom.coordination.recipes.members import AioMembers
from strongroom.coordination.recipes.register import AioRegister
from strongroom.coordination.recipes.slots.barrier import AioBarrier
from strongroom.coordination.recipes.slots.semaphore import AioSemaphore
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.store import AsyncStore, Promises


class AioClient:
    """One participant on one event loop.

    Arguments:
        store: the store that all participants share.
        context: the state of this participant; `Client` shares it.
    """

    def __init__(self, store: AsyncStore, context: RecipeContext) -> None:
        self.store, self.context = store, context
        self.driver = AsyncDriver(store, context)
        self._generators = GeneratorCache[AioIds]()

    def __repr__(self) -> str:
        return f"<AioClient {self.context.label!r} of {self.context.promises.store}>"

    def promises(self) -> Promises:
        """Return the store's promises; see `Client.promises`."""
        return self.context.promises

    def lock(
        self,
        name: str,
        ttl: float = 15.0,
        wait: float | None = None,
        *,
        cancel: Cancel = "deadline",
        fair: bool = False,
        lock_delay: float = 0.0,
        on_lost: OnLost = "event",
        alert: bool = False,
        value: Any = None,
    ) -> AioLock:
        """Return the lock of that name, an async context manager; see `Client.lock`, `AioHeld`."""
        options = LockOptions(ttl, wait, fair, lock_delay, on_lost, False, alert, value)
        return AioLock(self.driver, name, options, cancel)

    def locks(
        self,
        *names: str,
        ttl: float = 15.0,
        wait: float | None = None,
        cancel: Cancel = "deadline",
    ) -> AioLocks:
        """Return an async context manager that holds all of these names, or none of them."""
        return AioLocks(self.driver, names, LockOptions(ttl_s=ttl, wait_s=wait), cancel)

    def ids(self, name: str, batch: int = 1000, *, max_retries: int = 25, first: int = 1) -> AioIds:
        """Return the generator of unique ids; see `Client.ids`."""
        options = IdsOptions(batch, max_retries, first=first)
        return self._generators.get(name, options, lambda: AioIds(self.driver, name, options))

    def gate(self, name: str, hints: Hints | None = None) -> AioGate:
        """Return the gate of that name: `wait`, `open`, `rearm`, `show`."""
        return AioGate(self.driver, name, hints)

    def election(
        self,
        name: str,
        value: Any = None,
        ttl: float = 15.0,
        wait: float | None = None,
        *,
        cancel: Cancel = "deadline",
        fair: bool = False,
        on_lost: OnLost = "event",
        alert: bool = False,
    ) -> AioElection:
        """Return the election of that name; see `Client.election`."""
        options = LockOptions(ttl, wait, fair, 0.0, on_lost, False, alert, value)
        return AioElection(self.driver, name, options, cancel)

    def register(self, name: str) -> AioRegister:
        """Return the register of that name; see `Client.register`."""
        return AioRegister(self.driver, name)

    def semaphore(
        self,
        name: str,
        permits: int,
        ttl: float = 15.0,
        wait: float | None = None,
        *,
        cancel: Cancel = "deadline",
        on_lost: OnLost = "event",
        alert: bool = False,
    ) -> AioSemaphore:
        """Return the semaphore of that name; see `Client.semaphore`."""
        options = LockOptions(ttl, wait, False, 0.0, on_lost, False, alert)
        return AioSemaphore(self.driver, name, permits, options, cancel)

    def rwlock(
        self,
        name: str,
        ttl: float = 15.0,
        wait: float | None = None,
        *,
        cancel: Cancel = "deadline",
        on_lost: OnLost = "event",
        alert: bool = False,
    ) -> AioRwLock:
        """Return the read-write lock of that name; see `Client.rwlock`."""
        options = LockOptions(ttl, wait, False, 0.0, on_lost, False, alert)
        return AioRwLock(self.driver, name, options, cancel)

    def barrier(self, name: str, parties: int, ttl: float = 15.0) -> AioBarrier:
        """Return the barrier of that name; see `Client.barrier`."""
        return AioBarrier(self.driver, name, parties, ttl)

    def members(
        self,
        group: str,
        ttl: float = 15.0,
        *,
        cancel: Cancel = "deadline",
        on_lost: OnLost = "event",
        alert: bool = False,
    ) -> AioMembers:
        """Return the group of that name; see `Client.members`."""
        options = LockOptions(ttl, None, False, 0.0, on_lost, False, alert)
        return AioMembers(self.driver, group, options, cancel)

    async def show(self, name: str, kind: str = "lock") -> LockView | None:
        """Return the state of a lock or an election; see `Client.show`."""
        return await self.driver.run(show_steps(self.context, kind, name))

    async def list_names(self, kind: str = "lock") -> list[str]:
        """Return the names of a kind; see `Client.list_names`."""
        return await self.driver.run(list_steps(self.context, kind))

    async def break_lock(self, name: str, kind: str = "lock") -> LockView | None:
        """End another participant's hold; see `Client.break_lock`."""
        return await self.driver.run(break_steps(self.context, kind, name))

    async def close(self) -> None:
        """Stop the background tasks and close the store. Holds are lost, not released."""
        await self.driver.close()
        await self.store.close()
