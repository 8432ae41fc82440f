"""Streaming a body into a segment: checksummed and written in pieces, durable before it has an id.

Lives here: gathering, the hand-over to the executor, and what a body that fails leaves behind. Must
not live here: where there is room (segments.py), or who owns the content.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterable, Callable
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Final

from strongroom.engines.base import Written
from strongroom.engines.checksum import crc64
from strongroom.engines.segments import Room, SegmentStore

if TYPE_CHECKING:
    from hashlib import _Hash

_PIECE_BYTES: Final = 256 * 1024
# Below this, checksum and write cost less than the hand-over to a thread.
_INLINE_BYTES: Final = 64 * 1024
# A long body is synced on its way, so that the last sync has little left to wait for.
_SYNC_EVERY_BYTES: Final = 32 * 1024 * 1024


class BodyWriter:
    """Writes bodies.

    Arguments:
        new_id: unique, rising ids.
    """

    def __init__(
        self, segments: SegmentStore, executor: Executor, new_id: Callable[[], int]
    ) -> None:
        self._segments = segments
        self._executor = executor
        self._new_id = new_id

    async def write(
        self, chunks: AsyncIterable[bytes], size_bytes: int | None, md5: bool
    ) -> Written:
        """See Contents.write."""
        segments = self._segments
        room = segments.reserve_tail() if size_bytes is None else segments.reserve(size_bytes)
        body = _Body(segments, room, self._executor, md5)
        try:
            await body.pour(chunks)
            await asyncio.shield(segments.durable(room.segment))
        except BaseException:
            body.abandon()
            raise
        content_id = self._new_id()
        location = room.location(body.size_bytes, body.crc64)
        segments.keep(content_id, location)
        digest = None if body.md5 is None else body.md5.digest()
        return Written(content_id, body.size_bytes, body.crc64, digest)


class _Body:
    """One body on its way into its room."""

    def __init__(self, segments: SegmentStore, room: Room, executor: Executor, md5: bool) -> None:
        self.size_bytes = 0
        self.crc64 = 0
        self.md5: _Hash | None = hashlib.md5(usedforsecurity=False) if md5 else None
        self._segments = segments
        self._room = room
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._job: Future[None] | None = None
        self._handed_bytes = 0
        self._synced_bytes = 0
        self._tail_finished = False

    async def pour(self, chunks: AsyncIterable[bytes]) -> None:
        """Write all chunks. Raises ValueError when they are not as long as was said."""
        pieces: list[bytes] = []
        waiting_bytes = 0
        limit = self._room.length
        async for chunk in chunks:
            pieces.append(chunk)
            waiting_bytes += len(chunk)
            if limit is not None and self._handed_bytes + waiting_bytes > limit:
                raise ValueError("a content is longer than was said")
            if waiting_bytes >= _PIECE_BYTES:
                await self._hand_over(pieces, waiting_bytes)
                pieces, waiting_bytes = [], 0
        if limit is not None and self._handed_bytes + waiting_bytes < limit:
            raise ValueError("a content is shorter than was said")
        if waiting_bytes:
            await self._hand_over(pieces, waiting_bytes)
        await self._finish_job()
        self._finish_tail()

    def abandon(self) -> None:
        """Give the room up; only when no thread writes there any more."""
        if self._job is not None and not self._job.done():
            self._job.add_done_callback(
                lambda _: self._loop.call_soon_threadsafe(self._give_up_room)
            )
        else:
            self._give_up_room()

    def _finish_tail(self) -> None:
        if self._room.length is None and not self._tail_finished:
            self._tail_finished = True
            self._segments.finish_tail(self._room, self._handed_bytes)

    def _give_up_room(self) -> None:
        self._finish_tail()
        self._segments.release(self._room.segment)

    async def _hand_over(self, pieces: list[bytes], count: int) -> None:
        await self._finish_job()
        start = self._room.offset + self._handed_bytes
        self._handed_bytes += count
        try:
            descriptor = self._segments.writing(self._room.segment)
            if count <= _INLINE_BYTES:
                self._write(descriptor, pieces, start)
                return
        except OSError as error:
            raise self._segments.broken(error) from error
        # The next piece is gathered while this one is written.
        self._job = self._executor.submit(self._write, descriptor, pieces, start)

    async def _finish_job(self) -> None:
        if self._job is None:
            return
        try:
            await asyncio.shield(asyncio.wrap_future(self._job))
        except OSError as error:
            raise self._segments.broken(error) from error
        self._job = None
        if self.size_bytes - self._synced_bytes >= _SYNC_EVERY_BYTES:
            self._synced_bytes = self.size_bytes
            self._segments.durable(self._room.segment)

    def _write(self, descriptor: int, pieces: list[bytes], start: int) -> None:
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.crc64 = crc64(data, self.crc64)
        if self.md5 is not None:
            self.md5.update(data)
        self._segments.files.write_at(descriptor, data, start)
        self.size_bytes += len(data)
