"""What a decision on one blob writes: heads, bodies, uploads, and the garbage they leave behind.

Lives here: `BlobChange`, which collects the writes of one commit, and decides which contents may be
dropped at once and which must be retired for the sweeper. Must not live here: Azure's rules.

A body is dropped in the commit that gives it up when nothing else can share it: a single content of
a blob without snapshots. Everything else is retired: the sweeper drops what no head or snapshot
names.
"""

from __future__ import annotations

from typing import Final

from strongroom.engines.base import Key, Partition, Ref, Step, Write
from strongroom.limits import RECORD_BODY_BYTES_MAX, UNCOMMITTED_LIFETIME_S
from strongroom.store.blob.bodies import Received
from strongroom.store.core import keys, records
from strongroom.store.core.records import (
    BlobRecord,
    Body,
    Inline,
    Job,
    JobKind,
    Listed,
    Stored,
    Upload,
    Within,
)
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
        self._retired: dict[Stored | Listed, None] = {}
        self._sweeps = False
        self._has_work = False

    def put(self, key: Key, value: bytes | None) -> None:
        """Write or delete a key; the last word on a key counts."""
        self._writes[key] = value

    def put_head(self, head: BlobRecord) -> None:
        """Write the blob's head."""
        self.put(keys.HEAD_KEY, records.BLOB.encode(head))

    def take_body(self, received: Received) -> Body:
        """Make a received body the head's: writes inline bytes, or adopts the content."""
        inline = received.inline
        if inline is not None and len(inline) <= RECORD_BODY_BYTES_MAX:
            return Within(inline, received.crc64)
        if inline is not None:
            self.put(keys.inline(0), inline)
            return Inline(received.crc64)
        if received.content is not None:
            self.adopt(received.content)
            return Stored(received.content)
        return None

    def take_list(self, encoded: Received, count: int) -> Listed:
        """Make an encoded block list the head's."""
        if encoded.content is not None:
            self.adopt(encoded.content)
            return Listed(self.stamp, count, encoded.content)
        self.put(keys.block_list(self.stamp), encoded.inline)
        return Listed(self.stamp, count)

    def adopt(self, content: int) -> None:
        """The partition owns this content from now on."""
        self._adopt.append(content)

    def release(self, blob: BlobRecord, snapshot: int | None = None) -> None:
        """Give up the body of the head, or of the snapshot taken at `snapshot`."""
        body = blob.body
        if isinstance(body, Inline):
            # A new inline body of the head takes the same key: then there is nothing to delete.
            self._writes.setdefault(keys.inline(snapshot or 0), None)
        elif isinstance(body, Stored) and snapshot is None and blob.snapshots == 0:
            self._drop.append(body.content)
        elif isinstance(body, (Stored, Listed)):
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
        self.put(keys.UPLOAD_KEY, records.UPLOAD.encode(upload))

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

    def sweep(self) -> None:
        """Something in the partition is no longer needed."""
        if not self._sweeps:
            self._sweeps = True
            self.add_job(Job(JobKind.SWEEP_BLOB, self._generation, self._name))

    def steps(self) -> tuple[Step, ...]:
        """The commit's steps: jobs first, so that a crash in between leaves a job without garbage,
        never garbage without a job."""
        if self._retired:
            retired = records.Retired(tuple(self._retired))
            self.put(keys.retired(self.stamp), records.RETIRED.encode(retired))
        if not (self._writes or self._adopt or self._drop):
            return tuple(self._before)
        own = Step(
            self._partition,
            tuple(Write(key, value) for key, value in self._writes.items()),
            tuple(self._adopt),
            tuple(self._drop),
        )
        return (*self._before, own, *self._after)
