"""Members hold under simulated faults; wrong rules are caught.

A failure names the seed: `run_members(seed)` plays it again, event for event.
"""

from __future__ import annotations

from collections import Counter

import pytest

from strongroom.coordination.simulation.members_scenario import FAULTS, run_members
from strongroom.coordination.simulation.world import Faults
from tests.coordination.member_mutants import EXACT, MUTANTS, first_kill

SEEDS = 2
MUTANT_SEEDS = 150


@pytest.mark.parametrize("faults", [FAULTS, EXACT], ids=["bad clocks", "no time to spare"])
def test_members_hold_under_faults(faults: Faults) -> None:
    reports = [run_members(seed, None, faults) for seed in range(SEEDS)]
    assert [report for report in reports if report.violations] == []
    totals: Counter[str] = Counter()
    for report in reports:
        totals.update(dict(report.counts))
    assert set(totals) == {"joined", "left", "lost", "updated"}
    assert min(totals.values()) > SEEDS * 5


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_caught(name: str) -> None:
    report = first_kill(MUTANTS[name], MUTANT_SEEDS)
    assert report is not None, f"{name}: survived {MUTANT_SEEDS} seeds"


def test_a_seed_plays_the_same_again() -> None:
    assert run_members(7) == run_members(7)
    assert run_members(7) != run_members(8)
