"""Compaction while serving: the live contents of a mostly dead segment move to another one.

Lives here: which segments are compacted, in which order, and the check of each copy before a row
refers to it. Must not live here: allocation (segments.py), the removal of files (unlinking.py).

The bound on waste: a sealed segment less than half alive is always being emptied. So waste is at
most the live bytes plus the open segments.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final

import apsw

from strongroom.engines.base import DataDamaged, EngineError
from strongroom.engines.checksum import crc64
from strongroom.engines.embedded.bodies.buffers import ALIGNMENT_BYTES, aligned, new_buffer
from strongroom.engines.embedded.bodies.segment import Reservation, Segment
from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.commit.futures import retrieve_exception
from strongroom.engines.embedded.commit.group_commit import Committer
from strongroom.engines.embedded.commit.serial_point import Group
from strongroom.engines.embedded.records.checksummed_pages import unreadable
from strongroom.engines.embedded.records.sqlite import Location, Reader, Writer

_ROWS_MAX: Final = 512
_PAGE_BYTES: Final = 32 * 1024 * 1024
_PIECE_BYTES: Final = 1024 * 1024
_RETRY_S: Final = 1.0
# How often an idle store is looked at.
_LOOK_EVERY_S: Final = 60.0

_log = logging.getLogger(__name__)

_Move = tuple[int, Location, Location]


class Compactor:
    """Empties the segments of one store in the background. Used on the event loop.

    Arguments:
        now: returns store time, in ticks.
        due: is set when a segment may need compaction.
    """

    def __init__(
        self,
        segments: SegmentStore,
        reader: Reader,
        writer: Writer,
        committer: Committer,
        executor: Executor,
        *,
        now: Callable[[], int],
        due: asyncio.Event,
    ) -> None:
        self._now = now
        self._segments = segments
        self._reader = reader
        self._writer = writer
        self._committer = committer
        self._executor = executor
        self._due = due
        self._turn = asyncio.Lock()
        self._buffer = memoryview(new_buffer(_PIECE_BYTES))
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Compact in the background from now on."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End what runs in the background. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        """Signal that a segment may need compaction."""
        self._due.set()

    async def _run(self) -> None:
        """Compact whenever a segment needs it, until cancelled."""
        is_waiting = False
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await self._due.wait()
            self._due.clear()
            self._segments.seal_quiet(self._now())
            try:
                while await self.compact_once():
                    pass
                is_waiting = False
            except EngineError as error:
                # The store is full, busy, unreadable or stopped. Nothing signals the end of that,
                # so retry.
                if not is_waiting:
                    _log.warning("compaction waits: %s", error)
                is_waiting = True
                await asyncio.sleep(_RETRY_S)
                self._due.set()
            if not self._segments.unlinking.reap():
                asyncio.get_running_loop().call_later(_RETRY_S, self._due.set)

    async def compact_once(self) -> bool:
        """Empty the segment with the fewest live bytes of those less than half alive. Return False
        when there is none.

        Raises: Full, CommitUnknown, Unavailable.
        """
        async with self._turn:
            victim = self._victim()
            if victim is None:
                return False
            if victim.live_bytes:
                await self._committer.full_disk.make_space(_copied_bytes(victim.live_bytes))
            try:
                is_empty = await self._empty(victim) and await self._forget(victim)
            except DataDamaged as error:
                _log.critical("segment %016x cannot be compacted: %s", victim.id, error)
                is_empty = False
            if is_empty:
                self._segments.unlinking.retire(victim)
            else:  # it stays, with its damaged contents
                victim.damaged = True
            return True

    def _forget(self, victim: Segment) -> Awaitable[bool]:
        """Delete the segment's row, durably. The result is False if a content is still stored
        there."""
        return self._committer.work(lambda group: self._writer.forget_segment(victim.id))

    async def _empty(self, victim: Segment) -> bool:
        """Move all live contents out of a segment. Return False if damaged ones were left there."""
        after = 0
        while rows := self._rows(victim, after, _ROWS_MAX):
            page = _page(rows)
            await self._move_page(victim, page)
            after = page[-1][0]
        return not self._rows(victim, 0, 1)

    def _rows(self, victim: Segment, after: int, limit: int) -> list[tuple[int, Location]]:
        try:
            return self._reader.contents_of(victim.id, after, limit)
        except apsw.Error as error:
            what = f"the places of contents in segment {victim.id:016x}"
            raise unreadable(error, what) from error

    def _victim(self) -> Segment | None:
        waste = [
            one
            for one in self._segments.by_id.values()
            if one.sealed and not (one.gone or one.damaged or one.busy)
            if one.live_bytes * 2 < one.end or one.end == 0
        ]
        return min(waste, key=lambda one: one.live_bytes, default=None)

    async def _move_page(self, victim: Segment, rows: Sequence[tuple[int, Location]]) -> None:
        moves: list[_Move] = []
        reservations: list[Reservation] = []
        try:
            for content_id, source in rows:
                reservation = self._segments.reserve(source.length)
                reservations.append(reservation)
                try:
                    is_right = await self._copy(victim, source, reservation)
                finally:
                    if reservation.is_tail:
                        self._segments.finish_tail(reservation, aligned(source.length))
                if is_right:
                    target = reservation.location(source.length, source.crc64)
                    moves.append((content_id, source, target))
                else:
                    _log.critical("content %d is damaged: its checksum differs", content_id)
            for segment in {reservation.segment for reservation in reservations}:
                await asyncio.shield(self._segments.durable(segment))
        except BaseException:
            self._release(reservations)
            raise
        moved = self._committer.work(lambda group: self._repoint(moves, group))
        # These segments are not compacted until the outcome of this commit is known. So the work
        # continues when its caller is cancelled.
        moved.add_done_callback(retrieve_exception)
        moved.add_done_callback(lambda _: self._release(reservations))
        await asyncio.shield(moved)

    def _release(self, reservations: Sequence[Reservation]) -> None:
        for reservation in reservations:
            self._segments.release(reservation.segment)

    async def _copy(self, victim: Segment, source: Location, reservation: Reservation) -> bool:
        segments = self._segments
        handles = segments.handles
        writing = handles.writing_past_cache if reservation.is_tail else handles.writing
        try:
            descriptor = writing(reservation.segment)
            job = asyncio.wrap_future(
                self._executor.submit(
                    self._copy_bytes, victim.path, source, descriptor, reservation
                )
            )
            try:
                return await asyncio.shield(job)
            except asyncio.CancelledError:
                # The reservation may not be released while the thread still writes there.
                while not job.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([job])
                job.exception()  # retrieved only so that asyncio does not log it
                raise
        except OSError as error:
            raise segments.failures.of_write(error) from error

    def _copy_bytes(
        self, path: str, source: Location, descriptor: int, reservation: Reservation
    ) -> bool:
        files, position = self._segments.handles.files, reservation.offset
        checksum, left = 0, source.length
        try:
            for count in _pieces(path, source, self._buffer):
                checksum = crc64(self._buffer[:count], checksum)
                if reservation.is_tail:
                    padded_bytes = aligned(count)
                    self._buffer[count:padded_bytes] = bytes(padded_bytes - count)
                    files.write_aligned(descriptor, [self._buffer[:padded_bytes]], position)
                else:
                    files.write_at(descriptor, self._buffer[:count], position)
                position += count
                left -= count
        except _Unreadable as error:
            # Unreadable contents stay in their place; the rest of the store still serves.
            _log.critical("%s cannot be read: %s", path, error)
            return False
        return left == 0 and checksum == source.crc64

    def _repoint(self, moves: Sequence[_Move], group: Group) -> None:
        for content_id, source, target in moves:
            if self._writer.move(content_id, source, target):
                group.live.append((source.segment, -source.length))
                group.live.append((target.segment, target.length))


def _copied_bytes(live_bytes: int) -> int:
    """Return the most space that the copies can take: the copy of a large body is padded to a
    page."""
    return live_bytes + live_bytes // 64 + ALIGNMENT_BYTES


def _page(rows: Sequence[tuple[int, Location]]) -> Sequence[tuple[int, Location]]:
    """Return the first rows whose contents are together small enough for one commit."""
    size_bytes = 0
    for count, (_, location) in enumerate(rows, 1):
        size_bytes += location.length
        if size_bytes >= _PAGE_BYTES:
            return rows[:count]
    return rows


class _Unreadable(Exception):
    """The old place of a content cannot be read. The new place did not fail."""


def _pieces(path: str, source: Location, buffer: memoryview) -> Iterator[int]:
    """Fill `buffer` with one piece after the other, and yield the length of each. All but the last
    fill it, unless the file ends early."""
    left = source.length
    try:
        with open(path, "rb") as file:
            file.seek(source.offset)
            while left:
                count = file.readinto(buffer[: min(len(buffer), left)])
                if not count:
                    return
                left -= count
                yield count
    except OSError as error:
        raise _Unreadable(str(error)) from error
