"""Rules of membership that are known to be wrong, each with the promise that it breaks.

Lives here: the mutants and the simulator's finding on each. Must not live here: the world.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.engines import membership
from strongroom.engines.gateways import STAMP_MAX, GatewayRun, Horizon
from strongroom.engines.membership import (
    GatewayReaderMark,
    GatewayState,
    Heartbeat,
    MembershipTable,
)
from strongroom.values import TICKS_PER_S
from tests.engines.membership_world import Rules

DROPPED: Final = "was dropped under a reader"
NOT_QUIET: Final = "was committed after quiet"
TWO_HOLDERS: Final = "believe that they hold"
TWICE: Final = "was given twice"


class DeadMayCommit(Rules):
    """A commit does not check whether its gateway is alive."""

    def may_commit(self, table: MembershipTable, gateway: GatewayRun) -> bool:
        return True


class DeadSoon(Rules):
    """A gateway is declared dead before it has noticed that it is late."""

    def remove_dead(self, table: MembershipTable, now: int) -> MembershipTable:
        return membership.remove_dead(table, now + 9 * TICKS_PER_S)


class NeverLate(Rules):
    """A gateway continues without heartbeats."""

    def is_late(self, state: GatewayState, now: int) -> bool:
        return False


class NoHorizon(Rules):
    """Readers of other gateways are ignored."""

    def horizon(self, table: MembershipTable, number: int) -> Horizon:
        return Horizon(STAMP_MAX)


class NamesForgotten(Rules):
    """Contents that slow readers have named are ignored."""

    def horizon(self, table: MembershipTable, number: int) -> Horizon:
        return Horizon(table.horizon(number).stamp)


class ReaderAtItsClock(Rules):
    """A reader begins at its gateway's own time, which is ahead: smaller stamps may still
    follow."""

    def begin_reading(self, state: GatewayState, now: int) -> GatewayReaderMark:
        return GatewayReaderMark(state, max(now, state.last_stamp) + 20 * TICKS_PER_S)


class QuietAtOnce(Rules):
    """`wait_for_earlier_commits` waits for no gateway."""

    def is_quiet(self, table: MembershipTable, stamp: int) -> bool:
        return True


class QuietByOne(Rules):
    """`wait_for_earlier_commits` returns when a single gateway is beyond the stamp."""

    def is_quiet(self, table: MembershipTable, stamp: int) -> bool:
        return table.highest >= stamp


class LowestTakenBack(Rules):
    """A heartbeat promises more than its gateway keeps, as if a late one had replaced a newer
    promise; stamps in flight are not covered."""

    def beat(
        self, table: MembershipTable, number: int, row: Heartbeat, now: int
    ) -> MembershipTable | None:
        bold = msgspec.structs.replace(row, lowest=row.lowest + 30 * TICKS_PER_S)
        return membership.beat(table, number, bold, now)


class JoinsAnywhere(Rules):
    """A new gateway begins below the promises of others."""

    def join(
        self, table: MembershipTable, now: int, least: int
    ) -> tuple[MembershipTable, GatewayRun] | None:
        joined = membership.join(msgspec.structs.replace(table, highest=0), now)
        if joined is None:
            return None
        after, identity = joined
        return msgspec.structs.replace(after, highest=0), identity


class HoldGrantedTwice(Rules):
    """A hold is granted although another gateway has it."""

    def grant_hold(
        self, table: MembershipTable, name: bytes, gateway: GatewayRun
    ) -> MembershipTable | None:
        return msgspec.structs.replace(table, holds={**table.holds, name: gateway})


class Undead(Rules):
    """A heartbeat of a gateway that was declared dead brings it back."""

    def beat(
        self, table: MembershipTable, number: int, row: Heartbeat, now: int
    ) -> MembershipTable | None:
        if number not in table.rows:
            table = msgspec.structs.replace(table, rows={**table.rows, number: row})
        return membership.beat(table, number, row, now)


MUTANTS: Final[tuple[tuple[type[Rules], str], ...]] = (
    (DeadMayCommit, NOT_QUIET),
    (DeadSoon, DROPPED),
    (NeverLate, DROPPED),
    (NoHorizon, DROPPED),
    (NamesForgotten, DROPPED),
    (ReaderAtItsClock, DROPPED),
    (QuietAtOnce, NOT_QUIET),
    (QuietByOne, NOT_QUIET),
    (LowestTakenBack, NOT_QUIET),
    (JoinsAnywhere, NOT_QUIET),
    (HoldGrantedTwice, TWO_HOLDERS),
    (Undead, NOT_QUIET),
)
