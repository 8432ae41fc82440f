"""Segment files: where bodies are stored, where each may be appended, and when one is sealed.

Lives here: allocation and sealing, and the objects that the store's parts share about its segments.
Must not live here: those parts (handles.py, syncs.py, unlinking.py), streaming a body in
(intake.py), moving bodies (compaction.py), rows (records/sqlite.py).

A body is appended and synced before the commit that names it, so bytes without a row are dead.
Small bodies share a segment; a large one has a segment's tail to itself. Everything here runs on
the event loop, except work for the executor.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Final

from strongroom.engines.base import Unavailable
from strongroom.engines.embedded.bodies.buffers import aligned
from strongroom.engines.embedded.bodies.failures import Failures
from strongroom.engines.embedded.bodies.handles import Handles
from strongroom.engines.embedded.bodies.segment import Reservation, Segment
from strongroom.engines.embedded.bodies.segment_content import SegmentContent
from strongroom.engines.embedded.bodies.syncs import Syncs
from strongroom.engines.embedded.bodies.unlinking import Unlinking
from strongroom.engines.embedded.disk.directory import DirectoryLayout, FileLock
from strongroom.engines.embedded.disk.files import Files
from strongroom.engines.embedded.records.sqlite import Location, SegmentRow
from strongroom.values import TICKS_PER_S

SEGMENT_BYTES: Final = 256 * 1024 * 1024
# From this size on, a body has a segment's tail, and its syncs, to itself.
LARGE_BODY_BYTES: Final = 1024 * 1024
# The number of segments that wait for the next large body and keep their descriptors. Above it, a
# segment is sealed if it is dead or has this many dead bytes.
_IDLE_MAX: Final = 8
_CROWDED_DEAD_BYTES: Final = 16 * 1024 * 1024
# When space is short, an open segment with this many dead bytes is sealed, so that it can be
# compacted.
_SEAL_EARLY_BYTES: Final = 1024 * 1024

# After so long without a new body, dead space in open segments is given back.
QUIET_TICKS: Final = 3600 * TICKS_PER_S

_log = logging.getLogger(__name__)


class SegmentStore:
    """The segments of one data directory.

    Arguments:
        new_id: returns unique, rising ids.
        on_sealed: called with the id of a segment that will never grow again.
        on_dead_space: called when a segment may need compaction.
        on_broken: called when a write or a sync failed; nothing is tried again.

    Attributes:
        by_id: the segments whose files exist.
        handles: their open files.
        failures: the consequences of a failed write to one of them.
        unlinking: removes dead segments.
        durable: see Syncs.durable.
    """

    def __init__(
        self,
        layout: DirectoryLayout,
        files: Files,
        executor: Executor,
        new_id: Callable[[], int],
        *,
        on_sealed: Callable[[int], None],
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
        self._layout = layout
        self._files = files
        self._new_id = new_id
        self._on_sealed = on_sealed
        self._on_dead_space = on_dead_space
        self._segment_bytes = segment_bytes
        self._large_body_bytes = large_body_bytes
        self._shared: Segment | None = None
        self._idle: list[Segment] = []
        self._reservations = self._seen_reservations = 0
        self._quiet_since: int | None = None

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
                self._idle.append(segment)
            elif not row.sealed:
                self._on_sealed(segment_id)
        for row in known.values():
            if row.live_bytes:
                _log.critical("segment %016x is missing: its contents are lost", row.id)
        for segment in list(self._idle):
            self._look_for_dead(segment)
        self._on_dead_space()

    def reserve(self, length: int | None) -> Reservation:
        """Return room for a body of `length` bytes; None = of unknown length."""
        if length is None or length >= self._large_body_bytes:
            segment = self._open_segment()
            segment.busy += 1
            self._reservations += 1
            return Reservation(segment, aligned(segment.end), is_tail=True)
        return self.reserve_shared(length)

    def reserve_shared(self, length: int) -> Reservation:
        """Reserve room for a small body, as a rule right behind the last reservation."""
        segment = self._shared = self._shared or self._open_segment()
        room = Reservation(segment, segment.end, is_tail=False)
        segment.end += length
        segment.busy += 1
        self._reservations += 1
        if segment.end >= self._segment_bytes:
            self._shared = None
        return room

    def finish_tail(self, room: Reservation, length: int) -> None:
        """Finish a tail after `length` bytes: other bodies may be appended after it."""
        segment = room.segment
        segment.end = room.offset + length if length else segment.end
        if segment.end < self._segment_bytes:
            self._idle.append(segment)
        self._seal_if_full(segment)

    def release(self, segment: Segment) -> None:
        """End a reservation, a sync, or the wait of a content for its commit."""
        segment.busy -= 1
        self._seal_if_full(segment)
        self._look_for_dead(segment)
        if len(self._idle) > _IDLE_MAX:
            self._rest(segment)

    def count_live(self, changes: Iterable[tuple[int, int]]) -> None:
        """Apply the changes of a durable commit: (segment id, change of its live bytes)."""
        for segment_id, change in changes:
            if (segment := self.by_id.get(segment_id)) is not None:
                segment.live_bytes += change
                if change < 0:
                    self._look_for_dead(segment)

    def sizes(self) -> tuple[int, int]:
        """Return the length of all segments in bytes, and the part that is alive."""
        found = [one for one in self.by_id.values() if not one.gone]
        return sum(one.end for one in found), sum(one.live_bytes for one in found)

    def seal_quiet(self, now: int) -> None:
        """Seal the open segments that are less than half alive, after QUIET_TICKS without a new
        body. Call it now and then.

        Arguments:
            now: store time, in ticks.
        """
        if self._quiet_since is None or self._reservations != self._seen_reservations:
            self._seen_reservations, self._quiet_since = self._reservations, now
        if now - self._quiet_since < QUIET_TICKS:
            return
        for segment in list(self.by_id.values()):
            if not (segment.sealed or segment.busy) and _is_worth_sealing(segment):
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
        """Close every file. Call it after `stop`, when the threads have ended."""
        for segment in self.by_id.values():
            self.handles.close(segment)

    def _open_segment(self) -> Segment:
        if self._idle:
            return self._idle.pop()
        segment_id = self._new_id()
        path = self._layout.segment(segment_id)
        try:
            # Each writer opens the file in its own mode, so that many uploads need one descriptor
            # each.
            self._files.close(self._files.create(path))
        except OSError as error:
            raise self.failures.of_write(error) from error
        segment = Segment(segment_id, path)
        self.by_id[segment_id] = segment
        return segment

    def _seal_if_full(self, segment: Segment) -> None:
        if segment.end >= self._segment_bytes and not segment.busy and not segment.sealed:
            self._seal(segment)

    def _seal(self, segment: Segment) -> None:
        segment.sealed = True
        self.handles.close_writing(segment)
        self._on_sealed(segment.id)

    def _rest(self, segment: Segment) -> None:
        """Close the descriptors of an idle segment: many uploads would else leave many of them
        open."""
        if not (segment.busy or segment.sealed) and segment in self._idle:
            self.handles.close_writing(segment)

    def _look_for_dead(self, segment: Segment) -> None:
        if segment.live_bytes * 2 >= segment.end:
            return
        if not (segment.sealed or segment.busy) and self._is_missed(segment):
            self._seal_early(segment)
        if segment.sealed:
            self._on_dead_space()

    def _is_missed(self, segment: Segment) -> bool:
        """Return whether an open segment's dead bytes matter: to a full disk, or because many are
        open."""
        dead_bytes = segment.end - segment.live_bytes
        if len(self._idle) > _IDLE_MAX and segment in self._idle:
            return not segment.live_bytes or dead_bytes >= _CROWDED_DEAD_BYTES
        if dead_bytes < _SEAL_EARLY_BYTES:
            return False
        try:
            return dead_bytes * 4 > self._files.free_bytes(self._layout.path)
        except OSError as error:  # waiters for a commit must not fail because of it
            _log.warning("how full the disk is cannot be told: %s", error)
            return False

    def _seal_early(self, segment: Segment) -> None:
        """Seal a segment that is not full, so that it can be compacted."""
        if self._shared is segment:
            self._shared = None
        if segment in self._idle:
            self._idle.remove(segment)
        self._seal(segment)


def _is_worth_sealing(segment: Segment) -> bool:
    """Return whether the space of an open segment is worth a new file, once nobody writes."""
    dead_bytes = segment.end - segment.live_bytes
    if not segment.live_bytes:
        return dead_bytes > 0
    return dead_bytes >= _SEAL_EARLY_BYTES and segment.live_bytes * 2 < segment.end
