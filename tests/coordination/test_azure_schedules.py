"""Lease mode under faults: never two believers, fences rise, nobody stranded, no lease left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from strongroom.coordination.effects import CasOutcome, LeaseTerms
from strongroom.coordination.stores import azure_lease
from strongroom.coordination.stores.azure_lease import AzureLeaseStore
from tests.coordination.azure_world import run_schedule

SEEDS = 6
MUTANT_SEEDS = 40


@pytest.mark.parametrize("fair", [False, True])
def test_lease_mode_holds_under_faults(fair: bool) -> None:
    outcomes = {seed: run_schedule(seed, fair) for seed in range(SEEDS)}
    assert {seed: o.violations for seed, o in outcomes.items() if o.violations} == {}
    assert sum(outcome.holds_count for outcome in outcomes.values()) > SEEDS * 20
    assert sum(outcome.losses_count for outcome in outcomes.values()) > 0


def test_a_seed_plays_the_same_again() -> None:
    assert run_schedule(3) == run_schedule(3)
    assert run_schedule(3) != run_schedule(4)


def _keep_without_renewing(self: AzureLeaseStore, write: Any, lease: LeaseTerms) -> CasOutcome:
    return self._store(write, write.expected, azure_lease.lease_id(lease.nonce))


def _take_without_a_lease(self: AzureLeaseStore, write: Any, lease: LeaseTerms) -> CasOutcome:
    return self._plain(write)


def _end_without_release(self: AzureLeaseStore, write: Any, lease: LeaseTerms) -> CasOutcome:
    return self._store(write, write.expected, azure_lease.lease_id(lease.nonce))


MUTANTS: dict[str, Callable[[], Any]] = {
    "everybody proposes the same lease id": lambda: patch.object(
        azure_lease, "lease_id", lambda nonce: "the same"
    ),
    "renewing writes, and leaves the lease": lambda: patch.object(
        AzureLeaseStore, "_keep", _keep_without_renewing
    ),
    "taking writes, and leaves the lease": lambda: patch.object(
        AzureLeaseStore, "_take", _take_without_a_lease
    ),
    "giving back leaves the lease": lambda: patch.object(
        AzureLeaseStore, "_give", _end_without_release
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_store_is_caught(name: str) -> None:
    with MUTANTS[name]():
        assert any(run_schedule(seed).violations for seed in range(MUTANT_SEEDS)), name
