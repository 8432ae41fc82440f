"""Get and Set Properties and Metadata of directories and files, and their deletion.

Lives here: the decisions on attributes, and Delete. Must not live here: creation (creating.py),
bytes (ranges.py, reading.py). Source: "Operations on directories", "Operations on files"; reference
file.md 4 and 5.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from strongroom.engines.base import Commit, Step, Write
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.semantics.file import deletion
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Touch
from strongroom.semantics.file.deletion import FileFacts
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file import nodes, ranges
from strongroom.services.file.admission import enter, facts_of
from strongroom.services.file.creating import counted
from strongroom.services.file.held.changes import PROPERTIES, Watches, modified, removed
from strongroom.services.file.node_writes import parent_ref, parent_touched, used
from strongroom.services.file.nodes import NodeChange, NodeView, NodeWritten, attributes_in
from strongroom.services.file.past_states import with_past_states
from strongroom.services.file.paths import OnPath, PathChanged, Where
from strongroom.services.file.permissions import PermissionRead
from strongroom.services.file.smb_properties import (
    NOTHING_GIVEN,
    SmbProperties,
    clears_read_only,
    of_changed,
)
from strongroom.services.file.sweep import sweep_step
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, NameRecord, NodeRecord, UsageRecord
from strongroom.values import ContentProperties, Metadata


class SetFileProperties(OnPath, frozen=True, kw_only=True):
    """Input of Set File Properties; a value that is None stays as it is."""

    properties: ContentProperties | None = None
    size_bytes: int | None = None
    smb: SmbProperties = NOTHING_GIVEN


class SetDirectoryProperties(OnPath, frozen=True, kw_only=True):
    """Input of Set Directory Properties."""

    smb: SmbProperties = NOTHING_GIVEN


class SetFileMetadata(OnPath, frozen=True, kw_only=True):
    """Input of Set File Metadata and Set Directory Metadata: all pairs, which replace the present
    ones."""

    metadata: Metadata = ()


async def get_directory(services: Services, call: Call[Any]) -> NodeView:
    """Return a directory, for Get Directory Properties and Get Directory Metadata.

    Raises: StorageError ResourceNotFound, ParentNotFound, ShareNotFound.
    """
    return await _entered(services, call, FileOperation.LIST_FILES, is_directory=True)


async def get_properties(services: Services, call: Call[Any]) -> NodeView:
    """Return a file, for Get File Properties. Raises: as `nodes.view` and admission."""
    return await _entered(services, call, FileOperation.GET_PROPERTIES)


async def get_metadata(services: Services, call: Call[Any]) -> NodeView:
    """Return a file, for Get File Metadata. Raises: as `nodes.view` and admission."""
    return await _entered(services, call, FileOperation.GET_METADATA)


async def _entered(
    services: Services, call: Call[Any], operation: FileOperation, *, is_directory: bool = False
) -> NodeView:
    while True:
        seen = await nodes.view(services, call, is_directory=is_directory)
        if call.target.snapshot is not None:
            return seen
        facts = facts_of(seen.record)
        with await enter(services, seen.where.partition, operation, facts) as entry:
            if not entry.has_waited:
                return seen


async def set_file_properties(services: Services, call: Call[SetFileProperties]) -> NodeWritten:
    """Set HTTP properties, SMB properties and the length of a file.

    Raises: StorageError ReadOnlyAttribute, FileInvalidPermissionKey, InvalidHeaderValue, and what
        `nodes.view` raises.
    """
    given = call.input
    touch, reads = Touch.SET_PROPERTIES if given.size_bytes is None else Touch.RESIZE, Reads()
    permission = given.smb.permission.read_for(call, reads)

    def changes(
        where: Where, record: FileRecord, found: Found, stamp: int
    ) -> tuple[FileRecord, tuple[Step, ...]]:
        after, first = _with_smb(given.smb, permission, touch, record, found, stamp)
        more: dict[str, Any] = {"copy": None}
        if given.properties is not None:
            more["properties"] = given.properties
        if given.size_bytes is not None:
            more["size_bytes"] = given.size_bytes
        return msgspec.structs.replace(after, **more), first

    clears = clears_read_only(given.smb)
    if given.size_bytes is not None:
        return await ranges.resize(
            services, call, given.size_bytes, changes, reads, clears_read_only=clears
        )
    written = await _change(
        services, call, FileOperation.SET_PROPERTIES, changes, reads, clears=clears
    )
    _report_properties(services, written)
    return written


async def set_directory_properties(
    services: Services, call: Call[SetDirectoryProperties]
) -> NodeWritten:
    """Set the SMB properties of a directory. Raises: as set_file_properties, but for
    ReadOnlyAttribute."""
    given, reads = call.input.smb, Reads()
    permission = given.permission.read_for(call, reads)

    def changes(
        where: Where, record: FileRecord, found: Found, stamp: int
    ) -> tuple[FileRecord, tuple[Step, ...]]:
        return _with_smb(given, permission, Touch.SET_PROPERTIES, record, found, stamp)

    written = await _change(services, call, None, changes, reads)
    _report_properties(services, written)
    return written


def _report_properties(services: Services, written: NodeWritten) -> None:
    where = written.where
    if not where.is_root:
        change = modified(where.components, PROPERTIES)
        services.held.of(Watches).report(where.generation, change)


async def set_file_metadata(services: Services, call: Call[SetFileMetadata]) -> NodeWritten:
    """Replace a file's metadata. Raises: StorageError ReadOnlyAttribute, and what `nodes.view`
    raises."""
    changes = _with_metadata(call.input.metadata)
    return await _change(services, call, FileOperation.SET_METADATA, changes)


async def set_directory_metadata(services: Services, call: Call[SetFileMetadata]) -> NodeWritten:
    """Replace a directory's metadata. Raises: what `nodes.view` raises."""
    return await _change(services, call, None, _with_metadata(call.input.metadata))


def _with_metadata(metadata: Metadata) -> ranges.Changes:
    def changes(
        where: Where, record: FileRecord, found: Found, stamp: int
    ) -> tuple[FileRecord, tuple[Step, ...]]:
        touched = of_changed(NOTHING_GIVEN, record, Touch.SET_METADATA, stamp)
        after = msgspec.structs.replace(
            record, etag=stamp, modified=stamp, metadata=metadata, **touched
        )
        return after, ()

    return changes


def _with_smb(
    given: SmbProperties,
    permission_read: PermissionRead,
    touch: Touch,
    record: FileRecord,
    found: Found,
    stamp: int,
) -> tuple[FileRecord, tuple[Step, ...]]:
    permission, first = permission_read.chosen(record.permission, found)
    touched = of_changed(given, record, touch, stamp)
    after = msgspec.structs.replace(
        record, etag=stamp, modified=stamp, permission=permission, **touched
    )
    return after, first


async def _change(
    services: Services,
    call: Call[Any],
    operation: FileOperation | None,
    changes: ranges.Changes,
    further: Reads | None = None,
    *,
    clears: bool = False,
) -> NodeWritten:
    def change(
        where: Where, record: FileRecord, found: Found, stamp: int
    ) -> NodeChange[NodeWritten]:
        after, first = changes(where, record, found, stamp)
        return NodeChange(NodeWritten(where, after), after, first)

    return await nodes.change_attributes(
        services, call, operation, change, further=further, clears_read_only=clears
    )


async def delete_file(services: Services, call: Call[Any]) -> None:
    """Delete a file: its name is removed, and a job removes the bytes.

    Raises: StorageError ReadOnlyAttribute, and what `nodes.view` raises.
    """
    while True:
        seen = await nodes.view(services, call, is_directory=False)
        facts = facts_of(seen.record)
        try:
            with await enter(services, seen.where.partition, FileOperation.DELETE_FILE, facts):
                await _delete(services, call, seen.where, facts)
        except PathChanged:
            continue
        services.work.set()
        return


async def delete_directory(services: Services, call: Call[Any]) -> None:
    """Delete a directory, which must be empty.

    Raises: StorageError DirectoryNotEmpty, CannotDeleteFileOrDirectory (the root, or it is
        read-only), and what `nodes.view` raises.
    """
    while True:
        seen = await nodes.view(services, call, is_directory=True)
        if seen.where.is_root:
            raise StorageError(file_errors.CANNOT_DELETE)
        facts = facts_of(seen.record)
        try:
            with await enter(services, seen.where.partition, FileOperation.DELETE_FILE, facts):
                await _delete(services, call, seen.where, facts)
        except PathChanged:
            continue
        services.work.set()
        return


async def _delete(services: Services, call: Call[Any], where: Where, facts: FileFacts) -> None:
    generation, reads = where.generation, Reads()
    decision = _Delete(
        keys.file_names(generation),
        reads.refs,
        call.rule.purpose,
        call=call.with_pure_authorization(),
        where=where,
        facts=facts,
        share=reads.add(place_ref(call), records.SHARE),
        attributes=reads.add(keys.file_attributes(generation, where.id), file_records.FILE),
        node=reads.add(keys.file_node(generation, where.id), file_records.NODE),
        parent=reads.add(keys.file_node(generation, where.parent), file_records.NODE),
        parent_attributes=reads.add(parent_ref(where), file_records.FILE),
        usage=reads.add(share_keys.share_usage(generation), file_records.USAGE),
        on_path=where.read(reads),
    )
    await services.commit(decision)
    change = removed(where.components, is_directory=where.is_directory)
    services.held.of(Watches).report(generation, change)


class _Delete(Decision[None], frozen=True):
    """The decision that removes the name of a directory or file, and its attributes after it."""

    call: Call[Any]
    where: Where
    facts: FileFacts
    share: ReadOne[ShareRecord]
    attributes: ReadOne[FileRecord]
    node: ReadOne[NodeRecord]
    parent: ReadOne[NodeRecord]
    parent_attributes: ReadOne[FileRecord]
    usage: ReadOne[UsageRecord]
    on_path: ReadAll[NameRecord]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        """See Decision.decide. Raises: PathChanged."""
        call, where = self.call, self.where
        share = place_in(call, found, self.share)
        where.check(found, self.on_path)
        record, node = attributes_in(where, found[self.attributes]), found[self.node]
        if node is None or facts_of(record) != self.facts:
            raise PathChanged
        leases.guard(record.lease, call.terms.lease_id, call.rule.lease, stamp)
        refused = deletion.rest_deletion_refusal(replace(self.facts, is_empty=not node.children))
        if refused is not None:
            raise StorageError(refused)
        freed = used(share, found[self.usage], -node.size_bytes)
        gone = (Write(where.refs[-1].key, None), Write(self.node.ref.key, None), *freed)
        steps = (
            # The job comes first, so that a crash leaves nothing that no job removes.
            sweep_step(where.generation, where.id, stamp),
            Step(self.partition, (*gone, *counted(where, found[self.parent], -1))),
            Step(where.partition, (Write(keys.FILE_KEY, None),)),
            *parent_touched(where, found[self.parent_attributes], stamp),
        )
        return with_past_states(share, self.reads, found, Commit(None, steps), stamp)
