"""The retention of deleted resources: when it ends, and how many days are left.

Source: "Soft delete for blobs", "Soft delete for containers": 1 to 365 days, counted from the
deletion with the retention in force then.
"""

from __future__ import annotations

from typing import Final

from strongroom.values import TICKS_PER_S

DAY_TICKS: Final = 24 * 60 * 60 * TICKS_PER_S


def retention_end(deleted: int, days: int) -> int:
    """The tick from which on a resource deleted at the tick `deleted` cannot be restored."""
    return deleted + days * DAY_TICKS


def remaining_days(until: int, now: int) -> int:
    """RemainingRetentionDays: a partial day counts as a whole one (unverified)."""
    return max(0, -((now - until) // DAY_TICKS))
