"""FileDispositionInformation and FileRenameInformation: a file is deleted or renamed by its handle.

Must not live here: the move itself (node/moving.py), the order of checks
(semantics/file/deletion.py). Sources: [MS-FSA] sections 2.1.5.15.3 and 2.1.5.15.12; smb.md 3.4 and
3.7.
"""

from __future__ import annotations

from contextlib import ExitStack

from msgspec.structs import replace

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses, deletion, names, opens, previous_versions
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import TimeField, Touch
from strongroom.semantics.file.deletion import FileFacts, Rename, RenameTarget
from strongroom.semantics.file.opens import BreakAwaited, OpenRefused
from strongroom.semantics.file.oplocks import Cause
from strongroom.services.core.decisions import Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import operating
from strongroom.services.file.handles.model import AsyncRequest, Handle, RequestedRename
from strongroom.services.file.handles.operating import RequestWait
from strongroom.services.file.names import paths
from strongroom.services.file.node.access import look, share_of
from strongroom.services.file.node.moving import (
    MoveRule,
    ResolvedMove,
    block_opens,
    move,
    wait_for_creation,
)
from strongroom.services.file.node.origins import TreeOrigin
from strongroom.services.file.opens.admission import break_handle_caches_below, enter, facts_of
from strongroom.services.file.opens.changes import Watches
from strongroom.services.file.opens.opens import Opens
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import keys
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.store.tree import tree_records


async def set_disposition(
    services: Services, handle: Handle, *, delete: bool, request: AsyncRequest
) -> None:
    """Mark a file for deletion, or take the mark back. Handle caches of others are broken first."""
    with handle.operating():
        operating.check_changeable(handle)
        held, file = services.held.of(Opens), handle.partition
        wait = RequestWait(request, handle.ending)
        while True:
            facts = await _facts(services, handle)
            outcome = opens.set_disposition(held.table(file), handle.id, facts, delete=delete)
            if isinstance(outcome, OpenRefused):
                raise StorageError(outcome.row)
            held.put(file, outcome.table)
            held.notify(services, file, outcome.notices)
            if not isinstance(outcome, BreakAwaited):
                if delete and handle.is_directory:
                    services.held.of(Watches).deleted(handle)
                return
            await wait.until(held.node(file).change())


async def _facts(services: Services, handle: Handle) -> FileFacts:
    """The facts that a deletion depends on, including whether a directory is empty."""
    access, reads = operating.access_of(handle), Reads()
    read = access.add(reads)
    node = reads.add(keys.file_node(handle.access.generation, handle.node_id), tree_records.NODE)
    found = await services.read(reads)
    _, record = read.admit(found, 0)
    known = found[node]
    is_empty = not record.is_directory or (known is not None and not known.children)
    return replace(facts_of(record), is_empty=is_empty, is_root=handle.is_root)


async def rename(
    services: Services, handle: Handle, wanted: RequestedRename, request: AsyncRequest
) -> None:
    """Rename an open file or directory, in the order of checks of smb.md 3.7. All of its handles
    get the new path. MEDIA_WRITE_PROTECTED when the new name is in a snapshot."""
    with handle.operating():
        operating.check_may_change(handle, accesses.DELETE)
        names.check_path(wanted.path)
        if not wanted.path:
            raise StorageError(file_errors.INVALID_OPEN)
        if previous_versions.without_token(wanted.path)[1] is not None:
            # No client could open such a name: each would look for it in a snapshot.
            raise StorageError(file_errors.SNAPSHOT_READ_ONLY)
        wait = RequestWait(request, handle.ending)
        tables, watches = services.held.of(Opens), services.held.of(Watches)
        while True:
            try:
                await _attempt(services, tables, watches, handle, wanted, wait)
            except PathChanged:
                continue
            return


async def _attempt(
    services: Services,
    tables: Opens,
    watches: Watches,
    handle: Handle,
    wanted: RequestedRename,
    wait: RequestWait,
) -> None:
    generation = handle.access.generation
    target = await paths.walk(services, generation, wanted.path)
    tables.check_not_pending(keys.file(generation, target.parent))
    await operating.break_caches(services, handle, Cause.NAME_CHANGE, wait)
    if handle.is_directory:
        await break_handle_caches_below(services, generation, handle.path, wait.until)
    source = await paths.walk(services, generation, handle.path)
    if source.id != handle.node_id and not handle.is_root:
        await _follow(services, tables, handle)
        raise PathChanged
    seen, replaced = await _read_both(services, handle, source, target)
    with ExitStack() as stack:
        _refuse(tables, handle, wanted, seen, replaced)
        if wanted.path == handle.path:
            return
        if replaced is not None:
            await wait_for_creation(tables, seen, wait.until)
            await _enter_target(services, seen, replaced, stack)
        stack.callback(await block_opens(tables, seen, wait.until))
        _refuse(tables, handle, wanted, seen, replaced)
        rule = _ByHandle(frozenset(handle.frozen))
        await move(services, tables, watches, TreeOrigin(handle.access), seen, rule)


async def _follow(services: Services, tables: Opens, handle: Handle) -> None:
    """Give the handles of a file its present path. It is another one after a rename whose outcome
    was unknown. Raises: StorageError when the share was deleted, with all names."""
    await share_of(services, TreeOrigin(handle.access))
    path = await paths.path_of(services, handle.access.generation, handle.node_id)
    if path is not None:
        above = await paths.walk(services, handle.access.generation, path)
        tables.moved(handle.partition, above.parent, above.stored)


async def _read_both(
    services: Services, handle: Handle, source: Where, target: Where
) -> tuple[ResolvedMove, FileRecord | None]:
    """Return source and target, and the attributes of the file to be replaced."""
    record = (await look(services, operating.access_of(handle))).record
    facts = facts_of(record, is_root=handle.is_root)
    seen = ResolvedMove(source, target, facts, None)
    if target.is_root or seen.replaced is None:
        return seen, None
    other = keys.file_attributes(handle.access.generation, seen.replaced)
    (stored,) = await services.store.read([other])
    replaced = file_records.FILE.of(stored)
    if replaced is None:
        raise PathChanged
    return ResolvedMove(source, target, facts, facts_of(replaced)), replaced


def _refuse(
    tables: Opens,
    handle: Handle,
    wanted: RequestedRename,
    seen: ResolvedMove,
    replaced: FileRecord | None,
) -> None:
    """Check the rename against the present tables."""
    source, target, generation = seen.source, seen.target, handle.access.generation
    parents = target.ids[: len(target.components) - 1]
    above = tables.handles_on(keys.file(generation, target.parent))
    other = None
    if replaced is not None:
        state = tables.table(target.partition).deletion
        facts = facts_of(replaced)
        other = RenameTarget(facts, state, is_open=facts.is_leased)
    refused = deletion.rename_refusal(
        Rename(
            handle.path,
            wanted.path,
            seen.source_facts,
            tables.table(handle.partition).deletion,
            target=other,
            replaces=wanted.replaces,
            has_open_descendants=handle.is_directory
            and bool(tables.handles_below(generation, handle.path)),
            is_parent_in_use=any(
                accesses.stake_of_handle(one.mask, one.share).conflicts(accesses.RENAME_PARENT)
                for one in above
            ),
            is_into_itself=source.id in parents,
        )
    )
    if refused is not None and wanted.path != handle.path:
        raise StorageError(refused)
    if refused is file_errors.RENAME_OF_PENDING:
        raise StorageError(refused)


async def _enter_target(
    services: Services, seen: ResolvedMove, replaced: FileRecord, stack: ExitStack
) -> None:
    """This keeps others out of the file to be replaced. ACCESS_DENIED when it is open."""
    facts = facts_of(replaced)
    try:
        entry = await enter(services, seen.target.partition, FileOperation.RENAME_TARGET, facts)
    except StorageError as error:
        if error.row is file_errors.SHARING_VIOLATION:
            raise StorageError(file_errors.TARGET_IN_USE) from None
        raise
    stack.enter_context(entry)


class _ByHandle(MoveRule, frozen=True):
    """`frozen`: the times that the handle does not change."""

    frozen: frozenset[TimeField]

    def moved(self, record: FileRecord, permission: str, stamp: int) -> FileRecord:
        return operating.after(record, Touch.RENAME, stamp, self.frozen)
