"""The body of a From URL operation: bytes of a source, here or on another server.

A From URL operation is the operation without a URL, with another body. So its service function
opens the source with `uploaded_from` and hands the call that this gives to the other function:

    async with uploaded_from(services, call, call.input.source) as upload:
        given = PutBlock(call.input.block_id, call.input.source.digests)
        return await put_block(services, upload.call(given))

Lives here: that body, and the order in which destination and source are looked at. Must not live
here: any one operation, who may read a source (the locator that the program is composed with),
opening sources (copies/reading.py). Source: "Put Block From URL", "Put Blob From URL".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from strongroom import blob_errors
from strongroom.errors import StorageError
from strongroom.services.blob import access
from strongroom.services.blob.copies.reading import open_named
from strongroom.services.blob.copies.sources import (
    OpenSource,
    SourceBroken,
    SourceRequest,
    cannot_read,
    check_url,
)
from strongroom.services.blob.intake import NO_DIGESTS, Digests
from strongroom.services.core.calls import BodySource, Call, Client
from strongroom.services.core.runner import Services

T = TypeVar("T")


class UrlSource(msgspec.Struct, frozen=True):
    """What a request says of its source: the URL, what is wanted of it, and the digests that the
    bytes must have."""

    url: str
    wanted: SourceRequest = SourceRequest(is_read=True)
    digests: Digests = NO_DIGESTS


@dataclass(frozen=True, slots=True)
class SourceUpload:
    """An open source that stands for the request's body. It can be read once."""

    source: OpenSource
    request: Call[Any]

    def call(self, given: T) -> Call[T]:
        """The call of the operation without a URL, with this input and the source's bytes."""
        client = _Uploading(self.request.client, _SourceBody(self.source))
        changed: Call[T] = msgspec.structs.replace(self.request, client=client, input=given)
        return changed


@asynccontextmanager
async def uploaded_from(
    services: Services, call: Call[Any], source: UrlSource
) -> AsyncIterator[SourceUpload]:
    """Open the source of a From URL operation for as long as the block lasts.

    What it gives is one version of the source, whatever becomes of it meanwhile. Reading the body
    raises CannotVerifyCopySource when the source fails. The digests are for the operation to
    verify, as those of any body.

    Raises: StorageError InvalidHeaderValue (no usable URL), what guard_blob raises of the
        destination, CannotVerifyCopySource, SourceConditionNotMet, InvalidRange, BlobArchived.
    """
    check_url(source.url)
    # First: for a caller who may not write, no server is asked and nothing is told of a source.
    await access.check_blob(services, call)
    opened, _ = await open_named(services, call, source.url, source.wanted)
    try:
        yield SourceUpload(opened, call)
    finally:
        await opened.close()


class _SourceBody:
    """The bytes of a source as the body of a request."""

    is_held_back = False

    def __init__(self, source: OpenSource) -> None:
        self.size_bytes = source.size_bytes
        self._source = source

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        try:
            async for chunk in self._source:
                count += len(chunk)
                _require_within(count, self.size_bytes)
                yield chunk
                del chunk
        except SourceBroken as broken:
            raise _failed(str(broken)) from None
        if self.size_bytes is not None and count != self.size_bytes:
            raise _failed("The copy source ended early.")


def _require_within(count: int, size_bytes: int | None) -> None:
    if size_bytes is not None and count > size_bytes:
        raise SourceBroken("The copy source sent more than it announced.")


def _failed(text: str) -> StorageError:
    return cannot_read(blob_errors.CANNOT_VERIFY_COPY_SOURCE, text)


class _Uploading:
    """The client of a request, whose body comes from elsewhere."""

    def __init__(self, client: Client, body: BodySource) -> None:
        self.peer = client.peer
        self.gone = client.gone
        self.body = body
        self._client = client

    @property
    def host(self) -> str:
        """The host that the client named."""
        return self._client.host

    def when_gone(self, callback: Callable[[], None]) -> None:
        """See Client.when_gone."""
        self._client.when_gone(callback)
