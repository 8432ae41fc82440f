"""Membership: who is there, with what data, and who comes and goes.

    with client.members("workers").join({"url": me}) as mine: ...
    for member in client.members("workers").list(): ...
    for change in client.members("workers").watch(): ...

A membership is a hold: renewed in the background, lost when it cannot be, given up at the end of
its block. It bars nobody and carries no fence (0). Every observer notices a death by itself, a TTL
and a little more after the last sign of life that it saw. An observer that has just begun believes
everybody whose record is there. Observers read: a list, and a read of each member. Must
not live here: the records (members_core.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from strongroom.coordination.drivers_async import AsyncDriver
from strongroom.coordination.drivers_sync import SyncDriver
from strongroom.coordination.handles import Hold
from strongroom.coordination.recipes.holding import (
    AioHeld,
    Cancel,
    Held,
    LockOptions,
    check_cancel,
    take_up,
)
from strongroom.coordination.recipes.members_core import (
    Change,
    Member,
    MemberKeeper,
    Roll,
    group_prefix,
    join_steps,
)
from strongroom.coordination.recipes.slots.slot_records import check_slot_ttl

_EVERY_S = 1.0


class Membership(Held):
    """One's own membership, for threads."""

    def leave(self) -> bool:
        """Give it up, as `release` does; return whether it was still held."""
        return self.release()

    def update(self, data: Any) -> bool:
        """Tell other data from now on; return whether that is certain to be told.

        Arguments:
            data: anything that JSON can hold.

        Raises:
            LockLost: this is no member any more.
        """
        self.check()
        return self._driver.run(_keeper(self._hold).update(self._hold, data))


class AioMembership(AioHeld):
    """One's own membership, for asyncio."""

    async def leave(self) -> bool:
        """See `Membership.leave`."""
        return await self.release()

    async def update(self, data: Any) -> bool:
        """See `Membership.update`."""
        self.check()
        return await self._driver.run(_keeper(self._hold).update(self._hold, data))


class Members:
    """A group of members by name, for threads.

    Arguments:
        driver: of the client.
        group: any text.
        options: the TTL, and what happens at a loss; see `LockOptions`.

    Raises:
        Unsupported: a TTL that cannot be.
        BadName: see names.py.
    """

    def __init__(self, driver: SyncDriver, group: str, options: LockOptions) -> None:
        check_slot_ttl(driver.context, options.ttl_s)
        group_prefix(group)
        self._driver, self.name, self.options = driver, group, options

    def join(self, data: Any = None) -> Membership:
        """Become a member, once more with every call.

        Arguments:
            data: what others see of it: anything that JSON can hold, at most 60 KiB of it.

        Raises:
            Unsupported: more data than that.
            StoreUnavailable: the store did not answer, again and again.
            StoreRefused: as it says.
        """
        driver, options = self._driver, self.options
        hold = driver.run(join_steps(driver.context, self.name, data, options.ttl_s))
        take_up(driver, hold, options)
        return Membership(driver, hold, options.strict)

    def list(self) -> tuple[Member, ...]:
        """Return who is there, as far as this client can tell; remove who is dead.

        Raises:
            StoreUnavailable, StoreRefused: the store.
        """
        roll = Roll(self._driver.context, self.name)
        self._driver.run(roll.look())
        return tuple(roll.members.values())

    def watch(self, timeout: float | None = None, every: float = _EVERY_S) -> Iterator[Change]:
        """Yield who is there ("joined"), then every change.

        Arguments:
            timeout: end when so many seconds went by without a change; None: never end.
            every: how often to look, in seconds; a change of data is seen after a third of the
                member's TTL at the latest.

        Raises:
            StoreRefused: the store. One that does not answer is waited for.
        """
        roll = Roll(self._driver.context, self.name)
        while True:
            changes = self._driver.run(roll.changed(timeout, every))
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
        """See `Members.join`."""
        driver, options = self._driver, self.options
        driver.enter_loop()
        hold = await driver.run(join_steps(driver.context, self.name, data, options.ttl_s))
        take_up(driver, hold, options)
        return AioMembership(driver, hold, self._cancel)

    async def list(self) -> tuple[Member, ...]:
        """See `Members.list`."""
        roll = Roll(self._driver.context, self.name)
        await self._driver.run(roll.look())
        return tuple(roll.members.values())

    async def watch(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - as of Members
        every: float = _EVERY_S,
    ) -> AsyncIterator[Change]:
        """See `Members.watch`."""
        roll = Roll(self._driver.context, self.name)
        while True:
            changes = await self._driver.run(roll.changed(timeout, every))
            if not changes:
                return
            for change in changes:
                yield change


def _keeper(hold: Hold) -> MemberKeeper:
    keeper = hold.keeper
    assert isinstance(keeper, MemberKeeper)
    return keeper
