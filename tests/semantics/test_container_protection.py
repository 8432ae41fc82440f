"""Policies and legal holds of containers: their effect on a blob, and how they may change."""

from __future__ import annotations

import pytest

from strongroom.account_switches import ContainerProtection
from strongroom.semantics.blob import container_protection as rules
from strongroom.semantics.blob.container_protection import NOTHING, ProtectionError
from strongroom.semantics.blob.immutability import Immutability, combined
from strongroom.values import TICKS_PER_S, BlobKind

DAY = 24 * 60 * 60 * TICKS_PER_S
UNLOCKED = ContainerProtection(7)
LOCKED = ContainerProtection(7, True)


@pytest.mark.parametrize("kind", list(BlobKind))
@pytest.mark.parametrize("appends", [False, True])
def test_what_it_is_for_a_blob(kind: BlobKind, appends: bool) -> None:
    """B-IMM-22, B-IMM-27: the policy counts from creation, or from the last change if appends are
    permitted."""
    protection = ContainerProtection(7, holds=("case",), appends=appends)
    begun = 500 if appends and kind is BlobKind.APPEND else 100
    assert rules.of_state(protection, kind, 100, 500) == Immutability(begun + 7 * DAY, hold=True)
    assert rules.of_state(ContainerProtection(holds=("case",)), kind, 100, 500).until == 0


@pytest.mark.parametrize(
    ("before", "days", "lock", "appends", "after"),
    [
        (NOTHING, 7, False, None, UNLOCKED),
        (NOTHING, 7, True, None, LOCKED),
        (UNLOCKED, 3, False, None, ContainerProtection(3)),
        (UNLOCKED, 9, True, True, ContainerProtection(9, True, appends=True)),
        (UNLOCKED, None, True, None, LOCKED),
        (LOCKED, 8, False, None, ContainerProtection(8, True, 1)),
        (LOCKED, 7, True, False, LOCKED),
        (ContainerProtection(7, True, 4), 8, False, None, ContainerProtection(8, True, 5)),
        (ContainerProtection(7, True, 5), 7, False, None, ContainerProtection(7, True, 5)),
        (ContainerProtection(7, True, 5), 8, False, None, None),
        (LOCKED, 6, False, None, None),
        (LOCKED, None, False, True, None),
        (NOTHING, None, True, None, None),
        (NOTHING, 146_000, False, None, ContainerProtection(146_000)),
        (NOTHING, 146_001, False, None, None),
    ],
)
def test_how_a_policy_is_set(
    before: ContainerProtection,
    days: int | None,
    lock: bool,
    appends: bool | None,
    after: ContainerProtection | None,
) -> None:
    """B-IMM-26, B-IMM-27, B-IMM-30."""
    if after is None:
        with pytest.raises(ProtectionError):
            rules.with_retention(before, days, lock, appends)
    else:
        assert rules.with_retention(before, days, lock, appends) == after


def test_how_a_policy_is_removed() -> None:
    """B-IMM-26: a locked one cannot be removed; holds stay."""
    held = ContainerProtection(7, holds=("case",))
    assert rules.without_retention(held) == ContainerProtection(holds=("case",))
    with pytest.raises(ProtectionError):
        rules.without_retention(LOCKED)


def test_how_holds_are_set_and_cleared() -> None:
    """B-IMM-21, B-IMM-30."""
    both = rules.with_holds(LOCKED, ["Case1", "case2", "case1"])
    assert both == ContainerProtection(7, True, holds=("case1", "case2"))
    assert rules.without_holds(both, ["CASE1"]).holds == ("case2",)
    assert rules.without_holds(both, ["case2", "case1"]) == LOCKED
    for wrong in (["no"], ["x" * 24], ["a-b"], [""], ["größe"], [f"tag{n}" for n in range(11)]):
        with pytest.raises(ProtectionError):
            rules.with_holds(NOTHING, wrong)
    with pytest.raises(ProtectionError):
        rules.without_holds(both, ["case1", "case3"])


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (None, None, None),
        (None, Immutability(5), Immutability(5)),
        (Immutability(5), None, Immutability(5)),
        (Immutability(5, True), Immutability(9), Immutability(9)),
        (Immutability(9), Immutability(5, hold=True), Immutability(9, hold=True)),
        (Immutability(hold=True), Immutability(5), Immutability(5, hold=True)),
    ],
)
def test_two_protections_of_one_state(
    one: Immutability | None, other: Immutability | None, both: Immutability | None
) -> None:
    """B-IMM-24."""
    assert combined(one, other) == both == combined(other, one)
