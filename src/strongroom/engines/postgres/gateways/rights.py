"""The rights that a gateway of a store in PostgreSQL has taken, alone or with others.

Lives here: `Rights`. Must not live here: the rules (membership.py), who else is there
(gateways.py), how the table is stored (members.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from strongroom.engines import membership
from strongroom.engines.base import Unavailable
from strongroom.engines.membership import HeldName, MembershipTable
from strongroom.engines.postgres.gateways.heartbeats import Heartbeats, JoinedGateway
from strongroom.engines.postgres.gateways.members import SharedTable, TableSeen

_log: Final = logging.getLogger(__name__)


class Rights:
    """By the names that the table has for them."""

    def __init__(
        self, members: SharedTable, gateway: JoinedGateway, heartbeats: Heartbeats
    ) -> None:
        self._members = members
        self._gateway = gateway
        self._heartbeats = heartbeats
        # Of the names that are being given back.
        self._releases: dict[asyncio.Task[None], bytes] = {}
        self._held: set[bytes] = set()

    async def hold(self, name: bytes) -> HeldName | None:
        """Take a right alone; see Gateways.hold. Raises: Unavailable."""
        run = self._gateway.run
        return await self._take(name, lambda table: membership.grant_hold(table, name, run))

    async def share(self, name: bytes) -> HeldName | None:
        """Take a share of a right. Return None if a gateway has it alone, or this one has a share
        already. Raises: Unavailable."""
        run = self._gateway.run
        own = membership.shared_name(name, run.number)
        return await self._take(own, lambda table: membership.grant_share(table, name, run))

    def has(self, name: bytes) -> bool:
        """Whether it holds `name`, as the table was last seen, and is not late."""
        seen = self._members.seen
        is_held = seen is not None and seen.table.holds.get(name) == self._gateway.run
        stopped = self._gateway.life.why_stopped() or self._heartbeats.unavailability()
        return is_held and stopped is None

    def release(self, name: bytes) -> None:
        self._held.discard(name)
        task = asyncio.ensure_future(self._release(name))
        self._releases[task] = name
        task.add_done_callback(self._releases.pop)

    async def released(self) -> None:
        """Wait until all that was given back is free, as far as the database answers."""
        await asyncio.gather(*self._releases, return_exceptions=True)

    async def _take(
        self, name: bytes, grant: Callable[[MembershipTable], MembershipTable | None]
    ) -> HeldName | None:
        await self.released()
        run = self._gateway.run

        def rule(seen: TableSeen) -> tuple[MembershipTable, None] | None:
            table = self._heartbeats.without_dead(seen)
            if table.holds.get(name) == run and name not in self._held:
                # It was granted, but the answer was lost; or it is about to be free.
                return None if name in self._releases.values() else (table, None)
            granted = grant(table)
            return None if granted is None else (granted, None)

        changed = await self._members.change(rule)
        if changed is None or name in self._held:
            return None
        # A gateway that was removed just now may have committed after the table was read.
        newest = (await self._members.look()).highest
        if name in self._held:
            return None
        self._held.add(name)
        self._gateway.state.observe(newest)
        return HeldName(self, name)

    async def _release(self, name: bytes) -> None:
        try:
            await self._members.change(
                lambda seen: (membership.release_hold(seen.table, name, self._gateway.run), None)
            )
        except Unavailable:
            _log.warning("a hold was not given back; it ends with this gateway's heartbeats")
