"""The index of blobs by their tags: the entries of a blob, and the steps that maintain them.

Lives here: entries, the steps around a commit that changes tags of a blob or of its versions, and
how an entry is checked.

The index is always exact, although an entry lies in another partition than its blob:

    1. a job is recorded that removes stale entries,
    2. the new tags' entries are added, each ending in the token of this commit,
    3. the blob's head is committed; it names the token of its tags,
    4. the old tags' entries are removed, and the job.

An entry counts only while the blob's head names its token. So after a crash between any two steps
there may be stale entries, but never a tag without its entry. No two commits share a token, so no
commit removes entries that another has added. Snapshots have no entries. The entries of a previous
version are separate and name its id too. They count while the version's own record names their
token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from strongroom.engines.base import Key, Partition, Ref, Step, Write
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.core import keys, records, tag_keys
from strongroom.store.core.records import Job, JobKind
from strongroom.values import TICKS_PER_S, Metadata

ENTRY: Final = b"\x01"
"""The value of each entry: the version of its format."""
# The delay is long, because the commit removes the job itself: only a crash leaves it.
_SWEEP_AFTER_TICKS: Final = 60 * TICKS_PER_S


class Tagged(NamedTuple):
    """The token and the tags of a blob, or of its previous version with this id."""

    token: int = 0
    tags: Metadata = ()
    version: int = 0


NO_TAGS: Final = Tagged()


class TagChange(msgspec.Struct, frozen=True):
    """A commit's change of the tags of a blob (`version` 0) or of one of its previous versions: the
    record before and after it."""

    version: int
    before: BlobRecord | None
    after: BlobRecord | None


def tagged(record: BlobRecord | None, version: int = 0) -> Tagged:
    """The tags that have entries; tags without a token have none."""
    if record is None or not record.tagged:
        return NO_TAGS
    return Tagged(record.tagged, record.tags, version)


def with_token(head: BlobRecord, before: BlobRecord | None, stamp: int) -> BlobRecord:
    """Return the head as the commit `stamp` writes it. Unchanged tags keep their token, and so
    their entries; other tags get the commit's stamp as token."""
    kept = tagged(before)
    token = 0
    if head.tags:
        token = kept.token if kept.tags == head.tags else stamp
    if head.tagged == token:
        return head
    return msgspec.structs.replace(head, tagged=token)


def entries(generation: int, name: str, of: Tagged) -> list[Ref]:
    token, version = of.token, of.version
    return [
        tag_keys.tag_entry(generation, key, value, name, token, version) for key, value in of.tags
    ]


def counts(record: BlobRecord | None, token: int) -> bool:
    """Whether an entry with this token refers to this head or version."""
    return record is not None and record.committed and record.tagged == token


def steps(
    generation: int,
    name: str,
    stamp: int,
    changes: Iterable[TagChange],
) -> tuple[list[Step], list[Step]]:
    """The steps before and after the one that writes the blob's records."""
    old, new = list[Tagged](), list[Tagged]()
    for one in changes:
        before, after = tagged(one.before, one.version), tagged(one.after, one.version)
        if before.token != after.token:
            old += [before] if before.token else []
            new += [after] if after.token else []
    if not (old or new):
        return [], []
    ref = keys.job(stamp + _SWEEP_AFTER_TICKS, stamp, JobKind.SWEEP_TAGS)
    sets = tuple((one.token, one.tags) for one in (*old, *new))
    versions = tuple(one.version for one in (*old, *new))
    job = Job(JobKind.SWEEP_TAGS, generation, name, tags=sets, versions=versions)
    first = [_write(ref, records.JOB.encode(job))]
    first += [_write(entry, ENTRY) for one in new for entry in entries(generation, name, one)]
    last = [_write(entry, None) for one in old for entry in entries(generation, name, one)]
    return first, [*last, _write(ref, None)]


def _write(ref: Ref, value: bytes | None) -> Step:
    return Step(ref.partition, (Write(ref.key, value),))


def named(job: Job) -> list[Tagged]:
    """The tags whose entries a job may have to remove."""
    # A job of an earlier release names no versions.
    versions = job.versions or (0,) * len(job.tags)
    return [Tagged(*one, version) for one, version in zip(job.tags, versions, strict=True)]


def stale_entries(job: Job, found: Mapping[int, BlobRecord | None]) -> list[tuple[Partition, Key]]:
    """The entries of a job that do not count at present. `found` has the blob's head under 0, and
    the versions that the job names under their ids."""
    gone = [one for one in named(job) if not counts(found[one.version], one.token)]
    return [
        (ref.partition, ref.key) for one in gone for ref in entries(job.generation, job.blob, one)
    ]
