"""The writing of one body into its room: gathered, checksummed and written in pieces, on threads.

Lives here: the two ways to write. A small body shares a segment with others and goes through the
page cache. A large one, or one of unknown length, has a segment's tail to itself and bypasses the
cache. The copy into the cache costs more than the disk, and would evict what is read often. Must
not live here: where there is room (segments.py), syncs, or which partition owns the content
(intake.py).

Writes that bypass the cache only ever append, in order. So no process can have read one of their
pages before it is written, and the kernel's cache holds no stale page.
"""

from __future__ import annotations

import asyncio
import hashlib
import mmap
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final

import msgspec

from strongroom.engines.base import Busy
from strongroom.engines.checksum import crc64
from strongroom.engines.embedded.bodies.buffers import Buffers, aligned
from strongroom.engines.embedded.bodies.segment import Reservation
from strongroom.engines.embedded.bodies.segments import SegmentStore

if TYPE_CHECKING:
    from hashlib import _Hash

_PIECE_BYTES: Final = 256 * 1024
# Below this size, checksum and write cost less than the hand-over to a thread.
_INLINE_BYTES: Final = 64 * 1024


class BodyWriteOptions(msgspec.Struct, frozen=True):
    """The parameters for writing one body.

    Attributes:
        size_bytes: as declared, or None.
        md5: whether to compute it.
        check_space: called before each write; it raises Full while the disk is full.
    """

    segments: SegmentStore
    reservation: Reservation
    executor: Executor
    size_bytes: int | None
    md5: bool
    check_space: Callable[[], None]


class BodyWrite(ABC):
    """The state of one body while it is written."""

    def __init__(self, options: BodyWriteOptions) -> None:
        self.reservation = options.reservation
        self.size_bytes = 0
        self.crc64 = 0
        self.md5: _Hash | None = hashlib.md5(usedforsecurity=False) if options.md5 else None
        self._segments = options.segments
        self._handles = options.segments.handles
        self._executor = options.executor
        self._declared_bytes = options.size_bytes
        self._check_space = options.check_space
        self._loop = asyncio.get_running_loop()
        self._job: asyncio.Future[None] | None = None

    async def write(self, chunks: AsyncIterable[bytes]) -> None:
        """Raises ValueError when the chunks have another length than declared."""
        declared = self._declared_bytes
        async for chunk in chunks:
            self.size_bytes += len(chunk)
            if declared is not None and self.size_bytes > declared:
                raise ValueError("a content is longer than declared")
            await self._take(chunk)
            del chunk  # else it stays in memory during the wait for the next one
        if declared is not None and self.size_bytes < declared:
            raise ValueError("a content is shorter than declared")
        await self._take_rest()
        await self._finish_job()
        self._end()

    def abandon(self) -> None:
        """Give the room up. Call it once no thread writes there any more."""
        if self._job is None:
            self._release_room()
        else:
            self._job.add_done_callback(self._release_room_after)

    @abstractmethod
    async def _take(self, chunk: bytes) -> None:
        """Take the next bytes, and write them once there are enough."""

    @abstractmethod
    async def _take_rest(self) -> None: ...

    @abstractmethod
    def _end(self) -> None:
        """All of the body is there: release what the writing needed."""

    @abstractmethod
    def _release_room(self) -> None:
        """Release the same, and give the room up."""

    def _release_room_after(self, job: asyncio.Future[None]) -> None:
        job.exception()  # retrieved only so that asyncio does not log it
        self._release_room()

    def _begin_job(self, job: Callable[[], None]) -> asyncio.Future[None]:
        """On a thread; the next piece is gathered meanwhile."""
        self._job = self._loop.run_in_executor(self._executor, job)
        return self._job

    async def _finish_job(self) -> None:
        if self._job is None:
            return
        try:
            await asyncio.shield(self._job)
        except OSError as error:
            raise self._segments.failures.of_write(error) from error
        self._job = None

    def _digest(self, data: bytes | memoryview) -> None:
        self.crc64 = crc64(data, self.crc64)
        if self.md5 is not None:
            self.md5.update(data)


class SharedBodyWrite(BodyWrite):
    """A small body of known length, in a shared segment: written through the page cache."""

    def __init__(self, options: BodyWriteOptions) -> None:
        super().__init__(options)
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0
        self._handed_bytes = 0

    async def _take(self, chunk: bytes) -> None:
        self._pieces.append(chunk)
        self._waiting_bytes += len(chunk)
        if self._waiting_bytes >= _PIECE_BYTES:
            await self._take_rest()

    async def _take_rest(self) -> None:
        await self._finish_job()
        pieces, count = self._pieces, self._waiting_bytes
        self._pieces, self._waiting_bytes = [], 0
        start = self.reservation.offset + self._handed_bytes
        self._handed_bytes += count
        if not count:
            return
        self._check_space()
        try:
            descriptor = self._handles.writing(self.reservation.segment)
            if count <= _INLINE_BYTES:
                self._write(descriptor, pieces, start)
                return
        except OSError as error:
            raise self._segments.failures.of_write(error) from error
        self._begin_job(lambda: self._write(descriptor, pieces, start))

    def _end(self) -> None:
        self._pieces.clear()

    def _release_room(self) -> None:
        self._end()
        self._segments.give_back(self.reservation, self._declared_bytes or 0)

    def _write(self, descriptor: int, pieces: Sequence[bytes], start: int) -> None:
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._digest(data)
        self._handles.files.write_at(descriptor, data, start)


class TailBodyWrite(BodyWrite):
    """A large body, or one of unknown length, in a segment's tail: written past the page cache."""

    def __init__(self, options: BodyWriteOptions, buffers: Buffers) -> None:
        super().__init__(options)
        self._buffers = buffers
        self._filling: mmap.mmap | None = None
        self._filled_bytes = 0
        self._full: list[mmap.mmap] = []
        self._handed_bytes = 0
        self._ended = False
        buffers.begin()

    async def _take(self, chunk: bytes) -> None:
        left = memoryview(chunk)
        while left:
            left = left[self._fill(left) :]
            if self._filling is None:
                await self._write_full()

    def _fill(self, data: memoryview) -> int:
        """Copy the beginning of `data` into the buffer, and close a full buffer. Return how many
        bytes were copied."""
        buffer = self._filling
        if buffer is None:
            try:
                buffer = self._filling = self._buffers.take()
            except OSError as error:
                raise Busy(f"there is no memory for a body: {error}") from error
        start = self._filled_bytes
        count = min(len(data), len(buffer) - start)
        buffer[start : start + count] = data[:count]
        self._filled_bytes += count
        if self._filled_bytes == len(buffer):
            self._close_buffer()
        return count

    def _close_buffer(self) -> None:
        assert self._filling is not None
        self._full.append(self._filling)
        self._filling, self._filled_bytes = None, 0

    async def _write_full(self) -> None:
        """Write the full buffers. If the disk is busy and more buffers are available, gather more
        instead."""
        busy = self._job is not None and not self._job.done()
        if not busy or len(self._full) >= self._buffers.share():
            await self._finish_job()
            self._hand_over(len(self._full[-1]))

    async def _take_rest(self) -> None:
        last_bytes = self._filled_bytes
        if last_bytes:
            self._close_buffer()
        if self._full:
            await self._finish_job()
            self._hand_over(last_bytes or len(self._full[-1]))

    def _hand_over(self, last_bytes: int) -> None:
        self._check_space()
        try:
            descriptor = self._handles.writing_past_cache(self.reservation.segment)
        except OSError as error:
            raise self._segments.failures.of_write(error) from error
        buffers = self._full
        start = self.reservation.offset + self._handed_bytes
        job = self._begin_job(lambda: self._write(descriptor, buffers, last_bytes, start))
        self._full = []
        self._handed_bytes += sum(map(len, buffers[:-1])) + aligned(last_bytes)
        # Give them back as soon as they are written: the client may take long to send more.
        job.add_done_callback(lambda _: self._buffers.give(buffers))

    def _write(
        self, descriptor: int, buffers: Sequence[mmap.mmap], last_bytes: int, start: int
    ) -> None:
        views = [memoryview(buffer) for buffer in buffers]
        last, padded_bytes = views.pop(), aligned(last_bytes)
        # Bytes that an earlier body left in the buffer must not reach the disk.
        last[last_bytes:padded_bytes] = bytes(padded_bytes - last_bytes)
        for view in views:
            self._digest(view)
        self._digest(last[:last_bytes])
        self._handles.files.write_aligned(descriptor, [*views, last[:padded_bytes]], start)

    def _end(self) -> None:
        self._ended = True
        self._release_buffers()
        self._segments.finish_tail(self.reservation, self._handed_bytes)

    def _release_room(self) -> None:
        if self._ended:  # other bodies may lie behind it
            self._segments.release(self.reservation.segment)
        else:
            self._release_buffers()
            self._segments.give_back_tail(self.reservation)

    def _release_buffers(self) -> None:
        if self._filling is not None:
            self._close_buffer()
        self._buffers.give(self._full)
        self._full = []
        self._buffers.end()
