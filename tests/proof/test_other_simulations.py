"""2,000 seeds each of ids, gates and registers in the simulator.

No id is repeated, no gate goes back, no waiter is stuck, every history of a register is
linearizable.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.coordination.test_other_simulations import PLAYED

SEEDS = 2000


@pytest.mark.parametrize("name", PLAYED)
def test_it_holds_under_faults(name: str) -> None:
    totals: Counter[str] = Counter()
    for seed in range(SEEDS):
        report = PLAYED[name](seed)
        assert report.violations == (), report
        totals.update(dict(report.counts))
    print(f"{name}: {SEEDS} seeds, {dict(totals)}")
