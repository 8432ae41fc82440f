"""Bodies of blobs: small ones inline beside the head, large ones as contents, block lists as lists.

Lives here: receiving a body, turning it into what a commit writes, and reading any body back piece
by piece. Must not live here: Azure's rules, HTTP. No body is ever held whole, except inline ones.
Source: "Put Blob", what it says of digests.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from strongroom.engines.base import VERIFIED_BYTES_MAX, Contents, Opened, Partition, Written
from strongroom.engines.checksum import crc64
from strongroom.limits import INLINE_BODY_BYTES_MAX
from strongroom.store.core.records import ListedBlock
from strongroom.values import FileSlice, Piece


class Source(Protocol):
    """Where bytes come from: a request's body, or a copy's source."""

    size_bytes: int | None

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Received(msgspec.Struct, frozen=True):
    """A body that has arrived: inline bytes, or a durable content not yet owned (exactly one is
    set, neither for an empty body). `md5` is None when it was not asked for."""

    size_bytes: int
    crc64: int
    md5: bytes | None
    inline: bytes | None
    content: int | None


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one content."""

    content: int
    offset: int
    length: int

    def is_followed_by(self, other: Span) -> bool:
        """Whether the other begins where this one ends."""
        return self.content == other.content and self.offset + self.length == other.offset


def inline_body(data: bytes, md5: bool = True) -> Received:
    """A body whose bytes are at hand and small."""
    digest = hashlib.md5(data, usedforsecurity=False).digest() if md5 else None
    return Received(len(data), crc64(data), digest, data or None, None)


async def receive(contents: Contents, source: Source, md5: bool, inline: bool = True) -> Received:
    """Take a body in.

    Arguments:
        md5: also compute the MD5.
        inline: whether it may be kept inline when small (blocks are always contents).

    Raises: what the source raises; Full, Unavailable.
    """
    head: list[bytes] = []
    chunks = aiter(source)
    is_small = source.size_bytes is None or source.size_bytes <= INLINE_BODY_BYTES_MAX
    if inline and is_small and await _fits_inline(chunks, head):
        return inline_body(b"".join(head), md5)
    written = await contents.write(_chain(head, chunks), source.size_bytes, md5)
    return _of(written)


async def _fits_inline(chunks: AsyncIterator[bytes], head: list[bytes]) -> bool:
    """Whether a body is small enough to be inline. The chunks read are appended to `head`."""
    size_bytes = 0
    async for chunk in chunks:
        head.append(chunk)
        size_bytes += len(chunk)
        if size_bytes > INLINE_BODY_BYTES_MAX:
            return False
    return True


async def keep(contents: Contents, data: bytes) -> Received:
    """Take in bytes that this server made itself (a block list)."""
    if len(data) <= INLINE_BODY_BYTES_MAX:
        return inline_body(data, md5=False)
    return _of(await contents.write(_chain([data], None), len(data)))


def _of(written: Written) -> Received:
    return Received(written.size_bytes, written.crc64, written.md5, None, written.id)


async def _chain(head: list[bytes], rest: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
    """First `head`, which is emptied, then `rest`. No reference to a yielded chunk is kept while
    waiting for the client: many slow clients would fill memory with them."""
    head.reverse()
    while head:
        yield head.pop()
    if rest is not None:
        async for chunk in rest:
            yield chunk
            del chunk


def spans(blocks: Sequence[ListedBlock], offset: int, length: int) -> list[Span]:
    """Where the bytes [offset, offset + length) of a list of blocks lie. Blocks that lie one after
    another in a content are one span."""
    found: list[Span] = []
    end = offset + length
    start = 0
    for block in blocks:
        stop = start + block.size_bytes
        if stop > offset and block.size_bytes:
            first = max(offset, start)
            span = Span(block.content, block.offset_bytes + first - start, min(stop, end) - first)
            if found and found[-1].is_followed_by(span):
                last = found.pop()
                span = Span(last.content, last.offset, last.length + span.length)
            found.append(span)
        start = stop
        if start >= end:
            break
    return found


async def read_spans(contents: Contents, wanted: Sequence[Span]) -> AsyncIterator[Piece]:
    """The bytes of spans, in order, to be sent; each content is pinned meanwhile. Raises
    ContentMissing, DataDamaged."""
    for span in wanted:
        opened = await contents.open(span.content)
        try:
            async for piece in opened.slices(span.offset, span.length):
                yield piece
        finally:
            opened.close()


async def read_verified(contents: Contents, wanted: Sequence[Span]) -> AsyncIterator[bytes]:
    """The bytes of spans, in order, to be stored again. Do not use them before the end was reached:
    a long content is verified when all of it was read. A long content of which only parts are
    wanted is read once more, to verify it.

    Raises: ContentMissing, DataDamaged.
    """
    verified: set[int] = set()
    for span in wanted:
        opened = await contents.open(span.content)
        try:
            if span.length == opened.size_bytes:
                pieces = opened.chunks()
            else:
                pieces = as_bytes(opened.slices(span.offset, span.length))
                if opened.size_bytes > VERIFIED_BYTES_MAX and span.content not in verified:
                    await _verify(opened)
                    verified.add(span.content)
            async for data in pieces:
                yield data
        finally:
            opened.close()


async def _verify(opened: Opened) -> None:
    """Read a content for its checksum only. Raises DataDamaged."""
    async for _ in opened.chunks():
        await asyncio.sleep(0)  # reading may never suspend


async def read_whole(contents: Contents, content: int) -> bytes:
    """A content's bytes, for bodies that this server made itself (block lists). Raises
    ContentMissing, DataDamaged."""
    opened = await contents.open(content)
    try:
        return b"".join([data async for data in opened.chunks()])
    finally:
        opened.close()


async def as_bytes(
    pieces: AsyncIterable[Piece], chunk_bytes: int = 1 << 20
) -> AsyncIterator[bytes]:
    """Pieces as bytes in memory, at most `chunk_bytes` at a time."""
    async for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
            continue
        done = 0
        while done < piece.length:
            data = read_slice(piece, done, min(chunk_bytes, piece.length - done))
            done += len(data)
            yield data


def read_slice(piece: FileSlice, offset: int, length: int) -> bytes:
    """Bytes of a file slice. Raises EOFError when the file is shorter than the slice says."""
    data = os.pread(piece.file.fileno(), length, piece.offset + offset)
    if not data:
        raise EOFError("a segment file is shorter than its records say")
    return data


class Readers:
    """Who is reading a body made of many contents: its contents are not dropped before they
    finish."""

    def __init__(self) -> None:
        self._active: dict[Partition, set[Reading]] = {}

    def begin(self, partition: Partition) -> Reading:
        """Register before looking at the head; call `end` when done."""
        reading = Reading(self, partition)
        self._active.setdefault(partition, set()).add(reading)
        return reading

    def finish(self, reading: Reading) -> None:
        """Forget a reader. Idempotent."""
        active = self._active.get(reading.partition)
        if active is not None:
            active.discard(reading)
            if not active:
                del self._active[reading.partition]

    def snapshot(self, partition: Partition) -> frozenset[Reading]:
        """Who reads now; those that come later see what was committed before."""
        return frozenset(self._active.get(partition, ()))


class Reading:
    """One reader of one partition."""

    __slots__ = ("_readers", "done", "partition")

    def __init__(self, readers: Readers, partition: Partition) -> None:
        self._readers = readers
        self.partition = partition
        self.done = False

    def end(self) -> None:
        """The reader is finished. Idempotent."""
        if not self.done:
            self.done = True
            self._readers.finish(self)
