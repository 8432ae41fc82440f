"""Releases while the store is unreachable, in virtual time.

A released lock is free as soon as the store is back, if that is soon. The release gives up in time,
whatever the store does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, get_args

import pytest

from strongroom.coordination.clock import ManualClocks
from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.drivers.threads import run_steps
from strongroom.coordination.effects import Cas, Delete, Effect, Get, Sleep, Steps, Unknown
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.recipes.locks import rwlock
from strongroom.coordination.recipes.locks.lock_core import Acquisition
from strongroom.coordination.recipes.locks.lock_request import HoldRequest
from strongroom.coordination.recipes.members_core import group_prefix, join_steps
from strongroom.coordination.recipes.slots import semaphore
from strongroom.coordination.recipes.slots.slots_core import SlotAcquisition, SlotRequest
from strongroom.coordination.recipes.waiting import ReleaseRetries
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.stores.memory import MemoryStore
from strongroom.coordination.stores.registers import Registers

GIVING_S: Final = 6.0
LONG_TTL_S: Final = 60.0
TTLS: Final = (LONG_TTL_S, 3.0, 0.1)
SEEDS: Final = range(10)
ROUND_TRIP_S: Final = 0.001
# The last requests are sent with almost no time left.
SLACK_S: Final = 0.05
FOR_EVER: Final = float("inf")

Way = Literal["fails", "hangs", "writes hang"]


class FarStore:
    """A store that is away until a time, and the steps of clients that meet it.

    Arguments:
        seed: of the clock's chance.
        way: what happens to requests while it is away: they fail at once, they take as long as
            they may, or only writes do.
    """

    def __init__(self, seed: int = 0, way: Way = "fails") -> None:
        self.clock, self.registers, self.way = ManualClocks(seed=seed), Registers(), way
        self.back_s = 0.0
        self.before: Callable[[Effect], None] = lambda effect: None

    def context(self, label: str) -> RecipeContext:
        return RecipeContext(self.clock, ClockRules(), MemoryStore().promises(), label)

    def away(self, seconds: float) -> None:
        self.back_s = self.clock.boot_s() + seconds

    def run(self, steps: Steps[Any]) -> Any:
        """Perform the steps to their end and return their result."""
        return run_steps(steps, self._outcome)

    def _outcome(self, effect: Effect) -> Any:
        if isinstance(effect, Sleep):
            return self.clock.advance(effect.seconds)
        self.before(effect)
        assert isinstance(effect, Get | Cas | Delete)
        is_served = self.way == "writes hang" and isinstance(effect, Get)
        if self.clock.boot_s() < self.back_s and not is_served:
            return self._not_served(effect)
        self.clock.advance(ROUND_TRIP_S)
        return self.served(effect)

    def _not_served(self, effect: Get | Cas | Delete) -> Unknown:
        fails = self.way == "fails"
        self.clock.advance(ROUND_TRIP_S if fails else effect.timeout_s)
        if fails or isinstance(effect, Get):
            raise StoreUnavailable("away")
        return Unknown("no answer in time")

    def served(self, effect: Get | Cas | Delete) -> Any:
        now_s = self.clock.boot_s()
        if isinstance(effect, Get):
            return self.registers.get(effect.key, now_s)
        if isinstance(effect, Delete):
            return self.registers.delete(effect.key, effect.expected)
        return self.registers.cas(effect.key, effect.expected, effect.value, None, "", now_s)


def _lock(context: RecipeContext, ttl_s: float) -> Steps[Any]:
    return Acquisition(context, HoldRequest("lock/a", "a", ttl_s, 0.0)).steps()


def _permit(context: RecipeContext, ttl_s: float) -> Steps[Any]:
    rule = semaphore.SemaphoreRule("a", 1)
    wanted = SlotRequest(
        semaphore.KIND, "semaphore/a", "a", "hold", rule, ttl_s, 0.0, limit=1, reentrant=True
    )
    return SlotAcquisition(context, wanted).steps()


def _writer(context: RecipeContext, ttl_s: float) -> Steps[Any]:
    wanted = SlotRequest(
        rwlock.KIND, "rwlock/a", "a", rwlock.WRITE, rwlock.WriteRule(), ttl_s, 0.0,
        rwlock.WANTS_WRITE,
    )  # fmt: skip
    return SlotAcquisition(context, wanted).steps()


def _member(context: RecipeContext, ttl_s: float) -> Steps[Any]:
    return join_steps(context, "a", None, ttl_s)


EXCLUSIVE: Final = {"lock": _lock, "permit": _permit, "writer": _writer}
KINDS: Final = {**EXCLUSIVE, "member": _member}

of_every_kind = pytest.mark.parametrize("kind", KINDS)
however_it_is_away = pytest.mark.parametrize("way", get_args(Way))


def _given_while_away(
    seed: int, kind: str, ttl_s: float, way: Way, away: float
) -> tuple[bool, float]:
    """Give back to a store that is away for so large a part of the time for it; see `_give`."""
    store = FarStore(seed, way)
    hold = _held(store, kind, ttl_s)
    store.away(away * min(GIVING_S, ttl_s))
    return _give(store, hold)


def _held(store: FarStore, kind: str, ttl_s: float = LONG_TTL_S) -> Hold:
    hold = store.run(KINDS[kind](store.context("one"), ttl_s))
    assert isinstance(hold, Hold) and hold.end()
    return hold


def _give(store: FarStore, hold: Hold) -> tuple[bool, float]:
    """Give back; return what came of it, and how long it took."""
    began_s = store.clock.boot_s()
    given: bool = store.run(hold.keeper.release(hold))
    return given, store.clock.boot_s() - began_s


@however_it_is_away
@of_every_kind
@pytest.mark.parametrize("ttl_s", TTLS)
def test_it_is_given_up_when_the_time_is_over_and_no_sooner(
    ttl_s: float, kind: str, way: Way
) -> None:
    for seed in SEEDS:
        given, took_s = _given_while_away(seed, kind, ttl_s, way, FOR_EVER)
        assert not given
        assert took_s == pytest.approx(min(GIVING_S, ttl_s), abs=SLACK_S)


@however_it_is_away
@of_every_kind
@pytest.mark.parametrize("ttl_s", TTLS)
def test_it_is_given_back_to_a_store_that_was_away_for_most_of_the_time(
    ttl_s: float, kind: str, way: Way
) -> None:
    for seed in SEEDS:
        given, took_s = _given_while_away(seed, kind, ttl_s, way, 0.6)
        assert given and took_s < min(GIVING_S, ttl_s)


@pytest.mark.parametrize("kind", EXCLUSIVE)
def test_what_was_given_back_late_is_free_at_once(kind: str) -> None:
    store = FarStore()
    hold = _held(store, kind)
    store.away(GIVING_S / 2)
    assert _give(store, hold)[0]
    assert isinstance(store.run(KINDS[kind](store.context("two"), LONG_TTL_S)), Hold)


def test_who_left_late_is_no_member() -> None:
    store = FarStore()
    hold = _held(store, "member")
    store.away(GIVING_S / 2)
    assert _give(store, hold)[0]
    assert store.registers.list_keys(group_prefix("a")) == []


@of_every_kind
def test_it_is_tried_once_though_the_machine_was_suspended(kind: str) -> None:
    store = FarStore()
    hold = _held(store, kind)
    suspended: list[Effect] = []

    def suspend(effect: Effect) -> None:
        if not suspended:
            store.clock.advance(10 * LONG_TTL_S)
        suspended.append(effect)

    store.before = suspend
    assert _give(store, hold)[0]


def test_the_first_try_is_made_and_no_other_when_the_time_is_over() -> None:
    clock = ManualClocks()
    retries = ReleaseRetries(
        RecipeContext(clock, ClockRules(), MemoryStore().promises(), "one"), LONG_TTL_S
    )
    clock.advance(LONG_TTL_S)
    assert retries.begin_attempt() and retries.timeout_s > 0
    assert retries.pause(is_failure=True).seconds == 0
    assert not retries.begin_attempt()


def _written_before_each_delete(store: FarStore, times: int) -> None:
    """Let the record be another one whenever it is about to be deleted, so many times."""
    left = iter(range(times))

    def write(effect: Effect) -> None:
        if isinstance(effect, Delete) and next(left, None) is not None:
            entry = store.registers.get(effect.key, 0.0)
            assert entry is not None
            store.registers.cas(effect.key, entry.version, entry.value, None, "", 0.0)

    store.before = write


def test_a_lost_race_of_a_member_is_no_trouble_and_costs_round_trips_only() -> None:
    store = FarStore()
    hold = _held(store, "member")
    races = 20
    _written_before_each_delete(store, races)
    given, took_s = _give(store, hold)
    assert given and took_s < 20 * races * ROUND_TRIP_S


def test_a_member_whose_record_others_removed_has_given_nothing_back() -> None:
    store = FarStore()
    hold = _held(store, "member")
    entry = store.registers.get(hold.key, 0.0)
    assert entry is not None
    store.registers.delete(hold.key, entry.version)
    store.away(GIVING_S / 2)  # the first read has no answer, and nothing is sent after it
    assert not _give(store, hold)[0]


def test_a_member_whose_deletion_nobody_confirmed_has_given_back() -> None:
    store = FarStore(way="hangs")
    hold = _held(store, "member")

    def lose_the_answer(effect: Effect) -> None:
        if isinstance(effect, Delete):
            store.served(effect)
            store.away(effect.timeout_s)

    store.before = lose_the_answer
    assert _give(store, hold)[0]


@of_every_kind
def test_the_client_that_releases_may_acquire_again_before_the_release_is_written(
    kind: str,
) -> None:
    store = FarStore()
    context = store.context("one")
    old = store.run(KINDS[kind](context, LONG_TTL_S))
    assert isinstance(old, Hold) and old.end()
    new: list[Hold] = []

    def acquire_first(effect: Effect) -> None:
        store.before = lambda effect: None
        new.append(store.run(KINDS[kind](context, LONG_TTL_S)))

    store.before = acquire_first
    store.run(old.keeper.release(old))
    assert new and new[0].active and new[0].nonce != old.nonce
    assert store.run(new[0].keeper.renew(new[0])), "the release did not end the new hold"
