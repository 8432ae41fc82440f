"""Immutability policies and legal holds of blobs: which requests they refuse, how they may change.

Sources: "Set Blob Immutability Policy", "Set Blob Legal Hold", "Version-level WORM policies for
immutable blob data"; reference section 16.

| request                                        | hold, or policy in force | expired policy |
| ---------------------------------------------- | ------------------------ | -------------- |
| change of content, metadata or properties      | refused                  | refused        |
| overwrite that keeps nothing of the old state  | refused                  | refused        |
| deletion                                       | refused                  | allowed        |
| deletion that keeps the state as a version     | refused under a hold     | allowed        |
| tier, tags, lease, snapshot, staged blocks     | allowed                  | allowed        |

| policy            | until an earlier date | until a later date | Locked  | Unlocked | deleted |
| ----------------- | --------------------- | ------------------ | ------- | -------- | ------- |
| none, or unlocked | allowed               | allowed            | allowed | allowed  | allowed |
| locked            | refused               | allowed            | allowed | refused  | refused |
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from strongroom.account_switches import IMMUTABILITY_DAYS_MAX
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError, invalid_header
from strongroom.values import TICKS_PER_S, rfc1123

UNTIL_HEADER: Final = "x-ms-immutability-policy-until-date"
MODE_HEADER: Final = "x-ms-immutability-policy-mode"
HOLD_HEADER: Final = "x-ms-legal-hold"
UNLOCKED: Final = "Unlocked"
LOCKED: Final = "Locked"
_DAY_TICKS: Final = 24 * 60 * 60 * TICKS_PER_S


class Immutability(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The protection of one blob: a policy that ends at `until` (ticks, 0 = no policy) and may be
    `locked`, and a legal `hold`."""

    until: int = 0
    locked: bool = False
    hold: bool = False

    @property
    def mode(self) -> str:
        """The policy's mode as responses report it."""
        return "locked" if self.locked else "unlocked"


class Attempt(enum.Enum):
    CHANGE = "change"
    OVERWRITE = "overwrite"
    DELETE = "delete"


def require_permitted(protection: Immutability | None, attempt: Attempt, now: int) -> None:
    """`now` is store time in ticks."""
    if protection is None:
        return
    if protection.hold:
        raise StorageError(blob_errors.BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD)
    if protection.until > now or (protection.until and attempt is not Attempt.DELETE):
        raise StorageError(blob_errors.BLOB_IMMUTABLE_DUE_TO_POLICY)


def require_no_hold(protection: Immutability | None) -> None:
    """Refuse what a legal hold forbids even where the state would be kept as a version."""
    if protection is not None and protection.hold:
        raise StorageError(blob_errors.BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD)


def combined(one: Immutability | None, other: Immutability | None) -> Immutability | None:
    if one is None or other is None:
        return one or other
    until, locked = max((one.until, one.locked), (other.until, other.locked))
    return Immutability(until, locked, one.hold or other.hold)


def require_usable(until: int, now: int) -> None:
    """Refuse an end of a policy that has passed, or lies too far in the future."""
    if not now < until <= now + IMMUTABILITY_DAYS_MAX * _DAY_TICKS:
        reason = (
            f"The date must be in the future, and at most {IMMUTABILITY_DAYS_MAX} days from now."
        )
        raise invalid_header(UNTIL_HEADER, rfc1123(until), reason)


def with_policy(before: Immutability | None, until: int, locked: bool, now: int) -> Immutability:
    """The protection after a policy was set; a locked one is not shortened or unlocked."""
    require_usable(until, now)
    before = before or Immutability()
    if before.locked and (not locked or until < before.until):
        raise StorageError(
            blob_errors.BLOB_IMMUTABLE_DUE_TO_POLICY,
            "The immutability policy is locked: it can only be extended.",
        )
    return Immutability(until, locked, before.hold)


def without_policy(before: Immutability | None) -> Immutability | None:
    """The protection after the policy was deleted; None = no protection is left."""
    if before is None:
        return None
    if before.locked:
        raise StorageError(
            blob_errors.BLOB_IMMUTABLE_DUE_TO_POLICY,
            "The immutability policy is locked: it cannot be deleted.",
        )
    return with_hold(Immutability(), before.hold)


def with_hold(before: Immutability | None, hold: bool) -> Immutability | None:
    """The protection after the legal hold was set or cleared; None = no protection is left."""
    after = msgspec.structs.replace(before or Immutability(), hold=hold)
    return after if after.hold or after.until else None
