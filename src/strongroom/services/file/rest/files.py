"""Get and Set Properties and Metadata of directories and files, and their deletion.

Lives here: the decisions on attributes, and Delete. Must not live here: creation (creating.py),
bytes (ranges.py, reading.py). Source: "Operations on directories", "Operations on files"; reference
file.md 4 and 5.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from strongroom.engines.base import Commit, Step, Write
from strongroom.engines.endings import to_its_end
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import deletion
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Touch
from strongroom.semantics.file.deletion import FileFacts
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.names.node_writes import parent_ref, parent_touched, used
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.names.permissions import PermissionRead
from strongroom.services.file.names.smb_properties import (
    NOTHING_GIVEN,
    SmbProperties,
    clears_read_only,
    of_changed,
)
from strongroom.services.file.node.access import AccessReads, ByPath
from strongroom.services.file.node.changing import resized
from strongroom.services.file.node.deciding import AdmittedNode, Applied, Edit
from strongroom.services.file.node.origins import RequestOrigin
from strongroom.services.file.opens.admission import enter, facts_of
from strongroom.services.file.opens.changes import PROPERTIES, Watches, modified, removed
from strongroom.services.file.rest import nodes, ranges
from strongroom.services.file.rest.nodes import NodeView, NodeWritten
from strongroom.services.file.rest.ranges import RequestEntry
from strongroom.services.file.snapshots.past_states import with_past_states
from strongroom.services.file.snapshots.sweep import sweep_step
from strongroom.services.tree.linking import unlinked
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import keys, share_keys
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, UsageRecord
from strongroom.store.tree import tree_records
from strongroom.store.tree.tree_records import NodeRecord
from strongroom.values import ContentProperties, Metadata


class SetFileProperties(OnPath, frozen=True, kw_only=True):
    """A value that is None stays as it is."""

    properties: ContentProperties | None = None
    size_bytes: int | None = None
    smb: SmbProperties = NOTHING_GIVEN


class SetDirectoryProperties(OnPath, frozen=True, kw_only=True):
    smb: SmbProperties = NOTHING_GIVEN


class SetFileMetadata(OnPath, frozen=True, kw_only=True):
    """Also for directories. All pairs, which replace the present ones."""

    metadata: Metadata = ()


async def get_directory(services: Services, call: Call[Any]) -> NodeView:
    """For Get Directory Properties and Get Directory Metadata."""
    return await _entered(services, call, FileOperation.LIST_FILES, is_directory=True)


async def get_properties(services: Services, call: Call[Any]) -> NodeView:
    return await _entered(services, call, FileOperation.GET_PROPERTIES)


async def get_metadata(services: Services, call: Call[Any]) -> NodeView:
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
    """Set HTTP properties, SMB properties and the length of a file."""
    request, reads = call.input, Reads()
    touch = Touch.SET_PROPERTIES if request.size_bytes is None else Touch.RESIZE
    smb = _SmbEdit(request.smb, request.smb.permission.read_for(call, reads), touch)
    edit = _FileProperties(smb, request.properties, request.size_bytes)
    entry = RequestEntry(
        FileOperation.SET_PROPERTIES, clears_read_only=clears_read_only(request.smb)
    )
    if request.size_bytes is not None:
        return await ranges.change(services, call, entry, resized(request.size_bytes, edit, reads))
    return await nodes.edit_attributes(
        services,
        call,
        entry.operation,
        edit,
        further=reads,
        clears_read_only=entry.clears_read_only,
        report=partial(_report_properties, services.held.of(Watches)),
    )


async def set_directory_properties(
    services: Services, call: Call[SetDirectoryProperties]
) -> NodeWritten:
    smb, reads = call.input.smb, Reads()
    edit = _SmbEdit(smb, smb.permission.read_for(call, reads), Touch.SET_PROPERTIES)
    report = partial(_report_properties, services.held.of(Watches))
    return await nodes.edit_attributes(services, call, None, edit, further=reads, report=report)


def _report_properties(watches: Watches, where: Where) -> None:
    if not where.is_root:
        watches.report(where.generation, modified(where.components, PROPERTIES))


async def set_file_metadata(services: Services, call: Call[SetFileMetadata]) -> NodeWritten:
    edit = _Metadata(call.input.metadata)
    return await nodes.edit_attributes(services, call, FileOperation.SET_METADATA, edit)


async def set_directory_metadata(services: Services, call: Call[SetFileMetadata]) -> NodeWritten:
    return await nodes.edit_attributes(services, call, None, _Metadata(call.input.metadata))


class _Metadata(Edit, frozen=True):
    metadata: Metadata

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        touched = of_changed(NOTHING_GIVEN, node.record, Touch.SET_METADATA, stamp)
        after = msgspec.structs.replace(
            node.record, etag=stamp, modified=stamp, metadata=self.metadata, **touched
        )
        return after, ()


class _SmbEdit(Edit, frozen=True):
    given: SmbProperties
    permission: PermissionRead
    touch: Touch

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        permission, first = self.permission.chosen(node.record.permission, found)
        touched = of_changed(self.given, node.record, self.touch, stamp)
        after = msgspec.structs.replace(
            node.record, etag=stamp, modified=stamp, permission=permission, **touched
        )
        return after, first


class _FileProperties(Edit, frozen=True):
    """The HTTP properties and the length change if they are given."""

    smb: _SmbEdit
    properties: ContentProperties | None
    size_bytes: int | None

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        after, first = self.smb.apply(node, found, stamp)
        more: dict[str, Any] = {"copy": None}
        if self.properties is not None:
            more["properties"] = self.properties
        if self.size_bytes is not None:
            more["size_bytes"] = self.size_bytes
        return msgspec.structs.replace(after, **more), first


async def delete_file(services: Services, call: Call[Any]) -> None:
    """The name is removed, and a job removes the bytes."""
    await _deleted(services, services.held.of(Watches), call, is_directory=False)


async def delete_directory(services: Services, call: Call[Any]) -> None:
    """It must be empty. CannotDeleteFileOrDirectory for the root, or when it is read-only."""
    await _deleted(services, services.held.of(Watches), call, is_directory=True)


async def _deleted(
    services: Services, watches: Watches, call: Call[Any], *, is_directory: bool
) -> None:
    """Delete what a request names."""
    while True:
        seen = await nodes.view(services, call, is_directory=is_directory)
        if seen.where.is_root:
            raise StorageError(file_errors.CANNOT_DELETE)
        facts = facts_of(seen.record)
        try:
            with await enter(services, seen.where.partition, FileOperation.DELETE_FILE, facts):
                await _delete(services, watches, call, seen.where, facts)
        except PathChanged:
            continue
        return


async def _delete(
    services: Services, watches: Watches, call: Call[Any], where: Where, facts: FileFacts
) -> None:
    """The deletion is reported even if the request is cancelled meanwhile."""
    generation, reads = where.generation, Reads()
    access = ByPath(RequestOrigin(call), where, facts).at_serial_point()
    decision = _Delete(
        keys.file_names(generation),
        reads.refs,
        access.purpose,
        access,
        read=access.add(reads),
        node=reads.add(keys.file_node(generation, where.id), tree_records.NODE),
        parent=reads.add(keys.file_node(generation, where.parent), tree_records.NODE),
        parent_attributes=reads.add(parent_ref(where), file_records.FILE),
        usage=reads.add(share_keys.share_usage(generation), file_records.USAGE),
    )

    async def commit() -> None:
        await access.origin.submit(services, decision)
        change = removed(where.components, is_directory=where.is_directory)
        watches.report(generation, change)
        services.work.set()

    await to_its_end(commit())


class _Delete(Decision[None], frozen=True):
    access: ByPath
    read: AccessReads
    node: ReadOne[NodeRecord]
    parent: ReadOne[NodeRecord]
    parent_attributes: ReadOne[FileRecord]
    usage: ReadOne[UsageRecord]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        where = self.access.where
        share, record = self.read.admit(found, stamp)
        node = found[self.node]
        if node is None:
            raise PathChanged
        facts = replace(facts_of(record), is_empty=not node.children)
        refused = deletion.rest_deletion_refusal(facts)
        if refused is not None:
            raise StorageError(refused)
        freed = used(share, found[self.usage], -node.size_bytes)
        steps = (
            # The job comes first, so that a crash leaves nothing that no job removes.
            sweep_step(where.generation, where.id, stamp),
            Step(self.partition, (*unlinked(where, found[self.parent]), *freed)),
            Step(where.partition, (Write(keys.FILE_KEY, None),)),
            *parent_touched(where, found[self.parent_attributes], stamp),
        )
        return with_past_states(share, self.reads, found, Commit(None, steps), stamp)
