"""The writes of a decision on one blob: heads, bodies, uploads, and the garbage they leave behind.

Lives here: `BlobChange`, which collects the writes of one commit.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.engines.base import Key, Partition, Ref, Step, Write, write_of
from strongroom.limits import UNCOMMITTED_LIFETIME_S
from strongroom.store.blob import blob_records, tag_index
from strongroom.store.blob.blob_records import BlobRecord, Retired, Upload
from strongroom.store.blob.bodies.body import Body
from strongroom.store.blob.tag_index import TagChange
from strongroom.store.core import gateway_keys, keys, records
from strongroom.store.core.keys import Past
from strongroom.store.core.records import Job, JobKind
from strongroom.values import TICKS_PER_S

UPLOAD_LIFETIME_TICKS: Final = UNCOMMITTED_LIFETIME_S * TICKS_PER_S


def upload_expiry(number: int, touched: int | None = None) -> Ref:
    """Return the key of the job that ends an upload a week after it began or was last changed."""
    begun = number if touched is None else touched
    return keys.job(begun + UPLOAD_LIFETIME_TICKS, number, JobKind.EXPIRE_UPLOAD)


class _HeadRecordChange:
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
        """Put this record there; None = no record, or a vacant one if there are previous
        versions."""
        self._next = record
        self._is_written = True

    @property
    def is_changed(self) -> bool:
        before = self.before
        return self._is_written or self.versions != (0 if before is None else before.versions)

    def after(self) -> BlobRecord | None:
        head_record, before, count = self._next, self.before, self.versions
        if head_record is None and count and before is not None:
            head_record = blob_records.as_vacant(before)
        if head_record is None or (head_record.vacant and not count):
            return None
        if head_record.vacant:
            head_record = msgspec.structs.replace(head_record, version=self.last_version)
        return (
            head_record
            if head_record.versions == count
            else msgspec.structs.replace(head_record, versions=count)
        )


class BlobChange:
    """The writes of one commit in one blob's partition. `head_record` is at the head's key before
    the commit: a head, a soft-deleted head, a vacant one, or None."""

    def __init__(
        self,
        partition: Partition,
        generation: int,
        name: str,
        stamp: int,
        head_record: BlobRecord | None,
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
        self._place = _HeadRecordChange(head_record)
        self._tag_changes: list[TagChange] = []

    def put(self, key: Key, value: bytes | None) -> None:
        """The last write to a key wins."""
        self._writes[key] = value

    def put_head(self, head: BlobRecord) -> None:
        """Write the blob's head, and update the tag index; a deleted head is not in the index.

        The count of versions is kept here; the count in `head` is ignored.
        """
        self._place.write(self._with_tag_token(head, self._place.before))

    def remove_head(self, version: int = 0) -> None:
        """A vacant record stays in its place while there are previous versions. `version` is the id
        that the head has as a previous version from now on; 0 = it becomes none."""
        self._place.write(None)
        self._place.last_version = version

    def put_state(self, past: Past | None, before: BlobRecord, after: BlobRecord) -> None:
        """Write a state again that exists; `past` None = the head."""
        if past is None:
            self.put_head(after)
        elif past.is_version:
            self._put_version(past.ticks, before, after)
        else:
            self.put(keys.past(past), blob_records.BLOB.encode(after))

    def add_version(self, version: BlobRecord) -> None:
        """Add a state of the head as a previous version."""
        self._place.versions += 1
        self._put_version(version.version, None, version)

    def remove_version(self, version: BlobRecord) -> None:
        self._place.versions -= 1
        if self._place.last_version == version.version:
            self._place.last_version = 0
        self._put_version(version.version, version, None)

    def _put_version(
        self, version_id: int, before: BlobRecord | None, after: BlobRecord | None
    ) -> None:
        if after is not None:
            after = self._with_tag_token(after, before)
        if _is_tagged(before) or _is_tagged(after):
            self._tag_changes.append(TagChange(version_id, before, after))
        value = None if after is None else blob_records.BLOB.encode(after)
        self.put(keys.version(version_id), value)

    def _with_tag_token(self, record: BlobRecord, before: BlobRecord | None) -> BlobRecord:
        """Return the record with the token of its tags. A deleted record is not in the index."""
        if record.deletion is not None:
            return msgspec.structs.replace(record, tagged=0)
        if record.tags or record.tagged:
            return tag_index.with_token(record, before, self.stamp)
        return record

    def adopt(self, content: int) -> None:
        """Make the partition the owner of this content."""
        self._adopt.append(content)

    def drop(self, content: int) -> None:
        """Remove a content that nothing else can refer to."""
        self._drop.append(content)

    def retire(self, body: Body) -> None:
        """Give up a body that other states of the blob may share. A job sweeps it later."""
        self._retired[body] = None
        self.sweep()

    def begin_upload(self, id_bytes: int) -> Upload:
        """Start an upload of blocks. Its blocks are swept when it has been idle for a week."""
        upload = Upload(self.stamp, id_bytes, 0, self.stamp)
        self._before.append(self._expiry_job(upload, put=True))
        return upload

    def put_upload(self, upload: Upload, gateway: int = 0) -> None:
        """Write the record in which a gateway counts its blocks."""
        self.put(gateway_keys.upload(gateway), blob_records.UPLOAD.encode(upload))

    def replace_staged(self, key: Key, content: int) -> None:
        """Remove the record and the content of a staged block that is staged again."""
        self.put(key, None)
        self._drop.append(content)

    def end_upload(self) -> None:
        """Its blocks were committed, or the sweeper drops them. No-op without an upload."""
        if self.upload is not None:
            for gateway in (0, *self.upload.others):
                self.put(gateway_keys.upload(gateway), None)
            self._after.append(self._expiry_job(self.upload, put=False))
            self.sweep()

    def _expiry_job(self, upload: Upload, put: bool) -> Step:
        job = Job(JobKind.EXPIRE_UPLOAD, self._generation, self._name, str(upload.number))
        ref = upload_expiry(upload.number)
        return Step(ref.partition, (Write(ref.key, records.JOB.encode(job) if put else None),))

    @property
    def has_work(self) -> bool:
        """Return whether the commit leaves work that is due at once."""
        return self._has_work

    def add_job(self, job: Job) -> None:
        """Record a background job that is due at once. It is recorded before this commit."""
        self._has_work = True
        self.put_job(keys.job(self.stamp, self.stamp, job.kind), job)

    def put_job(self, ref: Ref, job: Job) -> None:
        """Record a background job at this key, which contains its due time."""
        self._before.append(Step(ref.partition, (Write(ref.key, records.JOB.encode(job)),)))

    def expire_at(self, until: int) -> None:
        """Schedule the job that drops what this commit soft-deletes, for the end of its
        retention."""
        if not self._expires:
            self._expires = True
            job = Job(JobKind.EXPIRE_BLOB, self._generation, self._name)
            self.put_job(keys.job(until, self.stamp, job.kind), job)

    def sweep(self) -> None:
        """Schedule a sweep of the partition, because the commit leaves garbage."""
        if not self._sweeps:
            self._sweeps = True
            self.add_job(Job(JobKind.SWEEP_BLOB, self._generation, self._name))

    def steps(self) -> tuple[Step, ...]:
        """Jobs come first: a crash in between leaves a job without garbage, never garbage without a
        job."""
        head_record = self._place.after()
        if self._place.is_changed:
            value = None if head_record is None else blob_records.BLOB.encode(head_record)
            self.put(keys.HEAD_KEY, value)
        if self._retired:
            retired = Retired(tuple(self._retired))
            self.put(keys.retired(self.stamp), blob_records.RETIRED.encode(retired))
        if not (self._writes or self._adopt or self._drop):
            return tuple(self._before)
        own = Step(
            self._partition,
            tuple(map(write_of, self._writes.items())),
            tuple(self._adopt),
            tuple(self._drop),
        )
        tag_changes, before = self._tag_changes, self._place.before
        if _is_tagged(before) or _is_tagged(head_record):
            tag_changes = [TagChange(0, before, head_record), *tag_changes]
        if not tag_changes:
            return (*self._before, own, *self._after)  # the usual case
        entered, removed = tag_index.steps(self._generation, self._name, self.stamp, tag_changes)
        return (*self._before, *entered, own, *removed, *self._after)


def _is_tagged(record: BlobRecord | None) -> bool:
    return record is not None and record.tagged != 0
