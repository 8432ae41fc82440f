"""How a reset removes a share, and ends the handles on it.

Must not live here: when it happens (services/reset.py), the sweep of the files
(services/file/snapshots/sweep.py).
"""

from __future__ import annotations

from collections.abc import Collection

from strongroom.services.core import resetting
from strongroom.services.core.resetting import FoundPlace, PlaceRemoval
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.closing import close_all
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.shares.share_snapshots import snapshots_gone
from strongroom.services.file.snapshots.sweep import KEPT_SHARES
from strongroom.store.core import share_keys
from strongroom.store.core.records import ShareRecord


def removal_of(place: FoundPlace, stamp: int) -> PlaceRemoval | None:
    """With its files and snapshots. None: the record is that of a snapshot, which goes with its
    share."""
    if share_keys.snapshot_of(place.key.name) is not None:
        return None
    share: ShareRecord = place.record(KEPT_SHARES)
    return resetting.removal_of(KEPT_SHARES, place, stamp, *snapshots_gone(share))


def generation_of(place: FoundPlace) -> int:
    """The generation under which the share's handles are open."""
    share: ShareRecord = place.record(KEPT_SHARES)
    return share.generation


async def close_handles(services: Services, generations: Collection[int]) -> None:
    """End every SMB handle on these shares, also of clients that are to reconnect."""
    handles = services.held.of(Opens).handles.values()
    await close_all(services, [one for one in handles if one.access.generation in generations])
