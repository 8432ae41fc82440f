"""Joining a store: the gateway's number, and how far its time begins behind the database's clock.

Lives here: what a gateway does before it serves. Must not live here: the rules of the table
(membership.py), heartbeats (heartbeats.py).

All gateways slew towards the database's clock. A promoted standby may have a clock that is ahead.
A gateway that began with it would take all others ahead, and every lease would end early. So a
gateway that joins asks the others for their time.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import msgspec

from strongroom.engines import membership
from strongroom.engines.base import Unavailable
from strongroom.engines.gateways import GATEWAYS_MAX, GatewayRun
from strongroom.engines.membership import DEAD_TICKS, MembershipTable
from strongroom.engines.postgres.gateways.members import SharedTable, TableSeen
from strongroom.engines.postgres.gateways.watched import WatchedGateways
from strongroom.engines.postgres.sql.versions import VERSION
from strongroom.values import TICKS_PER_S

_STEP_TICKS: Final = TICKS_PER_S
"""A heartbeat may be under way for that long, so that its time is that old."""
_PATIENCE_S: Final = 1.2
"""Others send a heartbeat each second, even if they do not learn that one is asked for."""
_PAUSE_S: Final = 0.02
_LOOK_S: Final = 0.25


class Joined(msgspec.Struct, frozen=True):
    """A gateway that has joined.

    Attributes:
        behind: by how many ticks the others' time is behind the database's clock.
        watched: what it has seen of the others.
    """

    run: GatewayRun
    seen: TableSeen
    behind: int
    watched: WatchedGateways


async def joined(members: SharedTable, watched: WatchedGateways, *, is_idle: bool) -> Joined:
    """Add a gateway to the table.

    After an outage of the database no gateway looks alive. So the dead are removed only where a
    number is needed, and only those that this one has itself watched being silent.

    Arguments:
        watched: gets what is seen of the others meanwhile.
        is_idle: see Heartbeat.

    Raises: Unavailable: all numbers are taken, or no database answers.
    """
    behind = await _behind(members)

    def rule(seen: TableSeen) -> tuple[MembershipTable, GatewayRun] | None:
        watched.look(seen.table, seen.asked)
        least = max(seen.highest + 1, seen.now + seen.shift - behind)
        join = partial(membership.join, now=seen.now, least=least, knows=VERSION, is_idle=is_idle)
        return join(seen.table) or join(watched.without_dead(seen.table, seen.now))

    while (changed := await members.change(rule)) is None:
        if not _has_silent(members):
            raise Unavailable(f"{GATEWAYS_MAX} gateways serve the store already")
        await asyncio.sleep(_LOOK_S)
    seen, run = changed
    return Joined(run, seen, behind, watched)


def _has_silent(members: SharedTable) -> bool:
    """Whether some gateway may be dead, by the age of its row."""
    seen = members.seen
    assert seen is not None
    return any(seen.now - row.received_at > DEAD_TICKS for row in seen.table.rows.values())


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
