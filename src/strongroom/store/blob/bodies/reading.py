"""The bytes of contents: to be sent, to be read, or to be stored again.

Lives here: how much is verified in each case, and the reading of one content after another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from strongroom.engines.base import VERIFIED_BYTES_MAX, Opened, StorageEngine
from strongroom.store.blob.bodies.blocks import Span
from strongroom.store.blob.bodies.body import P, ReadSpan
from strongroom.values import Piece


def to_send(opened: Opened, span: Span) -> AsyncIterator[Piece]:
    """Yield bytes for a socket, perhaps as slices of files. Those of a long content are not
    verified."""
    return aiter(opened.slices(span.offset, span.length))


def to_read(opened: Opened, span: Span) -> AsyncIterator[bytes]:
    """Yield bytes in memory. A part of a long content is not verified."""
    return aiter(opened.chunks(span.offset, span.length))


def to_store(verified_bytes_max: int | None = None) -> ReadSpan[bytes]:
    """Return a function that yields bytes to be stored again. Do not use them before the end: a
    long content is verified only when all of it was read. If only parts of a long content are
    requested, the function first reads all of it to verify it. It does so once for all spans.

    Arguments:
        verified_bytes_max: a longer content is not read once more; None = every content is.
    """
    verified: set[int] = set()

    async def take(opened: Opened, span: Span) -> AsyncIterator[bytes]:
        is_part = span.length != opened.size_bytes and opened.size_bytes > VERIFIED_BYTES_MAX
        is_short = verified_bytes_max is None or opened.size_bytes <= verified_bytes_max
        if is_part and is_short and span.content not in verified:
            async for _ in opened.chunks():
                await asyncio.sleep(0)  # a read may never suspend
            verified.add(span.content)
        async for data in opened.chunks(span.offset, span.length):
            yield data

    return take


async def read_spans(
    store: StorageEngine, left: deque[Span], take: ReadSpan[P]
) -> AsyncIterator[P]:
    """Yield the bytes of spans, in order; each content is pinned while it is read. A span is
    removed from `left` after it was read. Raises ContentMissing, DataDamaged."""
    while left:
        await store.turns.pause()  # a read may never suspend
        span = left[0]
        opened = await store.contents.open(span.content)
        try:
            async for piece in take(opened, span):
                yield piece
        finally:
            opened.close()
        left.popleft()


async def read_content(store: StorageEngine, content: int) -> bytes:
    """Return all bytes of a content that this server made itself. Raises ContentMissing,
    DataDamaged."""
    await store.turns.pause()  # a read may never suspend
    opened = await store.contents.open(content)
    parts: list[bytes] = []
    try:
        async for data in opened.chunks():
            parts.append(data)
            await store.turns.pause()
        return b"".join(parts)
    finally:
        opened.close()
