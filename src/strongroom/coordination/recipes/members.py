"""Group membership: the members of a group, their data, and who joins and leaves.

    with client.members("workers").join({"url": me}) as mine: ...
    for member in client.members("workers").list(): ...
    for change in client.members("workers").watch(): ...

A membership is a hold: renewed in the background, lost if it cannot be renewed, given up at the end
of its block. It excludes nobody, and its fence is 0. Every observer detects a dead member itself, a
little more than a TTL after the last renewal that it saw. A new observer counts every member with a
record as alive. Observers list the keys and read each member's record. Must not live here: the
records (members_core.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.recipes.holding import (
    AioHeld,
    Cancel,
    Held,
    LockOptions,
    begin_aio_hold,
    begin_hold,
    check_cancel,
)
from strongroom.coordination.recipes.members_core import (
    Change,
    GroupObserver,
    Member,
    MemberKeeper,
    group_prefix,
    join_steps,
)
from strongroom.coordination.recipes.slots.slot_records import check_slot_ttl
from strongroom.coordination.session.handles import Hold

_EVERY_S = 1.0


class Membership(Held):
    """The handle of this client's own membership, for threads."""

    def leave(self) -> bool:
        """Give up the membership, as `release` does; return whether it was still held."""
        return self.release()

    def update(self, data: Any) -> bool:
        """Replace the data of this member; return whether the new data is known to be stored.

        Arguments:
            data: anything that JSON can hold.

        Raises:
            LockLost: the membership is over.
            Unsupported: the data is too long.
        """
        self.check()
        return self._driver.run(_keeper(self._hold).update(self._hold, data))


class AioMembership(AioHeld):
    """The handle of this client's own membership, for asyncio; see `Membership`."""

    async def leave(self) -> bool:
        """Give up the membership, as `release` does; return whether it was still held."""
        return await self.release()

    async def update(self, data: Any) -> bool:
        """Replace the data of this member; return whether the new data is known to be stored."""
        self.check()
        return await self._driver.run(_keeper(self._hold).update(self._hold, data))


class Members:
    """A group of members by name, for threads.

    Arguments:
        driver: of the client.
        group: any text.
        options: the TTL, and what happens at a loss; see `LockOptions`.

    Raises:
        Unsupported: the TTL is out of bounds.
        BadName: see names.py.
    """

    def __init__(self, driver: SyncDriver, group: str, options: LockOptions) -> None:
        check_slot_ttl(driver.context, options.ttl_s)
        group_prefix(group)
        self._driver, self.name, self.options = driver, group, options

    def join(self, data: Any = None) -> Membership:
        """Become a member; each call adds another membership.

        Arguments:
            data: what other clients see of it: anything that JSON can hold, at most 60 KiB of it.

        Raises:
            Unsupported: the data is longer than that.
            StoreUnavailable: the store did not answer, after several tries.
            StoreRefused: another try does not help.
        """
        driver, options = self._driver, self.options
        hold = driver.run(join_steps(driver.context, self.name, data, options.ttl_s))
        begin_hold(driver, hold, options)
        return Membership(driver, hold, options.strict)

    def list(self) -> tuple[Member, ...]:
        """Return the members, as far as this client can tell; delete the records of dead ones.

        Raises:
            StoreUnavailable, StoreRefused: the store did not answer, or refused.
        """
        observer = GroupObserver(self._driver.context, self.name)
        self._driver.run(observer.refresh())
        return tuple(observer.members.values())

    def watch(self, timeout: float | None = None, every: float = _EVERY_S) -> Iterator[Change]:
        """Yield each current member as "joined", then every change.

        Arguments:
            timeout: end after so many seconds without a change; None: never end.
            every: how often to read the group, in seconds. A member's data is read again after a
                third of its TTL, or after `every` if that is longer.

        Raises:
            StoreRefused: the store refused. The watch goes on while the store does not answer.
        """
        observer = GroupObserver(self._driver.context, self.name)
        while True:
            changes = self._driver.run(observer.changed(timeout, every))
            if not changes:
                return
            yield from changes


class AioMembers:
    """A group of members by name, for asyncio; see `Members`."""

    def __init__(
        self,
        driver: AsyncDriver,
        group: str,
        options: LockOptions,
        cancel: Cancel = "deadline",
    ) -> None:
        check_slot_ttl(driver.context, options.ttl_s)
        group_prefix(group)
        self._driver, self.name, self.options = driver, group, options
        self._cancel = check_cancel(cancel)

    async def join(self, data: Any = None) -> AioMembership:
        """Become a member; each call adds another membership."""
        driver, options = self._driver, self.options
        driver.bind_to_running_loop()
        hold = await driver.run(join_steps(driver.context, self.name, data, options.ttl_s))
        await begin_aio_hold(driver, hold, options)
        return AioMembership(driver, hold, self._cancel)

    async def list(self) -> tuple[Member, ...]:
        """Return the members, as far as this client can tell; delete the records of dead ones."""
        observer = GroupObserver(self._driver.context, self.name)
        await self._driver.run(observer.refresh())
        return tuple(observer.members.values())

    async def watch(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - as of Members
        every: float = _EVERY_S,
    ) -> AsyncIterator[Change]:
        """Yield each current member as "joined", then every change."""
        observer = GroupObserver(self._driver.context, self.name)
        while True:
            changes = await self._driver.run(observer.changed(timeout, every))
            if not changes:
                return
            for change in changes:
                yield change


def _keeper(hold: Hold) -> MemberKeeper:
    keeper = hold.keeper
    assert isinstance(keeper, MemberKeeper)
    return keeper
