"""A gateway of a store in PostgreSQL: its holds, its readers, and who else is there.

Lives here: the engine's `Gateways`. Must not live here: the rules (membership.py), heartbeats
(heartbeats.py), rights (rights.py), how the table is stored (members.py).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Final

from strongroom.engines import membership
from strongroom.engines.base import Unavailable
from strongroom.engines.gateways import (
    ExclusiveRight,
    GatewayRun,
    Horizon,
    check_announcement,
)
from strongroom.engines.membership import (
    GatewayReaderMark,
    GatewayState,
    MembershipTable,
)
from strongroom.engines.postgres.gateways.heartbeats import Heartbeats, JoinedGateway
from strongroom.engines.postgres.gateways.members import SharedTable, TableSeen
from strongroom.engines.postgres.gateways.rights import Rights

_PAUSES_S: Final = (0.005, 0.02, 0.05, 0.1)
_log = logging.getLogger(__name__)


class PostgresGateways:
    """A gateway among the others, by its heartbeats and the shared table.

    Attributes:
        rights: what it has taken.
        exclusive: the right to serve alone; None = other gateways may serve beside this one.
    """

    def __init__(
        self, members: SharedTable, gateway: JoinedGateway, heartbeats: Heartbeats
    ) -> None:
        self._members = members
        self._gateway = gateway
        self.heartbeats = heartbeats
        self.rights = Rights(members, gateway, heartbeats)
        self.exclusive: ExclusiveRight | None = None

    @property
    def number(self) -> int:
        return self._gateway.run.number

    @property
    def incarnation(self) -> int:
        return self._gateway.run.incarnation

    @property
    def run(self) -> GatewayRun:
        return self._gateway.run

    @property
    def secret(self) -> bytes:
        return self._seen.secret

    @property
    def state(self) -> GatewayState:
        return self._gateway.state

    @property
    def table(self) -> MembershipTable:
        """The table as it was last seen."""
        return self._seen.table

    @property
    def _seen(self) -> TableSeen:
        assert self._members.seen is not None
        return self._members.seen

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
        return self.is_alone or self.table.owner(name) == self.number

    async def hold(self, name: bytes) -> ExclusiveRight | None:
        await self.ensure_serving()
        return await self.rights.hold(name)

    async def share(self, name: bytes) -> ExclusiveRight | None:
        """Take a share of the right called `name`. Return None if a gateway has the right alone, or
        this one has a share already. Raises: Unavailable."""
        await self.ensure_serving()
        return await self.rights.share(name)

    def holder(self, name: bytes) -> GatewayRun | None:
        return self.table.holds.get(name)

    def has_ended(self, run: GatewayRun) -> bool:
        return self.table.has_ended(run)

    async def announce(self, text: bytes) -> None:
        check_announcement(text)
        await self.ensure_serving()
        self.state.announced = text
        while self.table.announced(self._gateway.run) != (text or None):
            await self.heartbeats.beat()
            await self.ensure_serving()

    def announced(self, run: GatewayRun) -> bytes | None:
        return self.table.announced(run)

    def begin_reading(self) -> GatewayReaderMark:
        self._gateway.life.check()
        if (error := self.heartbeats.unavailability()) is not None:
            raise error
        return self.state.begin_reading()

    async def horizon(self) -> Horizon:
        await self.ensure_serving()
        seen = await self._members.look()
        self._gateway.learned(seen)
        return seen.table.horizon(self.number)

    async def wait_for_earlier_commits(self, stamp: int) -> None:
        await self.ensure_serving()
        seen = await self._members.look()
        known = max(self.state.last_stamp + 1, seen.highest + 1, self._gateway.time.now())
        if stamp > max(known, seen.table.highest):
            raise ValueError(f"{stamp} lies in the future: the store has given no such stamp yet")
        self.state.observe(stamp - 1)
        for attempt in itertools.count():
            await self.ensure_serving()
            await self.heartbeats.beat()
            if self.table.floor >= stamp:
                return
            if self.has_others:
                self._members.send("beat")
            await asyncio.sleep(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)])

    async def ensure_serving(self) -> None:
        """Raise the reason why it may take no work."""
        self._gateway.life.check()
        await self.heartbeats.ensure_live()

    async def leave(self) -> None:
        """Remove the gateway from the table, after its work has ended."""
        self.heartbeats.end()
        await self.rights.released()
        # A last heartbeat has the newest time that was told: later gateways begin above it.
        last = self.state.heartbeat(self._gateway.time.now(), ())

        def rule(seen: TableSeen) -> tuple[MembershipTable, None]:
            told = membership.beat(seen.table, self.number, last, seen.now) or seen.table
            return membership.leave(told, self._gateway.run), None

        try:
            await self._members.change(rule)
            # So the others see at once which works are theirs now.
            await self._members.tell("beat")
        except Unavailable:
            _log.warning("the gateway could not leave in order; others wait 10 s for it")
