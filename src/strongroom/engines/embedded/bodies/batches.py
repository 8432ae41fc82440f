"""Several small bodies on their way into a segment together: one write, and one sync after it.

Lives here: their rooms, the write, and what a batch that fails leaves behind. Must not live here:
one body that arrives in chunks (body_writes.py), syncing, or who owns the contents (intake.py).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Final

from strongroom.engines.checksum import crc64
from strongroom.engines.embedded.bodies.segment import Reservation, Segment
from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.records.sqlite import Location

# Below this, checksums and the write cost less than the hand-over to a thread.
_INLINE_BYTES: Final = 64 * 1024


class SharedBatch:
    """Small bodies that go among others, through the page cache.

    Arguments:
        bodies: they must not change until `write` is over.

    Attributes:
        locations: where each lies once it is written.
    """

    def __init__(
        self, segments: SegmentStore, executor: Executor, bodies: Sequence[bytes | memoryview]
    ) -> None:
        self._segments = segments
        self._executor = executor
        self._bodies = bodies
        self._reservations: list[Reservation] = []
        self._job: asyncio.Future[list[int]] | None = None
        self.locations: list[Location] = []

    @property
    def touched(self) -> list[Segment]:
        """The segments that the bodies lie in: one, unless that became full."""
        segments = {
            reservation.segment.id: reservation.segment for reservation in self._reservations
        }
        return list(segments.values())

    async def write(self) -> None:
        # Nothing is awaited between two reservations, so that the rooms of a segment adjoin.
        for body in self._bodies:
            self._reservations.append(self._segments.reserve_shared(len(body)))
        placed = zip(self._reservations, self._bodies, strict=True)
        for _, run in itertools.groupby(placed, lambda one: one[0].segment.id):
            reservations, bodies = zip(*run, strict=True)
            sums = await self._write(reservations[0], bodies)
            for reservation, body, checksum in zip(reservations, bodies, sums, strict=True):
                self.locations.append(reservation.location(len(body), checksum))

    def abandon(self) -> None:
        """Call it once no thread writes there any more."""
        if self._job is None:
            self._release_room()
        else:
            self._job.add_done_callback(self._release_room_after)

    async def _write(self, first: Reservation, bodies: Sequence[bytes | memoryview]) -> list[int]:
        """Return the checksums."""
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

    def _release_room(self) -> None:
        for reservation, body in zip(self._reservations, self._bodies, strict=False):
            self._segments.give_back(reservation, len(body))

    def _release_room_after(self, job: asyncio.Future[list[int]]) -> None:
        job.exception()  # retrieved only so that asyncio does not log it
        self._release_room()
