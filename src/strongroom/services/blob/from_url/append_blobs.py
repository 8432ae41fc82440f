"""Append Block From URL: Append Block with the bytes of a source.

Lives here: the operation's input. Must not live here: the reading of sources (source.py), the
append itself (types/appends.py). Source: "Append Block From URL".
"""

from __future__ import annotations

import msgspec

from strongroom.errors import core as errors
from strongroom.semantics.blob.appends import NO_CONDITIONS, AppendConditions
from strongroom.services.blob.from_url.source import UrlSource, uploaded_from
from strongroom.services.blob.types.appends import AppendBlock, BlockAppended, append_block
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.sources import HEADER, url_without_credentials
from strongroom.services.core.runner import Services


class AppendBlockFromUrl(msgspec.Struct, frozen=True):
    """Input of Append Block From URL: the source, and the conditions of append blobs."""

    source: UrlSource
    conditions: AppendConditions = NO_CONDITIONS


async def append_block_from_url(
    services: Services, call: Call[AppendBlockFromUrl]
) -> BlockAppended:
    """Append Block From URL: append the bytes of a source, or of a range of it, as the last block.

    Raises: StorageError as `uploaded_from` and append_block do; InvalidHeaderValue for an empty
        source.
    """
    given = call.input
    async with uploaded_from(services, call, given.source) as upload:
        if upload.source.size_bytes == 0:
            text = "The copy source is empty, and a block is not."
            raise errors.invalid_header(HEADER, url_without_credentials(given.source.url), text)
        block = AppendBlock(given.source.digests, given.conditions)
        return await append_block(services, upload.call(block))
