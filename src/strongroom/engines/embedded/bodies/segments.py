"""Segment files: where bodies are stored, where each may be appended, and when one is sealed.

Lives here: rooms and sealing, and the objects that the store's parts share about its segments. Must
not live here: those parts (open_segments.py, handles.py, syncs.py, unlinking.py), streaming a body
in (intake.py), moving bodies (compaction.py), rows (records/sqlite.py).

A body is appended and synced before the commit that names it, so bytes without a row are dead.
Small bodies share a segment; a large one has a segment's tail to itself. Everything here runs on
the event loop, except work for the executor.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Final

from strongroom.engines.base import Unavailable
from strongroom.engines.embedded.bodies.buffers import aligned
from strongroom.engines.embedded.bodies.cuts import Cuts
from strongroom.engines.embedded.bodies.dead_space import DeadSpace, is_worth_sealing
from strongroom.engines.embedded.bodies.failures import Failures
from strongroom.engines.embedded.bodies.handles import Handles
from strongroom.engines.embedded.bodies.open_segments import OpenSegments
from strongroom.engines.embedded.bodies.segment import Reservation, Segment
from strongroom.engines.embedded.bodies.segment_content import SegmentContent
from strongroom.engines.embedded.bodies.syncs import Syncs
from strongroom.engines.embedded.bodies.unlinking import Unlinking
from strongroom.engines.embedded.disk.directory import DirectoryLayout, FileLock
from strongroom.engines.embedded.disk.files import Files
from strongroom.engines.embedded.records.sqlite import Location, SegmentRow

SEGMENT_BYTES: Final = 256 * 1024 * 1024
# From this size on, a body has a segment's tail, and its syncs, to itself.
LARGE_BODY_BYTES: Final = 1024 * 1024

_log = logging.getLogger(__name__)


class SegmentStore:
    """The segments of one data directory.

    Arguments:
        new_id: returns unique, rising ids.
        on_sealed: called with the id of a segment that will never grow again; the future is done
            when that is durable.
        on_dead_space: called when a segment may need compaction.
        on_broken: called when a write or a sync failed; nothing is tried again.

    Attributes:
        by_id: the segments whose files exist.
        handles: their open files.
        failures: the consequences of a failed write to one of them.
        unlinking: removes dead segments.
        large_body_bytes: a body of this size has a segment's tail to itself.
        durable: see Syncs.durable.
    """

    def __init__(
        self,
        layout: DirectoryLayout,
        files: Files,
        executor: Executor,
        new_id: Callable[[], int],
        *,
        on_sealed: Callable[[int], asyncio.Future[None]],
        on_dead_space: Callable[[], None],
        on_broken: Callable[[Exception], None],
        segment_bytes: int = SEGMENT_BYTES,
        large_body_bytes: int = LARGE_BODY_BYTES,
    ) -> None:
        self.by_id: dict[int, Segment] = {}
        self.handles = Handles(files)
        self.failures = Failures(on_broken)
        self.unlinking = Unlinking(
            self.by_id,
            FileLock(layout.backup_lock),
            executor,
            self.handles,
            self.failures,
            on_dead_space,
        )
        syncs = Syncs(layout.segments, executor, self.handles, self.failures, self.release)
        self.durable: Final = syncs.durable
        self.sync_times: Final = syncs.times
        self._cuts = Cuts(executor, self.handles)
        self._dead_space = DeadSpace(files, layout.path)
        self._layout = layout
        self._open = OpenSegments(self.by_id, layout, self.handles, self.failures, new_id)
        self._on_sealed = on_sealed
        self._on_dead_space = on_dead_space
        self._segment_bytes = segment_bytes
        self.large_body_bytes = large_body_bytes
        self._reservations = 0

    def load(self, rows: Sequence[SegmentRow]) -> None:
        """Load the segments of the last run; their names are durable. Bytes beyond the rows'
        contents are dead."""
        known = {row.id: row for row in rows}
        for segment_id in self._layout.segment_ids():
            path = self._layout.segment(segment_id)
            row = known.pop(segment_id, SegmentRow(segment_id, 0, False))
            segment = Segment(segment_id, path, os.path.getsize(path), row.live_bytes, named=True)
            segment.sealed = row.sealed or segment.end >= self._segment_bytes
            self.by_id[segment_id] = segment
            if segment.end < row.reach_bytes:
                # Bytes appended there would be read as the content that was cut off.
                segment.sealed = segment.damaged = True
                _log.critical("segment %016x has been cut off: contents are lost", segment_id)
            elif not segment.sealed:
                self._open.idle.append(segment)
                self._sweep(segment, row.reach_bytes)
            elif not row.sealed:
                self._on_sealed(segment_id)
        for row in known.values():
            if row.live_bytes:
                _log.critical("segment %016x is missing: its contents are lost", row.id)
        for segment in list(self._open.idle):
            self._look_for_dead(segment)
        self._on_dead_space()

    def reserve(self, length: int | None) -> Reservation:
        """`length`: None = unknown."""
        if length is None or length >= self.large_body_bytes:
            segment = self._open.take()
            segment.busy += 1
            segment.has_tail = True
            self._reservations += 1
            return Reservation(segment, aligned(segment.end), is_tail=True)
        return self.reserve_shared(length)

    def reserve_shared(self, length: int) -> Reservation:
        """As a rule right behind the last reservation."""
        segment = self._open.shared()
        room = Reservation(segment, segment.end, is_tail=False)
        segment.end += length
        segment.busy += 1
        self._reservations += 1
        if segment.end >= self._segment_bytes:
            self._open.remove(segment)
        return room

    def finish_tail(self, room: Reservation, length: int) -> None:
        """Other bodies may be appended after it."""
        segment = room.segment
        segment.has_tail = False
        segment.end = room.offset + length if length else segment.end
        if segment.end < self._segment_bytes:
            self._open.idle.append(segment)
        self._seal_if_full(segment)

    def give_back_tail(self, room: Reservation) -> asyncio.Future[None]:
        """End the reservation of a tail that is not finished, and that no record names. What was
        written there goes back to the disk. Call it when no thread writes there any more."""

        def ended(_: asyncio.Future[None]) -> None:
            self.finish_tail(room, 0)
            self.release(room.segment)

        cutting = self._cuts.cut_on_thread(room.segment)
        if cutting.done():
            ended(cutting)
        else:
            cutting.add_done_callback(ended)
        return cutting

    def give_back(self, room: Reservation, length: int) -> None:
        """End the reservation of a small body that no record names. What was written there goes
        back to the disk, as soon as nothing lies behind it. Call it when no thread writes there any
        more."""
        segment, end = room.segment, room.segment.end
        if length:
            segment.given_up[room.offset + length] = room.offset
        while not segment.has_tail and segment.end in segment.given_up:
            segment.end = segment.given_up.pop(segment.end)
        if segment.end < end:
            self._cuts.cut(segment)
            if end >= self._segment_bytes > segment.end:
                self._open.idle.append(segment)  # it is full no more
        self.release(segment)

    def release(self, segment: Segment) -> None:
        """End a reservation, a sync, or the wait of a content for its commit."""
        segment.busy -= 1
        self._seal_if_full(segment)
        self._look_for_dead(segment)
        self._open.rest(segment)

    def count_live(self, changes: Iterable[tuple[int, int]]) -> None:
        """Of a durable commit: (segment id, change of its live bytes)."""
        for segment_id, change in changes:
            if (segment := self.by_id.get(segment_id)) is not None:
                segment.live_bytes += change
                if change < 0:
                    self._look_for_dead(segment)

    def sizes(self) -> tuple[int, int]:
        """The length of all segments in bytes, and the part that is alive."""
        segments = [one for one in self.by_id.values() if not one.gone]
        return sum(one.end for one in segments), sum(one.live_bytes for one in segments)

    def seal_dead(self, now: int) -> None:
        """Seal the open segments whose dead space is missed, and after some time without a new body
        all that are less than half alive. Call it now and then.

        Arguments:
            now: store time, in ticks.
        """
        is_quiet = self._dead_space.is_quiet(now, self._reservations)
        for segment in [one for one in self.by_id.values() if not one.sealed]:
            self._look_for_dead(segment)
            if is_quiet and self._may_seal(segment) and is_worth_sealing(segment):
                self._seal_early(segment)
                self._on_dead_space()

    def pin(self, location: Location) -> SegmentContent:
        """Return a content that stays readable until it is closed. Raises Unavailable."""
        segment = self.by_id.get(location.segment)
        if segment is None:
            raise Unavailable(f"segment {location.segment:016x} is missing")
        reader = self.handles.reading(segment)
        segment.pins += 1
        return SegmentContent(self.unlinking.unpin, segment, reader, location)

    def stop(self) -> None:
        """Begin no more work on threads; running work is finished."""
        self.handles.stop()
        self.unlinking.stop()

    def close(self) -> None:
        """Call it after `stop`, when the threads have ended."""
        for segment in self.by_id.values():
            self.handles.close(segment)

    def _seal_if_full(self, segment: Segment) -> None:
        if segment.end >= self._segment_bytes and self._may_seal(segment):
            self._seal(segment)

    def _may_seal(self, segment: Segment) -> bool:
        return not (segment.busy or segment.sealed or self.handles.is_stopped)

    def _sweep(self, segment: Segment, reach_bytes: int) -> None:
        """Cut off what the last run did not finish behind the contents of an open segment, if the
        disk is short of it."""

        def sealed(done: asyncio.Future[None]) -> None:
            if not done.cancelled() and done.exception() is None:
                self.unlinking.cut(segment, reach_bytes)

        rest_bytes = segment.end - aligned(reach_bytes)
        if segment.live_bytes and self._dead_space.is_short_of(rest_bytes):
            self._seal_early(segment).add_done_callback(sealed)

    def _seal(self, segment: Segment) -> asyncio.Future[None]:
        segment.sealed = True
        segment.given_up.clear()
        self.handles.close_writing(segment)
        return self._on_sealed(segment.id)

    def _look_for_dead(self, segment: Segment) -> None:
        if segment.live_bytes * 2 >= segment.end:
            return
        if self._may_seal(segment) and self._is_missed(segment):
            self._seal_early(segment)
        if segment.sealed:
            self._on_dead_space()

    def _is_missed(self, segment: Segment) -> bool:
        return self._dead_space.is_missed(segment, self._open.is_crowded(segment))

    def _seal_early(self, segment: Segment) -> asyncio.Future[None]:
        """Seal a segment that is not full, so that it can be compacted."""
        self._open.remove(segment)
        return self._seal(segment)
