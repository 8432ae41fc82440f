"""The check of one blob: its head, snapshots, versions, bodies, staged blocks, and the contents
that they name.

Lives here: rules 2 to 6 of store/integrity.py, inside one partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from strongroom.engines.base import ContentMissing, Key, Partition
from strongroom.semantics.core import copies
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import HEAD, Body, BodyFindings
from strongroom.store.blob.bodies.kinds import hidden_kind
from strongroom.store.blob.upload_integrity import UploadCheck
from strongroom.store.core import extents, keys
from strongroom.store.core.keys import Past
from strongroom.store.core.records import DamagedRecord

ReadContent = Callable[[int], bytes]


class FoundRecord(NamedTuple):
    key: Key
    value: bytes


class _BodyRecords:
    """The records that a body of this blob refers to. See InspectedBody."""

    def __init__(
        self, check: BlobCheck, which: str, past: Past, size_bytes: int, is_retired: bool = False
    ) -> None:
        self.which = which
        self.past = past
        self.size_bytes = size_bytes
        self._check = check
        self._is_retired = is_retired

    def record(self, key: Key) -> bytes | None:
        return self._check.claim(key)

    def records(self, first: bytes, until: bytes) -> list[tuple[bytes, bytes]]:
        return self._check.claim_range(first, until)

    def content(self, content: int) -> bytes | None:
        return self._check.read_content(content)

    def claim_map(self, number: int, at: int) -> None:
        self._check.claim_map(number, None if self._is_retired else at, self.past == HEAD)


class BlobCheck:
    """The check of one blob: `take` reads its records, `problems` checks them.

    Attributes:
        head, snapshots, versions: the records found; snapshots by their ticks, versions by
            their ids.
        needed: contents that must exist.
        given_up: contents that a retired body names; some may be dropped already.
        has_waste: whether the blob needs a sweep.
    """

    def __init__(self, read_content: ReadContent, partition: Partition) -> None:
        self.head: BlobRecord | None = None
        self.snapshots: dict[int, BlobRecord] = {}
        self.versions: dict[int, BlobRecord] = {}
        self.uploads = UploadCheck()
        self.needed: set[int] = set()
        self.given_up: set[int] = set()
        self.has_waste = False
        self._read_content = read_content
        self._maps = extents.MapsCheck(partition)
        # By map, the stamps at which live bodies read it; and the number of the head's map.
        self._states: dict[int, list[int]] = {}
        self._head_map = -1
        self._hidden: dict[bytes, bytes] = {}
        self._claimed: set[bytes] = set()
        self._retired: list[Body] = []
        self._problems: list[str] = []

    def take(self, face: list[FoundRecord], hidden: list[FoundRecord]) -> None:
        """Raises: DamagedRecord, ValueError for an unknown key."""
        for record in face:
            self._take_face(record)
        for record in hidden:
            self._take_hidden(record)

    def _take_face(self, record: FoundRecord) -> None:
        ticks = keys.snapshot_ticks(record.key.name)
        if ticks is not None:
            self.snapshots[ticks] = blob_records.BLOB.decode(record.value)
        elif record.key == keys.HEAD_KEY:
            self.head = blob_records.BLOB.decode(record.value)
        else:
            raise DamagedRecord(f"no record has the key {record.key.name!r}")

    def _take_hidden(self, record: FoundRecord) -> None:
        name, kind = record.key.name, record.key.name[:1]
        if self.uploads.take(name, record.value):
            return
        number = int.from_bytes(name[1:9], "big")
        version = keys.version_id(name)
        if version is not None:
            self.versions[version] = blob_records.BLOB.decode(record.value)
        elif kind == keys.RETIRED:
            self._retired += blob_records.RETIRED.decode(record.value).bodies
            self.has_waste = True
        elif kind == keys.STAGED:
            self.needed.add(blob_records.STAGED.decode(record.value).content)
            self.uploads.take_staged(number)
        elif not self._maps.take(name, record.value):
            hidden_kind(name).contents(name, record.value)
            self._hidden[name] = record.value

    def problems(self) -> Iterator[str]:
        """Yield the violations; afterwards `needed`, `given_up` and `has_waste` are complete."""
        if self.head is not None and not self.head.vacant:
            self._judge_body(self.head, "the head", HEAD)
        self._judge_counts()
        for ticks, snapshot in self.snapshots.items():
            self._judge_body(snapshot, f"the snapshot {ticks}", Past(ticks))
        for version, record in self.versions.items():
            self._judge_body(record, f"the version {version}", Past(version, True))
            if record.version != version:
                self._problems.append(f"the version {version} says that it is {record.version}")
        for body in self._retired:
            beside = _BodyRecords(self, "what was retired", HEAD, 0, is_retired=True)
            retired = self._inspect(body, beside)
            self.given_up.update(retired.contents)
        self._judge_maps()
        self._problems += self.uploads.problems()
        self.has_waste = self.has_waste or self.uploads.has_waste
        for name in self._hidden.keys() - self._claimed:
            number = int.from_bytes(name[1:9], "big")
            self._problems.append(hidden_kind(name).orphan_text.format(number))
        self.given_up -= self.needed
        yield from self._problems

    def _judge_counts(self) -> None:
        head, snapshots, versions = self.head, self.snapshot_count, len(self.versions)
        if head is None:
            if snapshots:
                self._problems.append(f"{snapshots} snapshots without their blob")
            if versions:
                self._problems.append(f"{versions} versions, and no record in the head's place")
            return
        if head.snapshots != snapshots:
            self._problems.append(f"{snapshots} snapshots, but its head counts {head.snapshots}")
        if head.versions != versions:
            self._problems.append(f"{versions} versions, but its head counts {head.versions}")
        if head.vacant and not versions:
            self._problems.append("its place is held for versions, and there are none")

    @property
    def snapshot_count(self) -> int:
        """Without those that are deleted."""
        return sum(one.deletion is None for one in self.snapshots.values())

    @property
    def has_kept(self) -> bool:
        """Whether a state is deleted and retained until its retention ends."""
        heads = () if self.head is None else (self.head,)
        kept = (*heads, *self.snapshots.values(), *self.versions.values())
        return any(one.deletion is not None for one in kept)

    def _judge_body(self, blob: BlobRecord, which: str, past: Past) -> None:
        findings = self._inspect(blob.body, _BodyRecords(self, which, past, blob.size_bytes))
        self.needed.update(findings.contents)
        self._problems += findings.problems
        if findings.size_bytes is None:
            self._problems.append(f"the bytes of {which} are missing")
        elif findings.size_bytes != blob.size_bytes:
            problem = f"{which} says {blob.size_bytes} bytes, but has {findings.size_bytes}"
            self._problems.append(problem)

    def _inspect(self, body: Body, beside: _BodyRecords) -> BodyFindings:
        try:
            return body.inspect(beside)
        except DamagedRecord as error:
            return BodyFindings(beside.size_bytes, body.named.contents, (str(error),))

    def claim(self, key: Key) -> bytes | None:
        """Mark the record as used by a body."""
        self._claimed.add(key.name)
        return self._hidden.get(key.name)

    def claim_range(self, first: bytes, until: bytes) -> list[tuple[bytes, bytes]]:
        """In the order of their names; mark them as used by a body."""
        pairs = sorted(pair for pair in self._hidden.items() if first <= pair[0] < until)
        self._claimed.update(name for name, _ in pairs)
        return pairs

    def claim_map(self, number: int, at: int | None, is_head: bool) -> None:
        """`at` None = the body is retired."""
        states = self._states.setdefault(number, [])
        if at is not None:
            states.append(at)
            self._head_map = number if is_head else self._head_map

    def _judge_maps(self) -> None:
        for number in sorted(self._maps.numbers() - self._states.keys()):
            self._problems.append(f"map {number} belongs to nothing")
        for number, states in sorted(self._states.items()):
            size_bytes = extents.OFFSET_MAX
            head = self.head
            if head is not None and number == self._head_map and not copies.is_pending(head.copy):
                size_bytes = head.size_bytes
            problems = self._maps.judge(number, size_bytes, states)
            self._problems += [f"map {number}: {problem}" for problem in problems]
        self.needed |= self._maps.needed
        self.given_up |= self._maps.given_up
        self.has_waste = self.has_waste or self._maps.has_waste

    def read_content(self, content: int) -> bytes | None:
        """None when it is missing."""
        try:
            return self._read_content(content)
        except ContentMissing:
            return None
