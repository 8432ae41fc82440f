"""The decision on one directory or file, whatever its access.

Lives here: the frame: check the access, change, count the length, keep past states.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from strongroom.engines.base import Commit, Step, Write
from strongroom.engines.endings import to_its_end
from strongroom.services.core.decisions import Decision, Found, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.names.node_writes import LengthReads, recounted
from strongroom.services.file.node.access import AccessReads, NodeAccess
from strongroom.services.file.snapshots.past_states import with_past_states
from strongroom.store.core import keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord

T = TypeVar("T")


Applied = tuple[FileRecord, tuple[Step, ...]]
"""The attributes as they will be, and the steps that come first: a job, a permission."""


class AdmittedNode(msgspec.Struct, frozen=True):
    """A directory or file at the serial point, whose access was checked."""

    access: NodeAccess
    share: ShareRecord
    record: FileRecord


class NodeChange(msgspec.Struct, Generic[T], frozen=True):
    """What a decision changes of a directory or file.

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


class NodeRule(msgspec.Struct, Generic[T], frozen=True):
    """What an operation does to a directory or file. It is a value with all that this depends on.

    A subclass that reads more than the access has the `ReadOne`s in its fields.
    """

    def decide(self, node: AdmittedNode, found: Found, stamp: int) -> NodeChange[T]:
        """It is pure."""
        raise NotImplementedError


class Edit(msgspec.Struct, frozen=True):
    """What an operation does to the attributes of a directory or file. A value, as NodeRule."""

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        """It is pure."""
        raise NotImplementedError


class Edited(NodeRule[FileRecord], frozen=True):
    """An operation that changes the attributes alone. Its result are the new ones."""

    edit: Edit

    def decide(self, node: AdmittedNode, found: Found, stamp: int) -> NodeChange[FileRecord]:
        after, first = self.edit.apply(node, found, stamp)
        return NodeChange(after, after, first)


async def commit(
    services: Services, access: NodeAccess, rule: NodeRule[T], further: Reads | None = None
) -> T:
    """Decide on a directory or file, and commit durably. `further` is what `rule` reads."""
    access, reads = access.at_serial_point(), Reads(() if further is None else further.refs)
    decision = _OnNode(
        access.partition,
        reads.refs,
        access.purpose,
        access,
        rule,
        read=access.add(reads),
        length=LengthReads.of(reads, access.generation, access.id),
    )
    return await access.origin.submit(services, decision)


async def reported(commit: Awaitable[T], report: Callable[[], None]) -> T:
    """Wait for a commit, and report it, also if the request is cut off meanwhile."""

    async def both() -> T:
        result = await commit
        report()
        return result

    return await to_its_end(both())


class _OnNode(Decision[T], Generic[T], frozen=True):
    access: NodeAccess
    rule: NodeRule[T]
    read: AccessReads
    length: LengthReads

    def decide(self, found: Found, stamp: int) -> Commit[T]:
        share, record = self.read.admit(found, stamp)
        change = self.rule.decide(AdmittedNode(self.access, share, record), found, stamp)
        writes = change.writes
        if change.record is not None:
            writes = (Write(keys.FILE_KEY, file_records.FILE.encode(change.record)), *writes)
        if not writes:
            return Commit(change.result)
        counted: tuple[Step, ...] = ()
        if change.record is not None and change.record.size_bytes != record.size_bytes:
            counted = recounted(share, found, self.length, change.record.size_bytes)
        step = Step(self.partition, writes, change.adopt, change.drop)
        made = Commit(change.result, (*change.before, *counted, step))
        return with_past_states(share, self.reads, found, made, stamp)
