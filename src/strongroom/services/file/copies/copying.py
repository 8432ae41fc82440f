"""Copy File and Abort Copy File: the requests.

Lives here: the opening of the source, the commits that begin or abort a copy, and the wait for one
that has begun. Must not live here: the work of a pending copy (copies/jobs.py), what a copy makes
of SMB properties (copies/properties.py). Source: "Copy File", "Abort Copy File"; reference file.md
5.

Each copy is pending first, and a job carries it out. So an interrupted copy continues after a
restart. The file is empty until the commit that completes the copy. The answer waits a while for
that commit.
"""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from strongroom import limits
from strongroom.clock import guid
from strongroom.engines.base import Record
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import copies
from strongroom.semantics.core.copies import Copy
from strongroom.semantics.file.accesses import FileOperation
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.opening import copy_order, open_named
from strongroom.services.core.copies.pending import is_pending, wait_until_ended
from strongroom.services.core.copies.sources import (
    CopySources,
    OpenSource,
    SourceRequest,
    check_url,
    url_without_credentials,
)
from strongroom.services.core.decisions import Found, Reads
from strongroom.services.core.places import generation_of, place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.properties import NOTHING_COPIED, CopiedProperties
from strongroom.services.file.copies.reading import OWN, FileSource, OpenFile
from strongroom.services.file.names import paths
from strongroom.services.file.names.node_writes import used
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.names.permissions import PermissionRead
from strongroom.services.file.names.smb_properties import SmbProperties
from strongroom.services.file.node.access import ByPath, look
from strongroom.services.file.node.changing import BytesChange, Cleared, resized
from strongroom.services.file.node.deciding import AdmittedNode, Applied, Edit
from strongroom.services.file.node.origins import RequestOrigin
from strongroom.services.file.opens.admission import enter, facts_of
from strongroom.services.file.rest import creating, nodes, ranges
from strongroom.services.file.rest.creating import RequestedNode, StartedCopy
from strongroom.services.file.rest.nodes import NodeView, NodeWritten, view_of
from strongroom.services.file.rest.ranges import RequestEntry
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import CopyOrder
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.values import ContentProperties, Metadata


class CopyFile(OnPath, frozen=True, kw_only=True):
    """`metadata`: of the copy; none = the source's. `wait_s`: how long the answer may wait for the
    end of the copy."""

    source: str
    source_trailing_dots: bool = False
    metadata: Metadata = ()
    smb: CopiedProperties = NOTHING_COPIED
    ignores_read_only: bool = False
    wait_s: float = 0.0


class FileCopied(msgspec.Struct, frozen=True):
    """The file when the request is answered."""

    record: FileRecord

    @property
    def copy(self) -> Copy:
        """The record always has one."""
        copy = self.record.copy
        assert copy is not None
        return copy


async def copy_file(services: Services, call: Call[CopyFile]) -> FileCopied:
    """Copy a file or a blob of this server, or content of another server, to a file.
    InvalidHeaderValue for no usable URL, or a `source` property that the source lacks."""
    request, answer_at = call.input, asyncio.get_running_loop().time() + call.input.wait_s
    check_url(request.source)
    # This comes first: no other server is asked for a caller who may not write.
    destination = await _check(services, call)
    # A file has no tier, so an archived blob is refused: the source is read as by Get Blob.
    dots = request.source_trailing_dots
    source_request = SourceRequest(is_read=True, trailing_dots=dots, by_caller=True)
    source, local = await open_named(services, call, request.source, source_request, OWN)
    target = call.target
    name = f"{target.account}/{target.container}/{target.blob}"
    order = copy_order(request.source, local, source, request.metadata or None, name)
    sources = services.held.of(CopySources)
    begun = await _begin(services, sources, call, source, order, destination)
    size_bytes = source.size_bytes
    if order.url and (size_bytes is None or size_bytes > limits.FILE_COPY_AWAITED_BYTES_MAX):
        return FileCopied(begun.record)
    return await _wait_for_end(services, call, begun, answer_at)


class _Destination(msgspec.Struct, frozen=True):
    """The path of the copy, and the file that it overwrites; None = the name is free."""

    where: Where
    file: NodeView | None = None

    @property
    def size_bytes(self) -> int:
        return 0 if self.file is None else self.file.record.size_bytes


async def _destination(services: Services, call: Call[CopyFile]) -> _Destination:
    """Resolve the path of the copy, and look at the file there."""
    origin = RequestOrigin(call)
    while True:
        where = await paths.named(services, call)
        if where.is_directory:
            raise StorageError(errors.RESOURCE_TYPE_MISMATCH)
        if where.entry is None:
            return _Destination(where)
        creating.require_overwrite(call)
        try:
            seen = await look(services, ByPath(origin, where))
        except PathChanged:
            continue
        return _Destination(where, view_of(where, seen))


async def _check(services: Services, call: Call[CopyFile]) -> _Destination:
    """Refuse a copy that cannot begin, whatever its source is."""
    destination = await _destination(services, call)
    if destination.file is not None:
        with await enter(
            services,
            destination.where.partition,
            FileOperation.COPY_DESTINATION,
            facts_of(destination.file.record),
            clears_read_only=call.input.ignores_read_only,
        ):
            pass
    return destination


async def _check_quota(
    services: Services, call: Call[CopyFile], total_bytes: int, replaced_bytes: int
) -> None:
    """Refuse a copy for which the share has no room. The last commit checks again, since others
    write meanwhile."""
    reads = Reads()
    share = reads.add(place_ref(call), records.SHARE)
    usage = reads.add(share_keys.share_usage(generation_of(call)), file_records.USAGE)
    found = await services.read(reads)
    used(place_in(call, found, share), found[usage], total_bytes - replaced_bytes)


async def _begin(
    services: Services,
    sources: CopySources,
    call: Call[CopyFile],
    source: OpenSource,
    order: CopyOrder,
    destination: _Destination,
) -> NodeWritten:
    """Commit a pending copy and the job that carries it out. This takes ownership of the source."""
    copy_id = guid(services.clock)
    # The source is handed over before the commit: the copy may begin once its job is visible.
    try:
        if (source.size_bytes or 0) > limits.FILE_BYTES_MAX:
            raise errors.body_too_large(limits.FILE_BYTES_MAX)
        total_bytes = source.size_bytes or 0
        await _check_quota(services, call, total_bytes, destination.size_bytes)
        copy = copies.started(copy_id, url_without_credentials(call.input.source), total_bytes)
        start = _CopyStart.of(call, source, copy, order)
        await sources.keep_open(copy_id, source)
        begun = await start.begin(services, destination)
    except BaseException:
        sources.take(copy_id)
        await source.close()
        raise
    if not copies.is_pending(FileCopied(begun.record).copy):
        sources.take(copy_id)
        await source.close()
    ref = keys.file_attributes(generation_of(call), begun.where.id)
    sources.register_committed(copy_id, partial(is_pending, services, ref, _copy_of, copy_id))
    services.work.set()
    return begun


def _copy_of(stored: Record | None) -> Copy | None:
    record = file_records.FILE.of(stored)
    return None if record is None else record.copy


class _CopyEdit(Edit, frozen=True):
    """The file that a copy overwrites is empty until the copy ends."""

    smb: SmbProperties
    permission: PermissionRead
    metadata: Metadata
    properties: ContentProperties
    started: StartedCopy

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        after, first = self.copied(node.record, found, stamp)
        access, started = node.access, self.started
        return after, (*first, started.job_step(access.generation, access.id, stamp))

    def copied(self, record: FileRecord, found: Found, stamp: int) -> Applied:
        """The same without the job."""
        permission, first = self.permission.chosen(record.permission, found)
        attributes = creating.overwritten_attributes(self.smb, record, stamp)
        after = msgspec.structs.replace(
            record,
            etag=stamp,
            modified=stamp,
            size_bytes=0,
            metadata=self.metadata,
            properties=self.properties,
            permission=permission,
            copy=self.started.copy,
            **{**attributes, "attributes": self.started.attributes},
        )
        return after, first


class _OntoItself(Edit, frozen=True):
    """A file is copied onto itself. No bytes move, so the copy is complete in one commit.
    `properties`: the file's own."""

    edit: _CopyEdit
    properties: ContentProperties

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        after, first = self.edit.copied(node.record, found, stamp)
        done = msgspec.structs.replace(
            after,
            size_bytes=node.record.size_bytes,
            properties=self.properties,
            copy=copies.succeeded(self.edit.started.copy, stamp),
        )
        return done, first


class _CopyStart(msgspec.Struct, frozen=True):
    """The commit that begins a copy: it empties the file that exists, or creates one. `file`: the
    source, if it is a file of this server. `properties`: of the source. `further`: what `edit`
    reads."""

    call: Call[CopyFile]
    file: FileSource | None
    properties: ContentProperties
    edit: _CopyEdit
    further: Reads

    @classmethod
    def of(
        cls, call: Call[CopyFile], source: OpenSource, copy: Copy, order: CopyOrder
    ) -> _CopyStart:
        request, reads = call.input, Reads()
        file = source.file if isinstance(source, OpenFile) else None
        request.smb.check(file)
        smb = request.smb.of_new(file)
        edit = _CopyEdit(
            smb,
            smb.permission.read_for(call, reads),
            request.metadata or source.metadata,
            # The source's MD5 is that of content that has not arrived yet.
            source.properties.with_md5(None),
            StartedCopy(copy, order, request.smb.bits(file)),
        )
        return cls(call, file, source.properties, edit, reads)

    async def begin(self, services: Services, destination: _Destination) -> NodeWritten:
        """A path that changes before the commit is resolved again."""
        while True:
            try:
                if destination.file is None:
                    new = self._new()
                    return await creating.create(services, self.call, destination.where, new)
                with creating.missing_as_changed():
                    if self._is_source(destination.where):
                        return await self._onto_itself(services)
                    return await self._overwrite(services, destination.file)
            except PathChanged:
                destination = await _destination(services, self.call)

    def _new(self) -> RequestedNode:
        edit = self.edit
        return RequestedNode(
            is_directory=False,
            smb=edit.smb,
            metadata=edit.metadata,
            properties=edit.properties,
            started=edit.started,
        )

    def _is_source(self, where: Where) -> bool:
        if self.file is None or self.file.is_past:
            return False
        source = self.file.where
        return (source.generation, source.id) == (where.generation, where.id)

    async def _overwrite(self, services: Services, seen: NodeView) -> NodeWritten:
        clears_read_only = self.call.input.ignores_read_only
        entry = RequestEntry(FileOperation.COPY_DESTINATION, clears_read_only=clears_read_only)
        emptied = resized(0, self.edit, self.further)
        return await ranges.change(services, self.call, entry, emptied, seen)

    async def _onto_itself(self, services: Services) -> NodeWritten:
        return await nodes.edit_attributes(
            services,
            self.call,
            FileOperation.COPY_DESTINATION,
            _OntoItself(self.edit, self.properties),
            further=self.further,
            clears_read_only=self.call.input.ignores_read_only,
        )


async def _wait_for_end(
    services: Services, call: Call[CopyFile], begun: NodeWritten, answer_at: float
) -> FileCopied:
    """Return the file when its copy has ended, or at `answer_at` (time of the event loop)."""
    ref = keys.file_attributes(generation_of(call), begun.where.id)

    def read(stored: Record | None) -> tuple[Copy | None, FileCopied]:
        record = file_records.FILE.of(stored)
        if record is None or record.copy is None:
            return None, FileCopied(begun.record)
        return record.copy, FileCopied(record)

    copy_id = FileCopied(begun.record).copy.id
    return await wait_until_ended(services, call, ref, read, (copy_id, answer_at)) or FileCopied(
        begun.record
    )


class AbortCopyFile(OnPath, frozen=True, kw_only=True):
    copy_id: str


async def abort_copy(services: Services, call: Call[AbortCopyFile]) -> None:
    """The file stays, empty, with the properties that the copy gave it."""
    entry = RequestEntry(FileOperation.ABORT_COPY)
    # The copy may have written more since the file was read.
    written = Cleared(0, limits.FILE_BYTES_MAX)
    await ranges.change(services, call, entry, BytesChange(written, _Abort(call.input.copy_id)))


class _Abort(Edit, frozen=True):
    copy_id: str

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        record = node.record
        copy = copies.aborted(record.copy, self.copy_id, stamp)
        return msgspec.structs.replace(record, etag=stamp, modified=stamp, copy=copy), ()
