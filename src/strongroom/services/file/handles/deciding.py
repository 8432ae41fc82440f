"""The frame of every operation by a handle: check that it is open, wait, decide, commit durably.

Lives here: reading what a handle has open, deciding on it, waiting on a client's behalf. Must not
live here: what operations do. Source: [MS-SMB2] section 3.3.5.2.10 (the open is verified).

No path is resolved: an open file keeps its id, since nobody can delete it. So a decision needs only
the share, which may be deleted, and the attributes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar

import msgspec

from strongroom.engines.base import Commit, Full, Partition, Ref, Step, Write
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import copies
from strongroom.semantics.file import opens
from strongroom.semantics.file.attributes import FileTimes, TimeField, Touch, archived, touched
from strongroom.semantics.file.opens import BreakAwaited
from strongroom.semantics.file.oplocks import Cause
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.admission import Opens
from strongroom.services.file.handles.model import AsyncRequest, Handle, ShareAccess
from strongroom.services.file.node_writes import LengthReads, recounted, root_attributes
from strongroom.services.file.nodes import NodeChange
from strongroom.services.file.past_states import attributes_at, with_past_states
from strongroom.store.core import keys, records
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.values import Purpose

T = TypeVar("T")

ChangeRecord = Callable[[ShareRecord, FileRecord, Found, int], NodeChange[T]]
"""Returns the change of a file, from the share, its attributes, the further records that it has
named, and the stamp. It is pure."""


class PlaceReads(NamedTuple):
    """The reads of the share's record and of the attributes."""

    share: ReadOne[ShareRecord]
    attributes: ReadOne[FileRecord]


class NodePlace(msgspec.Struct, frozen=True):
    """The place of a file or directory that is known by its id."""

    access: ShareAccess
    node_id: int

    @property
    def partition(self) -> Partition:
        """The partition of its attributes and bytes."""
        return keys.file(self.access.generation, self.node_id)

    @property
    def share_ref(self) -> Ref:
        """The address of the share's record."""
        return keys.share(self.access.account, self.access.share)

    @property
    def attributes_ref(self) -> Ref:
        """The address of the attributes."""
        return keys.file_attributes(self.access.generation, self.node_id)

    def read(self, reads: Reads) -> PlaceReads:
        """Add the reads of the share's record and of the attributes."""
        share = reads.add(self.share_ref, records.SHARE)
        return PlaceReads(share, reads.add(self.attributes_ref, file_records.FILE))

    def records_in(self, found: Found, read: PlaceReads) -> tuple[ShareRecord, FileRecord]:
        """Return the share's record and the attributes. Raises: as `both`."""
        return self.both(found[read.share], found[read.attributes])

    def both(
        self, share: ShareRecord | None, record: FileRecord | None
    ) -> tuple[ShareRecord, FileRecord]:
        """Return the share's record and the attributes, if both are there.

        Raises: StorageError SHARE_GONE, HANDLE_CLOSED (there are no attributes, so nothing is
            open).
        """
        share = share_in(self.access, share)
        if record is None and self.node_id == share.generation:
            record = root_attributes(share.generation)
        if record is None:
            raise StorageError(file_errors.HANDLE_CLOSED)
        return share, record


def share_in(access: ShareAccess, share: ShareRecord | None) -> ShareRecord:
    """Return the share that a tree is connected to, or whose snapshot a handle reads.

    Raises: StorageError SHARE_GONE, SNAPSHOT_GONE.
    """
    if share is None or share.generation != access.generation:
        raise StorageError(file_errors.SHARE_GONE)
    if access.snapshot is not None and access.snapshot not in share.snapshots:
        raise StorageError(file_errors.SNAPSHOT_GONE)
    return share


def place_of(handle: Handle) -> NodePlace:
    """Return the place of a handle's file or directory."""
    return NodePlace(handle.access, handle.node_id)


class NodeState(msgspec.Struct, frozen=True):
    """The committed state of an open file or directory.

    Attributes:
        version: the version at which its bytes are read: its record's, or the snapshot's stamp.
    """

    share: ShareRecord
    record: FileRecord
    version: int


async def read_node(services: Services, place: NodePlace) -> NodeState:
    """Read the committed state of an open file. Raises: StorageError SHARE_GONE, SNAPSHOT_GONE."""
    at = place.access.snapshot
    if at is None:
        refs = (place.share_ref, place.attributes_ref)
        share, attributes = await services.store.read(refs)
        both = place.both(records.SHARE.of(share), file_records.FILE.of(attributes))
        return NodeState(*both, 0 if attributes is None else attributes.version)
    found = file_records.FILE.of(await attributes_at(services.store, place.partition, at))
    return NodeState(*place.both(await stored_share(services, place.access), found), at)


async def stored_share(services: Services, access: ShareAccess) -> ShareRecord | None:
    """Read the record of a share. Read it after a snapshot's records: a snapshot that exists then
    also existed when they were read."""
    (share,) = await services.store.read([keys.share(access.account, access.share)])
    return records.SHARE.of(share)


async def commit(
    services: Services,
    place: NodePlace,
    change: ChangeRecord[T],
    further: Reads | None = None,
    purpose: Purpose = Purpose.GROWTH,
) -> T:
    """Decide on an open file or directory, and commit durably.

    Arguments:
        further: what `change` reads.

    Raises: StorageError SHARE_GONE, DISK_FULL; what the decision raises.
    """
    assert place.access.snapshot is None, "what a handle of a snapshot may do changes nothing"
    reads = Reads(() if further is None else further.refs)
    decision = _OnNode(
        place.partition,
        reads.refs,
        purpose,
        place,
        read=place.read(reads),
        length=LengthReads.of(reads, place.access.generation, place.node_id),
        change=change,
    )
    try:
        return await finish_commit(services.commit(decision))
    except Full as full:
        raise StorageError(file_errors.DISK_FULL, str(full)) from None


async def finish_commit(commit: Awaitable[T]) -> T:
    """Wait for a commit even if the caller is cancelled meanwhile: the handle's entry in the table
    of opens must outlive the commit."""
    deciding = asyncio.ensure_future(commit)
    try:
        return await asyncio.shield(deciding)
    except asyncio.CancelledError:
        await asyncio.wait((deciding,))
        if not deciding.cancelled():
            # Nobody is left to receive the error; fetching it keeps asyncio from logging it.
            deciding.exception()
        raise
    finally:
        # The traceback of an error has this frame, and the task has the error: a cycle.
        del commit, deciding


class _OnNode(Decision[T], Generic[T], frozen=True):
    """A decision on a file or directory that is open."""

    place: NodePlace
    read: PlaceReads
    length: LengthReads
    change: ChangeRecord[T]

    def decide(self, found: Found, stamp: int) -> Commit[T]:
        """See Decision.decide."""
        share, record = self.place.records_in(found, self.read)
        if copies.is_pending(record.copy):
            # The copy began while the handle was open.
            raise StorageError(file_errors.SHARING_VIOLATION)
        change = self.change(share, record, found, stamp)
        writes = change.writes
        if change.record is not None:
            writes = (Write(keys.FILE_KEY, file_records.FILE.encode(change.record)), *writes)
        if not writes:
            return Commit(change.result)
        counted: tuple[Step, ...] = ()
        if change.record is not None and change.record.size_bytes != record.size_bytes:
            counted = recounted(share, found, self.length, change.record.size_bytes)
        step = Step(self.partition, writes, change.adopt, change.drop)
        made = Commit(change.result, (*change.before, *counted, step))
        return with_past_states(share, self.reads, found, made, stamp)


def after(
    record: FileRecord, touch: Touch, stamp: int, frozen: frozenset[TimeField] = frozenset()
) -> FileRecord:
    """Return the attributes after an operation by a handle.

    Arguments:
        frozen: the times that the handle does not change.
    """
    before = FileTimes(record.creation, record.access, record.write, record.change)
    times = touched(before, touch, stamp, frozen)
    return msgspec.structs.replace(
        record,
        etag=stamp,
        modified=stamp,
        attributes=archived(record.attributes, touch),
        creation=times.creation,
        access=times.access,
        write=times.write,
        change=times.change,
    )


class operating:  # noqa: N801  # it is used as a function
    """Marks an operation of a handle as under way, as a context manager. The handle's close waits
    for it, so that the entry in the table of opens outlives each commit.

    Raises: StorageError HANDLE_CLOSED.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __enter__(self) -> None:
        self._handle.life.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._handle.life.end()


def check_may(handle: Handle, mask: int) -> None:
    """Check that one of these rights was granted. Raises: StorageError ACCESS_DENIED."""
    if not handle.may(mask):
        raise StorageError(file_errors.ACCESS_DENIED_TO_HANDLE)


def check_may_change(handle: Handle, mask: int) -> None:
    """Check that one of these rights was granted, and that the open file is not in a snapshot.

    Raises: StorageError ACCESS_DENIED; MEDIA_WRITE_PROTECTED.
    """
    check_may(handle, mask)
    check_changeable(handle)


def check_changeable(handle: Handle) -> None:
    """Refuse changes of a snapshot. Clients that restore a file open it with every access, so the
    change is refused, and not the open. Raises: StorageError MEDIA_WRITE_PROTECTED."""
    if handle.access.snapshot is not None:
        raise StorageError(file_errors.SNAPSHOT_READ_ONLY)


class RequestWait:
    """Lets a request wait until it is cancelled, or its handle is closed.

    Arguments:
        ending: done when the handle of the request is being closed; None = it has none yet.
    """

    def __init__(self, request: AsyncRequest, ending: asyncio.Future[None] | None = None) -> None:
        self._request = request
        self._ending = () if ending is None else (ending,)
        self._has_sent_interim = False

    async def until(self, event: asyncio.Future[None]) -> None:
        """Wait for an event. The client gets an interim answer (STATUS_PENDING) before the first
        wait.

        Raises: StorageError HANDLE_CLOSED, CANCELLED.
        """
        if not self._has_sent_interim:
            self._has_sent_interim = True
            await self._request.pending()
        reasons = (event, self._request.cancelled, *self._ending)
        await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
        if any(one.done() for one in self._ending):
            raise StorageError(file_errors.HANDLE_CLOSED)
        if not event.done():
            raise StorageError(file_errors.CANCELLED)


async def break_caches(services: Services, handle: Handle, cause: Cause, wait: RequestWait) -> None:
    """Break the caches of others as an operation of this handle requires, and wait for their
    answers.

    Raises: StorageError HANDLE_CLOSED, CANCELLED.
    """
    held = services.held.of(Opens)
    while held.table(handle.partition).holders:
        found = opens.break_caches(held.table(handle.partition), handle.id, cause)
        held.put(handle.partition, found.table)
        held.notify(services, handle.partition, found.notices)
        if not isinstance(found, BreakAwaited):
            return
        await wait.until(held.change(handle.partition))
