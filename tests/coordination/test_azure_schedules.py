"""Lease mode under faults: never two holders, rising fences, no stuck client, no lease left."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from strongroom.coordination.effects import CasOutcome, LeaseTerms
from strongroom.coordination.stores.azure import lease as azure_lease
from strongroom.coordination.stores.azure.etag import HELD_STATES
from strongroom.coordination.stores.azure.lease import AzureLeaseStore
from tests.coordination.azure_world import run_schedule

SEEDS = 3
MUTANT_SEEDS = 40


@pytest.mark.parametrize("fair", [False, True])
def test_lease_mode_holds_under_faults(fair: bool) -> None:
    outcomes = {seed: run_schedule(seed, fair) for seed in range(SEEDS)}
    assert {seed: o.violations for seed, o in outcomes.items() if o.violations} == {}
    assert sum(outcome.holds_count for outcome in outcomes.values()) > SEEDS * 20
    assert sum(outcome.losses_count for outcome in outcomes.values()) > 0


@pytest.mark.parametrize("fair", [False, True])
def test_each_mode_honours_the_holds_of_the_other(fair: bool) -> None:
    outcome = run_schedule(0, fair, mixed=True)
    assert outcome.violations == []
    assert outcome.holds_count > 20


def test_a_seed_plays_the_same_again() -> None:
    assert run_schedule(3) == run_schedule(3)
    assert run_schedule(3) != run_schedule(4)


def _keep_without_renewing(self: AzureLeaseStore, write: Any, lease: LeaseTerms) -> CasOutcome:
    return self._store(write, write.expected, azure_lease.lease_id(lease.nonce))


def _take_without_a_lease(self: AzureLeaseStore, write: Any, lease: LeaseTerms) -> CasOutcome:
    return self._write_keeping_hold(write)


def _end_without_release(self: AzureLeaseStore, write: Any, lease: LeaseTerms) -> CasOutcome:
    return self._store(write, write.expected, azure_lease.lease_id(lease.nonce))


MUTANTS: dict[str, Callable[[], Any]] = {
    "everybody proposes the same lease id": lambda: patch.object(
        azure_lease, "lease_id", lambda nonce: "the same"
    ),
    "renewing writes, and leaves the lease": lambda: patch.object(
        AzureLeaseStore, "_renew", _keep_without_renewing
    ),
    "taking writes, and leaves the lease": lambda: patch.object(
        AzureLeaseStore, "_acquire", _take_without_a_lease
    ),
    "giving back leaves the lease": lambda: patch.object(
        AzureLeaseStore, "_release", _end_without_release
    ),
}


def _what_is_not_leased_is_free(self: AzureLeaseStore, answer: Any) -> float:
    return math.inf if answer.header("x-ms-lease-state") in HELD_STATES else 0.0


def test_taking_what_is_held_in_the_other_mode_is_caught() -> None:
    with patch.object(AzureLeaseStore, "_expires_in_s", _what_is_not_leased_is_free):
        assert any(
            "two believe" in violation
            for seed in range(MUTANT_SEEDS)
            for violation in run_schedule(seed, mixed=True).violations
        )


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_store_is_caught(name: str) -> None:
    with MUTANTS[name]():
        assert any(run_schedule(seed).violations for seed in range(MUTANT_SEEDS)), name
