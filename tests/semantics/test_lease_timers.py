"""Leases and time: expiry, break periods, renewal, the effect of writes, reported values."""

from __future__ import annotations

import pytest

from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.lease import LeaseState
from strongroom.values import TICKS_PER_S, Lease
from tests.refusals import outcome

A = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
B = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
NOW = 638_000_000_000_000_000
S = TICKS_PER_S


@pytest.mark.parametrize("duration_s", [15, 60])
def test_a_fixed_lease_ends_at_its_tick_and_not_before(duration_s: int) -> None:
    lease = leases.acquire(None, duration_s, A, B, NOW)
    end = NOW + duration_s * S
    assert leases.state(lease, end - 1) is LeaseState.LEASED
    assert leases.state(lease, end) is LeaseState.EXPIRED
    assert leases.next_timed_change(lease, NOW) == end
    assert leases.next_timed_change(lease, end) is None


def test_an_infinite_lease_never_ends() -> None:
    lease = leases.acquire(None, -1, None, B, NOW)
    assert lease == Lease(B, -1)
    assert leases.state(lease, 1 << 62) is LeaseState.LEASED
    assert leases.next_timed_change(lease, NOW) is None


def test_renewal_starts_the_clock_again_with_the_same_duration() -> None:
    lease = leases.acquire(None, 15, A, B, NOW)
    assert leases.renew(lease, A, NOW + 14 * S).expires == NOW + 29 * S
    assert leases.renew(lease, A, NOW + 100 * S).expires == NOW + 115 * S


def test_acquiring_again_sets_a_new_duration() -> None:
    lease = leases.acquire(None, 60, A, B, NOW)
    assert leases.acquire(lease, 15, A, B, NOW + S) == Lease(A, 15, NOW + 16 * S)
    assert leases.acquire(lease, -1, A, B, NOW + S) == Lease(A, -1)


def test_a_change_keeps_the_expiry() -> None:
    lease = leases.acquire(None, 60, A, B, NOW)
    assert leases.change(lease, A, B, NOW + 30 * S) == Lease(B, 60, NOW + 60 * S)


# The lease, the requested period, x-ms-lease-time, seconds until it is broken.
BREAKS = [
    (Lease(A, -1), None, 0, 0),
    (Lease(A, -1), 0, 0, 0),
    (Lease(A, -1), 25, 25, 25),
    (Lease(A, 60, NOW + 40 * S), None, 40, 40),
    (Lease(A, 60, NOW + 40 * S), 10, 10, 10),
    (Lease(A, 60, NOW + 40 * S), 60, 40, 40),
    (Lease(A, 60, NOW + 40 * S - 1), None, 40, 40),
    (Lease(A, 60, NOW + 1), 60, 1, 1),
    (Lease(A, -1, 0, NOW + 20 * S), 10, 10, 10),
    (Lease(A, -1, 0, NOW + 20 * S), 30, 20, 20),
    (Lease(A, -1, 0, NOW + 20 * S), None, 20, 20),
    (Lease(A, -1, 0, NOW + 20 * S), 0, 0, 0),
    (Lease(A, -1, 0, NOW - S), 30, 0, 0),
    (Lease(A, 15, NOW - S), 30, 0, 0),
]


@pytest.mark.parametrize(("lease", "period_s", "lease_time_s", "broken_after_s"), BREAKS)
def test_break_periods(
    lease: Lease, period_s: int | None, lease_time_s: int, broken_after_s: int
) -> None:
    broken, seen_s = leases.break_(lease, period_s, NOW)
    assert seen_s == lease_time_s
    assert leases.state(broken, NOW + broken_after_s * S) is LeaseState.BROKEN
    if broken_after_s:
        assert leases.state(broken, NOW) is LeaseState.BREAKING
        end = leases.next_timed_change(broken, NOW)
        assert end is not None
        assert leases.state(broken, end - 1) is LeaseState.BREAKING
        assert leases.state(broken, end) is LeaseState.BROKEN


def test_a_write_clears_what_is_over_and_keeps_what_is_held() -> None:
    held, breaking = Lease(A, 15, NOW + 1), Lease(A, -1, 0, NOW + 1)
    assert leases.after_write(held, NOW) is held
    assert leases.after_write(breaking, NOW) is breaking
    for over in (None, Lease(A, 15, NOW), Lease(A, -1, 0, NOW)):
        assert leases.after_write(over, NOW) is None
    cleared = leases.after_write(Lease(A, 15, NOW), NOW)
    renewal = outcome(lambda: leases.renew(cleared, A, NOW))
    assert renewal == "409 LeaseIdMismatchWithLeaseOperation"


def test_the_duration_is_reported_only_while_leased() -> None:
    assert leases.reported_duration(Lease(A, -1), NOW) == "infinite"
    assert leases.reported_duration(Lease(A, 15, NOW + 1), NOW) == "fixed"
    for other in (None, Lease(A, 15, NOW), Lease(A, -1, 0, NOW + 1), Lease(A, -1, 0, NOW)):
        assert leases.reported_duration(other, NOW) is None


@pytest.mark.parametrize("duration_s", [-1, 15, 16, 59, 60])
def test_durations_that_are_allowed(duration_s: int) -> None:
    assert leases.require_duration(duration_s) == duration_s


@pytest.mark.parametrize("duration_s", [-2, 0, 1, 14, 61, 10**9])
def test_durations_that_are_not(duration_s: int) -> None:
    assert outcome(lambda: leases.require_duration(duration_s)) == "400 InvalidHeaderValue"


@pytest.mark.parametrize("fresh_id", [None, ""])
def test_there_is_no_lease_without_an_id(fresh_id: str | None) -> None:
    with pytest.raises(AssertionError, match="a lease has an id"):
        leases.acquire(None, 15, None, fresh_id, NOW)
