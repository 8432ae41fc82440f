"""Moving the bytes of a copy: from an open source into contents that a commit can take over.

Lives here: the writing, with the source's block structure. Must not live here: decisions, HTTP.

The blocks of a copy lie one after another in a few contents rather than each in its own: a list of
50,000 blocks costs some hundred syncs, and one commit adopts all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from strongroom import errors
from strongroom.engines.base import Contents
from strongroom.services.blob.changes import BlobChange
from strongroom.services.blob.copy_sources import OpenSource, SourceBroken
from strongroom.store.blob import bodies
from strongroom.store.blob.bodies import Received
from strongroom.store.core import records
from strongroom.store.core.records import Body, ListedBlock

# Consecutive blocks are put together up to the larger of a fixed size and a share of the whole, so
# that no copy needs more contents than one commit can adopt.
GROUP_BYTES: Final = 64 * 1024 * 1024
GROUPS_MAX: Final = 200
_PROGRESS_BYTES: Final = 64 * 1024 * 1024

Progress = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Moved:
    """The bytes of a copy, durable and owned by nobody yet: `received` is the whole body, or, with
    `blocks`, their encoded list; `contents` are the blocks'."""

    size_bytes: int
    md5: bytes | None
    received: Received
    blocks: tuple[ListedBlock, ...] = ()
    contents: tuple[int, ...] = ()

    @property
    def crc64(self) -> int | None:
        """The digest of the whole, where it was computed."""
        return None if self.blocks else self.received.crc64

    def take(self, change: BlobChange) -> Body:
        """Make it the head's body."""
        if not self.blocks:
            return change.take_body(self.received)
        for content in self.contents:
            change.adopt(content)
        return change.take_list(self.received, len(self.blocks))

    def discard(self, store: Contents) -> None:
        """Give it up: no commit took it."""
        if self.received.content is not None:
            store.discard(self.received.content)
        for content in self.contents:
            store.discard(content)


async def transfer(
    store: Contents,
    source: OpenSource,
    *,
    md5: bool = False,
    bytes_max: int | None = None,
    progress: Progress | None = None,
) -> Moved:
    """Read a source to its end.

    Arguments:
        md5: also compute the MD5 of the whole.
        bytes_max: refuse a source that is longer.
        progress: called now and then with the bytes read so far; what it raises ends the transfer.

    Raises: SourceBroken; StorageError RequestBodyTooLarge with MaxLimit; Full, Unavailable.
    """
    feed = _Feed(source, md5, bytes_max, progress)
    if not source.blocks:
        received = await bodies.receive(store, feed, md5=False)
        return Moved(received.size_bytes, feed.digest(), received)
    contents: list[int] = []
    try:
        blocks = await _move_blocks(store, source.blocks, feed, contents)
        received = await bodies.keep(store, records.BLOCK_LIST.encode(blocks))
    except BaseException:
        for content in contents:
            store.discard(content)
        raise
    size_bytes = sum(block.size_bytes for block in blocks)
    return Moved(size_bytes, feed.digest(), received, blocks, tuple(contents))


async def _move_blocks(
    store: Contents, blocks: Sequence[ListedBlock], feed: _Feed, contents: list[int]
) -> tuple[ListedBlock, ...]:
    moved: list[ListedBlock] = []
    for group in _groups(blocks):
        size_bytes = sum(block.size_bytes for block in group)
        written = await store.write(feed.next_bytes(size_bytes), size_bytes)
        contents.append(written.id)
        offset_bytes = 0
        for block in group:
            moved.append(ListedBlock(block.id, block.size_bytes, written.id, offset_bytes))
            offset_bytes += block.size_bytes
    return tuple(moved)


def _groups(blocks: Sequence[ListedBlock]) -> list[list[ListedBlock]]:
    total_bytes = sum(block.size_bytes for block in blocks)
    enough_bytes = max(GROUP_BYTES, total_bytes // GROUPS_MAX)
    groups: list[list[ListedBlock]] = [[]]
    size_bytes = 0
    for block in blocks:
        if size_bytes >= enough_bytes:
            groups.append([])
            size_bytes = 0
        groups[-1].append(block)
        size_bytes += block.size_bytes
    return groups


class _Feed:
    """The bytes of a source on their way: counted, bounded, digested, cut where blocks end."""

    def __init__(
        self, source: OpenSource, md5: bool, bytes_max: int | None, progress: Progress | None
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
        """The next `size_bytes` bytes."""
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
            raise _too_long(longest, self._bytes_max is not None)
        if self._md5 is not None:
            self._md5.update(chunk)
        due = self._done_bytes - self._reported_bytes >= _PROGRESS_BYTES
        if self._progress is not None and due:
            self._reported_bytes = self._done_bytes
            await self._progress(self._done_bytes)
        return chunk


def _too_long(longest: int, is_limit: bool) -> Exception:
    if is_limit:
        return errors.body_too_large(longest)
    return SourceBroken("The copy source sent more than it announced.")
