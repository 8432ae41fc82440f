"""How a reset removes a share, and ends the handles on it.

Lives here: the steps of that commit. Must not live here: when it happens (services/reset.py), the
sweep of the files (services/file/sweep.py).
"""

from __future__ import annotations

from collections.abc import Collection

from strongroom.engines.base import Step, Write
from strongroom.services.core.resetting import FoundPlace, PlaceRemoval
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.closing import close_all
from strongroom.services.file.held.opens import Opens
from strongroom.services.file.shares.share_snapshots import snapshots_gone
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import DeletedShare, Job, JobKind


def removal_of(place: FoundPlace, stamp: int) -> PlaceRemoval | None:
    """Return the removal of a share, or of a soft-deleted one, with its files and snapshots.

    None: the record is that of a snapshot, which goes with its share.
    """
    if share_keys.snapshot_of(place.key.name) is not None:
        return None
    kept = _kept(place)
    share = records.SHARE.decode(place.value) if kept is None else kept.record
    ref = keys.share(*place.name.split("/"))
    job = keys.job(stamp, stamp, JobKind.SWEEP_SHARE)
    order = Job(JobKind.SWEEP_SHARE, share.generation, token=place.name)
    steps = [
        Step(job.partition, (Write(job.key, records.JOB.encode(order)),)),
        Step(ref.partition, (Write(place.key, None), *snapshots_gone(share))),
    ]
    if kept is not None:
        due = keys.job(kept.until, kept.deleted, JobKind.EXPIRE_SHARE)
        steps.append(Step(due.partition, (Write(due.key, None),)))
    return PlaceRemoval(share.generation, tuple(steps))


def _kept(place: FoundPlace) -> DeletedShare | None:
    is_kept = keys.is_deleted_place(place.key.name)
    return records.DELETED_SHARE.decode(place.value) if is_kept else None


def generation_of(place: FoundPlace) -> int:
    """Return the generation under which the share's handles are open."""
    kept = _kept(place)
    return (records.SHARE.decode(place.value) if kept is None else kept.record).generation


async def close_handles(services: Services, generations: Collection[int]) -> None:
    """End every SMB handle on these shares, also of clients that are to reconnect."""
    handles = services.held.of(Opens).handles.values()
    await close_all(services, [one for one in handles if one.access.generation in generations])
