"""Dropping the whole content of a deleted container.

Lives here: the walk over a generation's blobs, where hidden records go before the face that leads
to them.

No new request can read here, since the container's record, which every request checks, is gone. The
sweep waits for readers of other gateways that began before, and spares the contents that they have
named. When a job begins, no write that saw that record is still under way (rule 2 of sweeper.py). A
partition without a face record holds at most garbage that its own job is about to sweep.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.engines.base import Face, Item, Key, Partition, Position, Ref
from strongroom.services.blob.decisions.changes import upload_expiry
from strongroom.services.blob.sweep import SparingRemoval
from strongroom.services.core.background import RemovalBatch
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import Body, BodyPlace
from strongroom.store.blob.bodies.kinds import MAP_KINDS, hidden_kind
from strongroom.store.blob.bodies.readers import Readers
from strongroom.store.core import keys, records, tag_keys
from strongroom.store.core.records import Job, JobKind

_PAGE_RECORDS: Final = 200
_START: Final = Position(b"", b"")


async def sweep_container(
    services: Services, removal: RemovalBatch, generation: int, deleted: int
) -> bool:
    """Drop all blobs of a generation except those that are being read. Return whether nothing is
    left. `deleted` is the stamp of the container's deletion."""
    horizon = await services.store.gateways.horizon()
    if horizon.stamp <= deleted:
        return False
    sparing = SparingRemoval(removal, horizon.named)
    expiries: set[Ref] = set()
    keyspace = keys.blobs(generation)
    skipped = False
    position: Position | None = _START
    current: Partition | None = None
    busy = False
    while position is not None:
        page = await services.store.scan(keyspace, position, None, _PAGE_RECORDS)
        position = page.resume
        for face in page.faces():
            partition = Partition(keyspace, face.partition)
            if partition != current:
                current = partition
                busy = bool(services.held.of(Readers).snapshot(partition))
                sparing.begin()
                await _drop_expiries(removal, sparing, expiries)
                if not busy:
                    await _drop_hidden(services, removal, sparing, partition, expiries)
            if busy:
                skipped = True
            else:
                await _drop_face(services, sparing, partition, face)
                _note_expiry(blob_records.BLOB.decode(face.value), expiries)
        await asyncio.sleep(0)
    await _drop_expiries(removal, sparing, expiries)
    await _drop_entries(services, removal, tag_keys.tag_entries(generation))
    await _drop_entries(services, removal, tag_keys.version_tag_entries(generation))
    await removal.commit()
    return not (skipped or sparing.has_spared)


async def expire_container(
    services: Services, removal: RemovalBatch, job: Job, deleted: int
) -> bool:
    """Drop a deleted container whose retention has ended, unless it was restored. Return whether
    nothing is left to do.

    Its record is removed last, so that after a crash the sweep is done again. `deleted` is the
    stamp of the deletion that ordered the job; a container that was restored and deleted again has
    another one.
    """
    account, name = job.token.split("/")
    ref = keys.deleted_place(keys.container(account, name), job.generation)

    (record,) = await services.store.read([ref])
    kept = records.DELETED_CONTAINER.of(record)
    if kept is None or kept.deleted != deleted:
        return True
    if not await sweep_container(services, removal, job.generation, deleted):
        return False
    await removal.add(ref.partition, (ref.key,))
    await removal.commit()
    return True


def _note_expiry(state: BlobRecord, expiries: set[Ref]) -> None:
    """Note the job that would drop a soft-deleted state at the end of its retention."""
    if state.deletion is not None:
        expiries.add(keys.job(state.deletion.until, state.deletion.deleted, JobKind.EXPIRE_BLOB))


async def _drop_expiries(
    removal: RemovalBatch, sparing: SparingRemoval, expiries: set[Ref]
) -> None:
    """Remove the noted jobs, after the states that they are for. If any state was spared, the jobs
    stay until they are due, and find nothing then."""
    for ref in () if sparing.has_spared else expiries:
        await removal.add(ref.partition, (ref.key,))
    expiries.clear()


async def _drop_entries(services: Services, removal: RemovalBatch, keyspace: bytes) -> None:
    """Remove a container's tag index, which no search reads any more."""
    position: Position | None = _START
    while position is not None:
        page = await services.store.scan(keyspace, position, None, _PAGE_RECORDS)
        position = page.resume
        for face in page.faces():
            partition = Partition(keyspace, face.partition)
            await removal.add(partition, (Key(False, face.key),))
        await asyncio.sleep(0)


async def _drop_face(
    services: Services, sparing: SparingRemoval, partition: Partition, face: Face
) -> None:
    drop = await _contents(services, sparing, partition, blob_records.BLOB.decode(face.value).body)
    await sparing.add(partition, (Key(False, face.key),), drop)


async def _drop_hidden(
    services: Services,
    removal: RemovalBatch,
    sparing: SparingRemoval,
    partition: Partition,
    expiries: set[Ref],
) -> None:
    has_maps = True
    while has_maps:
        first, page, has_maps = b"", list[Item](), False
        while not first or len(page) == _PAGE_RECORDS:
            page = await services.store.read_range(partition, True, first, None, _PAGE_RECORDS)
            for item in page:
                await _drop_item(services, sparing, partition, item, expiries)
                has_maps = has_maps or item.name[:1] in MAP_KINDS
            first = page[-1].name + b"\0" if page else b"\xff"
        if has_maps:
            # A sweep of the blob may have written to a map meanwhile. It does so only while there
            # are leaves, so read again after they are gone.
            await removal.commit()
        # Spared records stay, and the next sweep finds them.
        has_maps = has_maps and not sparing.has_spared


async def _drop_item(
    services: Services,
    sparing: SparingRemoval,
    partition: Partition,
    item: Item,
    expiries: set[Ref],
) -> None:
    kind, drop = item.name[:1], list[int]()
    if kind == keys.STAGED:
        drop.append(blob_records.STAGED.decode(item.value).content)
    elif kind == keys.RETIRED:
        for body in blob_records.RETIRED.decode(item.value).bodies:
            drop.extend(await _contents(services, sparing, partition, body))
    elif keys.version_id(item.name) is not None:
        state = blob_records.BLOB.decode(item.value)
        _note_expiry(state, expiries)
        drop.extend(await _contents(services, sparing, partition, state.body))
    elif kind == keys.UPLOAD_KEY.name:
        expiry = upload_expiry(blob_records.UPLOAD.decode(item.value).number)
        await sparing.add(expiry.partition, (expiry.key,))
    else:
        drop.extend(hidden_kind(item.name).contents(item.name, item.value))
    await sparing.add(partition, (Key(True, item.name),), drop)


async def _contents(
    services: Services, sparing: SparingRemoval, partition: Partition, body: Body
) -> tuple[int, ...]:
    """Return the contents to remove together with the record that names a body.

    Contents that are reachable only through them are removed before. Contents that hidden records
    name are removed with those records.
    """
    contents = body.named.contents
    if contents:
        parts = await body.parts(BodyPlace(services.store, partition))
        await sparing.add(partition, (), parts)
    return contents
