"""Joining a store: the gateway's number, and how far its time begins behind the database's clock.

Lives here: what a gateway does before it serves. Must not live here: the rules of the table
(membership.py), heartbeats (heartbeats.py).

All gateways slew towards the database's clock. A promoted standby may have a clock that is ahead.
A gateway that began with it would take all others ahead, and every lease would end early. So a
gateway that joins asks the others for their time.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from strongroom.clock import Clock
from strongroom.engines import membership
from strongroom.engines.base import Unavailable
from strongroom.engines.gateways import GATEWAYS_MAX, GatewayRun
from strongroom.engines.membership import MembershipTable
from strongroom.engines.postgres.gateways.members import SharedTable, TableSeen
from strongroom.engines.postgres.sql.versions import VERSION
from strongroom.values import TICKS_PER_S

_STEP_TICKS: Final = TICKS_PER_S
"""A heartbeat may be under way for that long, so that its time is that old."""
_PATIENCE_S: Final = 1.2
"""Others send a heartbeat each second, even if they do not learn that one is asked for."""
_PAUSE_S: Final = 0.02


class Joined(msgspec.Struct, frozen=True):
    """A gateway that has joined.

    Attributes:
        behind: by how many ticks the others' time is behind the database's clock.
    """

    run: GatewayRun
    seen: TableSeen
    behind: int


async def joined(members: SharedTable, clock: Clock) -> Joined:
    """Add a gateway to the table. Raises: Unavailable: all numbers are taken, or no database
    answers."""
    secret = clock.random_bytes(32)
    behind = await _behind(members)

    def rule(seen: TableSeen) -> tuple[MembershipTable, GatewayRun] | None:
        least = max(seen.highest + 1, seen.now + seen.shift - behind)
        # After an outage of the database no gateway looks alive. So the dead are removed only where
        # a number is needed; heartbeats find them later.
        table = membership.with_secret(seen.table, secret)
        return membership.join(table, seen.now, least, VERSION) or membership.join(
            membership.remove_dead(table, seen.now), seen.now, least, VERSION
        )

    changed = await members.change(rule)
    if changed is None:
        raise Unavailable(f"{GATEWAYS_MAX} gateways serve the store already")
    seen, run = changed
    return Joined(run, seen, behind)


async def _behind(members: SharedTable) -> int:
    """Return how far the time of the others is behind the database's clock; 0 unless a heartbeat
    that has just come says that it is."""
    first = await members.look()
    if not first.table.rows:
        return 0
    members.send("beat")
    end = asyncio.get_running_loop().time() + _PATIENCE_S
    while asyncio.get_running_loop().time() < end:
        await asyncio.sleep(_PAUSE_S)
        seen = await members.look()
        # A time that came before the database's clock was another one says nothing.
        times = [
            row.time + seen.now - row.received_at
            for number, row in seen.table.rows.items()
            if row.time and row != first.table.rows.get(number)
        ]
        if times:
            behind = seen.now + seen.shift - max(times)
            return behind if behind > _STEP_TICKS else 0
    return 0
