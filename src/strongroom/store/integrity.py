"""The integrity check of a store: every reference has its target, and every target its reference.

Lives here: the check over one snapshot, blob by blob. Its memory grows with the number of contents
and of tags, an integer each, and not with the records. Must not live here: checksums and files
(the engines), rules of Azure.

The rules that must hold:
 1. Every record has a known key (keys.py) and decodes.
 2. A head counts its snapshots and versions. A snapshot that is not deleted has a head, and
    versions have a head or a vacant one.
 3. An inline body is stored beside its blob, with its length and its checksum; every inline body
    belongs to one.
 4. A block list exists, has as many blocks as its blob says, and their lengths add up to the blob's
    length.
 5. An upload counts its blocks.
 6. A content that a blob names exists, and is named inside one blob only; every content is named.
    (A body that was given up may name contents that are already dropped.)
 7. The maps of page blobs agree with the states that bodies name (core/extents/check.py).
 8. A pending cleanup or copy has a job.
 9. The messages of a queue agree with each other (queue/integrity.py).
10. A deleted and retained container, and a blob with a deleted and retained state, has a job that
    ends its retention.
11. An entity has all its records and belongs to a table (table/integrity.py).
12. Each tag of a blob has its entry in the index. Each entry belongs to a tag, or has a job that
    removes it (blob/tag_integrity.py).
13. The names of a share agree with its directories and files (file/integrity.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Protocol

from strongroom.engines.base import ContentMissing, Partition, Record, Ref
from strongroom.engines.findings import Finding
from strongroom.semantics.core.copies import is_pending
from strongroom.store.blob.integrity import BlobCheck, FoundRecord
from strongroom.store.blob.tag_integrity import TagEntriesCheck
from strongroom.store.core import (
    identity_rows,
    keys,
    line_keys,
    records,
    share_keys,
    tag_keys,
)
from strongroom.store.core.records import DamagedRecord, Job, JobKind
from strongroom.store.file.integrity import FilesCheck
from strongroom.store.queue.integrity import MessagesCheck
from strongroom.store.table.integrity import EntitiesCheck, entity_name

Progress = Callable[[int, int], None]
"""progress(records checked, total records)."""

_STEP_RECORDS: Final = 1000
_FILES: Final = b"a"


class StoreSnapshot(Protocol):
    """A snapshot of a store, as an inspection of its engine provides it."""

    def records(self) -> Iterator[tuple[Ref, Record | None]]:
        """Yield all records in order, face keys first; None for a damaged record."""
        ...

    def content_ids(self) -> Iterator[int]: ...

    def read_content(self, content_id: int) -> Iterator[bytes]:
        """In pieces."""
        ...


class Integrity:
    """`damaged` are the contents whose checksums differ; what names them is damaged too."""

    def __init__(self, store_snapshot: StoreSnapshot, damaged: Collection[int] = ()) -> None:
        self._store_snapshot = store_snapshot
        self._damaged = frozenset(damaged)
        self._containers: set[int] = set()
        self._kept: dict[int, str] = {}
        self._messages = MessagesCheck()
        self._entities = EntitiesCheck()
        self._files = FilesCheck()
        self._tags = TagEntriesCheck()
        self._jobs: set[tuple[JobKind, int, str, str]] = set()
        self._contents: set[int] = set()
        self._named: set[int] = set()
        self._record_count = 0
        self._container_count = 0
        self._blob_count = 0
        self._snapshot_count = 0
        self._version_count = 0
        # By the first byte of a keyspace.
        self._noting: dict[bytes, Callable[[Ref, Record], bool]] = {
            b"c": self._note_container,
            b"e": self._entities.take,
            b"f": self._note_share,
            keys.IDENTITIES: identity_rows.check,
            b"m": self._messages.take,
            b"n": self._files.take,
            b"q": self._note_queue,
            b"t": self._note_table,
        }

    def counts(self) -> dict[str, int]:
        """Once `findings` is exhausted."""
        return {
            "containers": self._container_count,
            "blobs": self._blob_count,
            "snapshots": self._snapshot_count,
            "versions": self._version_count,
            "queues": self._messages.queue_count,
            "messages": self._messages.message_count,
            "tables": self._entities.table_count,
            "entities": self._entities.entity_count,
            "tags": self._tags.entry_count,
            "shares": self._files.share_count,
            "files": self._files.file_count,
            "contents": len(self._contents),
            "records": self._record_count,
        }

    def findings(self, progress: Progress | None = None) -> Iterator[Finding]:
        """Yield every violation. Raises: OSError and the engine's errors."""
        yield from self._survey()
        self._contents = set(self._store_snapshot.content_ids())
        for generation, name in self._kept.items():
            if not any(job[:2] == (JobKind.EXPIRE_CONTAINER, generation) for job in self._jobs):
                yield Finding(f"deleted container {name!r}", "it is kept, and no job ends that")
        yield from itertools.starmap(Finding, self._messages.problems())
        yield from itertools.starmap(Finding, self._entities.problems())
        done = 0
        for partition, face, hidden in self._partitions():
            if partition.keyspace[:1] == _FILES:
                yield from self._check_file(partition, face, hidden)
            else:
                yield from self._check_blob(partition, face, hidden)
            before, done = done, done + len(face) + len(hidden)
            if progress is not None and before // _STEP_RECORDS != done // _STEP_RECORDS:
                progress(done, self._record_count)
        yield from itertools.starmap(Finding, self._files.problems())
        for content in sorted(self._contents - self._named):
            yield Finding(f"content {content}", "nothing refers to it")
        for place, problem in self._tags.strays(self._store_snapshot.records(), self._is_swept):
            yield Finding(place, problem)

    def _survey(self) -> Iterator[Finding]:
        """Note all containers and jobs, on which the check of blobs depends, and check every record
        outside of blobs."""
        for ref, record in self._store_snapshot.records():
            self._record_count += 1
            keyspace = ref.partition.keyspace
            if record is None:
                yield _finding(ref, "it is damaged: the checksum of its record differs")
                continue
            if _is_owner_of_contents(keyspace):
                continue
            try:
                if not self._note(ref, record):
                    yield _finding(ref, "no record belongs here")
            except (DamagedRecord, ValueError) as error:
                yield _finding(ref, str(error))

    def _note(self, ref: Ref, record: Record) -> bool:
        """Return False when the key is unknown."""
        keyspace = ref.partition.keyspace
        if keyspace == keys.SERVICES and ref.key == keys.PROPERTIES_KEY:
            records.PROPERTIES.decode(record.value)
        elif keyspace == keys.JOBS and ref.key == keys.JOB_KEY:
            self._note_job(ref, records.JOB.decode(record.value))
        elif keyspace == line_keys.LINES and ref.key == line_keys.LINE_KEY:
            records.LINE.decode(record.value)
        elif tag_keys.is_tag_entries(keyspace):
            return self._tags.take(ref, record)
        else:
            note = self._noting.get(keyspace[:1])
            return note is not None and note(ref, record)
        return True

    def _note_job(self, ref: Ref, job: Job) -> None:
        self._jobs.add((job.kind, job.generation, job.blob, job.token))
        self._messages.take_job(ref.partition.name, job)
        self._entities.take_job(job)
        self._tags.take_job(job)
        self._files.take_job(job)

    def _note_container(self, ref: Ref, record: Record) -> bool:
        if ref.key == keys.CONTAINER_KEY:
            self._containers.add(records.CONTAINER.decode(record.value).generation)
            self._container_count += 1
        elif keys.is_deleted_place(ref.key.name):
            kept = records.DELETED_CONTAINER.decode(record.value)
            self._containers.add(kept.record.generation)
            self._kept[kept.record.generation] = ref.partition.name.decode()
        else:
            return False
        return True

    def _note_queue(self, ref: Ref, record: Record) -> bool:
        if ref.key != keys.QUEUE_KEY:
            return False
        self._messages.take_queue(records.QUEUE.decode(record.value))
        return True

    def _note_share(self, ref: Ref, record: Record) -> bool:
        if ref.key == keys.SHARE_KEY:
            self._files.take_share(record)
        elif share_keys.snapshot_of(ref.key.name) is not None:
            self._files.take_snapshot(ref.key.name, record)
        elif keys.is_deleted_place(ref.key.name):
            self._files.take_deleted_share(ref, record)
        else:
            return False
        return True

    def _note_table(self, ref: Ref, record: Record) -> bool:
        if ref.key != keys.TABLE_KEY:
            return False
        return self._entities.take_table(ref, records.TABLE.decode(record.value))

    def _partitions(self) -> Iterator[tuple[Partition, list[FoundRecord], list[FoundRecord]]]:
        """Yield the partitions of blobs and files in order, each with its face and its hidden
        records."""
        faces = _grouped(itertools.takewhile(_is_face, self._store_snapshot.records()))
        hidden = _grouped(itertools.dropwhile(_is_face, self._store_snapshot.records()))
        face_next, hidden_next = next(faces, None), next(hidden, None)
        while face_next is not None or hidden_next is not None:
            partition = min(group[0] for group in (face_next, hidden_next) if group is not None)
            face: list[FoundRecord] = []
            secret: list[FoundRecord] = []
            if face_next is not None and face_next[0] == partition:
                face, face_next = face_next[1], next(faces, None)
            if hidden_next is not None and hidden_next[0] == partition:
                secret, hidden_next = hidden_next[1], next(hidden, None)
            yield partition, face, secret

    def _check_blob(
        self, partition: Partition, face: list[FoundRecord], hidden: list[FoundRecord]
    ) -> Iterator[Finding]:
        at = Ref(partition, keys.HEAD_KEY)
        check = BlobCheck(self._read_whole, partition)
        try:
            check.take(face, hidden)
        except (DamagedRecord, ContentMissing, ValueError) as error:
            yield _finding(at, str(error))
            return
        head = check.head
        self._blob_count += head is not None and head.deletion is None and not head.vacant
        self._snapshot_count += check.snapshot_count
        self._version_count += len(check.versions)
        for problem in check.problems():
            yield _finding(at, problem)
        yield from self._check_contents(at, check.needed, check.given_up)
        for problem in self._missing_jobs(partition, check):
            yield _finding(at, problem)

    def _check_file(
        self, partition: Partition, face: list[FoundRecord], hidden: list[FoundRecord]
    ) -> Iterator[Finding]:
        at = Ref(partition, keys.FILE_KEY)
        try:
            found = self._files.check(partition, face, hidden)
        except (DamagedRecord, ValueError) as error:
            yield _finding(at, str(error))
            return
        for problem in found.problems:
            yield _finding(at, problem)
        yield from self._check_contents(at, found.needed, found.given_up, "file")

    def _check_contents(
        self, at: Ref, needed: set[int], given_up: set[int], owner: str = "blob"
    ) -> Iterator[Finding]:
        for content in sorted(needed - self._contents):
            yield _finding(at, f"its content {content} is missing")
        if needed & self._damaged:
            yield _finding(at, "its bytes are damaged: their checksum differs")
        named = needed | given_up
        for content in sorted(named & self._named):
            yield _finding(at, f"its content {content} is another {owner}'s too")
        self._named |= named

    def unnamed(self, contents: Iterable[int]) -> list[int]:
        """Return which of these contents nothing names, once `findings` is exhausted."""
        return [one for one in contents if one not in self._named]

    def _missing_jobs(self, partition: Partition, check: BlobCheck) -> Iterator[str]:
        generation = int.from_bytes(partition.keyspace[1:], "big")
        name = partition.name.decode("utf-8", "backslashreplace")
        if generation not in self._containers:
            if not self._is_swept(generation):
                yield "its container is gone, and no job cleans up"
            return
        for version, record in ((0, check.head), *check.versions.items()):
            yield from self._tags.missing(generation, name, record, version)
        if check.has_waste and (JobKind.SWEEP_BLOB, generation, name, "") not in self._jobs:
            yield "something was given up, and no job cleans up"
        if check.has_kept and (JobKind.EXPIRE_BLOB, generation, name, "") not in self._jobs:
            yield "something deleted is kept, and no job ends that"
        copy = None if check.head is None else check.head.copy
        wanted: list[tuple[JobKind, str, str]] = []
        if (upload := check.uploads.first) is not None:
            number = str(upload.number)
            wanted.append(
                (JobKind.EXPIRE_UPLOAD, number, "blocks are staged, and no job expires them")
            )
        if copy is not None and is_pending(copy):
            wanted.append((JobKind.COPY, copy.id, "a copy is pending, and no job copies"))
        for kind, token, problem in wanted:
            if (kind, generation, name, token) not in self._jobs:
                yield problem

    def _is_swept(self, generation: int) -> bool:
        """Whether a job cleans up after this container."""
        return any(job[:2] == (JobKind.SWEEP_CONTAINER, generation) for job in self._jobs)

    def _read_whole(self, content: int) -> bytes:
        return b"".join(self._store_snapshot.read_content(content))


def _is_face(item: tuple[Ref, Record | None]) -> bool:
    return not item[0].key.hidden


def _grouped(
    items: Iterable[tuple[Ref, Record | None]],
) -> Iterator[tuple[Partition, list[FoundRecord]]]:
    for partition, group in itertools.groupby(items, lambda item: item[0].partition):
        if _is_owner_of_contents(partition.keyspace):
            yield (
                partition,
                [FoundRecord(ref.key, one.value) for ref, one in group if one is not None],
            )


def _is_owner_of_contents(keyspace: bytes) -> bool:
    """Return whether the partitions of a keyspace are those of blobs or files."""
    return keyspace[:1] in (b"b", _FILES) and len(keyspace) == 9


def _finding(at: Ref, problem: str) -> Finding:
    return Finding(_place(at), problem, at)


def _place(ref: Ref) -> str:
    keyspace, name = ref.partition
    if keyspace[:1] == _FILES:
        return f"file {int.from_bytes(name, 'big')}"
    if keyspace[:1] == b"b":
        return f"blob {name.decode('utf-8', 'backslashreplace')!r}"
    if keyspace[:1] == b"e":
        return entity_name(ref)
    return f"record {keyspace!r} {name!r} {ref.key.name!r}"
