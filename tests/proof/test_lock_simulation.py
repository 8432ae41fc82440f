"""2,000 seeds of each kind of lock, and of each kind of line inside a client, in the simulator.

There are never two holders, fences rise, no client waits for ever, and nothing is left behind.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ProcessPoolExecutor

import pytest

from strongroom.coordination.simulation.local_queue_scenario import VARIANTS as QUEUE_VARIANTS
from strongroom.coordination.simulation.lock_scenario import (
    VARIANTS,
    LockReport,
    LockVariant,
    run_locks,
)
from strongroom.coordination.simulation.play import play

SEEDS = 2000
LINES = [variant.name for variant in QUEUE_VARIANTS]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_locks_hold_under_faults(variant: LockVariant) -> None:
    with ProcessPoolExecutor(2) as pool:
        reports: list[LockReport] = list(
            pool.map(run_locks, range(SEEDS), itertools.repeat(variant), chunksize=50)
        )
    assert [report for report in reports if report.violations] == []
    print(
        f"{variant.name}: {SEEDS} seeds, {sum(r.events_count for r in reports):,} events,"
        f" {sum(r.holds_count for r in reports):,} holds,"
        f" {sum(r.losses_count for r in reports):,} lost,"
        f" {sum(r.stale_writes_count for r in reports):,} late writes refused by the fence"
    )


@pytest.mark.parametrize("name", LINES)
def test_callers_of_one_client_queue_under_faults(name: str) -> None:
    with ProcessPoolExecutor(2) as pool:
        played = list(pool.map(play, range(SEEDS), itertools.repeat(name), chunksize=20))
    reports = list(itertools.chain.from_iterable(played))
    assert len(reports) == SEEDS
    assert [report for report in reports if report.violations] == []
    print(f"{name}: {SEEDS} seeds, {sum(r.events_count for r in reports):,} events")
