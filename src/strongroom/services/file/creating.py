"""Create Directory and Create File, for a new name and for the name of an existing file.

Lives here: the two decisions. Must not live here: what else is done to files (files.py). Source:
"Create Directory", "Create File"; reference file.md 4 and 5.

Attributes are written first, and the name last. So no name ever leads to nothing. A crash between
the two leaves an attribute record of a few hundred bytes that no name refers to.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom.engines.base import Commit, Step, Write
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.copies import Copy
from strongroom.semantics.file import names
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Touch
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file import paths, ranges
from strongroom.services.file.admission import Opens
from strongroom.services.file.held.changes import Watches, added
from strongroom.services.file.node.changing import resized
from strongroom.services.file.node.deciding import AdmittedNode, Edit
from strongroom.services.file.node_writes import parent_ref, parent_touched, used
from strongroom.services.file.nodes import NodeWritten
from strongroom.services.file.past_states import with_past_states
from strongroom.services.file.paths import OnPath, PathChanged, Where
from strongroom.services.file.permissions import DEFAULT_KEY, PermissionRead
from strongroom.services.file.ranges import RequestEntry
from strongroom.services.file.smb_properties import NOTHING_GIVEN, SmbProperties, of_changed, of_new
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import CopyOrder, Job, JobKind, ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord, NameRecord, NodeRecord, UsageRecord
from strongroom.values import ContentProperties, Metadata

NO_PROPERTIES: Final = ContentProperties()


class CreateDirectory(OnPath, frozen=True, kw_only=True):
    """Input of Create Directory."""

    metadata: Metadata = ()
    smb: SmbProperties = NOTHING_GIVEN


class CreateFile(OnPath, frozen=True, kw_only=True):
    """Input of Create File."""

    size_bytes: int
    metadata: Metadata = ()
    properties: ContentProperties = NO_PROPERTIES
    smb: SmbProperties = NOTHING_GIVEN


async def create_directory(services: Services, call: Call[CreateDirectory]) -> NodeWritten:
    """Create a directory; its parent must exist.

    Raises: StorageError ResourceAlreadyExists (the root too), ParentNotFound, ShareNotFound,
        FileInvalidPermissionKey, InvalidHeaderValue.
    """
    given = call.input
    while True:
        where = await paths.named(services, call)
        if where.is_root or where.entry is not None:
            services.held.of(Opens).check_not_pending(where.partition)
            raise StorageError(file_errors.FILE_ALREADY_EXISTS)
        try:
            return await create(services, call, where, NewNode(True, given.smb, given.metadata))
        except PathChanged:
            continue


async def create_file(services: Services, call: Call[CreateFile]) -> NodeWritten:
    """Create a file of zeros. A file that exists is replaced, and keeps its lease.

    Raises: StorageError ResourceTypeMismatch (a directory has the name), ParentNotFound,
        ShareNotFound, the lease errors (412), ReadOnlyAttribute, FileInvalidPermissionKey,
        InvalidHeaderValue.
    """
    given = call.input
    while True:
        where = await paths.named(services, call)
        if where.is_directory:
            raise StorageError(errors.RESOURCE_TYPE_MISMATCH)
        try:
            if where.entry is None:
                new = NewNode(False, given.smb, given.metadata, given.properties, given.size_bytes)
                return await create(services, call, where, new)
            return await _overwrite(services, call)
        except PathChanged:
            continue


class StartedCopy(msgspec.Struct, frozen=True):
    """A copy that begins in the commit of its file: its state, its order, and the file's attributes
    (bits)."""

    copy: Copy
    order: CopyOrder
    attributes: int

    def job_step(self, generation: int, file_id: int, stamp: int) -> Step:
        """Return the step that stores the copy's job. It comes before the step that makes the copy
        pending."""
        ref = keys.job(stamp, stamp, JobKind.COPY_FILE)
        job = Job(JobKind.COPY_FILE, generation, str(file_id), self.copy.id, self.order)
        return Step(ref.partition, (Write(ref.key, records.JOB.encode(job)),))


class NewNode(msgspec.Struct, frozen=True):
    """The file or directory to create. `started`: the copy whose destination it is."""

    is_directory: bool
    smb: SmbProperties
    metadata: Metadata
    properties: ContentProperties = NO_PROPERTIES
    size_bytes: int = 0
    started: StartedCopy | None = None


async def create(services: Services, call: Call[Any], where: Where, new: NewNode) -> NodeWritten:
    """Create a directory or file under a name that is free.

    Raises: PathChanged; StorageError as create_file.
    """
    services.held.of(Opens).check_not_pending(keys.file(where.generation, where.parent))
    generation, reads = where.generation, Reads()
    decision = _Create(
        keys.file_names(generation),
        reads.refs,
        call.rule.purpose,
        call=call.with_pure_authorization(),
        where=where,
        new=new,
        share=reads.add(place_ref(call), records.SHARE),
        parent=reads.add(keys.file_node(generation, where.parent), file_records.NODE),
        parent_attributes=reads.add(parent_ref(where), file_records.FILE),
        usage=reads.add(share_keys.share_usage(generation), file_records.USAGE),
        on_path=where.read(reads),
        permission=new.smb.permission.read(reads, generation),
    )
    made = await services.commit(decision)
    change = added(where.components, is_directory=new.is_directory)
    services.held.of(Watches).report(where.generation, change)
    return made


class _Create(Decision[NodeWritten], frozen=True):
    """The decision that creates a directory or file under a free name."""

    call: Call[Any]
    where: Where
    new: NewNode
    share: ReadOne[ShareRecord]
    parent: ReadOne[NodeRecord]
    parent_attributes: ReadOne[FileRecord]
    usage: ReadOne[UsageRecord]
    on_path: ReadAll[NameRecord]
    permission: PermissionRead

    def decide(self, found: Found, stamp: int) -> Commit[NodeWritten]:
        """See Decision.decide. Raises: PathChanged when the name is no longer free."""
        call, where, new = self.call, self.where, self.new
        share = place_in(call, found, self.share)
        where.check(found, self.on_path)
        leases.guard(None, call.terms.lease_id, call.rule.lease, stamp)
        permission, first = self.permission.chosen(DEFAULT_KEY, found)
        record = FileRecord(
            stamp,
            stamp,
            is_directory=new.is_directory,
            permission=permission,
            size_bytes=new.size_bytes,
            metadata=new.metadata,
            properties=new.properties,
            **of_new(new.smb, stamp, is_directory=new.is_directory),
        )
        if new.started is not None:
            record = msgspec.structs.replace(
                record, copy=new.started.copy, attributes=new.started.attributes
            )
            first = (*first, new.started.job_step(where.generation, stamp, stamp))
        made = msgspec.structs.replace(
            where,
            ids=(*where.ids, stamp),
            entry=NameRecord(stamp, where.name, new.is_directory),
        )
        attributes = Write(keys.FILE_KEY, file_records.FILE.encode(record))
        node = NodeRecord(where.parent, names.fold(where.name), new.is_directory, 0, new.size_bytes)
        counted = used(share, found[self.usage], new.size_bytes)
        steps = (
            *first,
            Step(keys.file(where.generation, stamp), (attributes,)),
            Step(self.partition, (*linked(where, stamp, found[self.parent], node), *counted)),
            *parent_touched(where, found[self.parent_attributes], stamp),
        )
        commit = Commit(NodeWritten(made, record), steps)
        return with_past_states(share, self.reads, found, commit, stamp)


def linked(
    where: Where, file_id: int, parent: NodeRecord | None, node: NodeRecord
) -> tuple[Write, ...]:
    """Return the writes that give a name to an id: the name, its node, and its parent's count.

    Arguments:
        where: the name, in a parent that has the node `parent`; the root has none.
        node: of the id.

    Raises: PathChanged when the parent is gone.
    """
    name = NameRecord(file_id, where.name, node.is_directory)
    writes = [
        Write(where.refs[-1].key, file_records.NAME.encode(name)),
        Write(keys.file_node(where.generation, file_id).key, file_records.NODE.encode(node)),
    ]
    return (*writes, *counted(where, parent, 1))


def counted(where: Where, parent: NodeRecord | None, more: int) -> tuple[Write, ...]:
    """Return the write that adds `more` to the count of names in a parent. The root has no count.

    Raises: PathChanged when the parent is gone.
    """
    if where.parent == where.generation:
        return ()
    if parent is None or not parent.is_directory:
        raise PathChanged
    counted = msgspec.structs.replace(parent, children=parent.children + more)
    key = keys.file_node(where.generation, where.parent).key
    return (Write(key, file_records.NODE.encode(counted)),)


def require_overwrite(call: Call[Any]) -> None:
    """Refuse a caller who may create files but not replace them.

    Raises: AuthorizationPermissionMismatch.
    """
    if not call.caller.grant.may_overwrite:
        raise StorageError(errors.AUTHORIZATION_PERMISSION_MISMATCH)


def overwritten_attributes(smb: SmbProperties, record: FileRecord, stamp: int) -> dict[str, Any]:
    """Return the attributes and times of an existing file that is overwritten. Its creation time
    stays unless one is given.

    Raises: InvalidHeaderValue.
    """
    new = of_new(smb, stamp, is_directory=False)
    touched = of_changed(NOTHING_GIVEN, record, Touch.OVERWRITE, stamp)
    kept = {"creation": record.creation} if smb.creation is None else {}
    return {**touched, **new, **kept}


async def _overwrite(services: Services, call: Call[CreateFile]) -> NodeWritten:
    given, reads = call.input, Reads()
    require_overwrite(call)
    edit = _Overwrite(given, given.smb.permission.read_for(call, reads))
    entry = RequestEntry(FileOperation.CREATE_FILE)
    try:
        return await ranges.change(services, call, entry, resized(0, edit, reads))
    except StorageError as error:
        if error.row is errors.RESOURCE_NOT_FOUND:
            raise PathChanged from None  # deleted since it was found
        raise


class _Overwrite(Edit, frozen=True):
    """The attributes of a file that Create File replaces by zeros."""

    given: CreateFile
    permission: PermissionRead

    def apply(
        self, node: AdmittedNode, found: Found, stamp: int
    ) -> tuple[FileRecord, tuple[Step, ...]]:
        """See Edit."""
        given, record = self.given, node.record
        permission, first = self.permission.chosen(record.permission, found)
        after = msgspec.structs.replace(
            record,
            etag=stamp,
            modified=stamp,
            size_bytes=given.size_bytes,
            metadata=given.metadata,
            properties=given.properties,
            permission=permission,
            copy=None,
            **overwritten_attributes(given.smb, record, stamp),
        )
        return after, first
