"""Elections: one leader at a time, with a fence per term, which every client can observe.

Lives here: `Election` and `AioElection`. An election is a lock whose record carries the value that
the leader proclaims. Must not live here: the rules (locks/lock_core.py, election_core.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.errors import waited_in_vain
from strongroom.coordination.recipes.election_core import LeaderView, LeaderWatch
from strongroom.coordination.recipes.holding import AioHeld, Cancel, Held, LockOptions
from strongroom.coordination.recipes.locks.lock import AioLock, Lock
from strongroom.coordination.recipes.locks.lock_keeper import LockKeeper
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.session.handles import HeldBase

KIND = "election"


def _keeper(held: HeldBase) -> LockKeeper:
    keeper = held._hold.keeper
    assert isinstance(keeper, LockKeeper)
    return keeper


class Election:
    """An election by name, for threads.

    Arguments:
        driver: of the client.
        name: any text.
        options: as for a lock; `value` is what this candidate proclaims when it is elected.
    """

    def __init__(self, driver: SyncDriver, name: str, options: LockOptions) -> None:
        self._driver, self.name, self._options = driver, name, options
        self._lock = Lock(driver, name, options, KIND)
        self._key = key_of(KIND, name)
        self._term: Held | None = None

    def lead(self) -> Lock:
        """Return a context manager that waits to be elected, leads in its block, then resigns."""
        return Lock(self._driver, self.name, self._options, KIND)

    def campaign(self) -> Held:
        """Wait to be elected; return the term's handle. `resign` or its `release` ends the term.

        Raises:
            CoordTimeout: not elected within `wait`.
            AlreadyHeld: this thread leads already, or is a candidate.
        """
        self._term = self._lock.acquire()
        return self._term

    def try_campaign(self) -> Held | None:
        """Become the leader if nobody leads now; return the term's handle, else None."""
        term = self._lock.try_acquire()
        self._term = term or self._term
        return term

    def proclaim(self, term: Held, value: Any) -> bool:
        """Change the value that observers see; return whether it is known to be stored.

        Arguments:
            term: from `campaign` or `lead`.
            value: JSON.

        Raises:
            LockLost: the term is over.
        """
        term.check()
        return self._driver.run(_keeper(term).set_value(term._hold, value))

    def resign(self) -> bool:
        """End the term that `campaign` began; return whether it was still held."""
        term, self._term = self._term, None
        return term is not None and term.release()

    def leader(self) -> LeaderView:
        """Return who leads, by one read. A leader seen for the first time counts as alive.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        return self._driver.run(LeaderWatch(self._driver.context, self._key).current())

    def observe(self, timeout: float | None = None) -> Iterator[LeaderView]:
        """Yield who leads: now, and after every change.

        Arguments:
            timeout: the iterator ends after so many seconds without a change; None: never.
        """
        watch = LeaderWatch(self._driver.context, self._key)
        while True:
            view = self._driver.run(watch.changed(timeout))
            if view is None:
                return
            yield view

    def wait_for_leader(self, timeout: float | None = None) -> LeaderView:
        """Wait until there is a leader, and return it.

        Raises:
            CoordTimeout: nobody led, and nothing changed, for so many seconds.
        """
        for view in self.observe(timeout):
            if view.leading:
                return view
        raise waited_in_vain("election", "had no leader", self.name, timeout or 0.0)


class AioElection:
    """An election by name, for asyncio; see `Election`."""

    def __init__(
        self, driver: AsyncDriver, name: str, options: LockOptions, cancel: Cancel = "deadline"
    ) -> None:
        self._driver, self.name, self._options, self._cancel = driver, name, options, cancel
        self._lock = AioLock(driver, name, options, cancel, KIND)
        self._key = key_of(KIND, name)
        self._term: AioHeld | None = None

    def lead(self) -> AioLock:
        """Return a context manager; its block is cancelled when the term is over."""
        return AioLock(self._driver, self.name, replace(self._options), self._cancel, KIND)

    async def campaign(self) -> AioHeld:
        """Wait to be elected; return the term's handle. `resign` or its `release` ends the term."""
        self._term = await self._lock.acquire()
        return self._term

    async def try_campaign(self) -> AioHeld | None:
        """Become the leader if nobody leads now; return the term's handle, else None."""
        term = await self._lock.try_acquire()
        self._term = term or self._term
        return term

    async def proclaim(self, term: AioHeld, value: Any) -> bool:
        """Change the value that observers see; return whether it is known to be stored."""
        term.check()
        return await self._driver.run(_keeper(term).set_value(term._hold, value))

    async def resign(self) -> bool:
        """End the term that `campaign` began; return whether it was still held."""
        term, self._term = self._term, None
        return term is not None and await term.release()

    async def leader(self) -> LeaderView:
        """Return who leads, by one read. A leader seen for the first time counts as alive."""
        return await self._driver.run(LeaderWatch(self._driver.context, self._key).current())

    async def observe(
        self,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> AsyncIterator[LeaderView]:
        """Yield who leads: now, and after every change."""
        watch = LeaderWatch(self._driver.context, self._key)
        while True:
            view = await self._driver.run(watch.changed(timeout))
            if view is None:
                return
            yield view
