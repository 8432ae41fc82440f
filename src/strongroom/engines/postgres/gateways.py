"""A gateway of a store in PostgreSQL: its heartbeats, its holds, its readers.

Lives here: the engine's `Gateways`. Must not live here: the rules (membership.py), how the table is
stored (members.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from strongroom.engines import membership
from strongroom.engines.base import Unavailable
from strongroom.engines.gateways import GATEWAYS_MAX, ExclusiveRight, Horizon
from strongroom.engines.membership import (
    GatewayReaderMark,
    GatewayRun,
    GatewayState,
    MembershipTable,
)
from strongroom.engines.postgres.life import Life
from strongroom.engines.postgres.members import Members, Seen
from strongroom.engines.postgres.shared_time import SharedTime

_BEAT_S: Final = 1.0
_PAUSES_S: Final = (0.005, 0.02, 0.05, 0.1)
_DEAD: Final = "this gateway was declared dead: it sent no heartbeat for 10 s"
_LATE: Final = "this gateway stands still: its last heartbeat is over 5 s old"
_log = logging.getLogger(__name__)


async def joined(members: Members) -> tuple[GatewayRun, Seen]:
    """Add a gateway to the table. Raises: Unavailable: all numbers are taken, or no database
    answers."""

    def rule(seen: Seen) -> tuple[MembershipTable, GatewayRun] | None:
        table = membership.remove_dead(seen.table, seen.now)
        return membership.join(table, seen.now, max(seen.highest + 1, seen.now))

    changed = await members.change(rule)
    if changed is None:
        raise Unavailable(f"{GATEWAYS_MAX} gateways serve the store already")
    seen, run = changed
    return run, seen


class PostgresGateways:
    """See Gateways.

    Arguments:
        run: the gateway, which has joined.
        state: its own state since then.
        in_flight: the stamps of its decisions whose outcome it does not know.
        life: whether its store serves; it is told when the gateway was declared dead.
        learned: is told what was seen with each look at the table.

    Attributes:
        is_beating: whether it sends heartbeats; a test may stop them.
        is_dead: whether it was declared dead, or has left.
        exclusive: the right to serve alone; None = other gateways may serve beside this one.
    """

    def __init__(
        self,
        members: Members,
        run: GatewayRun,
        state: GatewayState,
        time: SharedTime,
        in_flight: Callable[[], Sequence[int]],
        life: Life,
        learned: Callable[[Seen], None],
    ) -> None:
        self._members = members
        self._run = run
        self.state = state
        self._time = time
        self._in_flight = in_flight
        self._life = life
        self._learned = learned
        self.is_dead = False
        self._releases: set[asyncio.Task[object]] = set()
        self.is_beating = True
        self.exclusive: ExclusiveRight | None = None

    @property
    def number(self) -> int:
        return self._run.number

    @property
    def incarnation(self) -> int:
        return self._run.incarnation

    @property
    def table(self) -> MembershipTable:
        """The table as it was last seen."""
        assert self._members.seen is not None
        return self._members.seen.table

    @property
    def is_alone(self) -> bool:
        return self.exclusive is not None and self.exclusive.is_held

    @property
    def has_others(self) -> bool:
        """Whether another gateway was live when the table was last seen."""
        return len(self.table.rows) > 1

    def owns(self, name: bytes) -> bool:
        return self.table.owner(name) == self.number

    async def hold(self, name: bytes) -> ExclusiveRight | None:
        await self.ensure_serving()

        def rule(seen: Seen) -> tuple[MembershipTable, None] | None:
            table = membership.remove_dead(seen.table, seen.now)
            granted = membership.grant_hold(table, name, self._run)
            return None if granted is None else (granted, None)

        changed = await self._members.change(rule)
        if changed is None:
            return None
        # A gateway that was removed just now may have committed after the table was read.
        self.state.observe((await self._members.look()).highest)
        return PostgresRight(self, name)

    def begin_reading(self) -> GatewayReaderMark:
        if (error := self._life.why_stopped() or self.unavailability()) is not None:
            raise error
        return self.state.begin_reading()

    async def horizon(self) -> Horizon:
        await self.ensure_serving()
        seen = await self._members.look()
        self._learned(seen)
        return seen.table.horizon(self.number)

    async def wait_for_earlier_commits(self, stamp: int) -> None:
        await self.ensure_serving()
        seen = await self._members.look()
        known = max(self.state.last_stamp + 1, seen.highest + 1, self._time.now(), seen.now)
        if stamp > max(known, seen.table.highest):
            raise ValueError(f"{stamp} lies in the future: the store has given no such stamp yet")
        self.state.observe(stamp - 1)
        attempt = 0
        while True:
            await self.ensure_serving()
            await self.beat()
            if self.table.floor >= stamp:
                return
            if self.has_others:
                await self._members.send("beat")
            await asyncio.sleep(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)])
            attempt += 1

    async def beat(self) -> bool:
        """Send a heartbeat; return whether the gateway is still alive. Raises: Unavailable."""
        sent = 0

        def rule(seen: Seen) -> tuple[MembershipTable, None] | None:
            nonlocal sent
            sent = self._time.now()
            row = self.state.heartbeat(sent, self._in_flight())
            table = membership.beat(seen.table, self.number, row, seen.now)
            return None if table is None else (membership.remove_dead(table, seen.now), None)

        changed = await self._members.change(rule)
        if changed is None:
            self.died()
            return False
        seen, _ = changed
        self.state.heartbeat_accepted(seen.table, sent)
        self._learned(seen)
        return True

    async def beat_forever(self) -> None:
        while not self.is_dead:
            await asyncio.sleep(_BEAT_S)
            if self.is_beating:
                try:
                    await self.beat()
                except Unavailable as error:
                    _log.warning("no heartbeat: %s", error)

    def died(self) -> None:
        """Take note that the gateway was declared dead. It commits and reads nothing any more."""
        if not self.is_dead:
            self.is_dead = True
            self._life.failed(Unavailable(_DEAD))

    def unavailability(self) -> Unavailable | None:
        """Why it may neither read nor commit; None if it may."""
        if self.is_dead:
            return Unavailable(_DEAD)
        if self.state.is_late(self._time.now()):
            return Unavailable(_LATE)
        return None

    async def ensure_serving(self) -> None:
        """Raise the reason why it may take no work."""
        self._life.check()
        await self.ensure_live()

    async def ensure_live(self) -> None:
        """Raise Unavailable unless it may finish its work. A late heartbeat is sent first."""
        if not self.is_dead and not self.state.is_late(self._time.now()):
            return
        if self.is_beating and not self.is_dead:
            await self.beat()
        if (error := self.unavailability()) is not None:
            raise error

    def may_rely_on(self, name: bytes) -> bool:
        """Whether it holds `name`, as the table was last seen, and is not late."""
        is_held = self.table.holds.get(name) == self._run
        return is_held and self._life.why_stopped() is None and self.unavailability() is None

    def release(self, name: bytes) -> None:
        task = asyncio.ensure_future(self._release(name))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def _release(self, name: bytes) -> None:
        try:
            await self._members.change(
                lambda seen: (membership.release_hold(seen.table, name, self._run), None)
            )
        except Unavailable:
            _log.warning("a hold was not given back; it ends with this gateway's heartbeats")

    async def leave(self) -> None:
        """Remove the gateway from the table, after its work has ended."""
        self.is_beating = False
        self.is_dead = True
        await asyncio.gather(*self._releases, return_exceptions=True)
        # A last heartbeat has the newest time that was told: later gateways begin above it.
        last = self.state.heartbeat(self._time.now(), ())

        def rule(seen: Seen) -> tuple[MembershipTable, None]:
            told = membership.beat(seen.table, self.number, last, seen.now) or seen.table
            return membership.leave(told, self._run), None

        try:
            await self._members.change(rule)
        except Unavailable:
            _log.warning("the gateway could not leave in order; others wait 10 s for it")


class PostgresRight:
    """See ExclusiveRight."""

    def __init__(self, gateways: PostgresGateways, name: bytes) -> None:
        self._gateways = gateways
        self._name = name
        self._lost = self._released = False

    @property
    def is_lost(self) -> bool:
        self._lost = self._lost or not self.is_held
        return self._lost

    @property
    def is_held(self) -> bool:
        return not self._released and self._gateways.may_rely_on(self._name)

    def release(self) -> None:
        if not self._released:
            self._gateways.release(self._name)
        self._lost = self._released = True
