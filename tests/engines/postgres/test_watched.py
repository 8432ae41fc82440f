"""A gateway is declared dead by one that has itself watched it being silent, and not by an age."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.engines import membership
from strongroom.engines.gateways import GatewayRun
from strongroom.engines.membership import DEAD_TICKS, LATE_TICKS, Heartbeat, MembershipTable
from strongroom.engines.postgres.gateways.watched import WatchedGateways
from strongroom.testing.contract.subject import face, put
from strongroom.values import TICKS_PER_S
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.subject import PostgresSubject

OTHER = GatewayRun(1, 7)


def _table(received_s: float) -> MembershipTable:
    row = Heartbeat(OTHER.incarnation, 1, 1, received_at=round(received_s * TICKS_PER_S))
    return MembershipTable({OTHER.number: row})


def _silent(
    watched: WatchedGateways, table: MembershipTable, at_s: float, now_s: float
) -> list[GatewayRun]:
    watched.look(table, round(at_s * TICKS_PER_S))
    return watched.silent(table, round(now_s * TICKS_PER_S))


def test_who_sends_nothing_for_ten_seconds_is_dead() -> None:
    watched, table = WatchedGateways(), _table(100.0)
    for second in range(11):
        assert not _silent(watched, table, second, 100.0 + second)
    assert _silent(watched, table, 10.5, 110.5) == [OTHER]
    assert watched.without_dead(table, 111 * TICKS_PER_S).rows == {}


def test_a_clock_that_jumps_ahead_declares_nobody_dead() -> None:
    watched = WatchedGateways()
    for second in range(30):
        age_s = 0.5  # its heartbeats arrive
        table = _table(1000.0 + second - age_s)
        assert not _silent(watched, table, second, 1000.0 + second + 60.0)


def test_a_clock_behind_declares_nobody_dead() -> None:
    """Meanwhile heartbeats do not change the time of a row."""
    watched, table = WatchedGateways(), _table(1000.0)
    for second in range(30):
        assert not _silent(watched, table, second, 970.0 + second)


def test_after_a_pause_of_its_own_a_gateway_watches_anew() -> None:
    """An outage of the database: no heartbeat could arrive."""
    watched, table = WatchedGateways(), _table(0.0)
    assert not _silent(watched, table, 0.0, 0.0)
    first_s = 20.0
    assert not _silent(watched, table, first_s, 20.0)
    for second in range(1, 11):
        assert not _silent(watched, table, first_s + second, 20.0 + second)
    assert _silent(watched, table, first_s + 10.5, 30.5) == [OTHER]


def test_a_new_run_is_watched_anew() -> None:
    watched, table = WatchedGateways(), _table(0.0)
    for second in range(12):
        _silent(watched, table, second, second)
    row = Heartbeat(OTHER.incarnation + 1, 1, 1)
    assert not _silent(watched, MembershipTable({OTHER.number: row}), 12.0, 12.0)


def test_it_is_never_faster_than_the_rules_of_membership() -> None:
    watched, table = WatchedGateways(), _table(0.0)
    step = LATE_TICKS // 10
    for at in range(0, 3 * DEAD_TICKS, step):
        watched.look(table, at)
        if watched.without_dead(table, at) != table:
            assert membership.remove_dead(table, at) != table


@pytest.mark.parametrize("ahead_s", [60.0, -60.0])
def test_gateways_go_on_when_the_clock_of_the_database_jumps(
    postgres: PostgresServer, administrator: Administrator, ahead_s: float
) -> None:
    async def trial(subject: PostgresSubject) -> None:
        await subject.start()
        try:
            one, two = subject.gateway, await subject.second()
            subject.clock.step_wall(ahead_s)
            await one.gateways.heartbeats.beat()
            assert await one.gateways.hold(b"a right") is not None
            assert len(one.gateways.table.rows) == 2
            await put(two, (face(), b"it lives"))
        finally:
            await subject.stop()

    asyncio.run(trial(PostgresSubject(postgres.url, administrator)))
