"""Set Blob Tier.

Lives here: the decision on a blob, a snapshot or a version. Source: "Set Blob Tier"; reference
section 11.
"""

from __future__ import annotations

import msgspec

from strongroom.semantics.blob import tiers
from strongroom.services.blob.decisions import changing
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.decisions.rehydration import RehydrationDelays, as_of, new_rehydration
from strongroom.services.blob.states.heads import refuse_incremental, refuse_pending_copy
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.blob.blob_records import BlobRecord


class SetTier(msgspec.Struct, frozen=True):
    tier: str
    priority: str = tiers.STANDARD


class TierSet(msgspec.Struct, frozen=True):
    """Whether the blob leaves the archive tier, now or later."""

    left_archive: bool


async def set_tier(services: Services, call: Call[SetTier]) -> TierSet:
    """ETag, Last-Modified and the lease do not change."""
    delay = services.held.of(RehydrationDelays).ticks(call.input.priority)
    return await changing.change_blob(
        services, call, lambda state, change: _set(call, delay, state, change)
    )


def _set(call: Call[SetTier], delay: int, state: BlobState, change: BlobChange) -> TierSet:
    named, tier = state.named, call.input.tier
    assert named is not None
    refuse_pending_copy(named)
    refuse_incremental(named)
    tiers.check_given(named.kind, tier, named.size_bytes, named.tier)
    change.put_state(state.past, named, _tiered(named, call.input, delay, change.stamp))
    return TierSet(tiers.leaves_archive(named.tier, tier))


def _tiered(named: BlobRecord, request: SetTier, delay: int, now: int) -> BlobRecord:
    """Return the record with its new tier, or with the rehydration that leads to it."""
    tier, priority, pending = request.tier, request.priority, named.rehydration
    if pending is not None:
        pending = tiers.after_repeated_set_tier(pending, tier, priority, now + delay)
    elif tiers.leaves_archive(named.tier, tier):
        pending = new_rehydration(tier, priority, delay, now)
    if pending is not None:
        return as_of(msgspec.structs.replace(named, rehydration=pending), now)
    return msgspec.structs.replace(named, tier=tier, tier_changed=now)
