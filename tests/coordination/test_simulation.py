"""The shipped locks hold in simulated time under faults, and every wrong rule is caught.

The long form, many more seeds, is in tests/proof. A failure names the seed: `run_locks(seed, ...)`
plays it again, event for event.
"""

from __future__ import annotations

import pytest

from strongroom.coordination.simulation.lock_scenario import VARIANTS, LockVariant, run_locks
from tests.coordination.lock_mutants import MUTANTS, first_kill

SEEDS = 4
MUTANT_SEEDS = 200


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_locks_hold_under_faults(variant: LockVariant) -> None:
    reports = [run_locks(seed, variant) for seed in range(SEEDS)]
    assert [report for report in reports if report.violations] == []
    assert sum(report.holds_count for report in reports) > SEEDS * 20
    if variant.name != "calm":
        assert sum(report.losses_count for report in reports) > 0
        # Even the right rules let late writes through: hence the fence at the resource.
        assert sum(report.stale_writes_count for report in reports) > 0


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_caught(name: str) -> None:
    report = first_kill(MUTANTS[name], MUTANT_SEEDS)
    assert report is not None, f"{name}: survived {MUTANT_SEEDS} seeds"


def test_a_seed_plays_the_same_again() -> None:
    assert run_locks(7, VARIANTS[0]) == run_locks(7, VARIANTS[0])
    assert run_locks(7, VARIANTS[0]) != run_locks(8, VARIANTS[0])
