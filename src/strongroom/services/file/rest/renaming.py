"""Rename File and Rename Directory.

Lives here: how source and target are found and entered, and what a request may move. Must not live
here: the move itself (node/moving.py), the order of checks (semantics/file/deletion.py). Source:
"Rename File", "Rename Directory"; reference file.md 5, smb.md 3.7.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import msgspec

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError, invalid_header
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.lease import LeaseUse
from strongroom.semantics.file import deletion
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Touch
from strongroom.semantics.file.deletion import FileFacts, Rename, RenameTarget
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.names import paths
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.names.permissions import PermissionGiven
from strongroom.services.file.names.smb_properties import NOTHING_GIVEN, SmbProperties, of_changed
from strongroom.services.file.node.moving import (
    MoveReads,
    MoveRule,
    ResolvedMove,
    block_opens,
    move,
    wait_for_creation,
)
from strongroom.services.file.node.origins import RequestOrigin
from strongroom.services.file.opens.admission import (
    RestWaitLimit,
    break_handle_caches_below,
    enter,
    facts_of,
)
from strongroom.services.file.opens.changes import Watches
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.rest.nodes import NodeWritten
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import keys
from strongroom.store.file.file_records import FileRecord
from strongroom.values import Metadata

SOURCE_HEADER = "x-ms-file-rename-source"


class RenameSource(msgspec.Struct, frozen=True):
    """`path`: the decoded path of the URL. `own_path`: that of the request's own URL."""

    url: str
    path: str
    own_path: str


class RenameNode(OnPath, frozen=True, kw_only=True):
    """Metadata, content type and SMB properties may change with the name. A value that is not given
    stays."""

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
    """It replaces another file if the request permits that. InvalidHeaderValue when the source is
    in another share, ResourceTypeMismatch when the target is a directory."""
    held = services.held
    return await _rename(services, held.of(Opens), held.of(Watches), call, is_directory=False)


async def rename_directory(services: Services, call: Call[RenameNode]) -> NodeWritten:
    """SharingViolation for a place below itself."""
    held = services.held
    return await _rename(services, held.of(Opens), held.of(Watches), call, is_directory=True)


async def _rename(
    services: Services,
    opens: Opens,
    watches: Watches,
    call: Call[RenameNode],
    *,
    is_directory: bool,
) -> NodeWritten:
    request = call.input
    source_path = paths.components(
        _within_share(call, request.source), trailing_dots=request.source_trailing_dots
    )
    while True:
        source = await _resolved(services, call, source_path)
        if source.is_directory != is_directory or (source.entry is None and not source.is_root):
            raise StorageError(errors.RESOURCE_NOT_FOUND)
        target = await paths.named(services, call)
        try:
            return await _attempt(services, opens, watches, call, source, target)
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
    account, share = call.target.account, call.target.container
    for prefix in (f"/file/{account}/{share}/", f"/{account}/{share}/", f"/{share}/"):
        if source.own_path.startswith(prefix):
            if not source.path.startswith(prefix):
                break
            return source.path.removeprefix(prefix).removesuffix("/")
    reason = "The source must be in the same share."
    raise invalid_header(SOURCE_HEADER, source.url, reason)


async def _attempt(
    services: Services,
    opens: Opens,
    watches: Watches,
    call: Call[RenameNode],
    source: Where,
    target: Where,
) -> NodeWritten:
    if target.is_root or source.is_root:
        raise StorageError(_refusal_of_root(source, target))
    seen, looked = ResolvedMove(source, target, FileFacts(), None), Reads()
    move_reads = MoveReads.of(looked, seen)
    found = await services.read(looked)
    record, replaced = move_reads.records_in(found)
    facts = None if replaced is None else facts_of(replaced)
    seen = ResolvedMove(source, target, facts_of(record), facts)
    request = call.input
    if facts is not None:
        opens.check_not_pending(target.partition)
    opens.check_not_pending(keys.file(target.generation, target.parent))
    with ExitStack() as stack:
        wait_limit = stack.enter_context(RestWaitLimit(services))
        await wait_for_creation(opens, seen, wait_limit.until)
        stack.enter_context(
            await enter(services, source.partition, FileOperation.RENAME_SOURCE, seen.source_facts)
        )
        if facts is not None and not facts.is_directory and request.replaces:
            stack.enter_context(
                await enter(
                    services,
                    target.partition,
                    FileOperation.RENAME_TARGET,
                    facts,
                    clears_read_only=request.ignores_read_only,
                )
            )
        if record.is_directory:
            generation, path = source.generation, source.components
            await break_handle_caches_below(services, generation, path, wait_limit.until)
        stack.callback(await block_opens(opens, seen, wait_limit.until))
        origin, rule = RequestOrigin(call), _Requested(request)
        return NodeWritten(*await move(services, opens, watches, origin, seen, rule))


def _refusal_of_root(source: Where, target: Where) -> errors.ErrorCode:
    facts = FileFacts(is_directory=source.is_directory, is_root=source.is_root)
    root = RenameTarget(FileFacts(is_directory=True, is_root=True)) if target.is_root else None
    refused = deletion.rename_refusal(
        Rename(source.components, target.components, facts, target=root)
    )
    assert refused is not None, "a rename of the root or over it is refused"
    return refused


class _Requested(MoveRule, frozen=True):
    given: RenameNode

    @property
    def permission(self) -> PermissionGiven:
        return self.given.smb.permission

    def check(
        self, seen: ResolvedMove, record: FileRecord, replaced: FileRecord | None, stamp: int
    ) -> None:
        """The checks are made in their order."""
        given, source, target = self.given, seen.source, seen.target
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

    def moved(self, record: FileRecord, permission: str, stamp: int) -> FileRecord:
        given, properties = self.given, record.properties
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
