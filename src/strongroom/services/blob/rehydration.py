"""Rehydration: the time that an archived blob takes to become readable again.

Lives here: how long that is on this server, and a blob's record as of a moment. Must not live here:
which tiers there are and what they refuse (semantics/blob/tiers.py), Set Blob Tier
(tiers/tiering.py). Source: "Rehydrate an archived blob to an online tier"; reference section 11.

The record says when a rehydration ends. Whoever reads it settles it first, so the end needs no work
of its own, and a restart changes nothing.
"""

from __future__ import annotations

import msgspec

from strongroom.semantics.blob.tiers import HIGH, Rehydration
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.values import TICKS_PER_S


class RehydrationDelays:
    """How long rehydrations take on this server, by priority."""

    standard_s: float = 0.0
    high_s: float = 0.0

    def ticks(self, priority: str) -> int:
        """The time of one of this priority; 0 = it ends at once."""
        seconds = self.high_s if priority == HIGH else self.standard_s
        return int(seconds * TICKS_PER_S)


def settled(blob: BlobRecord, now: int) -> BlobRecord:
    """The record as of `now`: what was rehydrated until then has its new tier."""
    pending = blob.rehydration
    if pending is None or pending.until > now:
        return blob
    return msgspec.structs.replace(
        blob, tier=pending.tier, tier_changed=pending.until, rehydration=None
    )


def begun(tier: str, priority: str, delay: int, now: int) -> Rehydration | None:
    """The rehydration to a tier; None when it ends at once."""
    return Rehydration(tier, priority, now + delay) if delay else None
