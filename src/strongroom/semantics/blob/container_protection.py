"""Time-based policies and legal holds of containers: their effect on a blob, and how they may
change.

Which requests a protection refuses: immutability.py. Where it is stored: account_switches.py.
Source: "Container-level WORM policies for immutable blob data", "Legal holds for immutable blob
data".

| policy   | longer          | shorter | locked  | removed | appends switched |
| -------- | --------------- | ------- | ------- | ------- | ---------------- |
| unlocked | allowed         | allowed | allowed | allowed | allowed          |
| locked   | allowed 5 times | refused | no-op   | refused | refused          |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from strongroom.account_switches import EXTENSIONS_MAX, ContainerProtection
from strongroom.semantics.blob.immutability import Immutability
from strongroom.values import TICKS_PER_S, BlobKind

NOTHING: Final = ContainerProtection()
_DAY_TICKS: Final = 24 * 60 * 60 * TICKS_PER_S


class ProtectionError(ValueError):
    """A protection that is invalid, or that the current protection may not be changed to."""


def of_state(
    protection: ContainerProtection, kind: BlobKind, created: int, modified: int
) -> Immutability:
    """The container's protection for one state of a blob.

    The policy counts from the blob's creation. If appends are permitted, it counts from the last
    change of an append blob. `created` and `modified` are ticks.
    """
    until = 0
    if protection.retention_days:
        begun = modified if protection.appends and kind is BlobKind.APPEND else created
        until = begun + protection.retention_days * _DAY_TICKS
    return Immutability(until, protection.locked, bool(protection.holds))


def with_retention(
    before: ContainerProtection, days: int | None, lock: bool, appends: bool | None
) -> ContainerProtection:
    """The protection after a policy was set, extended, or locked.

    Arguments:
        days: None = unchanged.
        appends: whether Append Block is permitted; None = unchanged.
    """
    days = before.retention_days if days is None else days
    appends = before.appends if appends is None else appends
    extensions = before.extensions
    if before.locked:
        if days < before.retention_days:
            raise ProtectionError("the policy is locked: it can only be extended")
        if appends != before.appends:
            raise ProtectionError("the policy is locked: appends cannot be switched any more")
        extensions += days > before.retention_days
        if extensions > EXTENSIONS_MAX:
            text = f"the locked policy was extended {EXTENSIONS_MAX} times: no more is possible"
            raise ProtectionError(text)
    return _checked(
        msgspec.structs.replace(
            before,
            retention_days=days,
            locked=before.locked or lock,
            extensions=extensions,
            appends=appends,
        )
    )


def without_retention(before: ContainerProtection) -> ContainerProtection:
    if before.locked:
        raise ProtectionError("the policy is locked: it cannot be removed")
    return msgspec.structs.replace(before, retention_days=0, extensions=0)


def with_holds(before: ContainerProtection, tags: Iterable[str]) -> ContainerProtection:
    added = (tag.lower() for tag in tags)
    return _checked(
        msgspec.structs.replace(before, holds=tuple(dict.fromkeys((*before.holds, *added))))
    )


def without_holds(before: ContainerProtection, tags: Iterable[str]) -> ContainerProtection:
    removed = {tag.lower() for tag in tags}
    missing = removed.difference(before.holds)
    if missing:
        raise ProtectionError(f"there is no legal hold {min(missing)!r}")
    left = tuple(tag for tag in before.holds if tag not in removed)
    return msgspec.structs.replace(before, holds=left)


def _checked(protection: ContainerProtection) -> ContainerProtection:
    problem = protection.problem()
    if problem is not None:
        raise ProtectionError(problem)
    return protection
