"""2,000 seeds of a store with several gateways in the simulator.

Two gateways that could commit never have the same hold. No content is dropped under a live reader,
and quiet has its meaning.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.engines.membership_world import play

SEEDS = 2000


def test_it_holds_under_faults() -> None:
    with ProcessPoolExecutor(2) as pool:
        reports = list(pool.map(play, range(SEEDS), chunksize=20))
    assert len(reports) == SEEDS
    assert [report for report in reports if report.violations] == []
    totals: Counter[str] = Counter()
    for report in reports:
        totals.update(report.counts)
    print(f"membership: {SEEDS} seeds, {dict(totals)}")
