"""The check that the names, nodes, attributes and bytes of shares agree.

Lives here: the check of all shares. Its memory grows by an integer for each file.

What must hold:
 1. Each name has a node that says where it is, and each node has its name.
 2. A directory counts the names below it, and each name is below a directory that exists.
 3. The usage of a share is the sum of what its nodes count. Each node has attributes. Attributes
    without a node are those of an interrupted creation, which have no bytes, or a job removes them.
 4. The bytes of a file agree with its length (store/core/extents/check.py).
 5. Everything that is of neither a living share nor a soft-deleted one has a job that removes it.
 6. The snapshots of a share are those that its record names. Past names, attributes and bytes are
    seen by one of them, or a job removes them.
 7. A soft-deleted share has a job that ends its retention.
 8. A pending copy to a file has a job that carries it out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from strongroom.engines.base import Key, Partition, Record, Ref
from strongroom.semantics.core.copies import is_pending
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.extents import OFFSET_MAX, MapsCheck
from strongroom.store.core.records import Job, JobKind, ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.store.tree import tree_records

_NUMBER_BYTES = 8
Records = Sequence[tuple[Key, bytes]]


class _Names:
    """The names of one share. Each sum is the total over the names, less the total over the
    nodes."""

    def __init__(self) -> None:
        self.nodes: dict[int, bool] = {}
        self.places_sum = 0
        self.children_sum = 0
        self.usage_bytes = 0
        self.past: list[tuple[int, int]] = []
        self.parents: set[int] = set()


class FileFindings(NamedTuple):
    problems: list[str]
    needed: set[int]
    given_up: set[int]


class FilesCheck:
    """The check of all shares in one snapshot of the store. It takes in everything but files first,
    then each file."""

    def __init__(self) -> None:
        self.share_count = 0
        self.file_count = 0
        self._alive: set[int] = set()
        self._kept: dict[int, str] = {}
        self._expired: set[int] = set()
        self._swept: set[int] = set()
        self._sweeps_past: set[int] = set()
        self._snapshots: dict[int, tuple[int, ...]] = {}
        self._taken: dict[int, set[int]] = {}
        self._swept_files: set[tuple[int, str]] = set()
        self._copies: set[tuple[int, str, str]] = set()
        self._names: dict[int, _Names] = {}
        self._with_attributes: set[tuple[int, int]] = set()

    def take_share(self, record: Record) -> None:
        self.share_count += 1
        self._take(records.SHARE.decode(record.value))

    def _take(self, share: ShareRecord) -> None:
        self._alive.add(share.generation)
        self._snapshots[share.generation] = share.snapshots

    def take_snapshot(self, key: bytes, record: Record) -> None:
        named = share_keys.snapshot_of(key)
        assert named is not None, "it is the key of a snapshot"
        records.SHARE.decode(record.value)
        self._taken.setdefault(named[0], set()).add(named[1])

    def take_deleted_share(self, ref: Ref, record: Record) -> None:
        share = records.DELETED_SHARE.decode(record.value).record
        self._take(share)
        self._kept[share.generation] = ref.partition.name.decode()

    def take_job(self, job: Job) -> None:
        if job.kind is JobKind.EXPIRE_SHARE:
            self._expired.add(job.generation)
        elif job.kind is JobKind.SWEEP_SHARE:
            self._swept.add(job.generation)
        elif job.kind is JobKind.SWEEP_SNAPSHOT:
            self._sweeps_past.add(job.generation)
        elif job.kind is JobKind.SWEEP_FILE:
            self._swept_files.add((job.generation, job.blob))
        elif job.kind is JobKind.COPY_FILE:
            self._copies.add((job.generation, job.blob, job.token))

    def take(self, ref: Ref, record: Record) -> bool:
        """A record among a share's names. Returns False when no kind of record belongs at this
        key."""
        generation = int.from_bytes(ref.partition.keyspace[1:], "big")
        if ref.partition == keys.permissions(generation):
            file_records.PERMISSION.decode(record.value)
            return not ref.key.hidden
        if ref.partition != keys.file_names(generation):
            return False
        names = self._names.setdefault(generation, _Names())
        if not ref.key.hidden:
            return _take_name(names, generation, ref.key.name, record)
        past = share_keys.past_of_name(ref.key.name)
        if past is not None:
            since = file_records.PAST.decode(record.value).since
            names.past.append((since, past[1]))
        elif ref.key == share_keys.NAMED_KEY:
            file_records.NAMED.decode(record.value)
        elif ref.key == share_keys.USAGE_KEY:
            names.usage_bytes -= file_records.USAGE.decode(record.value).size_bytes
        else:
            return _take_node(names, ref.key.name, record)
        return True

    def check(self, partition: Partition, face: Records, hidden: Records) -> FileFindings:
        """Of one directory's or file's partition, once everything else was taken in."""
        generation = int.from_bytes(partition.keyspace[1:], "big")
        file_id = int.from_bytes(partition.name, "big")
        of_face = self._read_face((generation, file_id), face)
        record, problems = of_face.record, of_face.problems
        names = self._names.get(generation, _Names())
        is_linked = file_id in names.nodes or file_id == generation
        snapshots = self._snapshots.get(generation, ())
        living = snapshots if is_linked else _seen_of(of_face.past, snapshots)
        maps = MapsCheck(partition)
        for key, value in hidden:
            if not maps.take(key.name, value):
                problems.append("no record belongs here")
        for number in maps.numbers():
            # A deleted file has no length; a job removes its bytes.
            size_bytes = OFFSET_MAX if record is None else _reached(record)
            problems += maps.judge(number, size_bytes, living)
            if number != file_id:
                problems.append(f"the bytes of {number} are not this file's")
        self.file_count += is_linked and record is not None and not record.is_directory
        has_waste = maps.has_waste or not _all_seen(of_face.past, snapshots)
        is_garbage = bool(record is None or hidden) and not living
        problem = self._problem_of(generation, file_id, record, is_garbage, has_waste)
        if problem is not None:
            problems.append(problem)
        return FileFindings(problems, maps.needed, maps.given_up)

    def _read_face(self, at: tuple[int, int], face: Records) -> _Face:
        """`at` is the share's generation, and the file's id."""
        of_face = _Face()
        for key, value in face:
            until = share_keys.past_of_attributes(key.name)
            if key == keys.FILE_KEY:
                of_face.record = file_records.FILE.decode(value)
                self._with_attributes.add(at)
            elif until is not None:
                kept = file_records.PAST.decode(value)
                file_records.FILE.decode(kept.value)
                of_face.past.append((kept.since, until))
            else:
                of_face.problems.append("no record belongs here")
        return of_face

    def _problem_of(
        self,
        generation: int,
        file_id: int,
        record: FileRecord | None,
        is_garbage: bool,
        has_waste: bool,
    ) -> str | None:
        """The first way in which a file does not agree with its share; None if it does.

        Arguments:
            record: its attributes.
            is_garbage: it has bytes or lacks attributes, and no snapshot sees it.
            has_waste: part of it is of no use any more.
        """
        kinds = self._names.get(generation, _Names()).nodes
        is_linked = file_id in kinds or file_id == generation
        is_swept = (
            generation in self._swept
            or generation in self._sweeps_past
            or (generation, str(file_id)) in self._swept_files
        )
        if generation not in self._alive and not is_swept:
            return "its share is gone, and no job cleans up"
        if not is_linked and is_garbage and not is_swept:
            return "no name leads to it, and no job cleans up"
        if is_linked and record is None:
            return "its attributes are missing"
        if record is not None and self._lacks_copy_job(generation, file_id, record):
            return "a copy is pending, and no job copies"
        if has_waste and not is_swept:
            return "something was given up, and no job cleans up"
        if record is not None and kinds.get(file_id, record.is_directory) != record.is_directory:
            return "its name and its attributes are of two kinds"
        return None

    def _lacks_copy_job(self, generation: int, file_id: int, record: FileRecord) -> bool:
        copy = record.copy
        if copy is None or not is_pending(copy):
            return False
        return (generation, str(file_id), copy.id) not in self._copies

    def problems(self) -> Iterator[tuple[str, str]]:
        """(place, problem) of all shares, once everything was taken in and checked."""
        for generation, name in self._kept.items():
            if generation not in self._expired:
                yield f"deleted share {name!r}", "it is kept, and no job ends that"
        for generation, names in self._names.items():
            if generation in self._swept:
                continue
            place = f"share of generation {generation}"
            if generation in self._alive:
                for problem in self._problems_of_names(generation, names):
                    yield place, problem
            else:
                yield place, "its share is gone, and no job cleans up"

    def _problems_of_names(self, generation: int, names: _Names) -> Iterator[str]:
        snapshots = self._snapshots[generation]
        if names.places_sum:
            yield "its names do not agree with where they lead"
        if self._taken.get(generation, set()) != set(snapshots):
            yield "its snapshots are not those that its record names"
        if not _all_seen(names.past, snapshots) and generation not in self._sweeps_past:
            yield "it keeps names that no snapshot sees, and no job cleans up"
        if names.usage_bytes:
            yield "its usage is not that of its files"
        if names.children_sum or not names.parents <= names.nodes.keys():
            yield "its directories do not count the names below them"
        for file_id in names.nodes:
            if (generation, file_id) not in self._with_attributes:
                yield f"the file {file_id} has no attributes"


@dataclass(slots=True)
class _Face:
    """What the face of a file's partition holds: its attributes, and when its past states were."""

    record: FileRecord | None = None
    past: list[tuple[int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def _take_name(names: _Names, generation: int, name: bytes, record: Record) -> bool:
    """A name in a directory; False when it has no such key. Raises DamagedRecord."""
    entry = tree_records.NAME.decode(record.value)
    names.places_sum += _hash(name, entry.id, entry.is_directory)
    parent = int.from_bytes(name[:_NUMBER_BYTES], "big")
    if parent != generation:
        names.children_sum += _hash(b"", parent, True)
        names.parents.add(parent)
    return len(name) > _NUMBER_BYTES


def _take_node(names: _Names, name: bytes, record: Record) -> bool:
    """Where a file or directory has its name; False when it has no such key. Raises
    DamagedRecord."""
    if name[:1] != keys.FILE_NODE or len(name) != 1 + _NUMBER_BYTES:
        return False
    node, file_id = tree_records.NODE.decode(record.value), int.from_bytes(name[1:], "big")
    place = keys.file_name_key(node.parent, node.name).name
    names.places_sum -= _hash(place, file_id, node.is_directory)
    names.children_sum -= node.children * _hash(b"", file_id, True)
    names.nodes[file_id] = node.is_directory
    names.usage_bytes += node.size_bytes
    return True


def _reached(record: FileRecord) -> int:
    """Return the offset up to which a file may have bytes. A pending copy may have written some
    already."""
    copy = record.copy
    if copy is None or not is_pending(copy):
        return record.size_bytes
    return max(record.size_bytes, copy.copied_bytes)


def _seen_of(past: Iterable[tuple[int, int]], snapshots: Iterable[int]) -> tuple[int, ...]:
    """Return the snapshots that see one of these states: (since, until) each."""
    lives = list(past)
    return tuple(at for at in snapshots if any(since <= at < until for since, until in lives))


def _all_seen(past: Iterable[tuple[int, int]], snapshots: Collection[int]) -> bool:
    return all(any(since <= at < until for at in snapshots) for since, until in past)


def _hash(place: bytes, file_id: int, is_directory: bool) -> int:
    text = place + file_id.to_bytes(_NUMBER_BYTES, "big") + bytes((is_directory,))
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
