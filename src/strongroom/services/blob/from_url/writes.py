"""The From URL family: Put Blob, Put Block, Append Block and Put Page with the bytes of a source.

Lives here: the inputs, and how the source's properties, metadata, tags and length are used. Source:
"Put Blob From URL", "Put Block From URL", "Append Block From URL", "Put Page From URL".
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.semantics.blob.appends import NO_CONDITIONS, AppendConditions
from strongroom.semantics.blob.immutability import Immutability
from strongroom.semantics.blob.pages import NO_SEQUENCE_CONDITIONS, SequenceConditions
from strongroom.services.blob import blobs
from strongroom.services.blob.blobs import NO_PROPERTIES, BlobWritten, PutBlob
from strongroom.services.blob.copies.sources import OpenBlob
from strongroom.services.blob.from_url.source import UrlSource, uploaded_from
from strongroom.services.blob.types import blocks
from strongroom.services.blob.types.appends import AppendBlock, BlockAppended, append_block
from strongroom.services.blob.types.blocks import BlockStaged, PutBlock
from strongroom.services.blob.types.pages.writing import PutPage, check_pages, put_page
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.sources import HEADER, check_url, url_without_credentials
from strongroom.services.core.copies.upload import SourceUpload
from strongroom.services.core.runner import Services
from strongroom.values import ByteRange, ContentProperties, Metadata

_NOT_COPIED: Final = ContentProperties("application/octet-stream")
_SOURCE_RANGE: Final = "x-ms-source-range"


class PutBlobFromUrl(msgspec.Struct, frozen=True):
    """One Put Blob with the content of another blob.

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
    async with uploaded_from(services, call, call.input.source) as upload:
        return await blobs.put_blob(services, upload.call(_as_upload(call.input, upload)))


def _as_upload(request: PutBlobFromUrl, upload: SourceUpload[OpenBlob]) -> PutBlob:
    source = upload.source
    copied = source.properties if request.copies_properties else _NOT_COPIED
    return PutBlob(
        request.properties.completed(copied),
        request.metadata or source.metadata,
        request.source.digests,
        request.tier,
        source.tags if request.source.wanted.with_tags else request.tags,
        request.immutability,
    )


class PutBlockFromUrl(msgspec.Struct, frozen=True):
    """`block_id` is decoded."""

    block_id: bytes
    source: UrlSource


async def put_block_from_url(services: Services, call: Call[PutBlockFromUrl]) -> BlockStaged:
    request = call.input
    async with uploaded_from(services, call, request.source) as upload:
        _require_bytes(upload, request.source.url)
        block = PutBlock(request.block_id, request.source.digests)
        return await blocks.put_block(services, upload.call(block))


def _require_bytes(upload: SourceUpload[OpenBlob], url: str) -> None:
    if upload.source.size_bytes == 0:
        text = "The copy source is empty, and a block is not."
        raise errors.invalid_header(HEADER, url_without_credentials(url), text)


class AppendBlockFromUrl(msgspec.Struct, frozen=True):
    source: UrlSource
    conditions: AppendConditions = NO_CONDITIONS


async def append_block_from_url(
    services: Services, call: Call[AppendBlockFromUrl]
) -> BlockAppended:
    request = call.input
    async with uploaded_from(services, call, request.source) as upload:
        _require_bytes(upload, request.source.url)
        block = AppendBlock(request.source.digests, request.conditions)
        return await append_block(services, upload.call(block))


class PutPageFromUrl(msgspec.Struct, frozen=True):
    """`pages` is (offset, length) of what is written. The range of `source` has both ends."""

    pages: tuple[int, int]
    source: UrlSource
    sequence: SequenceConditions = NO_SEQUENCE_CONDITIONS


async def put_page_from_url(services: Services, call: Call[PutPageFromUrl]) -> BlobWritten:
    request = call.input
    _check_lengths(request.pages[1], request.source.wanted.range)
    check_url(request.source.url)
    page = PutPage(request.pages, request.source.digests, request.sequence)
    # Checked first: if the pages cannot be written, the source is not contacted.
    await check_pages(services, call, page)
    async with uploaded_from(services, call, request.source) as upload:
        return await put_page(services, upload.call(page))


def _check_lengths(length: int, wanted: ByteRange | None) -> None:
    assert wanted is not None and wanted.last is not None
    if wanted.last + 1 - wanted.first != length:
        text = f"The range of the source must have {length} bytes, as many as the pages."
        raise errors.invalid_header(_SOURCE_RANGE, f"bytes={wanted.first}-{wanted.last}", text)
    if length > limits.PUT_PAGE_BYTES_MAX:
        raise errors.body_too_large(limits.PUT_PAGE_BYTES_MAX)
