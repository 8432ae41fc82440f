"""The change of a file's bytes, together with its attributes, whatever the access.

Lives here: the loop that enters, drafts, decides, and begins anew when what it has seen is out of
date.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from strongroom import limits
from strongroom.engines.base import StorageEngine
from strongroom.engines.endings import to_its_end
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.services.core.decisions import UNDECODED, Found, ReadAll, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.node.access import NodeAccess, look
from strongroom.services.file.node.deciding import AdmittedNode, Edit, NodeChange, NodeRule, commit
from strongroom.services.file.snapshots.past_states import newest_of
from strongroom.services.file.snapshots.past_sweep import sweep_bytes
from strongroom.services.file.snapshots.readers import Pinning
from strongroom.services.file.snapshots.sweep import sweep_step
from strongroom.services.tree.paths import PathChanged
from strongroom.store.core import extents
from strongroom.store.core.extents import Backlog, Draft, MapPlace, Mutation, Outdated
from strongroom.store.file.file_records import FileRecord

# How often a change waits for a sweep before it is refused as ServerBusy.
_SWEEPS_MAX: Final = 20
_SWEEP_S: Final = 0.05
_NO_READS: Final = Reads()
A = TypeVar("A", bound=NodeAccess)
A_co = TypeVar("A_co", bound=NodeAccess, covariant=True)


def _report_to_nobody() -> None:
    pass


class Entered(NamedTuple, Generic[A_co]):
    """A file whose bytes an operation may change now. `size_bytes` is its length if the operation
    has looked at it; it may be stale. `report` is called when the change is durable, also if the
    request was cut off meanwhile."""

    access: A_co
    size_bytes: int | None = None
    report: Callable[[], None] = _report_to_nobody


class Entering(Protocol[A_co]):
    """How an operation comes to the file whose bytes it changes. The loop enters again after each
    attempt that was out of date."""

    def entered(self) -> AbstractAsyncContextManager[Entered[A_co]]:
        """Enter the table of opens, unless a handle has."""
        ...


class AdmittedAccess(msgspec.Struct, Generic[A], frozen=True):
    """An access that needs no entry of its own: a handle is in the table while it is open."""

    access: A
    report: Callable[[], None] = _report_to_nobody

    def entered(self) -> AbstractAsyncContextManager[Entered[A]]:
        return nullcontext(Entered(self.access, None, self.report))


class NewBytes(msgspec.Struct, frozen=True):
    depends_on_length: ClassVar[bool] = False
    """Whether the draft is another one for another length of the file."""

    def draft(
        self, store: StorageEngine, place: MapPlace, size_bytes: int
    ) -> AbstractAsyncContextManager[Draft]:
        """The context of the draft discards what a failed attempt has stored. `size_bytes`: the
        file's length; 0 unless the draft depends on it."""
        raise NotImplementedError


class Arrived(NewBytes, frozen=True):
    """Bytes that have arrived before the change begins. Its caller discards them."""

    arrived: Draft

    def draft(
        self, store: StorageEngine, place: MapPlace, size_bytes: int
    ) -> AbstractAsyncContextManager[Draft]:
        self.arrived.move(place)
        return nullcontext(self.arrived)


class Cleared(NewBytes, frozen=True):
    """A range that becomes a hole, wherever the file ends."""

    offset: int
    length: int

    def draft(
        self, store: StorageEngine, place: MapPlace, size_bytes: int
    ) -> AbstractAsyncContextManager[Draft]:
        return extents.clear(store, place, self.offset, self.length)


class ClearedInside(NewBytes, frozen=True):
    """The range [start, end) of a file, up to its end, which becomes a hole."""

    depends_on_length: ClassVar[bool] = True
    start: int
    end: int

    def draft(
        self, store: StorageEngine, place: MapPlace, size_bytes: int
    ) -> AbstractAsyncContextManager[Draft]:
        end = min(self.end, size_bytes)
        start = min(self.start, end)
        return extents.clear(store, place, start, end - start)


class BytesChange(msgspec.Struct, frozen=True):
    """A change of bytes, and of the attributes in the same commit. `further`: what `edit` reads.
    `is_patient`: it waits for sweeps as long as they take."""

    new_bytes: NewBytes
    edit: Edit
    further: Reads = _NO_READS
    is_patient: bool = False


def resized(size_bytes: int, edit: Edit, further: Reads = _NO_READS) -> BytesChange:
    """The edit sets the length."""
    return BytesChange(ClearedInside(size_bytes, limits.FILE_BYTES_MAX), edit, further)


async def change_bytes(
    services: Services, entering: Entering[A], change: BytesChange
) -> tuple[A, FileRecord]:
    """Change a file's bytes and attributes in one commit. Returns the access that was decided on,
    and the attributes after the change. ServerBusy when sweeps do not keep up."""
    sweeps = 0
    while True:
        try:
            async with entering.entered() as entered:
                try:
                    return entered.access, await _attempt(services, entered, change)
                except Backlog:
                    partition = entered.access.partition
        except (PathChanged, Outdated):
            continue
        sweeps += 1
        if sweeps > _SWEEPS_MAX and not change.is_patient:
            raise StorageError(errors.SERVER_BUSY)
        if not await sweep_bytes(services, partition):
            await asyncio.sleep(_SWEEP_S)


async def _attempt(
    services: Services, entered: Entered[NodeAccess], change: BytesChange
) -> FileRecord:
    access, length = entered.access, None
    if change.new_bytes.depends_on_length:
        length = entered.size_bytes
        if length is None:
            length = (await look(services, access)).record.size_bytes
    async with change.new_bytes.draft(services.store, access.map, length or 0) as draft:
        return await _commit(services, entered, change, draft, length)


async def _commit(
    services: Services,
    entered: Entered[NodeAccess],
    change: BytesChange,
    draft: Draft,
    length: int | None,
) -> FileRecord:
    """Look at the file once more before the commit, since it may have changed before the operation
    entered."""
    access, reads = entered.access, Reads()
    edges = reads.add_all(draft.edges, UNDECODED)
    read = access.add(reads)
    found = await services.read(reads)
    share, _ = read.admit(found, found.version(read.attributes) or 0)
    with access.origin.storing():
        mutation = await draft.prepare(newest_of(share), found.records(edges))
    further, pinning = Reads(change.further.refs), Pinning.of(services)
    rule = _BytesRule(
        change.edit,
        mutation,
        leaves=further.add_all(mutation.reads, UNDECODED),
        pinning=pinning,
        length=length,
    )

    async def reported() -> FileRecord:
        after, has_jobs = await commit(services, access, rule, further)
        if has_jobs:
            services.work.set()
        entered.report()
        return after

    with pinning.maps.mutating(access.partition):
        return await to_its_end(reported())


class _BytesRule(NodeRule[tuple[FileRecord, bool]], frozen=True):
    """Changes bytes and attributes. Its result are these, and whether it orders a job.

    Attributes:
        leaves: the reads of `mutation`.
        length: the length that the file must have; None = any.
    """

    edit: Edit
    mutation: Mutation
    leaves: ReadAll[Any]
    pinning: Pinning
    length: int | None

    def decide(
        self, node: AdmittedNode, found: Found, stamp: int
    ) -> NodeChange[tuple[FileRecord, bool]]:
        if self.length is not None and node.record.size_bytes != self.length:
            raise PathChanged
        access = node.access
        pins = self.pinning.pins(node.share, access.partition, stamp)
        after, first = self.edit.apply(node, found, stamp)
        written = self.mutation.decide(found.records(self.leaves), stamp, pins)
        if written.has_garbage:
            first = (*first, sweep_step(access.generation, access.id, stamp))
        return NodeChange(
            (after, bool(first)), after, first, written.writes, written.adopt, written.drop
        )
