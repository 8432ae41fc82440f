"""Put Blob, Get Blob, Get Blob Properties: a block blob written and read as a whole.

Lives here: the pure decision of the write, and the opening of a body for download. Source: "Put
Blob", "Get Blob", "Get Blob Properties" of the REST reference; reference sections 2, 6.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.engines.base import ContentMissing
from strongroom.engines.checksum import crc64
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import tiers
from strongroom.semantics.blob.immutability import Immutability
from strongroom.services.blob import accesses
from strongroom.services.blob.bodies import intake
from strongroom.services.blob.bodies.intake import NO_DIGESTS, Digests
from strongroom.services.blob.bodies.rereading import RetriedRead, Stale
from strongroom.services.blob.decisions import changing, views
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.decisions.views import BlobView
from strongroom.services.blob.states.heads import refuse_incremental, replace_head
from strongroom.services.core.calls import Call, Piece
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import BodyPlace, OpenBody, P, ReadSpan
from strongroom.store.blob.bodies.readers import Readers, Reading
from strongroom.store.blob.bodies.reading import to_read, to_send
from strongroom.store.blob.bodies.received import Received
from strongroom.store.core import keys
from strongroom.values import ByteRange, ContentProperties, Etag, Metadata

NO_PROPERTIES: Final = ContentProperties()


class PutBlob(msgspec.Struct, frozen=True):
    """`digests` are of the body, whose computed MD5 is stored regardless of `properties`."""

    properties: ContentProperties = NO_PROPERTIES
    metadata: Metadata = ()
    digests: Digests = NO_DIGESTS
    tier: str | None = None
    tags: Metadata = ()
    immutability: Immutability | None = None


class BlobWritten(msgspec.Struct, frozen=True):
    """ETag, Last-Modified as a stamp, and digests of the received body.

    `sequence_number` is that of a page blob. `version` is the version's id, 0 = it is none.
    """

    etag: Etag
    modified: int
    md5: bytes | None = None
    crc64: int | None = None
    sequence_number: int | None = None
    version: int = 0


async def put_blob(services: Services, call: Call[PutBlob]) -> BlobWritten:
    max_bytes = intake.put_blob_bytes_max(call.caller.version)
    received = await intake.receive(services, call, max_bytes, md5=True)
    try:
        return await changing.change_blob(
            services, call, lambda state, change: _put(call, received, state, change)
        )
    except BaseException:
        received.discard(services.store.contents)
        raise


def _put(
    call: Call[PutBlob], received: Received, state: BlobState, change: BlobChange
) -> BlobWritten:
    request = call.input
    # Verified here, after the guard: the order of refusals must not depend on the body's size.
    intake.verify(request.digests, received)
    head = replace_head(
        call,
        state,
        change,
        new=received,
        properties=request.properties.with_md5(received.md5),
        metadata=request.metadata,
        tier=request.tier,
        tags=request.tags,
        immutability=request.immutability,
    )
    return BlobWritten(
        change.stamp, change.stamp, received.md5, received.crc64, version=head.version
    )


class GetBlob(msgspec.Struct, frozen=True):
    """`structured` requests a structured body, which contains checksums."""

    range: ByteRange | None = None
    range_md5: bool = False
    range_crc64: bool = False
    structured: bool = False


class Download(msgspec.Struct, frozen=True):
    """The bytes [offset, offset + length) of the blob.

    `partial` selects status 206 instead of 200. `finished` must be called when the body was sent or
    abandoned.
    """

    view: BlobView
    offset: int
    length: int
    partial: bool
    pieces: bytes | AsyncIterable[Piece]
    finished: Callable[[], None] | None = None
    range_md5: bytes | None = None
    range_crc64: int | None = None


async def get_properties(services: Services, call: Call[Any]) -> BlobView:
    return await views.view_blob(services, call)


def get_blob(services: Services, call: Call[GetBlob]) -> Awaitable[Download]:
    """Return a consistent body, pinned while it is sent, with a digest if requested.

    Raises: InternalError when a part of the body is missing; DataDamaged.
    """
    if services.switches(call.target.account).last_access:
        return _get_noted(services, services.disposable.of(accesses.Accesses), call)
    return _get_blob(services, call)


async def _get_noted(services: Services, noted: accesses.Accesses, call: Call[GetBlob]) -> Download:
    now = await services.store.now()
    download = await _get_blob(services, call)
    if accesses.is_due(download.view.blob, now):
        noted.note(generation_of(call), call.target.blob, download.view.past)
        services.work.set()
    return download


async def _get_blob(services: Services, call: Call[GetBlob]) -> Download:
    _check_digest_request(call.input)
    retried_read: RetriedRead | None = None
    while True:
        view = await views.view_blob(services, call, with_body_records=True)
        try:
            if call.input.range_md5 or call.input.range_crc64:
                return await _download_with_digests(services, call, view)
            view, opened = await _opened(services, call, view)
        except (Stale, ContentMissing) as reason:
            # The blob was replaced between the read of its head and the pin. Read the new head.
            retried_read = retried_read or rereading(services, call)
            retried_read.note_body(view.blob.body)
            await retried_read.prepare_retry(reason)
            continue
        partial = call.input.range is not None
        offset, length = _span(call.input, view.blob)
        return Download(view, offset, length, partial, opened.pieces, opened.close)


def rereading(services: Services, call: Call[Any]) -> RetriedRead:
    blob_name = f"{call.target.account}/{call.target.container}/{call.target.blob}"
    return RetriedRead(blob_name, lambda: services.check_place(call))


def _check_digest_request(request: GetBlob) -> None:
    if request.range_md5 and request.range_crc64:
        raise StorageError(errors.BOTH_CRC64_AND_MD5_HEADER_PRESENT)
    if (request.range_md5 or request.range_crc64) and request.range is None:
        name = "md5" if request.range_md5 else "crc64"
        raise errors.invalid_header(f"x-ms-range-get-content-{name}", "true")


def _span(request: GetBlob, blob: BlobRecord) -> tuple[int, int]:
    if request.range is None:
        return 0, blob.size_bytes
    within = request.range.within(blob.size_bytes)
    if within is None:
        headers = (("Content-Range", f"bytes */{blob.size_bytes}"),)
        raise StorageError(errors.INVALID_RANGE, None, (), headers)
    if (request.range_md5 or request.range_crc64) and within[1] > limits.RANGE_DIGEST_BYTES_MAX:
        raise StorageError(errors.OUT_OF_RANGE_INPUT)
    return within


def _opened(
    services: Services, call: Call[GetBlob], view: BlobView
) -> Awaitable[tuple[BlobView, OpenBody[bytes] | OpenBody[Piece]]]:
    """In memory if checksums are to be interleaved."""
    if call.input.structured:
        return _open(services, call, view, to_read)
    return _open(services, call, view, to_send)


async def _open(
    services: Services, call: Call[GetBlob], view: BlobView, take: ReadSpan[P]
) -> tuple[BlobView, OpenBody[P]]:
    """Return the range of the body, with the blob that it belongs to.

    A body in parts is read again after a reader is registered, so that blob may be newer than
    `view`. Raises: Stale, ContentMissing when the blob must be read once more.
    """
    if not view.blob.body.is_in_parts:
        return view, await _open_body(services, call, view, take)
    async with with_reader(services, call) as (reading, view):
        opened = await _open_body(services, call, view, take)
        reading.left = opened.left
        ends = (opened.close, reading.keep())
        return view, msgspec.structs.replace(opened, close=functools.partial(_close_all, ends))


def _close_all(ends: Sequence[Callable[[], None] | None]) -> None:
    """The body may be in one part by now: then it has something to close too."""
    for close in ends:
        if close is not None:
            close()


async def _open_body(
    services: Services, call: Call[GetBlob], view: BlobView, take: ReadSpan[P]
) -> OpenBody[P]:
    blob = view.blob
    tiers.require_online(blob.tier)
    if view.past is None:
        refuse_incremental(blob)
    offset, length = _span(call.input, blob)
    place = BodyPlace(services.store, view.partition, view.body_records)
    return await blob.body.open(place, offset, length, take)


@asynccontextmanager
async def with_reader(
    services: Services, call: Call[Any]
) -> AsyncIterator[tuple[Reading, BlobView]]:
    """Yield the blob that the request names, with a registered reader of its body.

    The sweeper removes nothing that the body refers to until this context ends. If the reader is
    kept, that is until `Reading.end`.
    """
    partition = keys.blob(generation_of(call), call.target.blob)
    reading = services.held.of(Readers).begin(partition, services.store.gateways)
    try:
        await reading.wait_for_mutations()
        view = await views.view_blob(services, call, wait=False, with_body_records=True)
        await services.check_place(call)
        reading.set_position(view.blob.body.position)
        yield reading, view
    except BaseException:
        reading.end()
        raise
    if not reading.is_kept:
        reading.end()


async def _download_with_digests(
    services: Services, call: Call[GetBlob], view: BlobView
) -> Download:
    """Read the range (at most 4 MiB) into memory, with the requested digest."""
    view, opened = await _open(services, call, view, to_read)
    offset, length = _span(call.input, view.blob)
    try:
        pieces = opened.pieces
        data = pieces if isinstance(pieces, bytes) else b"".join([piece async for piece in pieces])
    finally:
        if opened.close is not None:
            opened.close()
    request = call.input
    return Download(
        view,
        offset,
        length,
        True,
        data,
        None,
        hashlib.md5(data, usedforsecurity=False).digest() if request.range_md5 else None,
        crc64(data) if request.range_crc64 else None,
    )
