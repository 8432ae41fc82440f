"""The move of a directory or file to another name, in one commit among the names of a share.

Lives here: the decision and what it is prepared from, and the opens that wait for it. Must not live
here: what refuses a move (semantics/file/deletion.py).

Names lead to ids, so everything below a directory moves with it. A file that is replaced is deleted
in the same commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

import msgspec

from strongroom.engines.base import Commit, Step, Write
from strongroom.engines.endings import to_its_end
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file.deletion import FileFacts
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.names.node_writes import parent_ref, parent_touched, used
from strongroom.services.file.names.permissions import (
    NO_PERMISSION,
    PermissionGiven,
    PermissionRead,
)
from strongroom.services.file.node.origins import ShareOrigin
from strongroom.services.file.opens.admission import facts_of
from strongroom.services.file.opens.changes import Watches, renamed
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.snapshots.past_states import with_past_states
from strongroom.services.file.snapshots.sweep import sweep_step
from strongroom.services.tree.linking import NameMove, NameMoveReads
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, UsageRecord
from strongroom.store.tree.tree_records import NameRecord


class ResolvedMove(NameMove, frozen=True):
    """Source and target as they were read, and the facts that admission relied on."""

    source_facts: FileFacts
    target_facts: FileFacts | None


class MoveReads(msgspec.Struct, frozen=True):
    """What the decision of a move reads: names, attributes, and the usage.

    Attributes:
        moved, source_parent, target_parent: the attributes of these.
        replaced: those of what is replaced; None = nothing is.
    """

    names: NameMoveReads
    moved: ReadOne[FileRecord]
    source_parent: ReadOne[FileRecord]
    target_parent: ReadOne[FileRecord]
    replaced: ReadOne[FileRecord] | None
    usage: ReadOne[UsageRecord]

    @classmethod
    def of(cls, reads: Reads, seen: ResolvedMove) -> MoveReads:
        source, generation, replaced = seen.source, seen.source.generation, None
        if seen.replaced is not None:
            ref = keys.file_attributes(generation, seen.replaced)
            replaced = reads.add(ref, file_records.FILE)
        return cls(
            NameMoveReads.of(reads, seen),
            reads.add(keys.file_attributes(generation, source.id), file_records.FILE),
            reads.add(parent_ref(source), file_records.FILE),
            reads.add(parent_ref(seen.target), file_records.FILE),
            replaced,
            reads.add(share_keys.share_usage(generation), file_records.USAGE),
        )

    def records_in(self, found: Found) -> tuple[FileRecord, FileRecord | None]:
        """Return the attributes of what moves, and of what is replaced."""
        replaced = None if self.replaced is None else _there(found[self.replaced])
        return _there(found[self.moved]), replaced


def _there(record: FileRecord | None) -> FileRecord:
    if record is None:
        raise PathChanged
    return record


class MoveRule(msgspec.Struct, frozen=True):
    """What an operation requires of a move, and what it changes. A value, which decisions hold."""

    def check(
        self, seen: ResolvedMove, record: FileRecord, replaced: FileRecord | None, stamp: int
    ) -> None: ...

    @property
    def permission(self) -> PermissionGiven:
        """What it is given with its new name."""
        return NO_PERMISSION

    def moved(self, record: FileRecord, permission: str, stamp: int) -> FileRecord:
        """It is pure. `permission` is the key."""
        raise NotImplementedError


async def move(
    services: Services,
    opens: Opens,
    watches: Watches,
    origin: ShareOrigin,
    seen: ResolvedMove,
    rule: MoveRule,
) -> tuple[Where, FileRecord]:
    """Move a directory or file durably. Its handles get the new path, also if the caller is
    cancelled meanwhile. The caller has blocked the opens of both names (`block_opens`).

    Returns: the new name, and the attributes.
    """
    origin, reads = origin.at_serial_point(), Reads()
    source, target = seen.source, seen.target
    decision = _Move(
        keys.file_names(source.generation),
        reads.refs,
        origin.purpose,
        origin=origin,
        seen=seen,
        rule=rule,
        share=reads.add(origin.share_ref, records.SHARE),
        read=MoveReads.of(reads, seen),
        permission=rule.permission.read(reads, source.generation),
    )

    async def commit() -> tuple[Where, FileRecord]:
        moved = await origin.submit(services, decision)
        new = (*target.stored[:-1], target.name)
        opens.moved(source.partition, target.parent, new)
        is_directory, replaces = source.is_directory, seen.replaced is not None
        changes = renamed(source.components, new, is_directory=is_directory, replaces=replaces)
        watches.report(source.generation, *changes)
        services.work.set()
        return moved

    return await to_its_end(commit())


async def wait_for_creation(
    opens: Opens, seen: ResolvedMove, wait: Callable[[asyncio.Future[None]], Awaitable[None]]
) -> None:
    """Wait until the file that is to be replaced is no longer being created, and raise PathChanged.

    Call this before the entry into that file: its creation waits until others have left it.
    """
    other = opens.barriers.blocking(seen.target.refs[-1:])
    if other is not None:
        await wait(other)
        raise PathChanged


async def block_opens(
    opens: Opens, seen: ResolvedMove, wait: Callable[[asyncio.Future[None]], Awaitable[None]]
) -> Callable[[], None]:
    """Make opens of both names wait until the returned function is called.

    Raises: PathChanged after it has waited for an open, a creation or another rename; StorageError:
        something below the directory is open.
    """
    generation = seen.source.generation
    keys: list[Hashable] = [(generation, seen.source.id), seen.target.refs[-1]]
    other = opens.barriers.blocking([*keys, *((generation, one) for one in seen.target.ids)])
    other = other or opens.barriers.creating_below(keys[0])
    if other is not None:
        await wait(other)
        raise PathChanged
    below = opens.handles_below(generation, seen.source.components)
    if seen.source_facts.is_directory and below:
        raise StorageError(file_errors.DIRECTORY_IN_USE)
    lifts = [opens.barriers.block(key) for key in keys]

    def lift() -> None:
        for one in lifts:
            one()

    return lift


class _Move(Decision[tuple[Where, FileRecord]], frozen=True):
    origin: ShareOrigin
    seen: ResolvedMove
    rule: MoveRule
    share: ReadOne[ShareRecord]
    read: MoveReads
    permission: PermissionRead

    def decide(self, found: Found, stamp: int) -> Commit[tuple[Where, FileRecord]]:
        seen, source, target = self.seen, self.seen.source, self.seen.target
        share = self.origin.share_in(found, self.share)
        node = self.read.names.check(found, seen)
        record, replaced = self.read.records_in(found)
        is_known = facts_of(record) == seen.source_facts and (
            replaced is None or facts_of(replaced) == seen.target_facts
        )
        if not is_known:
            raise PathChanged
        self.rule.check(seen, record, replaced, stamp)
        if source.components == target.components:
            return Commit((source, record))
        permission, stored = self.permission.chosen(record.permission, found)
        after = self.rule.moved(record, permission, stamp)
        entry = NameRecord(source.id, target.name, record.is_directory)
        made = msgspec.structs.replace(
            target, ids=(*target.ids[: len(target.components) - 1], source.id), entry=entry
        )
        own = Step(source.partition, (Write(keys.FILE_KEY, file_records.FILE.encode(after)),))
        freed = self._freed(share, found)
        names_moved = Step(self.partition, (*self.read.names.writes(found, seen, node), *freed))
        steps = [*stored, names_moved, own, *_parents_touched(seen, self.read, found, stamp)]
        if seen.replaced is not None:
            # The job comes first, so that a crash leaves nothing that no job removes.
            steps.insert(0, sweep_step(source.generation, seen.replaced, stamp))
            gone = keys.file(source.generation, seen.replaced)
            steps.append(Step(gone, (Write(keys.FILE_KEY, None),)))
        commit = Commit((made, after), tuple(steps))
        return with_past_states(share, self.reads, found, commit, stamp)

    def _freed(self, share: ShareRecord, found: Found) -> tuple[Write, ...]:
        node = self.read.names.replaced_in(found)
        return () if node is None else used(share, found[self.read.usage], -node.size_bytes)


def _parents_touched(
    seen: ResolvedMove, read: MoveReads, found: Found, stamp: int
) -> tuple[Step, ...]:
    steps = parent_touched(seen.source, found[read.source_parent], stamp)
    if seen.target.parent != seen.source.parent:
        steps += parent_touched(seen.target, found[read.target_parent], stamp)
    return steps
