"""Membership of gateways: each rule by itself, and all in a simulated store under faults."""

from __future__ import annotations

from collections import Counter

import pytest

from strongroom.engines import membership
from strongroom.engines.gateways import GATEWAYS_MAX, STAMP_MAX, GatewayRun, Horizon
from strongroom.engines.membership import (
    DEAD_TICKS,
    LATE_TICKS,
    GatewayState,
    MembershipTable,
)
from tests.engines.membership_mutants import MUTANTS
from tests.engines.membership_world import Rules, play

_SEEDS = 30
_MUTANT_SEEDS = 120


def _joined(*nows: int) -> tuple[MembershipTable, list[GatewayRun]]:
    table, members = MembershipTable(), []
    for now in nows:
        joined = membership.join(table, now)
        assert joined is not None
        table, identity = joined
        members.append(identity)
    return table, members


def _after_heartbeat(
    table: MembershipTable, state: GatewayState, now: int = 0, *in_flight: int
) -> MembershipTable:
    after = membership.beat(table, state.gateway.number, state.heartbeat(now, in_flight), now)
    assert after is not None
    return after


def test_numbers_are_free_again_and_incarnations_are_not() -> None:
    table, (one, two) = _joined(0, 0)
    assert (one.number, two.number) == (0, 1)
    table = membership.leave(table, one)
    joined = membership.join(table, 5)
    assert joined is not None
    table, again = joined
    assert again.number == 0 and again.incarnation > two.incarnation
    assert not table.is_live(one) and table.is_live(again)
    assert membership.leave(table, one) == table, "an old run does not end the new one"


def test_there_is_room_for_so_many_gateways_and_no_more() -> None:
    table, members = _joined(*[0] * GATEWAYS_MAX)
    assert sorted(one.number for one in members) == list(range(GATEWAYS_MAX))
    assert membership.join(table, 0) is None


def test_whoever_sends_no_heartbeat_is_dead_and_cannot_come_back() -> None:
    table, (one, two) = _joined(0, 0)
    table = _after_heartbeat(table, GatewayState(two, table, 0), DEAD_TICKS)
    assert membership.remove_dead(table, DEAD_TICKS).is_live(one)
    table = membership.remove_dead(table, DEAD_TICKS + 1)
    assert not table.is_live(one) and table.is_live(two)
    row = GatewayState(two, table, 0).heartbeat(0, ())
    assert membership.beat(table, one.number, row, DEAD_TICKS + 2) is None


def test_a_gateway_is_late_by_the_time_at_which_it_sent_its_last_heartbeat() -> None:
    table, (one,) = _joined(0)
    state = GatewayState(one, table, 100)
    assert not state.is_late(100 + LATE_TICKS) and state.is_late(101 + LATE_TICKS)
    state.heartbeat_accepted(table, 50)
    assert state.is_late(101 + LATE_TICKS), "an answer that was overtaken changes nothing"
    state.heartbeat_accepted(table, 200)
    assert not state.is_late(200 + LATE_TICKS)


def test_stamps_of_two_gateways_never_meet_and_rise() -> None:
    table, (one, two) = _joined(0, 0)
    states = [GatewayState(one, table, 0), GatewayState(two, table, 0)]
    given = [state.stamp(now) for now in (0, 0, 1000, 900) for state in states]
    assert len(set(given)) == len(given)
    assert given[::2] == sorted(given[::2]) and given[1::2] == sorted(given[1::2])
    assert min(given[4:6]) >= 1000
    states[0].observe(given[-1] + 5000)
    assert states[0].stamp(0) > given[-1] + 5000


def test_the_floor_is_the_lowest_stamp_in_flight_anywhere() -> None:
    table, (one, two) = _joined(0, 0)
    a, b = GatewayState(one, table, 0), GatewayState(two, table, 0)
    stamp = a.stamp(1000)
    table = _after_heartbeat(_after_heartbeat(table, b, 5000), a, 2000, stamp)
    assert table.floor == stamp
    table = _after_heartbeat(table, a, 2000)
    assert table.floor > 2000
    b.heartbeat_accepted(table, 0)
    assert b.stamp(0) > table.highest >= 5000


def test_a_new_gateway_begins_above_every_promise() -> None:
    table, (one,) = _joined(0)
    table = membership.leave(_after_heartbeat(table, GatewayState(one, table, 0), 9000), one)
    joined = membership.join(table, 0)
    assert joined is not None
    assert GatewayState(joined[1], joined[0], 0).stamp(0) > 9000


def test_a_reader_holds_back_the_horizon_of_the_others_until_it_names_what_it_reads() -> None:
    table, (one, two) = _joined(0, 0)
    a, b = GatewayState(one, table, 0), GatewayState(two, table, 0)
    for _ in range(2):
        table = _after_heartbeat(_after_heartbeat(table, a, 1000), b, 1000)
        a.heartbeat_accepted(table, 0)
    mark = a.begin_reading()
    for _ in range(2):
        table = _after_heartbeat(_after_heartbeat(table, a, 9000), b, 9000)
        a.heartbeat_accepted(table, 0)
    assert table.horizon(two.number) == Horizon(mark.stamp)
    assert table.horizon(one.number).stamp > 0, "readers of its own it knows by themselves"
    mark.narrow((7, 8))
    table = _after_heartbeat(table, a, 9000)
    horizon = table.horizon(two.number)
    assert horizon.stamp > mark.stamp and horizon.named == {7, 8}
    assert horizon.frees(9, mark.stamp) and not horizon.frees(7, mark.stamp)
    mark.end()
    mark.end()
    assert _after_heartbeat(table, a, 9000).horizon(two.number).named == frozenset()
    assert membership.leave(table, one).horizon(two.number) == Horizon(STAMP_MAX)


def test_a_hold_is_exclusive_and_ends_with_its_gateway() -> None:
    table, (one, two) = _joined(0, 0)
    held = membership.grant_hold(table, b"name", one)
    assert held is not None
    assert membership.grant_hold(held, b"name", one) is None
    assert membership.grant_hold(held, b"name", two) is None
    assert membership.release_hold(held, b"name", two) == held
    assert (
        membership.grant_hold(membership.release_hold(held, b"name", one), b"name", two) is not None
    )
    removed = membership.leave(held, one)
    assert membership.grant_hold(removed, b"name", two) is not None
    assert membership.grant_hold(removed, b"other", one) is None, "the dead take nothing"


def test_a_right_is_shared_by_several_gateways_or_held_by_one_alone() -> None:
    table, (one, two) = _joined(0, 0)
    alone = membership.grant_hold(table, b"name", one)
    assert alone is not None
    for gateway in (one, two):
        assert membership.grant_share(alone, b"name", gateway) is None
    shared = membership.grant_share(table, b"name", one)
    assert shared is not None
    assert membership.grant_share(shared, b"name", one) is None
    both = membership.grant_share(shared, b"name", two)
    assert both is not None
    for held, gateway in ((shared, one), (shared, two), (both, two)):
        assert membership.grant_hold(held, b"name", gateway) is None
    assert membership.grant_hold(both, b"name of another", one) is not None
    left = membership.leave(both, one)
    assert membership.grant_hold(left, b"name", two) is None
    last = membership.release_hold(left, membership.shared_name(b"name", two.number), two)
    assert membership.grant_hold(last, b"name", two) is not None
    assert membership.grant_share(last, b"name", one) is None, "the dead take nothing"


def test_an_announcement_lasts_until_its_gateway_ends() -> None:
    table, (one, two) = _joined(0, 0)
    assert table.announced(one) is None
    state = GatewayState(one, table, 0)
    state.announced = b"here"
    told = _after_heartbeat(_after_heartbeat(table, state), state, 1)
    assert (told.announced(one), told.announced(two)) == (b"here", None)
    assert told.announced(GatewayRun(one.number, one.incarnation + 1)) is None
    assert membership.leave(told, one).announced(one) is None


def test_work_is_shared_out_and_moves_only_with_its_owner() -> None:
    table, members = _joined(0, 0, 0, 0)
    names = [b"%d" % number for number in range(400)]
    before = {name: table.owner(name) for name in names}
    shares = Counter(before.values())
    assert min(shares[one.number] for one in members) > 60
    after = membership.leave(table, members[2])
    for name in names:
        if before[name] == members[2].number:
            assert after.owner(name) != before[name]
        else:
            assert after.owner(name) == before[name]


def test_one_that_is_idle_owns_nothing() -> None:
    table, (one, two) = _joined(0, 0)
    names = [b"%d" % number for number in range(40)]
    assert {table.owner(name) for name in names} == {one.number, two.number}
    state = GatewayState(two, table, 0)
    assert not state.is_idle
    state.is_idle = True
    idle = _after_heartbeat(table, state, 1)
    assert {idle.owner(name) for name in names} == {one.number}
    assert membership.leave(idle, one).owner(b"name") is None
    state.is_idle = False
    assert _after_heartbeat(idle, state, 2).owner(names[0]) == table.owner(names[0])


def test_one_may_be_idle_from_its_first_row_on() -> None:
    table, (one,) = _joined(0)
    joined = membership.join(table, 0, is_idle=True)
    assert joined is not None
    table, two = joined
    names = [b"%d" % number for number in range(40)]
    assert {table.owner(name) for name in names} == {one.number}
    state = GatewayState(two, table, 0)
    table = _after_heartbeat(table, state, 1)
    assert {table.owner(name) for name in names} == {one.number}, "it goes on to be"


def test_no_promise_is_broken_by_deaths_pauses_delays_and_skew() -> None:
    totals: Counter[str] = Counter()
    for seed in range(_SEEDS):
        report = play(seed)
        assert not report.violations, (seed, report.violations[:3])
        totals += report.counts
    for what in ("commits", "drops", "holds", "quiet", "deaths", "declared dead", "pauses"):
        assert totals[what] > _SEEDS, (what, totals)
    assert totals["refused to a dead gateway"] and totals["readers stopped"]


@pytest.mark.parametrize(("rules", "broken"), MUTANTS, ids=[rules.__name__ for rules, _ in MUTANTS])
def test_a_wrong_rule_is_found(rules: type[Rules], broken: str) -> None:
    found = (play(seed, rules()).violations for seed in range(_MUTANT_SEEDS))
    assert any(broken in violation for violations in found for violation in violations)
