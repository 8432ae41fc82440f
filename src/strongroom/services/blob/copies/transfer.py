"""Transfer of the bytes of a copy, from an open source into a body that a commit can take.

Lives here: reading the source within its bounds.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from strongroom.engines.base import Contents
from strongroom.errors import core as errors
from strongroom.services.blob.copies.sources import OpenBlob
from strongroom.services.core.copies.sources import SourceBroken
from strongroom.store.blob.bodies.body import NewBody
from strongroom.store.blob.bodies.received import receive_copy

_PROGRESS_BYTES: Final = 64 * 1024 * 1024

Progress = Callable[[int], Awaitable[None]]


class TransferredBody(msgspec.Struct, frozen=True):
    """The bytes of a copy, durable but not yet owned by a blob, and their MD5 if requested."""

    body: NewBody
    md5: bytes | None


async def transfer(
    contents: Contents,
    source: OpenBlob,
    *,
    md5: bool = False,
    bytes_max: int | None = None,
    progress: Progress | None = None,
) -> TransferredBody:
    """Read a source to its end. `progress` is called from time to time with the bytes read so far.

    Raises: SourceBroken, and what `progress` raises.
    """
    feed = _SourceStream(source, md5, bytes_max, progress)
    write = source.copy_writer or receive_copy
    return TransferredBody(await write(contents, feed), feed.digest())


class _SourceStream:
    """The bytes of a source while they are read: counted, bounded, digested, cut at block
    boundaries."""

    def __init__(
        self, source: OpenBlob, md5: bool, bytes_max: int | None, progress: Progress | None
    ) -> None:
        self.size_bytes = source.size_bytes
        self._chunks = aiter(source)
        self._md5 = hashlib.md5(usedforsecurity=False) if md5 else None
        self._bytes_max = bytes_max
        self._progress = progress
        self._done_bytes = 0
        self._reported_bytes = 0
        self._rest = b""

    def digest(self) -> bytes | None:
        return None if self._md5 is None else self._md5.digest()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self._next():
            yield chunk
        if self.size_bytes is not None and self._done_bytes != self.size_bytes:
            raise SourceBroken("The copy source ended early.")

    async def next_bytes(self, size_bytes: int) -> AsyncIterator[bytes]:
        while size_bytes:
            chunk = self._rest or await self._next()
            if not chunk:
                raise SourceBroken("The copy source ended early.")
            taken, self._rest = chunk[:size_bytes], chunk[size_bytes:]
            size_bytes -= len(taken)
            yield taken

    async def _next(self) -> bytes:
        chunk = await anext(self._chunks, b"")
        self._done_bytes += len(chunk)
        longest = self.size_bytes if self._bytes_max is None else self._bytes_max
        if longest is not None and self._done_bytes > longest:
            if self._bytes_max is not None:
                raise errors.body_too_large(longest)
            raise SourceBroken("The copy source sent more than it announced.")
        if self._md5 is not None:
            self._md5.update(chunk)
        due = self._done_bytes - self._reported_bytes >= _PROGRESS_BYTES
        if self._progress is not None and due:
            self._reported_bytes = self._done_bytes
            await self._progress(self._done_bytes)
        return chunk
