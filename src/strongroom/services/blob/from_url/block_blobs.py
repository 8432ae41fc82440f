"""Put Blob From URL and Put Block From URL: Put Blob and Put Block with the bytes of a source.

Lives here: how the source's properties, metadata and tags are used. Must not live here: the reading
of sources (source.py), the writes themselves (blobs.py, blocks.py). Source: "Put Blob From URL",
"Put Block From URL".
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.errors import core as errors
from strongroom.semantics.blob.immutability import Immutability
from strongroom.services.blob import blobs
from strongroom.services.blob.blobs import NO_PROPERTIES, BlobWritten, PutBlob
from strongroom.services.blob.copies.sources import OpenBlob
from strongroom.services.blob.from_url.source import UrlSource, uploaded_from
from strongroom.services.blob.types import blocks
from strongroom.services.blob.types.blocks import BlockStaged, PutBlock
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.sources import HEADER, url_without_credentials
from strongroom.services.core.copies.upload import SourceUpload
from strongroom.services.core.runner import Services
from strongroom.values import ContentProperties, Metadata

_NOT_COPIED: Final = ContentProperties("application/octet-stream")


class PutBlobFromUrl(msgspec.Struct, frozen=True):
    """Input of Put Blob From URL.

    Attributes:
        properties: the request's properties; they override the source's.
        copies_properties: the source's properties are used where the request has none.
        metadata: the request's metadata; empty = the source's.
        tags: the request's tags; with `source.wanted.with_tags` the source's instead.
    """

    source: UrlSource
    properties: ContentProperties = NO_PROPERTIES
    copies_properties: bool = True
    metadata: Metadata = ()
    tier: str | None = None
    tags: Metadata = ()
    immutability: Immutability | None = None


async def put_blob_from_url(services: Services, call: Call[PutBlobFromUrl]) -> BlobWritten:
    """Put Blob From URL: replace the blob with the content of another, like one Put Blob.

    Raises: StorageError as `uploaded_from` and put_blob do.
    """
    async with uploaded_from(services, call, call.input.source) as upload:
        return await blobs.put_blob(services, upload.call(_as_upload(call.input, upload)))


def _as_upload(given: PutBlobFromUrl, upload: SourceUpload[OpenBlob]) -> PutBlob:
    """Return the Put Blob that is equivalent to this request."""
    source = upload.source
    copied = source.properties if given.copies_properties else _NOT_COPIED
    return PutBlob(
        given.properties.completed(copied),
        given.metadata or source.metadata,
        given.source.digests,
        given.tier,
        source.tags if given.source.wanted.with_tags else given.tags,
        given.immutability,
    )


class PutBlockFromUrl(msgspec.Struct, frozen=True):
    """Input of Put Block From URL: the decoded id, and the block's bytes."""

    block_id: bytes
    source: UrlSource


async def put_block_from_url(services: Services, call: Call[PutBlockFromUrl]) -> BlockStaged:
    """Put Block From URL: stage a block with the bytes of a source, or of a range of it.

    Raises: StorageError as `uploaded_from` and put_block do; InvalidHeaderValue for an empty
        source.
    """
    given = call.input
    async with uploaded_from(services, call, given.source) as upload:
        if upload.source.size_bytes == 0:
            text = "The copy source is empty, and a block is not."
            raise errors.invalid_header(HEADER, url_without_credentials(given.source.url), text)
        block = PutBlock(given.block_id, given.source.digests)
        return await blocks.put_block(services, upload.call(block))
