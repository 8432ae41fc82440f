"""Bodies as they arrive, from a client or from the source of a copy, until a commit takes them.

Lives here: which kind a body becomes, by its length. Only small bodies are ever whole in memory.
Source: "Put Blob", its text on digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from strongroom.engines.base import Contents, Written
from strongroom.engines.checksum import crc64
from strongroom.limits import INLINE_BODY_BYTES_MAX, RECORD_BODY_BYTES_MAX
from strongroom.slices import Steps
from strongroom.store.blob.bodies.body import Body, BodyChange, Source
from strongroom.store.blob.bodies.empty import EMPTY
from strongroom.store.blob.bodies.in_record import InRecord
from strongroom.store.blob.bodies.inline import Inline
from strongroom.store.blob.bodies.stored import Stored
from strongroom.store.core import keys

# About a millisecond of work for MD5.
_DIGESTED_AT_ONCE_BYTES: Final = 512 * 1024


class Received(msgspec.Struct, frozen=True):
    """A body that has arrived: inline bytes, or a durable content that no partition owns yet.
    Exactly one is set, neither for an empty body. `md5` is None when it was not requested."""

    size_bytes: int
    crc64: int
    md5: bytes | None
    inline: bytes | None
    content: int | None

    def take(self, change: BodyChange) -> Body:
        inline = self.inline
        if inline is not None and len(inline) <= RECORD_BODY_BYTES_MAX:
            return InRecord(inline, self.crc64)
        if inline is not None:
            change.put(keys.inline(0), inline)
            return Inline(self.crc64)
        if self.content is not None:
            change.adopt(self.content)
            return Stored(self.content)
        return EMPTY

    def discard(self, contents: Contents) -> None:
        if self.content is not None:
            contents.discard(self.content)


NO_BYTES: Final = Received(0, 0, None, None, None)


def inline_body(data: bytes, md5: bool = True) -> Received:
    digest = hashlib.md5(data, usedforsecurity=False).digest() if md5 else None
    return Received(len(data), crc64(data), digest, data or None, None)


def digested(data: bytes) -> Steps[Received]:
    """Of a document whose bytes are not stored."""
    md5, crc, whole = hashlib.md5(usedforsecurity=False), 0, memoryview(data)
    for begin in range(0, len(data), _DIGESTED_AT_ONCE_BYTES):
        part = whole[begin : begin + _DIGESTED_AT_ONCE_BYTES]
        md5.update(part)
        crc = crc64(part, crc)
        yield
    return Received(len(data), crc, md5.digest(), None, None)


async def receive(contents: Contents, source: Source, md5: bool, inline: bool = True) -> Received:
    """`inline`: a small body may be stored inline (blocks are always contents)."""
    head: list[bytes] = []
    chunks = aiter(source)
    is_small = source.size_bytes is None or source.size_bytes <= INLINE_BODY_BYTES_MAX
    if inline and is_small and await _fits_inline(chunks, head):
        return inline_body(b"".join(head), md5)
    written = await contents.write(_chain(head, chunks), source.size_bytes, md5)
    return _of(written)


async def receive_copy(contents: Contents, source: Source) -> Received:
    return await receive(contents, source, md5=False)


async def _fits_inline(chunks: AsyncIterator[bytes], head: list[bytes]) -> bool:
    """The chunks that were read are appended to `head`."""
    size_bytes = 0
    async for chunk in chunks:
        head.append(chunk)
        size_bytes += len(chunk)
        if size_bytes > INLINE_BODY_BYTES_MAX:
            return False
    return True


async def keep(contents: Contents, data: bytes) -> Received:
    """For bytes that this server made itself (a block list)."""
    if len(data) <= INLINE_BODY_BYTES_MAX:
        return inline_body(data, md5=False)
    return _of(await contents.write(_chain([data], None), len(data)))


def _of(written: Written) -> Received:
    return Received(written.size_bytes, written.crc64, written.md5, None, written.id)


async def _chain(head: list[bytes], rest: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
    """Yield the chunks of `head`, then those of `rest`. `head` is emptied. A yielded chunk is no
    longer referenced here while waiting for the client. Otherwise many slow clients would fill
    memory."""
    head.reverse()
    while head:
        yield head.pop()
    if rest is not None:
        async for chunk in rest:
            yield chunk
            del chunk
