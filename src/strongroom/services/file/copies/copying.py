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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from strongroom import limits
from strongroom.clock import guid
from strongroom.engines.base import Record, Step
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
from strongroom.services.file import creating, nodes, paths, ranges
from strongroom.services.file.admission import enter, facts_of
from strongroom.services.file.copies.properties import NOTHING_COPIED, CopiedProperties
from strongroom.services.file.copies.reading import OWN, OpenFile
from strongroom.services.file.creating import NewNode, StartedCopy
from strongroom.services.file.node_writes import used
from strongroom.services.file.nodes import NodeChange, NodeWritten
from strongroom.services.file.paths import OnPath, PathChanged, Where
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import CopyOrder
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.values import Metadata


class CopyFile(OnPath, frozen=True, kw_only=True):
    """Input of Copy File.

    Attributes:
        metadata: of the copy; none = the source's.
        wait_s: how long the answer may wait for the end of the copy.
    """

    source: str
    source_trailing_dots: bool = False
    metadata: Metadata = ()
    smb: CopiedProperties = NOTHING_COPIED
    ignores_read_only: bool = False
    wait_s: float = 0.0


class FileCopied(msgspec.Struct, frozen=True):
    """Result of Copy File: the file when the request is answered."""

    record: FileRecord

    @property
    def copy(self) -> Copy:
        """The state of the copy. The record always has one."""
        copy = self.record.copy
        assert copy is not None
        return copy


async def copy_file(services: Services, call: Call[CopyFile]) -> FileCopied:
    """Copy a file or a blob of this server, or content of another server, to a file.

    Raises: StorageError InvalidHeaderValue (no usable URL, or a `source` property that the source
        lacks), CannotVerifyCopySource, PendingCopyOperation, ReadOnlyAttribute,
        ResourceTypeMismatch, ParentNotFound, RequestBodyTooLarge, and what `nodes.view` raises.
    """
    given, answer_at = call.input, asyncio.get_running_loop().time() + call.input.wait_s
    check_url(given.source)
    # This comes first: no other server is asked for a caller who may not write.
    replaced_bytes = await _check(services, call)
    # A file has no tier, so an archived blob is refused: the source is read as by Get Blob.
    dots = given.source_trailing_dots
    asked = SourceRequest(is_read=True, trailing_dots=dots, by_caller=True)
    source, local = await open_named(services, call, given.source, asked, OWN)
    target = call.target
    destination = f"{target.account}/{target.container}/{target.blob}"
    order = copy_order(given.source, local, source, given.metadata or None, destination)
    sources = services.held.of(CopySources)
    begun = await _begin(services, sources, call, source, order, replaced_bytes)
    size_bytes = source.size_bytes
    if order.url and (size_bytes is None or size_bytes > limits.FILE_COPY_AWAITED_BYTES_MAX):
        return FileCopied(begun.record)
    return await _wait_for_end(services, call, begun, answer_at)


async def _check(services: Services, call: Call[CopyFile]) -> int:
    """Refuse a copy that cannot begin, whatever its source is. Returns the length of the present
    file."""
    while True:
        where = await paths.named(services, call)
        if where.is_directory:
            raise StorageError(errors.RESOURCE_TYPE_MISMATCH)
        if where.entry is None:
            return 0
        creating.require_overwrite(call)
        try:
            with _missing_as_changed():
                return await _check_overwrite(services, call)
        except PathChanged:
            continue


async def _check_overwrite(services: Services, call: Call[CopyFile]) -> int:
    view = await nodes.view(services, call, is_directory=False)
    with await enter(
        services,
        view.where.partition,
        FileOperation.COPY_DESTINATION,
        facts_of(view.record),
        clears_read_only=call.input.ignores_read_only,
    ):
        return view.record.size_bytes


@contextmanager
def _missing_as_changed() -> Iterator[None]:
    """Raise PathChanged if the block finds no file: it was deleted after its path was resolved."""
    try:
        yield
    except StorageError as error:
        if error.row is errors.RESOURCE_NOT_FOUND:
            raise PathChanged from None
        raise


async def _check_quota(
    services: Services, call: Call[CopyFile], total_bytes: int, replaced_bytes: int
) -> None:
    """Refuse a copy for which the share has no room. The last commit checks again, since others
    write meanwhile.

    Raises: StorageError ShareSizeLimitReached.
    """
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
    replaced_bytes: int,
) -> NodeWritten:
    """Commit a pending copy and the job that carries it out. This takes ownership of the source."""
    copy_id = guid(services.clock)
    # The source is handed over before the commit: the copy may begin once its job is visible.
    try:
        if (source.size_bytes or 0) > limits.FILE_BYTES_MAX:
            raise errors.body_too_large(limits.FILE_BYTES_MAX)
        total_bytes = source.size_bytes or 0
        await _check_quota(services, call, total_bytes, replaced_bytes)
        copy = copies.started(copy_id, url_without_credentials(call.input.source), total_bytes)
        start = _CopyStart(services, call, source, copy, order)
        await sources.keep_open(copy_id, source)
        begun = await start.begin()
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


def _copy_of(found: Record | None) -> Copy | None:
    record = file_records.FILE.of(found)
    return None if record is None else record.copy


class _CopyStart:
    """The commit that begins a copy: it empties the file that exists, or creates one."""

    def __init__(
        self,
        services: Services,
        call: Call[CopyFile],
        source: OpenSource,
        copy: Copy,
        order: CopyOrder,
    ) -> None:
        self._services = services
        self._call = call
        self._source = source
        self._file = source.file if isinstance(source, OpenFile) else None
        call.input.smb.check(self._file)
        self._smb = call.input.smb.of_new(self._file)
        self._further = Reads()
        self._permission = self._smb.permission.read_for(call, self._further)
        self._started = StartedCopy(copy, order, call.input.smb.bits(self._file))
        self._metadata = call.input.metadata or source.metadata
        # The source's MD5 is that of content that has not arrived yet.
        self._properties = source.properties.with_md5(None)

    async def begin(self) -> NodeWritten:
        """Begin the copy. A path that changes between the read and the commit is resolved again.

        Raises: as copy_file.
        """
        services, call = self._services, self._call
        while True:
            where = await paths.named(services, call)
            if where.is_directory:
                raise StorageError(errors.RESOURCE_TYPE_MISMATCH)
            try:
                if where.entry is None:
                    return await creating.create(services, call, where, self._new())
                creating.require_overwrite(call)
                with _missing_as_changed():
                    if self._is_source(where):
                        return await self._onto_itself()
                    return await self._overwrite()
            except PathChanged:
                continue

    def _new(self) -> NewNode:
        return NewNode(
            is_directory=False,
            smb=self._smb,
            metadata=self._metadata,
            properties=self._properties,
            started=self._started,
        )

    def _is_source(self, where: Where) -> bool:
        if self._file is None or self._file.is_past:
            return False
        source = self._file.where
        return (source.generation, source.id) == (where.generation, where.id)

    async def _overwrite(self) -> NodeWritten:
        return await ranges.replace_all(
            self._services,
            self._call,
            FileOperation.COPY_DESTINATION,
            self._changes,
            self._further,
            clears_read_only=self._call.input.ignores_read_only,
        )

    async def _onto_itself(self) -> NodeWritten:
        """Copy the file onto itself. No bytes move, so the copy is complete in one commit."""

        def change(
            where: Where, record: FileRecord, found: Found, stamp: int
        ) -> NodeChange[NodeWritten]:
            after, first = self._changes(where, record, found, stamp)
            done = msgspec.structs.replace(
                after,
                size_bytes=record.size_bytes,
                properties=self._source.properties,
                copy=copies.succeeded(self._started.copy, stamp),
            )
            return NodeChange(NodeWritten(where, done), done, first[: len(first) - 1])

        return await nodes.change_attributes(
            self._services,
            self._call,
            FileOperation.COPY_DESTINATION,
            change,
            further=self._further,
            clears_read_only=self._call.input.ignores_read_only,
        )

    def _changes(
        self, where: Where, record: FileRecord, found: Found, stamp: int
    ) -> tuple[FileRecord, tuple[Step, ...]]:
        permission, first = self._permission.chosen(record.permission, found)
        after = msgspec.structs.replace(
            record,
            etag=stamp,
            modified=stamp,
            size_bytes=0,
            metadata=self._metadata,
            properties=self._properties,
            permission=permission,
            copy=self._started.copy,
            **{
                **creating.overwritten_attributes(self._smb, record, stamp),
                "attributes": self._started.attributes,
            },
        )
        return after, (*first, self._started.job_step(where.generation, where.id, stamp))


async def _wait_for_end(
    services: Services, call: Call[CopyFile], begun: NodeWritten, answer_at: float
) -> FileCopied:
    """Return the file when its copy has ended, or at `answer_at` (time of the event loop)."""
    ref = keys.file_attributes(generation_of(call), begun.where.id)

    def read(found: Record | None) -> tuple[Copy | None, FileCopied]:
        record = file_records.FILE.of(found)
        if record is None or record.copy is None:
            return None, FileCopied(begun.record)
        return record.copy, FileCopied(record)

    copy_id = FileCopied(begun.record).copy.id
    return await wait_until_ended(services, call, ref, read, (copy_id, answer_at)) or FileCopied(
        begun.record
    )


class AbortCopyFile(OnPath, frozen=True, kw_only=True):
    """Input of Abort Copy File: the id of the copy."""

    copy_id: str


async def abort_copy(services: Services, call: Call[AbortCopyFile]) -> None:
    """Abort a pending copy. The file stays, empty, with the properties that the copy gave it.

    Raises: StorageError NoPendingCopyOperation, CopyIdMismatch, and what `nodes.view` raises.
    """

    def changes(
        where: Where, record: FileRecord, found: Found, stamp: int
    ) -> tuple[FileRecord, tuple[Step, ...]]:
        copy = copies.aborted(record.copy, call.input.copy_id, stamp)
        return msgspec.structs.replace(record, etag=stamp, modified=stamp, copy=copy), ()

    await ranges.clear_copied_bytes(services, call, changes)
