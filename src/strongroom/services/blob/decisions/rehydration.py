"""Rehydration: the time that an archived blob takes to become readable again.

Lives here: the duration on this server, and a blob's record as of a given time. Source: "Rehydrate
an archived blob to an online tier"; reference section 11.

The record contains the end of the rehydration. Readers apply `as_of` first, so the end needs no
background job, and a restart changes nothing.
"""

from __future__ import annotations

import msgspec

from strongroom.semantics.blob.tiers import HIGH, Rehydration
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.values import TICKS_PER_S


class RehydrationDelays(msgspec.Struct, frozen=True):
    """The durations of rehydrations on this server, by priority."""

    standard_s: float = 0.0
    high_s: float = 0.0

    def ticks(self, priority: str) -> int:
        """In ticks; 0 = the rehydration ends at once."""
        seconds = self.high_s if priority == HIGH else self.standard_s
        return int(seconds * TICKS_PER_S)


def as_of(blob: BlobRecord, now: int) -> BlobRecord:
    """Return the record as of `now`: a rehydration that has ended is applied as the new tier."""
    pending = blob.rehydration
    if pending is None or pending.until > now:
        return blob
    return msgspec.structs.replace(
        blob, tier=pending.tier, tier_changed=pending.until, rehydration=None
    )


def new_rehydration(tier: str, priority: str, delay: int, now: int) -> Rehydration | None:
    """None when it ends at once."""
    return Rehydration(tier, priority, now + delay) if delay else None
