"""The index of blobs by their tags: which entries a blob has, and the steps that keep them.

Lives here: entries, the steps around a commit that changes a blob's tags, and how an entry is
checked. Must not live here: searching (services/blob/tags/), what a tag may be (semantics).

The index is exact at once, although an entry lies in another partition than its blob:

    1. a job is recorded that removes whatever entries are left over,
    2. the new tags' entries are added, each ending in the token of this commit,
    3. the blob's head is committed; it names the token of its tags,
    4. the old tags' entries are removed, and the job.

An entry counts only while the blob's head names its token. So after a crash between any two steps
there may be entries that do not count, never a tag without its entry. No two commits share a token:
what one removes, none other has added. Snapshots have no entries.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from strongroom.engines.base import Key, Partition, Ref, Step, Write
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.core import keys, records
from strongroom.store.core.records import Job, JobKind
from strongroom.values import TICKS_PER_S, Metadata

ENTRY: Final = b"\x01"
"""The value of each entry: the version of its form."""
# Long after the commit, which removes the job itself: only a crash leaves it.
_SWEEP_AFTER_TICKS: Final = 60 * TICKS_PER_S


class Tagged(NamedTuple):
    """A blob's tags and their token."""

    token: int = 0
    tags: Metadata = ()


NO_TAGS: Final = Tagged()


def tagged(head: BlobRecord | None) -> Tagged:
    """The tags of a head that have entries; those that were stored without a token have none."""
    return NO_TAGS if head is None or not head.tagged else Tagged(head.tagged, head.tags)


def with_token(head: BlobRecord, before: BlobRecord | None, stamp: int) -> BlobRecord:
    """The head as the commit `stamp` writes it: tags that stay keep their token, and so their
    entries; others have the commit's."""
    kept = tagged(before)
    token = 0
    if head.tags:
        token = kept.token if kept.tags == head.tags else stamp
    if head.tagged == token:
        return head
    return msgspec.structs.replace(head, tagged=token)


def entries(generation: int, name: str, of: Tagged) -> list[Ref]:
    """All entries of a blob's tags."""
    return [keys.tag_entry(generation, key, value, name, of.token) for key, value in of.tags]


def counts(head: BlobRecord | None, token: int) -> bool:
    """Whether an entry with this token leads to this head."""
    return head is not None and head.committed and head.tagged == token


def steps(
    generation: int,
    name: str,
    stamp: int,
    head_before: BlobRecord | None,
    head_after: BlobRecord | None,
) -> tuple[list[Step], list[Step]]:
    """The steps before and after the one that writes the blob's head.

    Arguments:
        stamp: the commit's.
        head_before, head_after: the head that was, and the one that will be.
    """
    before, after = tagged(head_before), tagged(head_after)
    if before.token == after.token:
        return [], []
    ref = keys.job(stamp + _SWEEP_AFTER_TICKS, stamp, JobKind.SWEEP_TAGS)
    sets = tuple((one.token, one.tags) for one in (before, after) if one.token)
    job = records.JOB.encode(Job(JobKind.SWEEP_TAGS, generation, name, tags=sets))
    first = [_write(ref, job), *(_write(one, ENTRY) for one in entries(generation, name, after))]
    last = [_write(one, None) for one in entries(generation, name, before)]
    return first, [*last, _write(ref, None)]


def _write(ref: Ref, value: bytes | None) -> Step:
    return Step(ref.partition, (Write(ref.key, value),))


def left_over(job: Job, head: BlobRecord | None) -> list[tuple[Partition, Key]]:
    """The entries of a job that do not count, whatever commits have happened since."""
    gone = [Tagged(*one) for one in job.tags if not counts(head, one[0])]
    return [
        (ref.partition, ref.key) for one in gone for ref in entries(job.generation, job.blob, one)
    ]
