"""Put Blob (append), Append Block, Append Blob Seal.

Lives here: the decisions. Source: "Put Blob", "Append Block", "Append Blob Seal"; reference section
4.
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
    """A tier is refused."""

    properties: ContentProperties = NO_PROPERTIES
    metadata: Metadata = ()
    tags: Metadata = ()
    tier: str | None = None
    immutability: Immutability | None = None


async def create(services: Services, call: Call[CreateAppendBlob]) -> BlobWritten:
    request = call.input
    rules.require_version(call.caller.version)
    if request.tier is not None:
        raise StorageError(blob_errors.ACCESS_TIER_NOT_SUPPORTED_FOR_BLOB_TYPE)
    await _refuse_body(call)

    def decide(state: BlobState, change: BlobChange) -> BlobWritten:
        head = replace_head(
            call,
            state,
            change,
            new=empty_body(BlobKind.APPEND),
            properties=request.properties,
            metadata=request.metadata,
            tags=request.tags,
            kind=BlobKind.APPEND,
            immutability=request.immutability,
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
    digests: Digests = NO_DIGESTS
    conditions: AppendConditions = NO_CONDITIONS


class BlockAppended(msgspec.Struct, frozen=True):
    """ETag and Last-Modified as stamps, and digests as of Put Block. The block begins at `offset`,
    and the blob has `count` blocks now."""

    etag: int
    modified: int
    offset: int
    count: int
    md5: bytes | None
    crc64: int | None


async def append_block(services: Services, call: Call[AppendBlock]) -> BlockAppended:
    rules.require_version(call.caller.version)
    with_md5 = call.input.digests.md5 is not None
    max_bytes = rules.block_bytes_max(call.caller.version)
    received = await intake.receive(services, call, max_bytes, md5=with_md5)
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
    request: AppendBlock, received: Received, state: BlobState, change: BlobChange
) -> BlockAppended:
    head = state.head
    assert head is not None
    offset, count = head.size_bytes, head.body.appended_count
    rules.check(request.conditions, offset, received.size_bytes)
    intake.verify(request.digests, received)
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
    crc64 = None if request.digests.md5 is not None else received.crc64
    return BlockAppended(change.stamp, change.stamp, offset, count + 1, received.md5, crc64)


class SealBlob(msgspec.Struct, frozen=True):
    """The position is the only condition that can be sent."""

    conditions: AppendConditions = NO_CONDITIONS


async def seal(services: Services, call: Call[SealBlob]) -> BlobWritten:
    """ETag and Last-Modified do not change. A sealed blob can be sealed again."""
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
