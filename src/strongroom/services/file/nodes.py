"""Reading a directory or file, and changing its attributes at the serial point.

Lives here: the frame of every operation on one existing directory or file. Must not live here: what
the operations do (files.py, ranges.py), names (paths.py).

An operation resolves its path, enters the table of opens, and decides. The decision raises
PathChanged when a name, or a fact that admission relied on, has changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from strongroom.engines.base import Commit, Step, Write
from strongroom.semantics.core import lease as leases
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.deletion import FileFacts
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file import paths
from strongroom.services.file.admission import enter, facts_of
from strongroom.services.file.node_writes import LengthReads, recounted, root_attributes
from strongroom.services.file.past_states import (
    attributes_at,
    check_snapshot_exists,
    with_past_states,
)
from strongroom.services.file.paths import PathChanged, Where
from strongroom.store.core import keys, records
from strongroom.store.core.records import DamagedRecord, ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, NameRecord

T = TypeVar("T")


class NodeView(msgspec.Struct, frozen=True):
    """A committed directory or file, and the record's version. In a snapshot, the version is the
    snapshot's stamp."""

    where: Where
    record: FileRecord
    version: int


class NodeWritten(msgspec.Struct, frozen=True):
    """Result of a change: the file or directory after it."""

    where: Where
    record: FileRecord
    md5: bytes | None = None

    @property
    def etag(self) -> int:
        """The stamp of its ETag."""
        return self.record.etag

    @property
    def modified(self) -> int:
        """The stamp of its last modification."""
        return self.record.modified


class NodeChange(msgspec.Struct, Generic[T], frozen=True):
    """A decision's change of a directory or file.

    Attributes:
        record: its new attributes; None = they stay.
        before: steps that come first: a job, a permission.
        writes, adopt, drop: what else its commit writes in its partition.
    """

    result: T
    record: FileRecord | None
    before: tuple[Step, ...] = ()
    writes: tuple[Write, ...] = ()
    adopt: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()


ChangeNode = Callable[[Where, FileRecord, Found, int], NodeChange[T]]
"""Returns the change of a node, from its path, its attributes, the further records that it has
named, and the stamp. It is pure."""


def attributes_in(where: Where, record: FileRecord | None) -> FileRecord:
    """Return the attributes that a path leads to in a share that exists. Its root has no record
    until some are set.

    Raises: PathChanged when they are gone.
    """
    if record is not None:
        return record
    if not where.is_root:
        raise PathChanged
    return root_attributes(where.generation)


class LookReads(msgspec.Struct, frozen=True):
    """The reads of a look at what a path leads to: the names, the share, and the attributes."""

    on_path: ReadAll[NameRecord]
    share: ReadOne[ShareRecord]
    attributes: ReadOne[FileRecord]

    @classmethod
    def of(cls, reads: Reads, call: Call[Any], where: Where) -> LookReads:
        """Add these reads."""
        attributes = keys.file_attributes(where.generation, where.id)
        return cls(
            where.read(reads),
            reads.add(place_ref(call), records.SHARE),
            reads.add(attributes, file_records.FILE),
        )

    def view(self, call: Call[Any], where: Where, found: Found) -> NodeView:
        """Return what was read, if the path still leads there, and guard its lease.

        A file's lease changes by commits alone: it never expires, and breaks at once. So it is
        judged at the version of its record.

        Raises: PathChanged; StorageError ShareNotFound, the lease errors (412).
        """
        place_in(call, found, self.share)
        where.check(found, self.on_path)
        record = attributes_in(where, found[self.attributes])
        version = found.version(self.attributes) or 0
        leases.guard(record.lease, call.terms.lease_id, call.rule.lease, version)
        return NodeView(where, record, version)


async def view(services: Services, call: Call[Any], *, is_directory: bool) -> NodeView:
    """Read the directory or file that a request names, and guard its lease.

    Raises: StorageError ResourceNotFound, ParentNotFound, ShareNotFound, the lease errors (412).
    """
    while True:
        where = await paths.find(services, call, is_directory=is_directory)
        try:
            return await look(services, call, where)
        except PathChanged:
            continue


async def look(services: Services, call: Call[Any], where: Where) -> NodeView:
    """Read what a resolved path leads to, in one call with its names and the share.

    Raises: PathChanged; StorageError as `view`.
    """
    if call.target.snapshot is not None:
        return await _look_at(services, call, where, call.target.snapshot)
    reads = Reads()
    look_reads = LookReads.of(reads, call, where)
    return look_reads.view(call, where, await services.read(reads))


async def _look_at(services: Services, call: Call[Any], where: Where, at: int) -> NodeView:
    """Read a directory or file of a snapshot. It has no lease there."""
    record = file_records.FILE.of(await attributes_at(services.store, where.partition, at))
    await check_snapshot_exists(services, call)
    if record is None:
        if not where.is_root:
            raise DamagedRecord(f"the attributes of {where.id} are missing in a snapshot")
        record = root_attributes(where.generation)
    leases.guard(None, call.terms.lease_id, call.rule.lease, at)
    return NodeView(where, msgspec.structs.replace(record, lease=None), at)


class PreparedChange(msgspec.Struct, Generic[T], frozen=True):
    """A change that is ready to be decided.

    Attributes:
        where: the path of the file or directory that it changes.
        facts: the facts that admission relied on.
        further: what `change` reads.
    """

    where: Where
    facts: FileFacts
    change: ChangeNode[T]
    further: Reads | None = None


async def commit(services: Services, call: Call[Any], prepared: PreparedChange[T]) -> T:
    """Decide on one directory or file, and commit durably.

    Raises: PathChanged; StorageError ShareNotFound, the lease errors (412), the decision's own.
    """
    where, further = prepared.where, prepared.further
    reads = Reads(() if further is None else further.refs)
    attributes = keys.file_attributes(where.generation, where.id)
    return await services.commit(
        _OfNode(
            where.partition,
            reads.refs,
            call.rule.purpose,
            call=call.with_pure_authorization(),
            prepared=prepared,
            share=reads.add(place_ref(call), records.SHARE),
            attributes=reads.add(attributes, file_records.FILE),
            length=LengthReads.of(reads, where.generation, where.id),
            on_path=where.read(reads),
        )
    )


class _OfNode(Decision[T], Generic[T], frozen=True):
    """A decision on a directory or file. It first checks that its caller is still authorized."""

    call: Call[Any]
    prepared: PreparedChange[T]
    share: ReadOne[ShareRecord]
    attributes: ReadOne[FileRecord]
    length: LengthReads
    on_path: ReadAll[NameRecord]

    def decide(self, found: Found, stamp: int) -> Commit[T]:
        """See Decision.decide."""
        call, where = self.call, self.prepared.where
        share = place_in(call, found, self.share)
        where.check(found, self.on_path)
        record = attributes_in(where, found[self.attributes])
        if facts_of(record) != self.prepared.facts:
            raise PathChanged
        leases.guard(record.lease, call.terms.lease_id, call.rule.lease, stamp)
        change = self.prepared.change(where, record, found, stamp)
        writes = change.writes
        if change.record is not None:
            writes = (Write(keys.FILE_KEY, file_records.FILE.encode(change.record)), *writes)
        if not writes:
            return Commit(change.result)
        step = Step(self.partition, writes, change.adopt, change.drop)
        counted: tuple[Step, ...] = ()
        if change.record is not None and change.record.size_bytes != record.size_bytes:
            counted = recounted(share, found, self.length, change.record.size_bytes)
        made = Commit(change.result, (*change.before, *counted, step))
        return with_past_states(share, self.reads, found, made, stamp)


async def change_attributes(
    services: Services,
    call: Call[Any],
    operation: FileOperation | None,
    change: ChangeNode[T],
    *,
    further: Reads | None = None,
    clears_read_only: bool = False,
) -> T:
    """Change the attributes of the file or directory that a request names.

    Arguments:
        operation: the operation on a file; None = it is a directory, whose use no open denies.
        further: what `change` reads.
        clears_read_only: see RestRequest.

    Raises: StorageError ResourceNotFound, ParentNotFound, ShareNotFound, the lease errors (412),
        and what admission and the decision raise.
    """
    while True:
        seen = await view(services, call, is_directory=operation is None)
        facts = facts_of(seen.record)
        prepared = PreparedChange(seen.where, facts, change, further)
        try:
            with await enter(
                services,
                seen.where.partition,
                operation or FileOperation.LIST_FILES,
                facts,
                clears_read_only=clears_read_only,
            ):
                return await commit(services, call, prepared)
        except PathChanged:
            continue
