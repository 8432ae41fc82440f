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
from strongroom.engines.base import EngineError, Unavailable
from strongroom.engines.gateways import GATEWAYS_MAX, ExclusiveRight, Horizon
from strongroom.engines.membership import (
    GatewayReaderMark,
    GatewayRun,
    GatewayState,
    MembershipTable,
)
from strongroom.engines.postgres.life import Life
from strongroom.engines.postgres.members import Members, Seen
from strongroom.engines.postgres.session import Away
from strongroom.engines.postgres.shared_time import SharedTime
from strongroom.values import TICKS_PER_S

_BEAT_S: Final = 1.0
_PAUSES_S: Final = (0.005, 0.02, 0.05, 0.1)
_DEAD: Final = "this gateway was declared dead: it sent no heartbeat for 10 s"
_LATE: Final = "this gateway stands still: its last heartbeat is over 5 s old"
_log = logging.getLogger(__name__)


async def joined(members: Members) -> tuple[GatewayRun, Seen]:
    """Add a gateway to the table. Raises: Unavailable: all numbers are taken, or no database
    answers."""

    def rule(seen: Seen) -> tuple[MembershipTable, GatewayRun] | None:
        least = max(seen.highest + 1, seen.now + seen.shift)
        # After an outage of the database no gateway looks alive. So the dead are removed only where
        # a number is needed; heartbeats find them later.
        return membership.join(seen.table, seen.now, least) or membership.join(
            membership.remove_dead(seen.table, seen.now), seen.now, least
        )

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
        boot_ticks: the clock by which it judges whether its heartbeat is late.
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
        boot_ticks: Callable[[], int],
        life: Life,
        learned: Callable[[Seen], None],
    ) -> None:
        self._members = members
        self._run = run
        self.state = state
        self._time = time
        self._in_flight = in_flight
        self._boot_ticks = boot_ticks
        self._life = life
        self._learned = learned
        self.is_dead = False
        self._releases: set[asyncio.Task[None]] = set()
        self._held: set[bytes] = set()
        self._beating: asyncio.Task[bool] | None = None
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
    def heartbeat_age_s(self) -> float:
        """How long ago its last heartbeat was sent that was accepted."""
        return self.state.heartbeat_age(self._boot_ticks()) / TICKS_PER_S

    @property
    def is_alone(self) -> bool:
        return self.exclusive is not None and self.exclusive.is_held

    @property
    def has_others(self) -> bool:
        """Whether another gateway was live when the table was last seen."""
        return len(self.table.rows) > 1

    def must_tell(self) -> bool:
        """Whether callers may wait at another gateway."""
        return self.has_others and not self.is_alone

    def owns(self, name: bytes) -> bool:
        return self.table.owner(name) == self.number

    async def hold(self, name: bytes) -> ExclusiveRight | None:
        await self.ensure_serving()
        await asyncio.gather(*self._releases)

        def rule(seen: Seen) -> tuple[MembershipTable, None] | None:
            table = self._without_dead(seen)
            if table.holds.get(name) == self._run and name not in self._held:
                return table, None  # it was granted, but the answer was lost
            granted = membership.grant_hold(table, name, self._run)
            return None if granted is None else (granted, None)

        changed = await self._members.change(rule)
        if changed is None or name in self._held:
            return None
        # A gateway that was removed just now may have committed after the table was read.
        newest = (await self._members.look()).highest
        if name in self._held:
            return None
        self._held.add(name)
        self.state.observe(newest)
        return PostgresRight(self, name)

    def _without_dead(self, seen: Seen) -> MembershipTable:
        """After an outage of the database no gateway looks alive. So only a gateway whose own
        heartbeats were accepted lately removes others."""
        is_late = self.state.is_late(self._boot_ticks())
        return seen.table if is_late else membership.remove_dead(seen.table, seen.now)

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
        known = max(self.state.last_stamp + 1, seen.highest + 1, self._time.now())
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
                self._members.send("beat")
            await asyncio.sleep(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)])
            attempt += 1

    async def beat(self) -> bool:
        """Send a heartbeat, or wait for the one under way; return whether the gateway is alive.

        Raises: Unavailable.
        """
        if self._beating is None or self._beating.done():
            self._beating = asyncio.ensure_future(self._beat())
        return await asyncio.shield(self._beating)

    async def _beat(self) -> bool:
        sent = 0

        def rule(seen: Seen) -> tuple[MembershipTable, None] | None:
            nonlocal sent
            sent = seen.asked
            row = self.state.heartbeat(self._time.now(), self._in_flight())
            table = membership.beat(self._without_dead(seen), self.number, row, seen.now)
            return None if table is None else (table, None)

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
                except EngineError as error:
                    _log.warning("no heartbeat: %s", error)
                except Exception:
                    _log.exception("no heartbeat; the next one is sent in a second")

    def died(self) -> None:
        """Take note that the gateway was declared dead. It commits and reads nothing any more."""
        if not self.is_dead:
            self.is_dead = True
            self._life.failed(Unavailable(_DEAD))

    def unavailability(self) -> Unavailable | None:
        """Why it may neither read nor commit; None if it may."""
        if self.is_dead:
            return Away(_DEAD)
        if self.state.is_late(self._boot_ticks()):
            return Away(_LATE)
        return None

    async def ensure_serving(self) -> None:
        """Raise the reason why it may take no work."""
        self._life.check()
        await self.ensure_live()

    async def ensure_live(self) -> None:
        """Raise Unavailable unless it may finish its work. A late heartbeat is sent first."""
        if not self.is_dead and not self.state.is_late(self._boot_ticks()):
            return
        if self.is_beating and not self.is_dead:
            await self.beat()
        # The one under way may have begun before this gateway stood still.
        if self.is_beating and not self.is_dead and self.state.is_late(self._boot_ticks()):
            await self.beat()
        if (error := self.unavailability()) is not None:
            raise error

    def may_rely_on(self, name: bytes) -> bool:
        """Whether it holds `name`, as the table was last seen, and is not late."""
        is_held = self.table.holds.get(name) == self._run
        return is_held and self._life.why_stopped() is None and self.unavailability() is None

    def release(self, name: bytes) -> None:
        self._held.discard(name)
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
