"""The request's body: bounded and guarded before it is read, verified before it is committed.

Lives here: the handling of bodies that Put Blob, Put Block, Put Block List and the copies share.
Source: "Put Blob" and "Put Block", request headers Content-MD5, x-ms-content-crc64.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.services.blob.decisions import views
from strongroom.services.core.calls import BodySource, Call
from strongroom.services.core.runner import Services
from strongroom.slices import Steps
from strongroom.store.blob.bodies import received as bodies
from strongroom.store.blob.bodies.received import Received
from strongroom.values import crc64_text, md5_text


class Digests(msgspec.Struct, frozen=True):
    """As the client declared them: raw MD5, CRC-64 as a number; None = not sent."""

    md5: bytes | None = None
    crc64: int | None = None


NO_DIGESTS: Final = Digests()


def check_size(body: BodySource, max_bytes: int) -> None:
    """Refuse a body whose declared length is too large, before a byte of it is read."""
    if body.size_bytes is not None and body.size_bytes > max_bytes:
        raise errors.body_too_large(max_bytes)


class BoundedBody:
    """A body of unknown length (chunked), refused with RequestBodyTooLarge when it exceeds its
    bound."""

    size_bytes: int | None = None
    is_held_back = False

    def __init__(self, body: BodySource, max_bytes: int) -> None:
        self._body = body
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._body:
            count += len(chunk)
            if count > self._max_bytes:
                raise errors.body_too_large(self._max_bytes)
            yield chunk
            del chunk  # freed while waiting for the client


def block_bytes_max(version: str) -> int:
    return next(row[1] for row in limits.BLOCK_SIZES_BY_VERSION if version >= row[0])


def put_blob_bytes_max(version: str) -> int:
    return next(row[2] for row in limits.BLOCK_SIZES_BY_VERSION if version >= row[0])


async def receive(
    services: Services, call: Call[Any], max_bytes: int, md5: bool, inline: bool = True
) -> Received:
    """Read the request's body, after an early check of the request if the body is large.

    The early check refuses a large body before it is sent. It also does so for a client that waits
    for `100 Continue`. A small body has arrived already, and the request is checked once, at the
    serial point.
    """
    check_size(call.client.body, max_bytes)
    size_bytes = call.client.body.size_bytes
    is_large = size_bytes is None or size_bytes > limits.INLINE_BODY_BYTES_MAX
    if is_large or call.client.body.is_held_back:
        await views.check_blob(services, call)
    body = call.client.body if size_bytes is not None else BoundedBody(call.client.body, max_bytes)
    return await bodies.receive(services.store.contents, body, md5, inline)


def document_receipt(data: bytes) -> Steps[Received]:
    """Return the receipt of a body that was a document, so that its digests can be verified."""
    return bodies.digested(data)


def verify(declared: Digests, received: Received) -> None:
    if declared.md5 is not None and received.md5 is not None and declared.md5 != received.md5:
        raise StorageError(
            errors.MD5_MISMATCH,
            None,
            (
                ("UserSpecifiedMd5", md5_text(declared.md5)),
                ("ServerCalculatedMd5", md5_text(received.md5)),
            ),
        )
    if declared.crc64 is not None and declared.crc64 != received.crc64:
        raise StorageError(
            errors.CRC64_MISMATCH,
            None,
            (
                ("UserSpecifiedCrc64", crc64_text(declared.crc64)),
                ("ServerCalculatedCrc64", crc64_text(received.crc64)),
            ),
        )
