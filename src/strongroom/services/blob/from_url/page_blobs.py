"""Put Page From URL: Put Page with the bytes of a source.

Lives here: the operation's input, and how long its two ranges may be. Must not live here: the
reading of sources (source.py), the write itself (pages/writing.py). Source: "Put Page From URL".
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.semantics.blob.pages import NO_SEQUENCE_CONDITIONS, SequenceConditions
from strongroom.services.blob.blobs import BlobWritten
from strongroom.services.blob.from_url.source import UrlSource, uploaded_from
from strongroom.services.blob.types.pages.writing import PutPage, check_pages, put_page
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.sources import check_url
from strongroom.services.core.runner import Services
from strongroom.values import ByteRange

_SOURCE_RANGE: Final = "x-ms-source-range"


class PutPageFromUrl(msgspec.Struct, frozen=True):
    """Input of Put Page From URL.

    Attributes:
        pages: offset and length of the pages that are written.
        source: the source; its range has both ends.
        sequence: the conditions on the sequence number.
    """

    pages: tuple[int, int]
    source: UrlSource
    sequence: SequenceConditions = NO_SEQUENCE_CONDITIONS


async def put_page_from_url(services: Services, call: Call[PutPageFromUrl]) -> BlobWritten:
    """Put Page From URL: write a range of a source to these pages.

    Raises: StorageError InvalidHeaderValue (ranges of different lengths), RequestBodyTooLarge, and
        what `check_pages`, `uploaded_from` and put_page raise.
    """
    given = call.input
    _check_lengths(given.pages[1], given.source.wanted.range)
    check_url(given.source.url)
    page = PutPage(given.pages, given.source.digests, given.sequence)
    # Checked first: if the pages cannot be written, the source is not contacted.
    await check_pages(services, call, page)
    async with uploaded_from(services, call, given.source) as upload:
        return await put_page(services, upload.call(page))


def _check_lengths(length: int, wanted: ByteRange | None) -> None:
    assert wanted is not None and wanted.last is not None
    if wanted.last + 1 - wanted.first != length:
        text = f"The range of the source must have {length} bytes, as many as the pages."
        raise errors.invalid_header(_SOURCE_RANGE, f"bytes={wanted.first}-{wanted.last}", text)
    if length > limits.PUT_PAGE_BYTES_MAX:
        raise errors.body_too_large(limits.PUT_PAGE_BYTES_MAX)
