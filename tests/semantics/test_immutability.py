"""Immutability policies and legal holds: which requests they refuse, and how they may change."""

from __future__ import annotations

import pytest

from strongroom.account_switches import IMMUTABILITY_DAYS_MAX
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import immutability as rules
from strongroom.semantics.blob.immutability import Attempt, Immutability
from strongroom.values import TICKS_PER_S

NOW = 1000 * TICKS_PER_S
DAY = 24 * 60 * 60 * TICKS_PER_S
POLICY, HOLD = "BlobImmutableDueToPolicy", "BlobImmutableDueToLegalHold"
IN_FORCE, EXPIRED = Immutability(NOW + 1), Immutability(NOW)


def code(attempt: object) -> str | None:
    """Return the code of a refusal; None without one."""
    try:
        assert callable(attempt)
        attempt()
    except StorageError as error:
        return error.row.code
    return None


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize(
    ("protection", "change", "overwrite", "delete"),
    [
        (None, None, None, None),
        (IN_FORCE, POLICY, POLICY, POLICY),
        (EXPIRED, POLICY, POLICY, None),
        (Immutability(hold=True), HOLD, HOLD, HOLD),
        (Immutability(NOW + 1, hold=True), HOLD, HOLD, HOLD),
        (Immutability(NOW, hold=True), HOLD, HOLD, HOLD),
    ],
)
def test_what_a_protection_refuses(
    protection: Immutability | None,
    change: str | None,
    overwrite: str | None,
    delete: str | None,
    locked: bool,
) -> None:
    """B-IMM-11, B-IMM-12, B-IMM-13: for every attempt and state."""
    if protection is not None:
        protection = Immutability(protection.until, locked, protection.hold)
    wanted = {Attempt.CHANGE: change, Attempt.OVERWRITE: overwrite, Attempt.DELETE: delete}
    assert set(wanted) == set(Attempt)
    for act, answer in wanted.items():
        assert code(lambda act=act: rules.require_permitted(protection, act, NOW)) == answer


@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize(
    ("before", "until", "locked", "refusal"),
    [
        (None, NOW + 5, False, None),
        (None, NOW + 5, True, None),
        ((NOW + 9, False), NOW + 5, False, None),
        ((NOW + 9, False), NOW + 5, True, None),
        ((NOW + 9, False), NOW + 10, True, None),
        ((NOW + 9, True), NOW + 10, True, None),
        ((NOW + 9, True), NOW + 9, True, None),
        ((NOW + 9, True), NOW + 8, True, POLICY),
        ((NOW + 9, True), NOW + 10, False, POLICY),
        ((NOW - 9, True), NOW + 10, False, POLICY),
        ((NOW - 9, True), NOW + 10, True, None),
        (None, NOW, False, "InvalidHeaderValue"),
        (None, NOW - 1, True, "InvalidHeaderValue"),
        (None, NOW + IMMUTABILITY_DAYS_MAX * DAY, False, None),
        (None, NOW + IMMUTABILITY_DAYS_MAX * DAY + 1, False, "InvalidHeaderValue"),
    ],
)
def test_how_a_policy_is_set(
    before: tuple[int, bool] | None, until: int, locked: bool, refusal: str | None, hold: bool
) -> None:
    """B-IMM-04, B-IMM-06."""
    protection = None if before is None else Immutability(*before, hold)
    if refusal is not None:
        assert code(lambda: rules.with_policy(protection, until, locked, NOW)) == refusal
        return
    kept = hold and protection is not None
    assert rules.with_policy(protection, until, locked, NOW) == Immutability(until, locked, kept)


def test_how_a_policy_is_deleted() -> None:
    """B-IMM-06, B-IMM-07: a hold stays, and so does a locked policy."""
    assert rules.without_policy(None) is None
    assert rules.without_policy(IN_FORCE) is None
    held = Immutability(hold=True)
    assert rules.without_policy(held) == held
    assert rules.without_policy(Immutability(NOW + 1, False, True)) == held
    for until in (NOW - 1, NOW + 1):
        assert code(lambda until=until: rules.without_policy(Immutability(until, True))) == POLICY


def test_how_a_hold_is_set_and_cleared() -> None:
    """B-IMM-08: a policy stays."""
    assert rules.with_hold(None, True) == Immutability(hold=True)
    assert rules.with_hold(None, False) is None
    assert rules.with_hold(Immutability(hold=True), False) is None
    assert rules.with_hold(Immutability(NOW, True, True), False) == Immutability(NOW, True)
    assert rules.with_hold(Immutability(NOW, True), True) == Immutability(NOW, True, True)
