"""The body of a From URL operation: bytes of a source, on this server or another.

A From URL operation is the operation without a URL, with another body. So its service function
opens the source with `uploaded_from`, and passes the resulting call to the function of the other
operation:

    async with uploaded_from(services, call, call.input.source) as upload:
        given = PutBlock(call.input.block_id, call.input.source.digests)
        return await put_block(services, upload.call(given))

Lives here: the order of the checks of destination and source. The locator that the program is
composed with decides who may read a source. Source: "Put Block From URL", "Put Blob From URL".
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from strongroom.services.blob.bodies.intake import NO_DIGESTS, Digests
from strongroom.services.blob.copies.reading import open_named
from strongroom.services.blob.copies.sources import OpenBlob
from strongroom.services.blob.decisions import views
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.sources import SourceRequest, check_url
from strongroom.services.core.copies.upload import SourceUpload
from strongroom.services.core.runner import Services

T = TypeVar("T")


class UrlSource(msgspec.Struct, frozen=True):
    """`digests` are the expected ones of the bytes."""

    url: str
    wanted: SourceRequest = SourceRequest(is_read=True)
    digests: Digests = NO_DIGESTS


@asynccontextmanager
async def uploaded_from(
    services: Services, call: Call[Any], source: UrlSource
) -> AsyncIterator[SourceUpload[OpenBlob]]:
    """Open the source of a From URL operation for the duration of the context.

    It yields one version of the source, whose later changes have no effect. Reading the body raises
    CannotVerifyCopySource when the source fails. The operation verifies the digests, as with any
    body.
    """
    check_url(source.url)
    # Checked first: for a caller who may not write, no server is contacted, and no source is
    # disclosed.
    await views.check_blob(services, call)
    opened, _ = await open_named(services, call, source.url, source.wanted)
    try:
        yield SourceUpload(opened, call)
    finally:
        await opened.close()
