"""Get and Set Properties and Metadata of directories and files, and their deletion.

Lives here: the decisions on attributes, and Delete. Must not live here: creation (creating.py),
bytes (ranges.py, reading.py). Source: "Operations on directories", "Operations on files"; reference
file.md 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from strongroom import file_errors
from strongroom.engines.base import Commit, Record, Ref, Step, Write
from strongroom.errors import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.semantics.file import deletion
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Touch
from strongroom.semantics.file.deletion import FileFacts
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision
from strongroom.services.core.places import check_place, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file import nodes, ranges
from strongroom.services.file.admission import enter, facts_of
from strongroom.services.file.creating import counted
from strongroom.services.file.held.changes import PROPERTIES, Watches, modified, removed
from strongroom.services.file.node_writes import parent_ref, parent_touched, used
from strongroom.services.file.nodes import NodeChange, NodeView, NodeWritten, attributes_in
from strongroom.services.file.past_states import share_of, with_past_states
from strongroom.services.file.paths import OnPath, PathChanged, Where
from strongroom.services.file.smb_properties import (
    NOTHING_GIVEN,
    SmbProperties,
    clears_read_only,
    of_changed,
)
from strongroom.services.file.sweep import sweep_step
from strongroom.store.core import keys, share_keys
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
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
    touch = Touch.SET_PROPERTIES if given.size_bytes is None else Touch.RESIZE

    def changes(
        where: Where, record: FileRecord, found: Sequence[Record | None], stamp: int
    ) -> tuple[FileRecord, tuple[Step, ...]]:
        after, first = _with_smb(given.smb, touch, where, record, found, stamp)
        more: dict[str, Any] = {"copy": None}
        if given.properties is not None:
            more["properties"] = given.properties
        if given.size_bytes is not None:
            more["size_bytes"] = given.size_bytes
        return msgspec.structs.replace(after, **more), first

    def reads(where: Where) -> tuple[Ref, ...]:
        return given.smb.permission.ref(where.generation)

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
    given = call.input.smb

    def changes(
        where: Where, record: FileRecord, found: Sequence[Record | None], stamp: int
    ) -> tuple[FileRecord, tuple[Step, ...]]:
        return _with_smb(given, Touch.SET_PROPERTIES, where, record, found, stamp)

    def reads(where: Where) -> tuple[Ref, ...]:
        return given.permission.ref(where.generation)

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
        where: Where, record: FileRecord, found: Sequence[Record | None], stamp: int
    ) -> tuple[FileRecord, tuple[Step, ...]]:
        touched = of_changed(NOTHING_GIVEN, record, Touch.SET_METADATA, stamp)
        after = msgspec.structs.replace(
            record, etag=stamp, modified=stamp, metadata=metadata, **touched
        )
        return after, ()

    return changes


def _with_smb(
    given: SmbProperties,
    touch: Touch,
    where: Where,
    record: FileRecord,
    found: Sequence[Record | None],
    stamp: int,
) -> tuple[FileRecord, tuple[Step, ...]]:
    permission, first = given.permission.chosen(
        record.permission, where.generation, found[0] if found else None
    )
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
    reads: nodes.FurtherReads = lambda where: (),
    *,
    clears: bool = False,
) -> NodeWritten:
    def change(
        where: Where, record: FileRecord, found: Sequence[Record | None], stamp: int
    ) -> NodeChange[NodeWritten]:
        after, first = changes(where, record, found, stamp)
        return NodeChange(NodeWritten(where, after), after, first)

    return await nodes.change_attributes(
        services, call, operation, change, reads=reads, clears_read_only=clears
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
    generation = where.generation
    reads = [
        place_ref(call),
        keys.file_attributes(generation, where.id),
        keys.file_node(generation, where.id),
        keys.file_node(generation, where.parent),
        parent_ref(where),
        share_keys.share_usage(generation),
        *where.refs,
    ]
    partition = keys.file_names(generation)
    decision = _Delete(
        partition, reads, call.rule.purpose, call.with_pure_authorization(), where, facts
    )
    await services.commit(decision)
    change = removed(where.components, is_directory=where.is_directory)
    services.held.of(Watches).report(generation, change)


class _Delete(Decision[None], frozen=True):
    """The decision that removes the name of a directory or file, and its attributes after it."""

    call: Call[Any]
    where: Where
    facts: FileFacts

    def run(self, found: Sequence[Record | None], stamp: int) -> Commit[None]:
        """See Decision.run. Raises: PathChanged."""
        call, where = self.call, self.where
        check_place(call, found[0])
        assert found[0] is not None
        where.check(found[6:])
        record = attributes_in(where, found[0], found[1])
        node = file_records.NODE.of(found[2])
        if node is None or facts_of(record) != self.facts:
            raise PathChanged
        leases.guard(record.lease, call.terms.lease_id, call.rule.lease, stamp)
        refused = deletion.rest_deletion_refusal(replace(self.facts, is_empty=not node.children))
        if refused is not None:
            raise StorageError(refused)
        freed = used(share_of(found[0]), found[5], -node.size_bytes)
        gone = (Write(where.refs[-1].key, None), Write(self.reads[2].key, None), *freed)
        steps = (
            # The job comes first, so that a crash leaves nothing that no job removes.
            sweep_step(where.generation, where.id, stamp),
            Step(self.partition, (*gone, *counted(where, found[3], -1))),
            Step(where.partition, (Write(keys.FILE_KEY, None),)),
            *parent_touched(where, found[4], stamp),
        )
        return with_past_states(share_of(found[0]), self.reads, found, Commit(None, steps), stamp)
