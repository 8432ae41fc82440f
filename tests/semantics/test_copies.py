"""Copies: their states, and the requests that a pending one refuses."""

from __future__ import annotations

import pytest

from strongroom.semantics.blob.copies import require_infinite_lease
from strongroom.semantics.core import copies
from strongroom.semantics.core.copies import Copy, CopyStatus
from strongroom.values import TICKS_PER_S, Lease
from tests.refusals import outcome

NOW = 638_000_000_000_000_000
PENDING = copies.started("abc", "http://source", 100)
DONE = copies.succeeded(PENDING, NOW)
FAILED = copies.failed(copies.advanced(PENDING, 7), "404 BlobNotFound", NOW)
ABORTED = copies.aborted(PENDING, "ABC", NOW)

STATES: list[tuple[Copy, CopyStatus, str, int]] = [
    (PENDING, CopyStatus.PENDING, "0/100", 0),
    (copies.advanced(PENDING, 40), CopyStatus.PENDING, "40/100", 0),
    (copies.advanced(copies.advanced(PENDING, 40), 30), CopyStatus.PENDING, "40/100", 0),
    (copies.advanced(PENDING, 400), CopyStatus.PENDING, "100/100", 0),
    (DONE, CopyStatus.SUCCESS, "100/100", NOW),
    (FAILED, CopyStatus.FAILED, "7/100", NOW),
    (ABORTED, CopyStatus.ABORTED, "0/100", NOW),
]


@pytest.mark.parametrize(("copy", "status", "progress", "completed"), STATES)
def test_states(copy: Copy, status: CopyStatus, progress: str, completed: int) -> None:
    assert copy.status is status
    assert copies.progress_text(copy) == progress
    assert copy.completed == completed
    assert copies.is_pending(copy) is (status is CopyStatus.PENDING)


@pytest.mark.parametrize("copy", [None, DONE, FAILED, ABORTED])
def test_only_a_pending_copy_can_be_aborted_and_forbids(copy: Copy | None) -> None:
    assert outcome(lambda: copies.aborted(copy, "abc", NOW)) == "409 NoPendingCopyOperation"
    assert outcome(lambda: copies.require_none_pending(copy)) == "ok"


def test_a_pending_copy_forbids_and_is_aborted_by_its_own_id_only() -> None:
    assert outcome(lambda: copies.require_none_pending(PENDING)) == "409 PendingCopyOperation"
    assert outcome(lambda: copies.aborted(PENDING, "other", NOW)) == "409 CopyIdMismatch"


def test_why_a_copy_failed_is_kept() -> None:
    assert FAILED.description == "404 BlobNotFound"


LEASES = [
    (None, "ok"),
    (Lease("a", -1), "ok"),
    (Lease("a", 60, NOW + TICKS_PER_S), "412 InfiniteLeaseDurationRequired"),
    (Lease("a", 60, NOW + 9, NOW + 9), "412 InfiniteLeaseDurationRequired"),
    (Lease("a", 60, NOW), "ok"),
    (Lease("a", 60, NOW + 9, NOW), "ok"),
]


@pytest.mark.parametrize(("lease", "expected"), LEASES)
def test_a_destination_must_not_have_a_lease_that_ends(lease: Lease | None, expected: str) -> None:
    assert outcome(lambda: require_infinite_lease(lease, NOW)) == expected
