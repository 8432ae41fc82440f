"""The check of the tag index: every tag has its entry, and no stale entry stays for ever.

Lives here: rule 12 of store/integrity.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from strongroom.engines.base import Record, Ref
from strongroom.store.blob import tag_index
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.core import tag_keys
from strongroom.store.core.records import Job, JobKind


class TagEntriesCheck:
    """All entries of a store: noted one by one, then claimed by the blobs that have the tags."""

    def __init__(self) -> None:
        self.entry_count = 0
        self._unclaimed: set[int] = set()
        self._jobs: set[tuple[int, str]] = set()

    def take(self, ref: Ref, record: Record) -> bool:
        """Return False when the key is none of the index. Raises: ValueError."""
        keyspace = ref.partition.keyspace
        if ref.key != tag_keys.TAG_KEY or not tag_keys.is_tag_entries(keyspace):
            return False
        entry = tag_keys.tag_entry_of(ref.partition.name)
        if bool(entry.version_id) != (keyspace[:1] == tag_keys.VERSIONS):
            raise ValueError("the entries of versions lie apart from those of blobs")
        if record.value != tag_index.ENTRY:
            raise ValueError("it is no entry of the index of tags")
        self.entry_count += 1
        self._unclaimed.add(hash(ref))
        return True

    def take_job(self, job: Job) -> None:
        """The stale entries that the job will remove are no error."""
        if job.kind is JobKind.SWEEP_TAGS:
            self._jobs.add((job.generation, job.blob))

    def missing(
        self, generation: int, name: str, record: BlobRecord | None, version: int = 0
    ) -> Iterator[str]:
        """Yield the tags of a blob, or of its version with this id, that have no entry in the
        index. The entries found are claimed."""
        if record is not None and record.tags and not record.tagged and record.deletion is None:
            yield "its tags are in no index; set them again, and searches find it"
        for ref in tag_index.entries(generation, name, tag_index.tagged(record, version)):
            entry = hash(ref)
            if entry in self._unclaimed:
                self._unclaimed.remove(entry)
            else:
                key = tag_keys.tag_entry_of(ref.partition.name).key
                yield f"the index of tags lacks its tag {key!r}"

    def strays(
        self,
        records: Iterable[tuple[Ref, Record | None]],
        is_swept: Callable[[int], bool],
    ) -> Iterator[tuple[str, str]]:
        """Yield (place, problem) of each entry that no blob has claimed and no job removes.
        `is_swept`: a job cleans up after the container of this generation."""
        if not self._unclaimed:
            return
        for ref, _ in records:
            if not tag_keys.is_tag_entries(ref.partition.keyspace):
                continue
            if hash(ref) not in self._unclaimed:
                continue
            generation = int.from_bytes(ref.partition.keyspace[1:], "big")
            entry = tag_keys.tag_entry_of(ref.partition.name)
            if (generation, entry.blob) in self._jobs or is_swept(generation):
                continue
            place = f"tag {entry.key!r} = {entry.value!r} of blob {entry.blob!r}"
            yield place, "the blob does not have it any more, and no job removes the entry"
