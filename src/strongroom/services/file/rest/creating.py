"""Create Directory and Create File, for a new name and for the name of an existing file.

Lives here: the requests, and what a new or overwritten file is like. Must not live here: the
decision (node/making.py), what else is done to files (files.py). Source: "Create Directory",
"Create File"; reference file.md 4 and 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from strongroom.engines.base import Step, Write
from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core.copies import Copy
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Touch
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Found, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.names import paths
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.names.permissions import PermissionGiven, PermissionRead
from strongroom.services.file.names.smb_properties import (
    NOTHING_GIVEN,
    SmbProperties,
    of_changed,
    of_new,
)
from strongroom.services.file.node.changing import resized
from strongroom.services.file.node.deciding import AdmittedNode, Applied, Edit
from strongroom.services.file.node.making import NewNode, make
from strongroom.services.file.node.origins import RequestOrigin
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.rest import ranges
from strongroom.services.file.rest.nodes import NodeWritten
from strongroom.services.file.rest.ranges import RequestEntry
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import keys, records
from strongroom.store.core.records import CopyOrder, Job, JobKind, ShareRecord
from strongroom.store.file.file_records import FileRecord
from strongroom.values import ContentProperties, Metadata

NO_PROPERTIES: Final = ContentProperties()


class CreateDirectory(OnPath, frozen=True, kw_only=True):
    metadata: Metadata = ()
    smb: SmbProperties = NOTHING_GIVEN


class CreateFile(OnPath, frozen=True, kw_only=True):
    size_bytes: int
    metadata: Metadata = ()
    properties: ContentProperties = NO_PROPERTIES
    smb: SmbProperties = NOTHING_GIVEN


async def create_directory(services: Services, call: Call[CreateDirectory]) -> NodeWritten:
    """The parent must exist. ResourceAlreadyExists for the root too."""
    request = call.input
    while True:
        where = await paths.named(services, call)
        if where.is_root or where.entry is not None:
            services.held.of(Opens).check_not_pending(where.partition)
            raise StorageError(file_errors.FILE_ALREADY_EXISTS)
        try:
            new = RequestedNode(True, smb=request.smb, metadata=request.metadata)
            return await create(services, call, where, new)
        except PathChanged:
            continue


async def create_file(services: Services, call: Call[CreateFile]) -> NodeWritten:
    """Create a file of zeros. A file that exists is replaced, and keeps its lease."""
    request = call.input
    while True:
        where = await paths.named(services, call)
        if where.is_directory:
            raise StorageError(errors.RESOURCE_TYPE_MISMATCH)
        try:
            if where.entry is None:
                new = RequestedNode(
                    False,
                    smb=request.smb,
                    metadata=request.metadata,
                    properties=request.properties,
                    size_bytes=request.size_bytes,
                )
                return await create(services, call, where, new)
            return await _overwrite(services, call)
        except PathChanged:
            continue


class StartedCopy(msgspec.Struct, frozen=True):
    """A copy that begins in the commit of its file. `attributes`: the file's, as bits."""

    copy: Copy
    order: CopyOrder
    attributes: int

    def job_step(self, generation: int, file_id: int, stamp: int) -> Step:
        """It comes before the step that makes the copy pending."""
        ref = keys.job(stamp, stamp, JobKind.COPY_FILE)
        job = Job(JobKind.COPY_FILE, generation, str(file_id), self.copy.id, self.order)
        return Step(ref.partition, (Write(ref.key, records.JOB.encode(job)),))


class RequestedNode(NewNode, frozen=True, kw_only=True):
    """`started`: the copy whose destination the file is."""

    smb: SmbProperties
    metadata: Metadata
    properties: ContentProperties = NO_PROPERTIES
    size_bytes: int = 0
    started: StartedCopy | None = None

    @property
    def permission(self) -> PermissionGiven:
        return self.smb.permission

    def made(self, share: ShareRecord, where: Where, permission: str, stamp: int) -> Applied:
        record = FileRecord(
            stamp,
            stamp,
            is_directory=self.is_directory,
            permission=permission,
            size_bytes=self.size_bytes,
            metadata=self.metadata,
            properties=self.properties,
            **of_new(self.smb, stamp, is_directory=self.is_directory),
        )
        if self.started is None:
            return record, ()
        begun = msgspec.structs.replace(
            record, copy=self.started.copy, attributes=self.started.attributes
        )
        return begun, (self.started.job_step(where.generation, stamp, stamp),)


async def create(
    services: Services, call: Call[Any], where: Where, new: RequestedNode
) -> NodeWritten:
    """Raises: PathChanged when the name is no longer free."""
    parent = keys.file(where.generation, where.parent)
    services.held.of(Opens).check_not_pending(parent)
    return NodeWritten(*await make(services, RequestOrigin(call), where, new))


def require_overwrite(call: Call[Any]) -> None:
    """Refuse a caller who may create files but not replace them."""
    if not call.caller.grant.may_overwrite:
        raise StorageError(errors.AUTHORIZATION_PERMISSION_MISMATCH)


def overwritten_attributes(smb: SmbProperties, record: FileRecord, stamp: int) -> dict[str, Any]:
    """The attributes and times of a file that is overwritten. Its creation time stays unless one is
    given."""
    new = of_new(smb, stamp, is_directory=False)
    touched = of_changed(NOTHING_GIVEN, record, Touch.OVERWRITE, stamp)
    kept = {"creation": record.creation} if smb.creation is None else {}
    return {**touched, **new, **kept}


@contextmanager
def missing_as_changed() -> Iterator[None]:
    """Raise PathChanged if the block finds no file: it was deleted after its path was resolved."""
    try:
        yield
    except StorageError as error:
        if error.row is errors.RESOURCE_NOT_FOUND:
            raise PathChanged from None
        raise


async def _overwrite(services: Services, call: Call[CreateFile]) -> NodeWritten:
    request, reads = call.input, Reads()
    require_overwrite(call)
    edit = _Overwrite(request, request.smb.permission.read_for(call, reads))
    entry = RequestEntry(FileOperation.CREATE_FILE)
    with missing_as_changed():
        written = await ranges.change(services, call, entry, resized(0, edit, reads))
    return written


class _Overwrite(Edit, frozen=True):
    given: CreateFile
    permission: PermissionRead

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
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
