"""Lease mode in virtual time, alone and beside etag mode, at length: 500 seeds, with and without a
fair queue."""

from __future__ import annotations

import pytest

from tests.coordination.azure_world import run_schedule

SEEDS = 500


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mixed", [False, True], ids=["alone", "mixed"])
@pytest.mark.parametrize("fair", [False, True])
def test_lease_mode_holds_under_faults(fair: bool, mixed: bool) -> None:
    seeds = range(1000, 1000 + SEEDS)
    violations = {seed: run_schedule(seed, fair, mixed).violations for seed in seeds}
    assert {seed: found for seed, found in violations.items() if found} == {}
