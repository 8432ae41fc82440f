"""The records of an upload: each gateway counts the blocks that it stages on a blob.

Lives here: which records a decision reads and writes, how the limit of uncommitted blocks is kept,
and the end of an idle upload. Must not live here: the staged blocks (blocks.py).

So Put Blocks of several gateways change no record in common. The record of gateway 0 begins and
ends with the upload, and names the other gateways. They remain exactly within the limit: each has a
share of it, which it may reach without a look at the others. Once a share is used up, one commit
reads all counts, guards them, and divides what is left anew. So a block is refused only if the sum
of all counts is at the limit.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.engines.base import Partition, Ref
from strongroom.semantics.blob import blocks as rules
from strongroom.services.blob.bodies.rereading import Stale
from strongroom.services.blob.decisions.background_changes import change_in_background
from strongroom.services.blob.decisions.changes import (
    UPLOAD_LIFETIME_TICKS,
    BlobChange,
    upload_expiry,
)
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.core.decisions import ReadAll, Reads
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import Upload
from strongroom.store.core import gateway_keys, keys
from strongroom.store.core.records import Job
from strongroom.values import Purpose

FIRST: Final = 0


class ShareNeeded(Exception):
    """The gateway may stage no further block on its own: it has no share yet, or has used it up."""


def counting_gateway(services: Services) -> int:
    """Return the number in whose record this gateway counts."""
    gateways = services.store.gateways
    # Alone, any gateway may write the first record: no other one changes it meanwhile.
    return FIRST if gateways.is_alone else gateways.number


class UploadRead(msgspec.Struct, frozen=True):
    """All records of an upload as they were read. `others` are those that `first` names."""

    first: Upload | None
    others: tuple[Upload | None, ...] = ()

    def add_others(self, reads: Reads, partition: Partition) -> ReadAll[Upload]:
        """Add the others to the reads of a decision."""
        return reads.add_all(_others(partition, self.first), blob_records.UPLOAD)

    def is_present(self, state: BlobState, others: ReadAll[Upload]) -> bool:
        """Return whether nothing was staged, committed or ended since. `others` was made by
        `add_others`."""
        return self.first == state.upload and self.others == state.found[others]


def _others(partition: Partition, first: Upload | None) -> list[Ref]:
    gateways = () if first is None else first.others
    return [Ref(partition, gateway_keys.upload(gateway)) for gateway in gateways]


async def read_others(services: Services, partition: Partition, first: Upload | None) -> UploadRead:
    """Read the records that `first` names. They may be later than it."""
    refs = _others(partition, first)
    if not refs:
        return UploadRead(first)
    records = await services.store.read(refs)
    return UploadRead(first, tuple(blob_records.UPLOAD.of(one) for one in records))


async def read_again(services: Services, partition: Partition, before: UploadRead) -> UploadRead:
    """Read the same records again, from one snapshot."""
    refs = [Ref(partition, keys.UPLOAD_KEY), *_others(partition, before.first)]
    records = await services.store.read(refs)
    first, *others = [blob_records.UPLOAD.of(one) for one in records]
    return UploadRead(first, tuple(others))


async def read_all(services: Services, partition: Partition) -> UploadRead:
    (record,) = await services.store.read([Ref(partition, keys.UPLOAD_KEY)])
    return await read_others(services, partition, blob_records.UPLOAD.of(record))


class OwnCount(msgspec.Struct, frozen=True):
    """The count of a block in the record of its gateway, which is `state.upload`."""

    gateway: int

    def upload(self, state: BlobState, change: BlobChange, id_bytes: int) -> Upload:
        """Return the upload in progress, or a new one. Raises: ShareNeeded."""
        if state.upload is None and self.gateway != FIRST:
            raise ShareNeeded
        return state.upload or change.begin_upload(id_bytes)

    def add(self, upload: Upload, more: int, state: BlobState, change: BlobChange) -> None:
        """Count `more` blocks. Raises: ShareNeeded; StorageError at the limit."""
        count = upload.count + more
        if self.gateway == FIRST and not upload.others:
            rules.check_staged_count(count)
        elif count > upload.share:
            raise ShareNeeded
        counted = msgspec.structs.replace(upload, count=count, touched=change.stamp)
        change.put_upload(counted, self.gateway)


class CountAmongAll(msgspec.Struct, frozen=True):
    """The count of a block where all gateways get new shares. `state.upload` is the first record,
    and `others` those that `read` had."""

    gateway: int
    read: UploadRead
    others: ReadAll[Upload]

    def upload(self, state: BlobState, change: BlobChange, id_bytes: int) -> Upload:
        """Return the upload in progress, or a new one."""
        return state.upload or change.begin_upload(id_bytes)

    def add(self, upload: Upload, more: int, state: BlobState, change: BlobChange) -> None:
        """Count `more` blocks. Raises: Stale: the upload is another, or has other gateways than
        when it was read; StorageError at the limit."""
        named = () if self.read.first is None else self.read.first.others
        if upload.others != named:
            raise Stale
        uploads = {FIRST: upload}
        for gateway, other in zip(named, state.found[self.others], strict=True):
            if other is not None:
                uploads[gateway] = other
        new = Upload(upload.number, upload.id_bytes, 0, change.stamp)
        own = uploads.get(self.gateway, new)
        uploads[self.gateway] = msgspec.structs.replace(
            own, count=own.count + more, touched=change.stamp
        )
        counts = {gateway: one.count for gateway, one in uploads.items()}
        rules.check_staged_count(sum(counts.values()))
        shares = rules.shares_of_limit(counts)
        others = tuple(sorted(uploads.keys() - {FIRST}))
        for gateway, one in uploads.items():
            named = others if gateway == FIRST else ()
            shared = msgspec.structs.replace(one, share=shares[gateway], others=named)
            change.put_upload(shared, gateway)


async def expire_upload(services: Services, job: Job) -> None:
    """End an upload that has been idle for a week. Schedule another check for one that has not."""
    while not await _has_expired(services, job):
        pass
    services.work.set()


async def _has_expired(services: Services, job: Job) -> bool:
    """Return False if the upload has changed since it was read."""
    partition, reads = keys.blob(job.generation, job.blob), Reads()
    read = await read_all(services, partition)
    others = read.add_others(reads, partition)
    try:
        await change_in_background(
            services,
            job.generation,
            job.blob,
            lambda state, change: _expire(job, read, others, state, change),
            purpose=Purpose.FREEING,
            further=reads,
        )
    except Stale:
        return False
    return True


def _expire(
    job: Job, read: UploadRead, others: ReadAll[Upload], state: BlobState, change: BlobChange
) -> None:
    upload = state.upload
    if upload is None or str(upload.number) != job.token:
        return
    if not read.is_present(state, others):
        raise Stale
    touched = max(one.touched for one in (upload, *read.others) if one is not None)
    if touched + UPLOAD_LIFETIME_TICKS > state.now:
        change.put_job(upload_expiry(upload.number, touched), job)
        return
    if state.head is not None and not state.head.committed:
        change.remove_head()
    change.end_upload()
