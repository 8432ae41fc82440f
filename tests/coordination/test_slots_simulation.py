"""Semaphores, read-write locks and barriers hold under simulated faults; wrong rules are caught.

A failure names the seed: `run_slots(seed, ...)` plays it again, event for event.
"""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import pytest

from strongroom.coordination.recipes.slots import barrier_core
from strongroom.coordination.recipes.slots.barrier_core import BarrierRecord
from strongroom.coordination.simulation.barrier_scenario import run_barrier
from strongroom.coordination.simulation.slots_scenario import VARIANTS, Variant, run_slots
from tests.coordination.slot_mutants import MUTANTS, first_kill

# In these, taken together, each kind of loss happens.
SEEDS = range(2, 4)
BARRIER_SEEDS = range(10, 12)
"""In these a party was away for longer than its TTL while the others went on."""
MUTANT_SEEDS = 150


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_slots_hold_under_faults(variant: Variant) -> None:
    reports = [run_slots(seed, variant) for seed in SEEDS]
    assert [report for report in reports if report.violations] == []
    totals: Counter[str] = Counter()
    for report in reports:
        totals.update(dict(report.counts))
    assert totals["lost"] > 0
    assert min(count for what, count in totals.items() if what != "lost") > len(SEEDS) * 20


def test_whoever_loses_race_after_race_still_leaves_nothing_behind() -> None:
    """A reader's release once gave up after twelve lost races, with nothing wrong at the store."""
    variant = next(variant for variant in VARIANTS if variant.name == "rwlock-no-crashes")
    assert run_slots(432, variant).violations == ()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_caught(name: str) -> None:
    report = first_kill(MUTANTS[name], MUTANT_SEEDS)
    assert report is not None, f"{name}: survived {MUTANT_SEEDS} seeds"


@pytest.mark.parametrize("watch", [True, False])
def test_barriers_hold_under_faults(watch: bool) -> None:
    reports = [run_barrier(seed, watch) for seed in BARRIER_SEEDS]
    assert [report for report in reports if report.violations] == []
    totals: Counter[str] = Counter()
    for report in reports:
        totals.update(dict(report.counts))
    assert totals["passed"] > len(BARRIER_SEEDS) * 100
    assert totals["broken"] > 0 and totals["gave up"] > len(BARRIER_SEEDS)


def any_barrier_fails() -> bool:
    return any(run_barrier(seed).violations for seed in range(MUTANT_SEEDS))


def test_a_barrier_that_forgets_who_was_in_is_caught() -> None:
    with (
        patch.object(barrier_core, "_TRIPS_MAX", 1),
        patch.object(BarrierRecord, "lists_generation", lambda self, generation: True),
    ):
        assert any_barrier_fails()


def test_a_barrier_that_leaves_places_standing_is_caught() -> None:
    """An abandoned place is counted and never dropped, so dead parties fill the barrier."""
    with patch.object(barrier_core, "slot_left_s", lambda *_: 1.0):
        assert any_barrier_fails()


def test_a_barrier_whose_trip_lets_everybody_go_is_caught() -> None:
    """A new generation alone says that the barrier tripped, not with whom."""
    with patch.object(BarrierRecord, "index_of", lambda self, _: 0 if self.tripped else None):
        assert any_barrier_fails()


def test_a_seed_plays_the_same_again() -> None:
    assert run_slots(7, VARIANTS[2]) == run_slots(7, VARIANTS[2])
    assert run_slots(7, VARIANTS[2]) != run_slots(8, VARIANTS[2])
