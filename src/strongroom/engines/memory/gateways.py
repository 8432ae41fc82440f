"""The gateways of a memory store: they share its data and a membership table, on one event loop.

Lives here: the memory engine's `Gateways`, with heartbeats that a test can stop. Must not live
here: the rules (membership.py), or what the gateways share besides the table (data.py).

Unless a test stops them, heartbeats are sent at every access to the table. So no running gateway is
ever late, however far a test moves the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from strongroom.clock import Clock, StoreTime
from strongroom.engines import membership
from strongroom.engines.base import EngineError, Ref, Unavailable
from strongroom.engines.gateways import GATEWAYS_MAX, GatewayRun, Horizon, check_announcement
from strongroom.engines.membership import (
    GatewayReaderMark,
    GatewayState,
    HeldName,
    MembershipTable,
)
from strongroom.engines.watchers import Watchers

_POLL_S: Final = 0.01


class MemoryMembers:
    """The membership table that the gateways of a store share.

    Arguments:
        clock: the table's clock.

    Attributes:
        secret: what all gateways know, and nobody else.
        highest: the greatest stamp that was ever committed.
        advanced_s: by how much store time was moved by `advance`.
    """

    def __init__(self, clock: Clock) -> None:
        self.time = StoreTime(clock)
        self.table = MembershipTable()
        self.secret = clock.random_bytes(32)
        self.gateways: list[MemoryGateway] = []
        self.highest = 0
        self.advanced_s = 0.0
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def has_had_several(self) -> bool:
        """Whether a second gateway exists, or ever existed."""
        return self.table.incarnations > 1

    def refresh(self) -> MembershipTable:
        """Send the heartbeats of all running gateways."""
        for gateway in self.gateways:
            if gateway.is_beating:
                gateway.beat()
        self.table = membership.remove_dead(self.table, self.time.now())
        return self.table

    def advance(self, seconds: float) -> None:
        self.time.advance(seconds)
        self.advanced_s += seconds
        for gateway in self.gateways:
            gateway.time.advance(seconds)
        for gateway in self.gateways:
            gateway.watchers.wake_all()

    def notify(self, refs: Sequence[Ref]) -> None:
        for gateway in self.gateways:
            gateway.watchers.notify(refs)

    def decision_ended(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def wait_for_decision(self) -> None:
        """Return when a decision ends, or after a short time, since a test may move the clock."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await asyncio.wait((future,), timeout=_POLL_S)


class MemoryGateway:
    """One gateway, as the contract's Gateways has it.

    Arguments:
        time: its own clock.
        watchers: the waiters at this gateway.
        in_flight: returns the stamps of its decisions that are neither committed nor refused.
        stopped: returns the reason why its store has stopped; None while it serves.

    Attributes:
        is_beating: whether it sends heartbeats; a test may stop them.

    Raises: Unavailable when all numbers are taken.
    """

    def __init__(
        self,
        members: MemoryMembers,
        time: StoreTime,
        watchers: Watchers,
        in_flight: Callable[[], Sequence[int]],
        stopped: Callable[[], EngineError | None],
    ) -> None:
        joined = membership.join(members.refresh(), members.time.now(), members.highest + 1)
        if joined is None:
            raise Unavailable(f"{GATEWAYS_MAX} gateways serve the store already")
        members.table, self._identity = joined
        self.state = GatewayState(self._identity, members.table, time.now())
        self.is_beating = True
        self._members = members
        self.time = time
        self.watchers = watchers
        self._in_flight = in_flight
        self._stopped = stopped
        members.gateways.append(self)

    @property
    def number(self) -> int:
        return self._identity.number

    @property
    def incarnation(self) -> int:
        return self._identity.incarnation

    @property
    def run(self) -> GatewayRun:
        return self._identity

    @property
    def secret(self) -> bytes:
        return self._members.secret

    @property
    def is_alone(self) -> bool:
        return not self._members.has_had_several

    def owns(self, name: bytes) -> bool:
        return self._members.refresh().owner(name) == self.number

    async def hold(self, name: bytes) -> HeldName | None:
        table = self._members.refresh()
        self._check_serving()
        taken = membership.grant_hold(table, name, self._identity)
        if taken is None:
            return None
        self._members.table = taken
        self.state.observe(self._members.highest)
        return HeldName(self, name)

    def holder(self, name: bytes) -> GatewayRun | None:
        return self._members.refresh().holds.get(name)

    def has_ended(self, run: GatewayRun) -> bool:
        return self._members.refresh().has_ended(run)

    async def announce(self, text: bytes) -> None:
        self._check_serving()
        check_announcement(text)
        self.state.announced = text
        self.beat()

    def announced(self, run: GatewayRun) -> bytes | None:
        return self._members.refresh().announced(run)

    def begin_reading(self) -> GatewayReaderMark:
        self._members.refresh()
        self._check_serving()
        return self.state.begin_reading()

    async def horizon(self) -> Horizon:
        table = self._members.refresh()
        self._check_serving()
        return table.horizon(self.number)

    async def wait_for_earlier_commits(self, stamp: int) -> None:
        self._check_serving()
        given = max(gateway.state.last_stamp for gateway in self._members.gateways)
        if stamp > max(given + 1, self._members.highest, self.time.now()):
            raise ValueError(f"{stamp} lies in the future: the store has given no such stamp yet")
        self.state.observe(stamp - 1)
        while self._members.refresh().floor < stamp:
            self._check_serving()
            await self._members.wait_for_decision()

    def beat(self) -> bool:
        """Return whether the gateway is still alive."""
        members, sent = self._members, self.time.now()
        row = self.state.heartbeat(sent, self._in_flight())
        table = membership.beat(members.table, self.number, row, members.time.now())
        if table is None:
            return False
        members.table = table
        self.state.heartbeat_accepted(table, sent)
        return True

    def end(self) -> None:
        """Leave the table: every later commit of this gateway is refused."""
        self.is_beating = False
        self._members.table = membership.leave(self._members.table, self._identity)
        if self in self._members.gateways:
            self._members.gateways.remove(self)

    def unavailability(self) -> Unavailable | None:
        """Why it may neither read nor commit; None if it may."""
        if self.is_beating:
            self.beat()
        if not self._members.table.is_live(self._identity):
            return Unavailable("this gateway was declared dead: it sent no heartbeat for 10 s")
        if self.state.is_late(self.time.now()):
            return Unavailable("this gateway stands still: its last heartbeat is over 5 s old")
        return None

    def may_commit(self) -> bool:
        """Return whether the shared data still accepts its commits: it is not declared dead."""
        return self._members.refresh().is_live(self._identity)

    def has(self, name: bytes) -> bool:
        """Return whether it holds `name`, and may rely on it."""
        held = self._members.table.holds.get(name) == self._identity
        return held and self._stopped() is None and self.unavailability() is None

    def release(self, name: bytes) -> None:
        self._members.table = membership.release_hold(self._members.table, name, self._identity)

    def _check_serving(self) -> None:
        error = self._stopped() or self.unavailability()
        if error is not None:
            raise error
