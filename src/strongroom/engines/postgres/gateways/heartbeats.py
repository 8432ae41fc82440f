"""The heartbeats of a gateway, and whether it may go on by them.

Lives here: `Heartbeats`. Must not live here: the rules (membership.py), holds and readers
(gateways.py), how the table is stored (members.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from strongroom.engines import membership
from strongroom.engines.base import EngineError
from strongroom.engines.gateways import GatewayRun
from strongroom.engines.membership import GatewayState, MembershipTable
from strongroom.engines.postgres.gateways.clock import DOUBT_MAX_S
from strongroom.engines.postgres.gateways.members import SharedTable, TableSeen
from strongroom.engines.postgres.gateways.shared_time import SharedTime
from strongroom.engines.postgres.gateways.watched import WatchedGateways
from strongroom.engines.postgres.life import Life
from strongroom.engines.postgres.sessions.session import Away, StoreReplaced
from strongroom.values import TICKS_PER_S

_BEAT_S: Final = 1.0
_DEAD: Final = "this gateway was declared dead: it sent no heartbeat for 10 s"
_DOUBT: Final = (
    "the database's clock is known to {:.2f} s only, since its answers take so long, and 0.1 s is "
    "needed"
)
_LATE: Final = "this gateway stands still: its last heartbeat is over 5 s old"
_log = logging.getLogger(__name__)


class JoinedGateway(msgspec.Struct, frozen=True):
    """A gateway that has joined.

    Attributes:
        state: its own state since then.
        in_flight: the stamps of its decisions whose outcome it does not know.
        boot_ticks: the clock by which it judges whether its heartbeat is late.
        doubt_s: see DatabaseClock.
        life: whether its store serves; it is told when the gateway was declared dead.
        watched: what it has seen of the others.
        learned: is told what was seen with each look at the table.
    """

    run: GatewayRun
    state: GatewayState
    time: SharedTime
    in_flight: Callable[[], Sequence[int]]
    boot_ticks: Callable[[], int]
    doubt_s: Callable[[], float]
    life: Life
    watched: WatchedGateways
    learned: Callable[[TableSeen], None]


class Heartbeats:
    """Sends a heartbeat each second, and whenever one is asked for.

    Attributes:
        is_beating: whether it sends them; a test may stop them.
        is_dead: whether the gateway was declared dead, or has left.
    """

    def __init__(self, members: SharedTable, gateway: JoinedGateway) -> None:
        self._members = members
        self._gateway = gateway
        self._beating: asyncio.Task[bool] | None = None
        self.is_beating = True
        self.is_dead = False

    @property
    def age_s(self) -> float:
        """How long ago the last one was sent that was accepted."""
        gateway = self._gateway
        return gateway.state.heartbeat_age(gateway.boot_ticks()) / TICKS_PER_S

    @property
    def is_late(self) -> bool:
        return self._gateway.state.is_late(self._gateway.boot_ticks())

    def without_dead(self, seen: TableSeen) -> MembershipTable:
        """The table without the gateways that were silent for too long, while this one looked."""
        watched = self._gateway.watched
        watched.look(seen.table, seen.asked)
        return seen.table if self.is_late else watched.without_dead(seen.table, seen.now)

    async def beat(self) -> bool:
        """Send a heartbeat, or wait for the one under way; return whether the gateway is alive.

        Raises: Unavailable.
        """
        if self._beating is None or self._beating.done():
            self._beating = asyncio.ensure_future(self._beat())
            self._beating.add_done_callback(_retrieved)
        return await asyncio.shield(self._beating)

    async def _beat(self) -> bool:
        gateway, sent = self._gateway, 0

        def rule(seen: TableSeen) -> tuple[MembershipTable, None] | None:
            nonlocal sent
            sent = seen.asked
            row = gateway.state.heartbeat(gateway.time.now(), gateway.in_flight())
            number = gateway.run.number
            table = membership.beat(self.without_dead(seen), number, row, seen.now)
            return None if table is None else (table, None)

        try:
            changed = await self._members.change(rule)
        except StoreReplaced as error:
            self._end_with(error)
            return False
        if changed is None:
            self.died()
            return False
        seen, _ = changed
        gateway.state.heartbeat_accepted(seen.table, sent)
        gateway.learned(seen)
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
        self._end_with(Away(_DEAD))

    def _end_with(self, error: EngineError) -> None:
        if not self.is_dead:
            self.is_dead = True
            self._gateway.life.failed(error)

    def end(self) -> None:
        """Send none any more: the gateway leaves."""
        self.is_beating = False
        self.is_dead = True

    def unavailability(self) -> Away | None:
        """Why the gateway may neither read nor commit; None if it may."""
        if self.is_dead:
            return Away(_DEAD)
        if self.is_late:
            return Away(_LATE)
        doubt_s = self._gateway.doubt_s()
        return Away(_DOUBT.format(doubt_s)) if doubt_s > DOUBT_MAX_S else None

    async def ensure_live(self) -> None:
        """Raise Unavailable unless the gateway may finish its work. A late heartbeat is sent
        first."""
        # One under way may have begun before this gateway stood still; then another one is sent.
        for _ in range(2):
            if self.is_beating and not self.is_dead and self.is_late:
                await self.beat()
        if (error := self.unavailability()) is not None:
            raise error


def _retrieved(task: asyncio.Task[bool]) -> None:
    """Whoever waits for a heartbeat may have gone."""
    if not task.cancelled():
        task.exception()
