"""Callers of one client queue inside it, in simulated time under faults; wrong rules are caught.

A failure names the seed: `run_local_queue(seed, ...)` plays it again, event for event.
"""

from __future__ import annotations

from collections import Counter

import pytest

from strongroom.coordination.simulation.local_queue_scenario import VARIANTS, run_local_queue
from strongroom.coordination.simulation.lock_scenario import LockVariant
from tests.coordination.local_queue_mutants import MUTANTS, first_kill

SEEDS = 4
MUTANT_SEEDS = 100


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_callers_of_one_client_queue_under_faults(variant: LockVariant) -> None:
    reports = [run_local_queue(seed, variant) for seed in range(SEEDS)]
    assert [report for report in reports if report.violations] == []
    totals: Counter[str] = Counter()
    for report in reports:
        totals.update(dict(report.counts))
    assert totals["holds"] > SEEDS * 100
    assert totals["in line"] > totals["holds"] / 2
    assert (totals["lost"] > 0) is (variant.name != "local-queue-calm")


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_caught(name: str) -> None:
    report = first_kill(MUTANTS[name], MUTANT_SEEDS)
    assert report is not None, f"{name}: survived {MUTANT_SEEDS} seeds"


def test_a_seed_plays_the_same_again() -> None:
    assert run_local_queue(7, VARIANTS[0]) == run_local_queue(7, VARIANTS[0])
    assert run_local_queue(7, VARIANTS[0]) != run_local_queue(8, VARIANTS[0])
