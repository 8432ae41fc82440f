"""Whoever the store does not answer takes nobody for dead, and gives up its own place later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from strongroom.coordination import CoordTimeout, StoreUnavailable
from strongroom.coordination.clock import ManualClocks
from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.drivers.threads import run_steps
from strongroom.coordination.effects import (
    UNCHANGED,
    Applied,
    Cas,
    Effect,
    Get,
    Sleep,
    Steps,
    Watch,
)
from strongroom.coordination.recipes.election_core import LeaderWatch
from strongroom.coordination.recipes.register_core import wait_steps
from strongroom.coordination.recipes.slots.barrier_core import Arrival, decode_barrier
from strongroom.coordination.schema.records import LockRecord, encode_document, encode_lock
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.stores.memory import MemoryStore

T = TypeVar("T")
_TTL_S = 15.0
_LEADER, _VALUE, _BARRIER = "election/e", "register/r", "barrier/b"


class World:
    """One participant in virtual time. It is cut off from the store between two times.

    Arguments:
        others: is called before each of its requests. The others still reach the store.
    """

    def __init__(self, others: Callable[[World], None] = lambda world: None) -> None:
        self.clock, self._others = ManualClocks(), others
        self.store = MemoryStore(self.clock)
        self._cut_s = self._back_s = 0.0
        self.context = RecipeContext(self.clock, ClockRules(), self.store.promises(), "observer")

    def cut_off(self, after_s: float, for_s: float) -> None:
        self._cut_s = self.clock.now_s + after_s
        self._back_s = self._cut_s + for_s

    @property
    def is_cut_off(self) -> bool:
        return self._cut_s <= self.clock.now_s < self._back_s

    def run(self, steps: Steps[T]) -> T:
        return run_steps(steps, self._perform)

    def _perform(self, effect: Effect) -> Any:
        self._others(self)
        if isinstance(effect, Sleep):
            return self.clock.advance(max(0.01, effect.seconds))
        if self.is_cut_off:
            raise StoreUnavailable("cut off")
        if isinstance(effect, Get):
            return self.store.get(effect.key, effect.timeout_s)
        if isinstance(effect, Cas):
            return self.store.cas(*effect)
        assert isinstance(effect, Watch)
        entry = self.store.get(effect.key, effect.timeout_s)
        if (entry and entry.version) != effect.version:
            return entry
        self.clock.advance(effect.timeout_s)
        return UNCHANGED


def _lead(world: World) -> None:
    """Renew the leader's record every few seconds."""
    seq = round(world.clock.now_s / 4)
    record = LockRecord("0123456789abcdef-1", 1, _TTL_S, seq, "leader", value="here")
    entry, value = world.store.get(_LEADER, 1), encode_lock(record)
    if entry is None or entry.value != value:
        world.store.cas(_LEADER, entry and entry.version, value, 1)


def test_a_leader_that_cannot_be_seen_still_leads() -> None:
    world = World(_lead)
    watch = LeaderWatch(world.context, _LEADER)
    first = world.run(watch.changed(None))
    assert first is not None and first.leading
    world.cut_off(0, 10 * _TTL_S)
    assert world.run(watch.changed(9 * _TTL_S)) is None
    assert world.is_cut_off
    assert world.run(watch.changed(9 * _TTL_S)) is None
    assert not world.is_cut_off


def test_a_leader_that_died_meanwhile_is_told_of_after_the_outage() -> None:
    world = World()
    _lead(world)
    watch = LeaderWatch(world.context, _LEADER)
    assert world.run(watch.changed(None))
    world.cut_off(0, 10 * _TTL_S)
    view = world.run(watch.changed(None))
    assert view is not None and not view.leading
    assert not world.is_cut_off


def test_a_value_that_cannot_be_seen_is_not_over() -> None:
    world = World()
    document = {"kind": "register", "value": "x", "ttl": _TTL_S, "nonce": "a-1", "before": []}
    version = world.store.cas(_VALUE, None, encode_document(document), 1)
    assert isinstance(version, Applied)
    world.cut_off(1, 10 * _TTL_S)
    changed, seen = world.run(wait_steps(world.context, _VALUE, version.version, 9 * _TTL_S))
    assert not changed and seen is not None and seen.value == "x"
    assert world.is_cut_off
    changed, seen = world.run(wait_steps(world.context, _VALUE, version.version, None))
    assert changed and seen is None
    assert not world.is_cut_off


def test_a_party_that_gives_up_in_an_outage_is_not_counted_afterwards() -> None:
    world = World()
    arrival = Arrival(world.context, _BARRIER, "b", 2, _TTL_S)
    world.cut_off(4.5, 2)
    with pytest.raises(CoordTimeout):
        world.run(arrival.steps(5))
    entry = world.store.get(_BARRIER, 1)
    assert entry is not None and decode_barrier(_BARRIER, entry.value).slots == ()
    assert not world.is_cut_off


def test_a_party_that_gives_up_in_a_long_outage_is_left_to_expire() -> None:
    world = World()
    arrival = Arrival(world.context, _BARRIER, "b", 2, _TTL_S)
    world.cut_off(4.5, 10 * _TTL_S)
    with pytest.raises(CoordTimeout):
        world.run(arrival.steps(5))
    assert world.is_cut_off
