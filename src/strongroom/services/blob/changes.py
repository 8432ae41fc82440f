"""What a decision on one blob writes: heads, bodies, uploads, and the garbage they leave behind.

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
from strongroom.store.core import keys, records
from strongroom.store.core.records import Job, JobKind
from strongroom.values import TICKS_PER_S

UPLOAD_LIFETIME_TICKS: Final = UNCOMMITTED_LIFETIME_S * TICKS_PER_S


def upload_expiry(number: int, touched: int | None = None) -> Ref:
    """The job that ends an upload a week after it began, or after it was touched."""
    begun = number if touched is None else touched
    return keys.job(begun + UPLOAD_LIFETIME_TICKS, number, JobKind.EXPIRE_UPLOAD)


class BlobChange:
    """The writes of one commit in one blob's partition.

    Arguments:
        partition: the blob's.
        generation: the container's.
        name: the blob's.
        stamp: the commit's.
        head: the blob's head before, or None.
        upload: the upload in progress before, or None.
    """

    def __init__(
        self,
        partition: Partition,
        generation: int,
        name: str,
        stamp: int,
        head: BlobRecord | None,
        upload: Upload | None,
    ) -> None:
        self.stamp = stamp
        self.head = head
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
        self._next_head: BlobRecord | None = None

    def put(self, key: Key, value: bytes | None) -> None:
        """Write or delete a key; the last word on a key counts."""
        self._writes[key] = value

    def put_head(self, head: BlobRecord) -> None:
        """Write the blob's head. The index of tags follows; a deleted head is not in it."""
        if head.deletion is not None:
            head = msgspec.structs.replace(head, tagged=0)
        elif head.tags or head.tagged:
            head = tag_index.with_token(head, self.head, self.stamp)
        self._next_head = head
        self.put(keys.HEAD_KEY, blob_records.BLOB.encode(head))

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
        """Give up a staged block of the upload in progress: it was staged again."""
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
        """What this commit deletes and keeps is dropped by a job when its retention ends."""
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
        before, after = self.head, self.head
        if keys.HEAD_KEY in self._writes:
            after = None if self._writes[keys.HEAD_KEY] is None else self._next_head
        if (before is None or not before.tagged) and (after is None or not after.tagged):
            return (*self._before, own, *self._after)  # as nearly always
        entered, removed = tag_index.steps(self._generation, self._name, self.stamp, before, after)
        return (*self._before, *entered, own, *removed, *self._after)
