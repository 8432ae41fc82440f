"""The writes of a decision on one blob: heads, bodies, uploads, and the garbage they leave behind.

Lives here: `BlobChange`, which collects the writes of one commit. Must not live here: Azure's
rules, or what a body writes (each kind says so itself, store/blob/bodies/).
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.engines.base import Key, Partition, Ref, Step, Write
from strongroom.limits import UNCOMMITTED_LIFETIME_S
from strongroom.store.blob import blob_records, tag_index
from strongroom.store.blob.blob_records import BlobRecord, Retired, Upload
from strongroom.store.blob.bodies.body import Body
from strongroom.store.blob.tag_index import Retagged
from strongroom.store.core import keys, records
from strongroom.store.core.keys import Past
from strongroom.store.core.records import Job, JobKind
from strongroom.values import TICKS_PER_S

UPLOAD_LIFETIME_TICKS: Final = UNCOMMITTED_LIFETIME_S * TICKS_PER_S


def upload_expiry(number: int, touched: int | None = None) -> Ref:
    """The job that ends an upload a week after it began, or after it was touched."""
    begun = number if touched is None else touched
    return keys.job(begun + UPLOAD_LIFETIME_TICKS, number, JobKind.EXPIRE_UPLOAD)


class _HeadPlace:
    """The record in the place of a blob's head: a head, a soft-deleted head, or a vacant place.

    Attributes:
        before: the record that was there before this change.
        versions: how many previous versions the blob has.
        last_version: the version id of the last head, which a vacant place keeps; 0 = none.
    """

    def __init__(self, before: BlobRecord | None) -> None:
        self.before = before
        self.versions = 0 if before is None else before.versions
        self.last_version = 0 if before is None else before.version
        self._next = before
        self._is_written = False

    def write(self, record: BlobRecord | None) -> None:
        """This lies there from now on; None = nothing, unless there are versions."""
        self._next = record
        self._is_written = True

    @property
    def is_changed(self) -> bool:
        """Whether the commit must write the record."""
        before = self.before
        return self._is_written or self.versions != (0 if before is None else before.versions)

    def after(self) -> BlobRecord | None:
        """The record there after the commit."""
        lying, before, count = self._next, self.before, self.versions
        if lying is None and count and before is not None:
            lying = blob_records.as_vacant(before)
        if lying is None or (lying.vacant and not count):
            return None
        if lying.vacant:
            lying = msgspec.structs.replace(lying, version=self.last_version)
        return lying if lying.versions == count else msgspec.structs.replace(lying, versions=count)


class BlobChange:
    """The writes of one commit in one blob's partition.

    Arguments:
        partition: the blob's.
        generation: the container's.
        name: the blob's.
        stamp: the commit's.
        lying: what lies in the head's place before: a head, one that is deleted and kept, a vacant
            one, or None.
        upload: the upload in progress before, or None.
    """

    def __init__(
        self,
        partition: Partition,
        generation: int,
        name: str,
        stamp: int,
        lying: BlobRecord | None,
        upload: Upload | None,
    ) -> None:
        self.stamp = stamp
        self.upload = upload
        self._partition = partition
        self._generation = generation
        self._name = name
        self._writes: dict[Key, bytes | None] = {}
        self._adopt: list[int] = []
        self._drop: list[int] = []
        self._before: list[Step] = []
        self._after: list[Step] = []
        self._retired: dict[Body, None] = {}
        self._sweeps = False
        self._expires = False
        self._has_work = False
        self._place = _HeadPlace(lying)
        self._retagged: list[Retagged] = []

    def put(self, key: Key, value: bytes | None) -> None:
        """Write or delete a key; the last word on a key counts."""
        self._writes[key] = value

    def put_head(self, head: BlobRecord) -> None:
        """Write the blob's head. The index of tags follows; a deleted head is not in it. The count
        of its versions is kept here, whatever `head` says."""
        self._place.write(self._tagged(head, self._place.before))

    def remove_head(self, version: int = 0) -> None:
        """There is no head any more. A vacant one holds its place while there are versions.

        Arguments:
            version: the id under which the head is a previous version from now on; 0 = it is none.
        """
        self._place.write(None)
        self._place.last_version = version

    def put_state(self, past: Past | None, before: BlobRecord, after: BlobRecord) -> None:
        """Write the new record of an existing snapshot or version; of the head if `past` is
        None."""
        if past is None:
            self.put_head(after)
        elif past.is_version:
            self._put_version(past.ticks, before, after)
        else:
            self.put(keys.past(past), blob_records.BLOB.encode(after))

    def add_version(self, version: BlobRecord) -> None:
        """A state of the head becomes a previous version."""
        self._place.versions += 1
        self._put_version(version.version, None, version)

    def remove_version(self, version: BlobRecord) -> None:
        """A previous version is no more."""
        self._place.versions -= 1
        if self._place.last_version == version.version:
            self._place.last_version = 0
        self._put_version(version.version, version, None)

    def _put_version(
        self, version_id: int, before: BlobRecord | None, after: BlobRecord | None
    ) -> None:
        if after is not None:
            after = self._tagged(after, before)
        self._retagged.append(Retagged(version_id, before, after))
        value = None if after is None else blob_records.BLOB.encode(after)
        self.put(keys.version(version_id), value)

    def _tagged(self, record: BlobRecord, before: BlobRecord | None) -> BlobRecord:
        """The record with the token of its tags; what is deleted is not in the index."""
        if record.deletion is not None:
            return msgspec.structs.replace(record, tagged=0)
        if record.tags or record.tagged:
            return tag_index.with_token(record, before, self.stamp)
        return record

    def adopt(self, content: int) -> None:
        """The partition owns this content from now on."""
        self._adopt.append(content)

    def drop(self, content: int) -> None:
        """The partition gives this content up, and nothing else can name it."""
        self._drop.append(content)

    def retire(self, body: Body) -> None:
        """Give up a body that others of the blob may share: it is swept later."""
        self._retired[body] = None
        self.sweep()

    def begin_upload(self, id_bytes: int) -> Upload:
        """Start staging blocks; abandoned ones are swept when the upload has been idle for a
        week."""
        upload = Upload(self.stamp, id_bytes, 0, self.stamp)
        self._before.append(self._expiry_job(upload, put=True))
        return upload

    def put_upload(self, upload: Upload) -> None:
        """Write the upload in progress."""
        self.put(keys.UPLOAD_KEY, blob_records.UPLOAD.encode(upload))

    def replace_staged(self, key: Key, content: int) -> None:
        """Remove the record and the content of a staged block, because the block was staged
        again."""
        self.put(key, None)
        self._drop.append(content)

    def end_upload(self) -> None:
        """Staged blocks are no more (committed, or dropped by the sweeper). No-op without an
        upload."""
        if self.upload is not None:
            self.put(keys.UPLOAD_KEY, None)
            self._after.append(self._expiry_job(self.upload, put=False))
            self.sweep()

    def _expiry_job(self, upload: Upload, put: bool) -> Step:
        job = Job(JobKind.EXPIRE_UPLOAD, self._generation, self._name, str(upload.number))
        ref = upload_expiry(upload.number)
        return Step(ref.partition, (Write(ref.key, records.JOB.encode(job) if put else None),))

    @property
    def has_work(self) -> bool:
        """Whether the commit leaves work that is due at once."""
        return self._has_work

    def add_job(self, job: Job) -> None:
        """Background work, due at once, that is recorded before this commit happens."""
        self._has_work = True
        self.put_job(keys.job(self.stamp, self.stamp, job.kind), job)

    def put_job(self, ref: Ref, job: Job) -> None:
        """Background work that falls due when `ref` says."""
        self._before.append(Step(ref.partition, (Write(ref.key, records.JOB.encode(job)),)))

    def expire_at(self, until: int) -> None:
        """Have a job drop what this commit deletes and keeps, when its retention ends."""
        if not self._expires:
            self._expires = True
            job = Job(JobKind.EXPIRE_BLOB, self._generation, self._name)
            self.put_job(keys.job(until, self.stamp, job.kind), job)

    def sweep(self) -> None:
        """Something in the partition is no longer needed."""
        if not self._sweeps:
            self._sweeps = True
            self.add_job(Job(JobKind.SWEEP_BLOB, self._generation, self._name))

    def steps(self) -> tuple[Step, ...]:
        """The commit's steps: jobs first, so that a crash in between leaves a job without garbage,
        never garbage without a job."""
        lying = self._place.after()
        if self._place.is_changed:
            value = None if lying is None else blob_records.BLOB.encode(lying)
            self.put(keys.HEAD_KEY, value)
        if self._retired:
            retired = Retired(tuple(self._retired))
            self.put(keys.retired(self.stamp), blob_records.RETIRED.encode(retired))
        if not (self._writes or self._adopt or self._drop):
            return tuple(self._before)
        own = Step(
            self._partition,
            tuple(Write(key, value) for key, value in self._writes.items()),
            tuple(self._adopt),
            tuple(self._drop),
        )
        retagged = (Retagged(0, self._place.before, lying), *self._retagged)
        if not any(one.is_tagged for one in retagged):
            return (*self._before, own, *self._after)  # as nearly always
        entered, removed = tag_index.steps(self._generation, self._name, self.stamp, retagged)
        return (*self._before, *entered, own, *removed, *self._after)
