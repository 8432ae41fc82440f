"""The tags of a copy's source on another server.

Lives here: the request for them, and the limits of its answer. Must not live here: the request for
the content (copies/sources.py). Source: "Copy Blob From URL", header x-ms-copy-source-tag-option.
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors import copies as copy_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.blob import tags
from strongroom.services.core.copies.sources import (
    CopySources,
    SourceBroken,
    SourceRequest,
    cannot_read,
)
from strongroom.values import Metadata
from strongroom.wire.blob.tags import read_tags

_ASKED: Final = "comp=tags"


async def remote_tags(sources: CopySources, url: str, authorization: str | None) -> Metadata:
    """Request the tags of a source on another server, as Get Blob Tags does.

    Arguments:
        url: the source's URL; its credentials must permit reading the tags.
        authorization: the Authorization header for the source, if there is one.

    Raises: StorageError CannotVerifyCopySource, SourceBroken.
    """
    address = url.partition("#")[0]
    joined = "&" if "?" in address else "?"
    wanted = SourceRequest(authorization=authorization)
    source = await sources.open_remote(f"{address}{joined}{_ASKED}", wanted)
    data = b""
    try:
        async for chunk in source:
            data += chunk
            if len(data) > limits.XML_BODY_BYTES_MAX:
                raise SourceBroken("the document of its tags is too long")
    finally:
        await source.close()
    try:
        return tags.check(read_tags(data))
    except StorageError as refusal:
        text = f"The copy source's tags cannot be read: {refusal.message}"
        raise cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, text) from None
