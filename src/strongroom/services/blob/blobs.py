"""Put Blob, Get Blob, Get Blob Properties: a block blob written and read as a whole.

Lives here: the pure decision of the write, and the body's way out. Must not live here: blocks
(blocks.py), properties, metadata and leases (attributes.py), snapshots and deletion (snapshots.py).
Source: "Put Blob", "Get Blob", "Get Blob Properties" of the REST reference; reference sections 2,
6.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from strongroom import errors, limits
from strongroom.engines.base import ContentMissing
from strongroom.engines.checksum import crc64
from strongroom.errors import StorageError
from strongroom.semantics.blob import tiers
from strongroom.semantics.blob.immutability import Immutability
from strongroom.services.blob import access, accesses, intake
from strongroom.services.blob.access import BlobState, BlobView
from strongroom.services.blob.changes import BlobChange
from strongroom.services.blob.heads import refuse_incremental, replace_head
from strongroom.services.blob.intake import NO_DIGESTS, Digests
from strongroom.services.blob.rereading import Rereading, Stale
from strongroom.services.core.calls import Call, Piece
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import BodyPlace, OpenBody, P, Take
from strongroom.store.blob.bodies.readers import Readers, Reading
from strongroom.store.blob.bodies.reading import to_read, to_send
from strongroom.store.blob.bodies.received import Received
from strongroom.store.core import keys
from strongroom.values import ByteRange, ContentProperties, Metadata

NO_PROPERTIES: Final = ContentProperties()


class PutBlob(msgspec.Struct, frozen=True):
    """Input of Put Blob (block blob). `digests` are of the body, whose MD5 is stored whatever
    `properties` say."""

    properties: ContentProperties = NO_PROPERTIES
    metadata: Metadata = ()
    digests: Digests = NO_DIGESTS
    tier: str | None = None
    tags: Metadata = ()
    immutability: Immutability | None = None


class BlobWritten(msgspec.Struct, frozen=True):
    """Result of a write: ETag and Last-Modified as stamps, and digests of the body that was
    received. `sequence_number` is that of a page blob; `version` the version's id, 0 = it is
    none."""

    etag: int
    modified: int
    md5: bytes | None = None
    crc64: int | None = None
    sequence_number: int | None = None
    version: int = 0


async def put_blob(services: Services, call: Call[PutBlob]) -> BlobWritten:
    """Put Blob: replaces the blob with the request's body.

    Raises: StorageError Md5Mismatch, Crc64Mismatch, RequestBodyTooLarge, PendingCopyOperation,
        UnauthorizedBlobOverwrite, and what guard_blob raises.
    """
    max_bytes = intake.put_blob_bytes_max(call.caller.version)
    received = await intake.receive(services, call, max_bytes, md5=True)
    try:
        return await access.change_blob(
            services, call, lambda state, change: _put(call, received, state, change)
        )
    except BaseException:
        received.discard(services.store.contents)
        raise


def _put(
    call: Call[PutBlob], received: Received, state: BlobState, change: BlobChange
) -> BlobWritten:
    given = call.input
    # Here, behind the guard: the order of refusals must not depend on the body's size.
    intake.verify(given.digests, received)
    head = replace_head(
        call,
        state,
        change,
        new=received,
        properties=given.properties.with_md5(received.md5),
        metadata=given.metadata,
        tier=given.tier,
        tags=given.tags,
        immutability=given.immutability,
    )
    return BlobWritten(
        change.stamp, change.stamp, received.md5, received.crc64, version=head.version
    )


class GetBlob(msgspec.Struct, frozen=True):
    """Input of Get Blob. `range_md5` and `range_crc64` ask for digests of the range, `structured`
    for a body with checksums in it."""

    range: ByteRange | None = None
    range_md5: bool = False
    range_crc64: bool = False
    structured: bool = False


class Download(msgspec.Struct, frozen=True):
    """Result of Get Blob: the bytes [offset, offset + length) of the blob.

    `partial` tells a 206 from a 200. `finished` must be called when the body was sent or given up.
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
    """Get Blob Properties: the blob's head, or the snapshot or version named."""
    return await access.view_blob(services, call)


async def get_blob(services: Services, call: Call[GetBlob]) -> Download:
    """Get Blob: a consistent body, pinned while it is sent, with a digest of the range if asked
    for.

    Raises: StorageError BlobArchived, InvalidRange (416 with Content-Range), InternalError
        (something of the body is missing), and what guard_blob raises; DataDamaged.
    """
    if not services.switches(call.target.account).last_access:
        return await _get_blob(services, call)
    now = await services.store.now()
    found = await _get_blob(services, call)
    if accesses.is_due(found.view.blob, now):
        noted = services.disposable.of(accesses.Accesses)
        noted.note(generation_of(call), call.target.blob, found.view.past)
        services.work.set()
    return found


async def _get_blob(services: Services, call: Call[GetBlob]) -> Download:
    """As get_blob, without a note of it."""
    _check_digest_request(call.input)
    looks: Rereading | None = None
    while True:
        view = await access.view_blob(services, call, beside=True)
        try:
            if call.input.range_md5 or call.input.range_crc64:
                return await _with_digests(services, call, view)
            view, opened = await _opened(services, call, view)
        except (Stale, ContentMissing) as reason:
            # Replaced between the look at the head and the pin: the new head decides.
            looks = looks or rereading(services, call)
            looks.saw(view.blob.body)
            await looks.again(reason)
            continue
        partial = call.input.range is not None
        offset, length = _wanted(call.input, view.blob)
        return Download(view, offset, length, partial, opened.pieces, opened.close)


def rereading(services: Services, call: Call[Any]) -> Rereading:
    """The looks that a request takes at the blob that it names."""
    what = f"{call.target.account}/{call.target.container}/{call.target.blob}"
    return Rereading(what, lambda: services.check_place(call))


def _check_digest_request(given: GetBlob) -> None:
    if given.range_md5 and given.range_crc64:
        raise StorageError(errors.BOTH_CRC64_AND_MD5_HEADER_PRESENT)
    if (given.range_md5 or given.range_crc64) and given.range is None:
        name = "md5" if given.range_md5 else "crc64"
        raise errors.invalid_header(f"x-ms-range-get-content-{name}", "true")


def _wanted(given: GetBlob, blob: BlobRecord) -> tuple[int, int]:
    if given.range is None:
        return 0, blob.size_bytes
    within = given.range.within(blob.size_bytes)
    if within is None:
        headers = (("Content-Range", f"bytes */{blob.size_bytes}"),)
        raise StorageError(errors.INVALID_RANGE, None, (), headers)
    if (given.range_md5 or given.range_crc64) and within[1] > limits.RANGE_DIGEST_BYTES_MAX:
        raise StorageError(errors.OUT_OF_RANGE_INPUT)
    return within


async def _opened(
    services: Services, call: Call[GetBlob], view: BlobView
) -> tuple[BlobView, OpenBody[bytes] | OpenBody[Piece]]:
    """The body, in memory if checksums will be put between its bytes. Raises as `_open`."""
    if call.input.structured:
        return await _open(services, call, view, to_read)
    return await _open(services, call, view, to_send)


async def _open(
    services: Services, call: Call[GetBlob], view: BlobView, take: Take[P]
) -> tuple[BlobView, OpenBody[P]]:
    """The range of the body, and the blob that it is of: a body in parts is looked at again.

    Raises: StorageError BlobArchived, InvalidRange, OperationNotAllowedOnIncrementalCopyBlob;
        Stale, ContentMissing when the blob must be looked at once more.
    """
    if not view.blob.body.is_in_parts:
        return view, await _open_body(services, call, view, take)
    async with registered(services, call) as (reading, view):
        opened = await _open_body(services, call, view, take)
        reading.left = opened.left
        return view, msgspec.structs.replace(opened, close=reading.keep())


async def _open_body(
    services: Services, call: Call[GetBlob], view: BlobView, take: Take[P]
) -> OpenBody[P]:
    blob = view.blob
    tiers.require_online(blob.tier)
    if view.past is None:
        refuse_incremental(blob)
    offset, length = _wanted(call.input, blob)
    place = BodyPlace(services.store, view.partition, view.beside)
    return await blob.body.open(place, offset, length, take)


@asynccontextmanager
async def registered(
    services: Services, call: Call[Any]
) -> AsyncIterator[tuple[Reading, BlobView]]:
    """The blob that the request names, with a registered reader of its body.

    Nothing that the body leads to is swept until the end, or until `Reading.end` if it was kept.

    Raises: what view_blob and check_place raise.
    """
    partition = keys.blob(generation_of(call), call.target.blob)
    reading = services.held.of(Readers).begin(partition, services.store.gateways)
    try:
        await reading.settled()
        view = await access.view_blob(services, call, wait=False, beside=True)
        await services.check_place(call)
        reading.stand(view.blob.body.position)
        yield reading, view
    except BaseException:
        reading.end()
        raise
    if not reading.is_kept:
        reading.end()


async def _with_digests(services: Services, call: Call[GetBlob], view: BlobView) -> Download:
    """The range (at most 4 MiB) in memory, with the digest that was asked for."""
    view, opened = await _open(services, call, view, to_read)
    offset, length = _wanted(call.input, view.blob)
    try:
        pieces = opened.pieces
        data = pieces if isinstance(pieces, bytes) else b"".join([piece async for piece in pieces])
    finally:
        if opened.close is not None:
            opened.close()
    given = call.input
    return Download(
        view,
        offset,
        length,
        True,
        data,
        None,
        hashlib.md5(data, usedforsecurity=False).digest() if given.range_md5 else None,
        crc64(data) if given.range_crc64 else None,
    )
