"""Put Blob (append), Append Block, Append Blob Seal.

Lives here: the decisions. Must not live here: when an append is refused
(semantics/blob/appends.py), where its bytes are stored (store/blob/bodies/appended.py). Source:
"Put Blob", "Append Block", "Append Blob Seal"; reference section 4.
"""

from __future__ import annotations

from typing import Any

import msgspec

from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import appends as rules
from strongroom.semantics.blob.appends import NO_CONDITIONS, AppendConditions
from strongroom.semantics.blob.immutability import Immutability
from strongroom.services.blob.blobs import NO_PROPERTIES, BlobWritten
from strongroom.services.blob.bodies import intake
from strongroom.services.blob.bodies.intake import NO_DIGESTS, Digests
from strongroom.services.blob.decisions import changing
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.blob.states.heads import (
    kept_lease,
    modified_head,
    refuse_pending_copy,
    replace_head,
)
from strongroom.services.blob.states.immutability import refuse_change
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.blob.bodies.appended import append
from strongroom.store.blob.bodies.kinds import empty_body
from strongroom.store.blob.bodies.received import Received
from strongroom.values import BlobKind, ContentProperties, Metadata


class CreateAppendBlob(msgspec.Struct, frozen=True):
    """Input of Put Blob (append blob). A tier is refused."""

    properties: ContentProperties = NO_PROPERTIES
    metadata: Metadata = ()
    tags: Metadata = ()
    tier: str | None = None
    immutability: Immutability | None = None


async def create(services: Services, call: Call[CreateAppendBlob]) -> BlobWritten:
    """Put Blob (append): replace the present blob with an empty append blob.

    Raises: StorageError FeatureVersionMismatch, InvalidHeaderValue (a body),
        AccessTierNotSupportedForBlobType, PendingCopyOperation, UnauthorizedBlobOverwrite,
        SnapshotsPresent, and what guard_blob raises.
    """
    given = call.input
    rules.require_version(call.caller.version)
    if given.tier is not None:
        raise StorageError(blob_errors.ACCESS_TIER_NOT_SUPPORTED_FOR_BLOB_TYPE)
    await _refuse_body(call)

    def decide(state: BlobState, change: BlobChange) -> BlobWritten:
        head = replace_head(
            call,
            state,
            change,
            new=empty_body(BlobKind.APPEND),
            properties=given.properties,
            metadata=given.metadata,
            tags=given.tags,
            kind=BlobKind.APPEND,
            immutability=given.immutability,
        )
        return BlobWritten(change.stamp, change.stamp, version=head.version)

    return await changing.change_blob(services, call, decide)


async def _refuse_body(call: Call[Any]) -> None:
    """Refuse a body with 400: the bytes of an append blob are sent with Append Block."""
    body = call.client.body
    if body.size_bytes is None:
        async for chunk in body:
            if chunk:
                raise errors.invalid_header("Transfer-Encoding", "chunked", _NO_BODY)
    elif body.size_bytes:
        raise errors.invalid_header("Content-Length", str(body.size_bytes), _NO_BODY)


_NO_BODY = "An append blob is created empty; use Append Block to add content."


class AppendBlock(msgspec.Struct, frozen=True):
    """Input of Append Block: the body's digests, and the conditions of append blobs."""

    digests: Digests = NO_DIGESTS
    conditions: AppendConditions = NO_CONDITIONS


class BlockAppended(msgspec.Struct, frozen=True):
    """Result of an append: ETag and Last-Modified as stamps, and digests as of Put Block.

    The block begins at `offset`, and the blob has `count` blocks now.
    """

    etag: int
    modified: int
    offset: int
    count: int
    md5: bytes | None
    crc64: int | None


async def append_block(services: Services, call: Call[AppendBlock]) -> BlockAppended:
    """Append Block: append the request's body as the last block of the blob.

    Raises: StorageError FeatureVersionMismatch, InvalidHeaderValue (empty body),
        RequestBodyTooLarge, and what `append_received` raises.
    """
    rules.require_version(call.caller.version)
    with_md5 = call.input.digests.md5 is not None
    max_bytes = rules.block_bytes_max(call.caller.version)
    received = await intake.receive(services, call, max_bytes, md5=with_md5)
    return await append_received(services, call, received)


async def append_received(
    services: Services, call: Call[AppendBlock], received: Received
) -> BlockAppended:
    """Append a block that has been received. It is discarded when it is refused.

    Raises: StorageError InvalidHeaderValue (no bytes), MaxBlobSizeConditionNotMet,
        AppendPositionConditionNotMet, Md5Mismatch, Crc64Mismatch, PendingCopyOperation,
        BlobIsSealed, BlockCountExceedsLimit, and what guard_blob raises.
    """
    try:
        if not received.size_bytes:
            raise errors.invalid_header("Content-Length", "0")
        return await changing.change_blob(
            services, call, lambda state, change: _append(call.input, received, state, change)
        )
    except BaseException:
        received.discard(services.store.contents)
        raise


def _append(
    given: AppendBlock, received: Received, state: BlobState, change: BlobChange
) -> BlockAppended:
    head = state.head
    assert head is not None
    offset, count = head.size_bytes, head.body.appended_count
    rules.check(given.conditions, offset, received.size_bytes)
    intake.verify(given.digests, received)
    refuse_pending_copy(head)
    rules.require_appendable(head.sealed, count)
    refuse_change(head, state, appends=True)
    changed = modified_head(
        head,
        change.stamp,
        size_bytes=offset + received.size_bytes,
        body=append(head.body, received, change),
        # An MD5 that the client gave was that of the previous content.
        properties=head.properties.with_md5(None),
    )
    change.put_head(changed)
    crc64 = None if given.digests.md5 is not None else received.crc64
    return BlockAppended(change.stamp, change.stamp, offset, count + 1, received.md5, crc64)


class SealBlob(msgspec.Struct, frozen=True):
    """Input of Append Blob Seal. The position is the only condition that can be sent."""

    conditions: AppendConditions = NO_CONDITIONS


async def seal(services: Services, call: Call[SealBlob]) -> BlobWritten:
    """Append Blob Seal: forbid further appends. ETag and Last-Modified do not change.

    A sealed blob can be sealed again.

    Raises: StorageError FeatureVersionMismatch, AppendPositionConditionNotMet,
        PendingCopyOperation, and what guard_blob raises.
    """
    rules.require_version(call.caller.version)

    def decide(state: BlobState, change: BlobChange) -> BlobWritten:
        head = state.head
        assert head is not None
        rules.check(call.input.conditions, head.size_bytes)
        refuse_pending_copy(head)
        if not head.sealed:
            lease = kept_lease(head, state.now)
            change.put_head(msgspec.structs.replace(head, sealed=True, lease=lease))
        return BlobWritten(head.shown_etag, head.modified)

    return await changing.change_blob(services, call, decide)
