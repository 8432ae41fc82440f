"""Put Blob of a page blob, Put Page, and the part of Set Blob Properties for page blobs only.

Lives here: the pure decisions, and the loop that prepares a change of pages again when it is
outdated.

Source: "Put Blob", "Put Page", "Set Blob Properties"; reference sections 2, 5 and 7.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any, Final, NamedTuple

import msgspec

from strongroom import limits
from strongroom.engines.base import Partition, Ref
from strongroom.engines.checksum import crc64
from strongroom.engines.endings import to_its_end
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import pages as rules
from strongroom.semantics.blob.immutability import Immutability
from strongroom.semantics.blob.pages import (
    NO_SEQUENCE_CONDITIONS,
    PageState,
    SequenceAction,
    SequenceConditions,
)
from strongroom.services.blob.blobs import NO_PROPERTIES, BlobWritten
from strongroom.services.blob.bodies import intake
from strongroom.services.blob.bodies.intake import NO_DIGESTS, BoundedBody, Digests
from strongroom.services.blob.decisions import changing, views
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.states.heads import (
    modified_head,
    refuse_incremental,
    refuse_pending_copy,
    replace_head,
)
from strongroom.services.blob.states.immutability import refuse_change
from strongroom.services.blob.sweep import sweep_head_body
from strongroom.services.core.calls import BodySource, Call
from strongroom.services.core.decisions import UNDECODED, ReadAll, Reads
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.pages import (
    NewPages,
    changed,
    map_of,
    newest_snapshot,
    take_change,
)
from strongroom.store.blob.bodies.readers import Readers
from strongroom.store.blob.bodies.received import Received
from strongroom.store.core import extents, keys
from strongroom.store.core.extents import Backlog, Draft, Mutation, Outdated, Pins
from strongroom.values import BlobKind, ContentProperties, Metadata

# How often a change waits for a sweep before the client gets 503 ServerBusy.
_SWEEPS_MAX: Final = 20
_SWEEP_S: Final = 0.05
_LENGTH: Final = "Content-Length"


class PutPageBlob(msgspec.Struct, frozen=True):
    size_bytes: int
    sequence_number: int = 0
    properties: ContentProperties = NO_PROPERTIES
    metadata: Metadata = ()
    tier: str | None = None
    tags: Metadata = ()
    immutability: Immutability | None = None


async def put_page_blob(services: Services, call: Call[PutPageBlob]) -> BlobWritten:
    request = call.input
    _require_empty(call.client.body)
    rules.check_tier(request.tier, request.size_bytes)

    def decide(state: BlobState, change: BlobChange) -> BlobWritten:
        head = replace_head(
            call,
            state,
            change,
            new=NewPages(request.size_bytes),
            properties=request.properties,
            metadata=request.metadata,
            tier=request.tier,
            tags=request.tags,
            page=PageState(request.sequence_number),
            immutability=request.immutability,
        )
        return BlobWritten(change.stamp, change.stamp, version=head.version)

    return await changing.change_blob(services, call, decide)


def _require_empty(body: BodySource) -> None:
    if body.size_bytes is None:
        raise StorageError(errors.MISSING_CONTENT_LENGTH_HEADER)
    if body.size_bytes:
        raise errors.invalid_header(_LENGTH, str(body.size_bytes), "The request has no body.")


class PutPage(msgspec.Struct, frozen=True):
    """For an update and for a clear. `pages` is (offset, length). `digests` are of the body."""

    pages: tuple[int, int]
    digests: Digests = NO_DIGESTS
    sequence: SequenceConditions = NO_SEQUENCE_CONDITIONS


async def put_page(services: Services, call: Call[PutPage]) -> BlobWritten:
    offset, length = call.input.pages
    body = call.client.body
    _check_length(body, length)
    if length > limits.INLINE_BODY_BYTES_MAX or body.is_held_back:
        await views.check_blob(services, call)
    arriving = _HashedBody(body, length, call.input.digests.md5 is not None)
    partition = _partition(call)
    head = await _page_blob(services, call, partition)
    place = map_of(head.body, partition)
    draft = await extents.receive(services.store, place, offset, arriving, length)
    async with draft:
        received = arriving.received()

        def check(head: BlobRecord) -> dict[str, Any]:
            intake.verify(call.input.digests, received)
            return _checked(call.input, head)

        written = await _change(services, services.held.of(Readers), call, draft, check)
    crc = None if received.md5 is not None else received.crc64
    return msgspec.structs.replace(written, md5=received.md5, crc64=crc)


async def check_pages(services: Services, call: Call[Any], given: PutPage) -> None:
    """Refuse early, by the committed blob, what put_page would refuse, before bytes are fetched."""
    await views.check_blob(services, call)
    _checked(given, _changeable(await _page_blob(services, call, _partition(call))))


async def clear_pages(services: Services, call: Call[PutPage]) -> BlobWritten:
    _require_empty(call.client.body)
    partition = _partition(call)
    head = await _page_blob(services, call, partition)
    place = map_of(head.body, partition)
    async with extents.clear(services.store, place, *call.input.pages) as draft:
        return await _change(
            services,
            services.held.of(Readers),
            call,
            draft,
            lambda head: _checked(call.input, head),
        )


def _checked(request: PutPage, head: BlobRecord) -> dict[str, Any]:
    rules.check_sequence(request.sequence, _state(head).sequence_number)
    rules.check_within(*request.pages, head.size_bytes)
    return {}


def _check_length(body: BodySource, length: int) -> None:
    if max(length, body.size_bytes or 0) > limits.PUT_PAGE_BYTES_MAX:
        raise errors.body_too_large(limits.PUT_PAGE_BYTES_MAX)
    if body.size_bytes is not None and body.size_bytes != length:
        raise _unlike_range(body.size_bytes)


def _unlike_range(size_bytes: int) -> StorageError:
    text = "The body has another length than the range."
    return errors.invalid_header(_LENGTH, str(size_bytes), text)


class _HashedBody:
    """A body while it is received, with the digests of the bytes so far."""

    def __init__(self, body: BodySource, length: int, md5: bool) -> None:
        self._body = body
        self._length = length
        self._md5 = hashlib.md5(usedforsecurity=False) if md5 else None
        self._crc64 = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        source: AsyncIterable[bytes] = self._body
        if self._body.size_bytes is None:
            source = BoundedBody(self._body, limits.PUT_PAGE_BYTES_MAX)
        count = 0
        async for chunk in source:
            count += len(chunk)
            if count > self._length:
                raise _unlike_range(count)
            if self._md5 is not None:
                self._md5.update(chunk)
            self._crc64 = crc64(chunk, self._crc64)
            yield chunk
            del chunk  # freed while waiting for the client
        if count < self._length:
            raise _unlike_range(count)

    def received(self) -> Received:
        """Return the receipt of the body, for its digests."""
        md5 = None if self._md5 is None else self._md5.digest()
        return Received(self._length, self._crc64, md5, None, None)


class SetPageProperties(msgspec.Struct, frozen=True):
    """`properties` None: they do not change. `sequence` is the action and
    x-ms-blob-sequence-number."""

    properties: ContentProperties | None = None
    size_bytes: int | None = None
    sequence: tuple[SequenceAction, int | None] | None = None


async def set_page_properties(services: Services, call: Call[SetPageProperties]) -> BlobWritten:
    request = call.input
    partition = _partition(call)
    while True:
        head = await _page_blob(services, call, partition)
        before = head.size_bytes
        after = before if request.size_bytes is None else request.size_bytes
        place = map_of(head.body, partition)

        def check(head: BlobRecord, before: int = before) -> dict[str, Any]:
            if request.size_bytes is not None and head.size_bytes != before:
                raise _Resized
            return _with_properties(request, head)

        try:
            async with extents.resize(services.store, place, before, after) as draft:
                return await _change(services, services.held.of(Readers), call, draft, check)
        except _Resized:
            continue


class _Resized(Exception):
    """The length of the blob has changed since it was read, so the operation starts again."""


def _with_properties(request: SetPageProperties, head: BlobRecord) -> dict[str, Any]:
    changes: dict[str, Any] = {"copy": None}
    if request.properties is not None:
        changes["properties"] = request.properties
    if request.size_bytes is not None:
        rules.check_tier(head.tier, request.size_bytes)
        changes["size_bytes"] = request.size_bytes
    if request.sequence is not None:
        state = _state(head)
        number = rules.next_number(*request.sequence, state.sequence_number)
        changes["page"] = msgspec.structs.replace(state, sequence_number=number)
    return changes


async def _change(
    services: Services,
    readers: Readers,
    call: Call[Any],
    draft: Draft,
    check: Callable[[BlobRecord], dict[str, Any]],
) -> BlobWritten:
    """Commit a change of pages together with the head. `check` is pure: it raises if the head
    forbids the change, and returns the other changes of the head."""
    partition = _partition(call)
    maps, sweeps = readers.maps, 0
    while True:
        head = await _page_blob(services, call, partition)
        draft.move(map_of(head.body, partition))
        mutation, reads = await draft.prepare(newest_snapshot(head.body)), Reads()
        pages = _PagesRead(mutation, reads.add_all(mutation.reads, UNDECODED))

        def decide(state: BlobState, change: BlobChange, pages: _PagesRead = pages) -> BlobWritten:
            reader = maps.pins(partition, 0).reader
            if not services.store.gateways.is_alone:
                reader = change.stamp
            return _decide(pages, check, reader, state, change)

        try:
            with maps.mutating(partition):
                # Also if the request ends meanwhile: a new reader waits for the commit.
                return await to_its_end(changing.change_blob(services, call, decide, reads))
        except Outdated:
            continue
        except Backlog:
            sweeps += 1
            if sweeps > _SWEEPS_MAX:
                raise StorageError(errors.SERVER_BUSY) from None
            if not await sweep_head_body(services, partition):
                await asyncio.sleep(_SWEEP_S)


class _PagesRead(NamedTuple):
    """A prepared change of pages, and the records that it is decided on."""

    mutation: Mutation
    leaves: ReadAll[bytes]


def _decide(
    pages: _PagesRead,
    check: Callable[[BlobRecord], dict[str, Any]],
    reader: int,
    state: BlobState,
    change: BlobChange,
) -> BlobWritten:
    head = state.head
    assert head is not None
    changeable = _changeable(head)
    refuse_change(changeable, state)
    changes = check(changeable)
    pins = Pins(head.snapshots or int(head.shares), reader)
    leaves = state.found.records(pages.leaves)
    body, written = changed(head.body, pages.mutation, leaves, change.stamp, pins)
    take_change(change, written)
    if written.has_garbage:
        change.sweep()
    after = modified_head(head, change.stamp, body=body, **changes)
    change.put_head(after)
    number = _state(after).sequence_number
    return BlobWritten(change.stamp, change.stamp, sequence_number=number)


def _changeable(head: BlobRecord) -> BlobRecord:
    refuse_pending_copy(head)
    refuse_incremental(head)
    return head


def _partition(call: Call[Any]) -> Partition:
    return keys.blob(generation_of(call), call.target.blob)


async def _page_blob(services: Services, call: Call[Any], partition: Partition) -> BlobRecord:
    """Return the head from which a change is prepared."""
    while True:
        (record,) = await services.store.read([Ref(partition, keys.HEAD_KEY)])
        # A deleted blob may have left a record without pages.
        head = blob_records.visible(record)
        if head is not None and head.kind is BlobKind.PAGE:
            return head
        # This check refuses the request, unless a page blob has been created meanwhile.
        await views.check_blob(services, call)
        await asyncio.sleep(0)


def _state(head: BlobRecord) -> PageState:
    return head.page or PageState()
