"""Set Blob Tier.

Lives here: the decision on a blob, a snapshot or a version. Must not live here: which tiers there
are and what they refuse (semantics/blob/tiers.py). Source: "Set Blob Tier"; reference section 11.
An archived blob can be read at once after it has left that tier, so no blob is ever being
rehydrated.
"""

from __future__ import annotations

import msgspec

from strongroom.semantics.blob import tiers
from strongroom.services.blob import access
from strongroom.services.blob.access import BlobState
from strongroom.services.blob.changes import BlobChange
from strongroom.services.blob.heads import refuse_incremental, refuse_pending_copy
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services


class SetTier(msgspec.Struct, frozen=True):
    """Input of Set Blob Tier: one of block blobs, or of page blobs."""

    tier: str


class TierSet(msgspec.Struct, frozen=True):
    """Result of Set Blob Tier: whether the blob has left the archive tier."""

    left_archive: bool


async def set_tier(services: Services, call: Call[SetTier]) -> TierSet:
    """Set Blob Tier. ETag, Last-Modified and the lease stay as they are.

    Raises: StorageError AccessTierNotSupportedForBlobType, PendingCopyOperation, and what
        guard_blob raises.
    """
    return await access.change_blob(services, call, lambda state, change: _set(call, state, change))


def _set(call: Call[SetTier], state: BlobState, change: BlobChange) -> TierSet:
    named, tier = state.named, call.input.tier
    assert named is not None
    refuse_pending_copy(named)
    refuse_incremental(named)
    tiers.check_given(named.kind, tier, named.size_bytes, named.tier)
    tiered = msgspec.structs.replace(named, tier=tier, tier_changed=change.stamp)
    change.put_state(state.past, named, tiered)
    return TierSet(tiers.leaves_archive(named.tier, tier))
