"""2,000 seeds each of semaphores, read-write locks, barriers and members in the simulator.

The permits are never exceeded, all parties of a barrier proceed or none, and every believed member
is one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import pytest

from strongroom.coordination.simulation.play import play
from strongroom.coordination.simulation.slots_scenario import VARIANTS

SEEDS = 2000
SCENARIOS = [*(variant.name for variant in VARIANTS), "barrier", "barrier-polled", "members"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_holds_under_faults(name: str) -> None:
    with ProcessPoolExecutor(2) as pool:
        played = list(pool.map(play, range(SEEDS), itertools.repeat(name), chunksize=20))
    reports = list(itertools.chain.from_iterable(played))
    assert len(reports) == SEEDS
    assert [report for report in reports if report.violations] == []
    totals: Counter[str] = Counter()
    for report in reports:
        totals.update(dict(report.counts))
    print(f"{name}: {SEEDS} seeds, {dict(totals)}")
