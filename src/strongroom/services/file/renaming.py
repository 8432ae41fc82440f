"""Rename File and Rename Directory: one commit among the names of a share.

Lives here: the decision and what it is prepared from. Must not live here: the order of checks
(semantics/file/deletion.py), how a URL is read. Source: "Rename File", "Rename Directory";
reference file.md 5, smb.md 3.7.

Names lead to ids, so everything below a directory moves with it. A file that is replaced is deleted
in the same commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import ExitStack
from typing import Any

import msgspec

from strongroom.engines.base import Commit, Key, Step, Write
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError, invalid_header
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.lease import LeaseUse
from strongroom.semantics.file import deletion, names
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Touch
from strongroom.semantics.file.deletion import FileFacts, Rename, RenameTarget
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file import paths
from strongroom.services.file.admission import (
    Opens,
    RestWaitLimit,
    break_handle_caches_below,
    enter,
    facts_of,
)
from strongroom.services.file.held.changes import Watches, renamed
from strongroom.services.file.node_writes import parent_ref, parent_touched, used
from strongroom.services.file.nodes import NodeWritten
from strongroom.services.file.past_states import with_past_states
from strongroom.services.file.paths import OnPath, PathChanged, Where
from strongroom.services.file.permissions import PermissionRead
from strongroom.services.file.smb_properties import NOTHING_GIVEN, SmbProperties, of_changed
from strongroom.services.file.sweep import sweep_step
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, NameRecord, NodeRecord, UsageRecord
from strongroom.values import Metadata

SOURCE_HEADER = "x-ms-file-rename-source"


class RenameSource(msgspec.Struct, frozen=True):
    """The source of a rename, from its URL.

    Attributes:
        path: the decoded path of the URL.
        own_path: the path of the request's own URL.
    """

    url: str
    path: str
    own_path: str


class RenameNode(OnPath, frozen=True, kw_only=True):
    """Input of Rename File and Rename Directory.

    Metadata, content type and SMB properties may change with the name. A value that is not given
    stays.
    """

    source: RenameSource
    source_trailing_dots: bool = False
    replaces: bool = False
    ignores_read_only: bool = False
    source_lease_id: str | None = None
    destination_lease_id: str | None = None
    metadata: Metadata = ()
    content_type: str | None = None
    smb: SmbProperties = NOTHING_GIVEN


async def rename_file(services: Services, call: Call[RenameNode]) -> NodeWritten:
    """Rename a file. It replaces another file if the request permits that.

    Raises: StorageError ResourceNotFound (no such source), ParentNotFound, InvalidHeaderValue (the
        source is in another share), the lease errors (412). For a target that exists:
        ResourceAlreadyExists, ResourceTypeMismatch (a directory), ReadOnlyAttribute.
    """
    return await _rename(services, call, is_directory=False)


async def rename_directory(services: Services, call: Call[RenameNode]) -> NodeWritten:
    """Rename a directory. Raises: as rename_file; SharingViolation for a place below itself."""
    return await _rename(services, call, is_directory=True)


async def _rename(services: Services, call: Call[RenameNode], *, is_directory: bool) -> NodeWritten:
    given = call.input
    source_path = paths.components(
        _within_share(call, given.source), trailing_dots=given.source_trailing_dots
    )
    while True:
        source = await _resolved(services, call, source_path)
        if source.is_directory != is_directory or (source.entry is None and not source.is_root):
            raise StorageError(errors.RESOURCE_NOT_FOUND)
        target = await paths.named(services, call)
        try:
            return await _attempt(services, call, source, target)
        except PathChanged:
            continue


async def _resolved(services: Services, call: Call[Any], path: tuple[str, ...]) -> Where:
    """As `paths.resolve`, for a source. A missing parent raises ResourceNotFound, like a missing
    source."""
    try:
        return await paths.resolve(services, call, path)
    except StorageError as error:
        if error.row.code != "ParentNotFound":
            raise
        raise StorageError(errors.RESOURCE_NOT_FOUND) from None


def _within_share(call: Call[Any], source: RenameSource) -> str:
    """Return the path of the source in the share, if it is in the request's share.

    Raises: InvalidHeaderValue.
    """
    account, share = call.target.account, call.target.container
    for prefix in (f"/file/{account}/{share}/", f"/{account}/{share}/", f"/{share}/"):
        if source.own_path.startswith(prefix):
            if not source.path.startswith(prefix):
                break
            return source.path.removeprefix(prefix).removesuffix("/")
    reason = "The source must be in the same share."
    raise invalid_header(SOURCE_HEADER, source.url, reason)


class ResolvedRename(msgspec.Struct, frozen=True):
    """Source and target as they were read, and the facts that admission relied on."""

    source: Where
    target: Where
    source_facts: FileFacts
    target_facts: FileFacts | None

    @property
    def replaced(self) -> int | None:
        """The id that has the new name, if it is not the source's; None = nothing is replaced."""
        entry = self.target.entry
        return None if entry is None or entry.id == self.source.id else entry.id


class _SideReads(msgspec.Struct, frozen=True):
    """What a rename reads of one side: the names on its path, its directory's node (the root has
    none), and its directory's attributes."""

    on_path: ReadAll[NameRecord]
    parent: ReadOne[NodeRecord]
    parent_attributes: ReadOne[FileRecord]

    @classmethod
    def of(cls, reads: Reads, where: Where) -> _SideReads:
        """Add these reads."""
        node = keys.file_node(where.generation, where.parent)
        return cls(
            where.read(reads),
            reads.add(node, file_records.NODE),
            reads.add(parent_ref(where), file_records.FILE),
        )


class NodeReads(msgspec.Struct, frozen=True):
    """The reads of a file's or directory's attributes and node."""

    attributes: ReadOne[FileRecord]
    node: ReadOne[NodeRecord]

    @classmethod
    def of(cls, reads: Reads, generation: int, node_id: int) -> NodeReads:
        """Add these reads."""
        attributes = keys.file_attributes(generation, node_id)
        return cls(
            reads.add(attributes, file_records.FILE),
            reads.add(keys.file_node(generation, node_id), file_records.NODE),
        )


class RenameReads(msgspec.Struct, frozen=True):
    """What the decision of a rename reads. `replaced`: what it replaces; None = nothing."""

    source: _SideReads
    target: _SideReads
    moved: NodeReads
    usage: ReadOne[UsageRecord]
    replaced: NodeReads | None

    @classmethod
    def of(cls, reads: Reads, seen: ResolvedRename) -> RenameReads:
        """Add these reads."""
        source, generation = seen.source, seen.source.generation
        usage = share_keys.share_usage(generation)
        return cls(
            _SideReads.of(reads, source),
            _SideReads.of(reads, seen.target),
            NodeReads.of(reads, generation, source.id),
            reads.add(usage, file_records.USAGE),
            None if seen.replaced is None else NodeReads.of(reads, generation, seen.replaced),
        )

    def check(self, found: Found, seen: ResolvedRename) -> tuple[FileRecord, NodeRecord]:
        """Check that both paths are as they were resolved. Return the attributes and the node of
        what is renamed. Raises: PathChanged."""
        seen.source.check(found, self.source.on_path)
        seen.target.check(found, self.target.on_path)
        record, node = found[self.moved.attributes], found[self.moved.node]
        if record is None or node is None:
            raise PathChanged
        return record, node

    def replaced_in(self, found: Found) -> FileRecord | None:
        """Return the attributes of what is replaced. Raises: PathChanged when it is gone."""
        return None if self.replaced is None else _there(found[self.replaced.attributes])


def _there(record: FileRecord | None) -> FileRecord:
    if record is None:
        raise PathChanged
    return record


async def _attempt(
    services: Services, call: Call[RenameNode], source: Where, target: Where
) -> NodeWritten:
    if target.is_root or source.is_root:
        raise StorageError(_refusal_of_root(source, target))
    seen, looked = ResolvedRename(source, target, FileFacts(), None), Reads()
    rename_reads = RenameReads.of(looked, seen)
    found = await services.read(looked)
    record = _there(found[rename_reads.moved.attributes])
    replaced = rename_reads.replaced_in(found)
    facts = None if replaced is None else facts_of(replaced)
    seen = ResolvedRename(source, target, facts_of(record), facts)
    given, held = call.input, services.held.of(Opens)
    if facts is not None:
        held.check_not_pending(target.partition)
    held.check_not_pending(keys.file(target.generation, target.parent))
    with ExitStack() as stack:
        wait_limit = stack.enter_context(RestWaitLimit(services))
        stack.enter_context(
            await enter(services, source.partition, FileOperation.RENAME_SOURCE, seen.source_facts)
        )
        if facts is not None and not facts.is_directory and given.replaces:
            stack.enter_context(
                await enter(
                    services,
                    target.partition,
                    FileOperation.RENAME_TARGET,
                    facts,
                    clears_read_only=given.ignores_read_only,
                )
            )
        if record.is_directory:
            generation, path = source.generation, source.components
            await break_handle_caches_below(services, generation, path, wait_limit.until)
        stack.callback(await block_opens(held, seen, wait_limit.until))
        reads = Reads()
        decision = _RenameNode(
            keys.file_names(source.generation),
            reads.refs,
            call.rule.purpose,
            call=call.with_pure_authorization(),
            seen=seen,
            share=reads.add(place_ref(call), records.SHARE),
            read=RenameReads.of(reads, seen),
            permission=given.smb.permission.read(reads, source.generation),
        )
        result = await services.commit(decision)
        new = (*target.stored[:-1], target.name)
        held.moved(source.partition, target.parent, new)
        is_directory, replaces = record.is_directory, seen.replaced is not None
        changes = renamed(source.components, new, is_directory=is_directory, replaces=replaces)
        services.held.of(Watches).report(source.generation, *changes)
    services.work.set()
    return result


async def block_opens(
    held: Opens, seen: ResolvedRename, wait: Callable[[asyncio.Future[None]], Awaitable[None]]
) -> Callable[[], None]:
    """Make opens of both names wait until the returned function is called.

    Raises: PathChanged after it has waited for an open or another rename; StorageError: something
        below the directory is open.
    """
    generation = seen.source.generation
    keys: list[Hashable] = [(generation, seen.source.id), seen.target.refs[-1]]
    other = held.barriers.blocking([*keys, *((generation, one) for one in seen.target.ids)])
    if other is not None:
        await wait(other)
        raise PathChanged
    below = held.handles_below(generation, seen.source.components)
    if seen.source_facts.is_directory and below:
        raise StorageError(file_errors.DIRECTORY_IN_USE)
    lifts = [held.barriers.block(key) for key in keys]

    def lift() -> None:
        for one in lifts:
            one()

    return lift


def _refusal_of_root(source: Where, target: Where) -> errors.ErrorCode:
    """Return why the root cannot be renamed, or be the target of a rename."""
    facts = FileFacts(is_directory=source.is_directory, is_root=source.is_root)
    root = RenameTarget(FileFacts(is_directory=True, is_root=True)) if target.is_root else None
    found = deletion.rename_refusal(
        Rename(source.components, target.components, facts, target=root)
    )
    assert found is not None, "a rename of the root or over it is refused"
    return found


class _RenameNode(Decision[NodeWritten], frozen=True):
    """The decision that moves the source's id from its old name to the new one."""

    call: Call[RenameNode]
    seen: ResolvedRename
    share: ReadOne[ShareRecord]
    read: RenameReads
    permission: PermissionRead

    def decide(self, found: Found, stamp: int) -> Commit[NodeWritten]:
        """See Decision.decide. Raises: PathChanged."""
        seen, source, target = self.seen, self.seen.source, self.seen.target
        share = place_in(self.call, found, self.share)
        record, node = self.read.check(found, seen)
        replaced = self.read.replaced_in(found)
        is_known = facts_of(record) == seen.source_facts and (
            replaced is None or facts_of(replaced) == seen.target_facts
        )
        if not is_known:
            raise PathChanged
        self._refuse(record, replaced, stamp)
        if source.components == target.components:
            return Commit(NodeWritten(source, record))
        permission, before = self.permission.chosen(record.permission, found)
        after = self._changed(record, stamp, permission)
        moved = NameRecord(source.id, target.name, record.is_directory)
        made = msgspec.structs.replace(
            target, ids=(*target.ids[: len(target.components) - 1], source.id), entry=moved
        )
        own = Step(source.partition, (Write(keys.FILE_KEY, file_records.FILE.encode(after)),))
        names_moved = Step(self.partition, moved_names(seen, self.read, share, found, node))
        steps = [*before, names_moved, own, *parents_touched(seen, self.read, found, stamp)]
        if seen.replaced is not None:
            # The job comes first, so that a crash leaves nothing that no job removes.
            steps.insert(0, sweep_step(source.generation, seen.replaced, stamp))
            gone = keys.file(source.generation, seen.replaced)
            steps.append(Step(gone, (Write(keys.FILE_KEY, None),)))
        made_steps = Commit(NodeWritten(made, after), tuple(steps))
        return with_past_states(share, self.reads, found, made_steps, stamp)

    def _refuse(self, record: FileRecord, replaced: FileRecord | None, stamp: int) -> None:
        """Make the checks of a rename, in their order. Raises: StorageError."""
        seen, given = self.seen, self.call.input
        source, target = seen.source, seen.target
        parents = target.ids[: len(target.components) - 1]
        refused = deletion.rename_refusal(
            Rename(
                source.components,
                target.components,
                seen.source_facts,
                target=None if replaced is None else RenameTarget(facts_of(replaced)),
                replaces=given.replaces,
                ignores_read_only=given.ignores_read_only,
                is_into_itself=source.id in parents,
            )
        )
        if refused is not None:
            raise StorageError(refused)
        leases.guard(record.lease, given.source_lease_id, LeaseUse.WRITE_FILE, stamp)
        if replaced is not None:
            leases.guard(replaced.lease, given.destination_lease_id, LeaseUse.WRITE_FILE, stamp)

    def _changed(self, record: FileRecord, stamp: int, permission: str) -> FileRecord:
        given = self.call.input
        properties = record.properties
        if given.content_type is not None:
            properties = msgspec.structs.replace(properties, content_type=given.content_type)
        return msgspec.structs.replace(
            record,
            etag=stamp,
            modified=stamp,
            metadata=given.metadata or record.metadata,
            properties=properties,
            permission=permission,
            **of_changed(given.smb, record, Touch.RENAME, stamp),
        )


def moved_names(
    seen: ResolvedRename, read: RenameReads, share: ShareRecord, found: Found, node: NodeRecord
) -> tuple[Write, ...]:
    """Return the writes of a rename among the names of the share.

    The old name is removed, the new one is added, and both directories' counts change. A replaced
    file no longer counts as usage.

    Arguments:
        node: the node record of the source.

    Raises: PathChanged when one of the directories, or the replaced file, has been deleted.
    """
    source, target, generation = seen.source, seen.target, seen.source.generation
    moved = msgspec.structs.replace(node, parent=target.parent, name=names.fold(target.name))
    name = NameRecord(source.id, target.name, node.is_directory)
    writes: dict[Key, bytes | None] = {
        source.refs[-1].key: None,
        keys.file_node(generation, source.id).key: file_records.NODE.encode(moved),
    }
    writes[target.refs[-1].key] = file_records.NAME.encode(name)
    counts = {source.parent: -1}
    if seen.replaced is None:
        counts[target.parent] = counts.get(target.parent, 0) + 1
    else:
        writes[keys.file_node(generation, seen.replaced).key] = None
    for parent, side in ((source.parent, read.source), (target.parent, read.target)):
        more = counts.pop(parent, 0)
        if more and parent != generation:
            directory = found[side.parent]
            if directory is None:
                raise PathChanged
            counted = msgspec.structs.replace(directory, children=directory.children + more)
            writes[side.parent.ref.key] = file_records.NODE.encode(counted)
    return (*(Write(key, value) for key, value in writes.items()), *_freed(read, share, found))


def _freed(read: RenameReads, share: ShareRecord, found: Found) -> tuple[Write, ...]:
    """Return the write that subtracts the replaced file from the usage.

    Raises: PathChanged when the replaced file is gone.
    """
    if read.replaced is None:
        return ()
    node = found[read.replaced.node]
    if node is None:
        raise PathChanged
    return used(share, found[read.usage], -node.size_bytes)


def parents_touched(
    seen: ResolvedRename, read: RenameReads, found: Found, stamp: int
) -> tuple[Step, ...]:
    """Return the steps that update the times of both directories."""
    steps = parent_touched(seen.source, found[read.source.parent_attributes], stamp)
    if seen.target.parent != seen.source.parent:
        steps += parent_touched(seen.target, found[read.target.parent_attributes], stamp)
    return steps
