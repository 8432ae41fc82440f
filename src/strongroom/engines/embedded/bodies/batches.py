"""Several small bodies on their way into a segment together: one write, and one sync after it.

Lives here: their rooms, the write, and what a batch that fails leaves behind. Must not live here:
one body that arrives in chunks (pours.py), syncing, or who owns the contents (intake.py).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Final

from strongroom.engines.checksum import crc64
from strongroom.engines.embedded.bodies.segment import Room, Segment
from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.records.sqlite import Location

# Below this, checksums and the write cost less than the hand-over to a thread.
_INLINE_BYTES: Final = 64 * 1024


class SharedBatch:
    """Small bodies that go among others, through the page cache.

    Arguments:
        bodies: they must not change until `pour` is over.

    Attributes:
        locations: where each lies once it is written.
    """

    def __init__(
        self, segments: SegmentStore, executor: Executor, bodies: Sequence[bytes | memoryview]
    ) -> None:
        self._segments = segments
        self._executor = executor
        self._bodies = bodies
        self._rooms: list[Room] = []
        self._job: asyncio.Future[list[int]] | None = None
        self.locations: list[Location] = []

    @property
    def touched(self) -> list[Segment]:
        """The segments that the bodies lie in: one, unless that became full."""
        found = {room.segment.id: room.segment for room in self._rooms}
        return list(found.values())

    async def pour(self) -> None:
        """Write all bodies. Raises: Full, Busy, Unavailable."""
        # Nothing is awaited between two reservations, so that the rooms of a segment adjoin.
        for body in self._bodies:
            self._rooms.append(self._segments.reserve_shared(len(body)))
        placed = zip(self._rooms, self._bodies, strict=True)
        for _, run in itertools.groupby(placed, lambda one: one[0].segment.id):
            rooms, bodies = zip(*run, strict=True)
            sums = await self._write(rooms[0], bodies)
            for room, body, checksum in zip(rooms, bodies, sums, strict=True):
                self.locations.append(room.location(len(body), checksum))

    def abandon(self) -> None:
        """Give the rooms up, once no thread writes there any more."""
        if self._job is None:
            self._give_up()
        else:
            self._job.add_done_callback(self._give_up_after)

    async def _write(self, first: Room, bodies: Sequence[bytes | memoryview]) -> list[int]:
        """Write bodies one after another. Returns: their checksums."""
        files, offset = self._segments.handles.files, first.offset
        try:
            descriptor = self._segments.handles.writing(first.segment)

            def write() -> list[int]:
                files.write_at(descriptor, b"".join(bodies), offset)
                return list(map(crc64, bodies))

            if sum(map(len, bodies)) <= _INLINE_BYTES:
                return write()
            self._job = asyncio.get_running_loop().run_in_executor(self._executor, write)
            sums = await asyncio.shield(self._job)
        except OSError as error:
            raise self._segments.failures.of_write(error) from error
        self._job = None
        return sums

    def _give_up(self) -> None:
        for room in self._rooms:
            self._segments.release(room.segment)

    def _give_up_after(self, job: asyncio.Future[list[int]]) -> None:
        job.exception()  # retrieved only so that asyncio does not log it
        self._give_up()
