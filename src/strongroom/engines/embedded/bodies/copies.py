"""The copies of contents that compaction makes: one after another in a segment's tail.

Lives here: the copies of one page of contents, each with its check, and the space for them. Must
not live here: which contents are moved, and the commit that makes the copies count (compaction.py).

The tail belongs to one page alone, and on a full disk each write takes what it lacks from the
reserve. So a copy fails only where nothing is left for it, and then gives back all that it took.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final, NamedTuple

from strongroom.engines.base import Full
from strongroom.engines.checksum import crc64
from strongroom.engines.embedded.bodies.buffers import ALIGNMENT_BYTES, aligned, new_buffer
from strongroom.engines.embedded.bodies.segment import Reservation, Segment
from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.disk.files import is_too_many_open_files
from strongroom.engines.embedded.records.sqlite import Location

PIECE_BYTES: Final = 1024 * 1024

MakeSpace = Callable[[int], Awaitable[None]]
"""Releases some space for a copy that lacks so many bytes. Raises Full: none is left for it."""


class Move(NamedTuple):
    """A content that has a copy."""

    content_id: int
    source: Location
    target: Location


class Unreadable(Exception):
    """The old place of a content cannot be read. The new place did not fail."""


class PageCopies:
    """The copies of one page of contents, in one tail. They end with `finish` or `give_back`. Used
    on the event loop.

    Arguments:
        buffer: of PIECE_BYTES, aligned; nobody else uses it meanwhile.

    Attributes:
        moves: the contents whose copies are right.
    """

    def __init__(
        self,
        segments: SegmentStore,
        executor: Executor,
        buffer: memoryview,
        make_space: MakeSpace,
    ) -> None:
        self.moves: list[Move] = []
        self._segments = segments
        self._executor = executor
        self._buffer = buffer
        self._make_space = make_space
        self._room: Reservation | None = None
        self._end = 0

    async def add(self, victim: Segment, content_id: int, source: Location) -> bool:
        """Return False if what was read is not what was stored.

        Raises: Unreadable, Full, Busy, Unavailable.
        """
        room = self._room or await self._reserved()
        is_large = source.length >= self._segments.large_body_bytes
        start = aligned(self._end) if is_large else self._end
        copy = _Copy(self._segments, victim.path, source, room.segment, start, self._buffer)
        try:
            is_right = await self._run(copy)
        finally:
            self._end = copy.end
        if is_right:
            offset = start if source.length else 0
            target = Location(room.segment.id, offset, source.length, source.crc64)
            self.moves.append(Move(content_id, source, target))
        return is_right

    async def sync(self) -> None:
        if self._room is not None:
            await asyncio.shield(self._segments.durable(self._room.segment))

    def finish(self) -> None:
        """End with copies that may count. It has no effect after the end."""
        room, self._room = self._room, None
        if room is not None:
            self._segments.finish_tail(room, self._end - room.offset)
            self._segments.release(room.segment)

    async def give_back(self) -> None:
        """End without a copy that counts, and free all that they took."""
        room, self._room = self._room, None
        if room is not None:
            await asyncio.shield(self._segments.give_back_tail(room))

    async def _reserved(self) -> Reservation:
        while True:
            with suppress(Full):
                self._room = room = self._segments.reserve(None)
                self._end = room.offset
                return room
            await self._make_space(ALIGNMENT_BYTES)

    async def _run(self, copy: _Copy) -> bool:
        """With space from the reserve where the disk is full."""
        while True:
            with suppress(Full):
                return await self._run_once(copy)
            await self._make_space(max(ALIGNMENT_BYTES, aligned(copy.left_bytes)))

    async def _run_once(self, copy: _Copy) -> bool:
        try:
            job = asyncio.wrap_future(self._executor.submit(copy.begin()))
            try:
                return await asyncio.shield(job)
            except asyncio.CancelledError:
                # The tail may not be given back while the thread still writes there.
                while not job.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([job])
                job.exception()  # retrieved only so that asyncio does not log it
                raise
        except OSError as error:
            raise self._segments.failures.of_write(error) from error


class _Copy:
    """One content on its way to `start` of another segment. A run that found no space is followed
    by one that goes on at the same piece."""

    def __init__(
        self,
        segments: SegmentStore,
        path: str,
        source: Location,
        target: Segment,
        start: int,
        buffer: memoryview,
    ) -> None:
        self._handles = segments.handles
        self._path = path
        self._source = source
        self._target = target
        self._buffer = buffer
        self._is_large = source.length >= segments.large_body_bytes
        self._checksum = 0
        self.left_bytes = source.length
        self.end = start

    def begin(self) -> Callable[[], bool]:
        """Return what a thread is to run."""
        handles = self._handles
        opened = handles.writing_past_cache if self._is_large else handles.writing
        descriptor = opened(self._target)
        return lambda: self._run(descriptor)

    def _run(self, descriptor: int) -> bool:
        source = self._source
        for piece in _pieces(self._path, source, self.left_bytes, self._buffer):
            self._write(descriptor, piece)
            self._checksum = crc64(piece, self._checksum)
            self.left_bytes -= len(piece)
        return not self.left_bytes and self._checksum == source.crc64

    def _write(self, descriptor: int, piece: memoryview) -> None:
        files, count = self._handles.files, len(piece)
        if self._is_large:
            padded_bytes = aligned(count)
            self._buffer[count:padded_bytes] = bytes(padded_bytes - count)
            files.write_aligned(descriptor, [self._buffer[:padded_bytes]], self.end)
            count = padded_bytes
        else:
            files.write_at(descriptor, piece, self.end)
        self.end += count


def copy_buffer() -> memoryview:
    """Return a buffer for copies."""
    return memoryview(new_buffer(PIECE_BYTES))


def _pieces(path: str, source: Location, left: int, buffer: memoryview) -> Iterator[memoryview]:
    """Yield the last `left` bytes of a content in pieces that lie in the buffer. All but the last
    fill it, unless the file ends early.

    Raises: Unreadable; OSError: too many files are open, which says nothing of the content.
    """
    try:
        with open(path, "rb") as file:
            file.seek(source.offset + source.length - left)
            while left:
                count = file.readinto(buffer[: min(len(buffer), left)])
                if not count:
                    return
                left -= count
                yield buffer[:count]
    except OSError as error:
        if is_too_many_open_files(error):
            raise
        raise Unreadable(str(error)) from error
