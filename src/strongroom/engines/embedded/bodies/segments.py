"""Segment files: where bodies lie, who may append where, one sync for all who wait, and pins.

Lives here: allocation, syncing, sealing, reading handles and unlinking. Must not live here:
streaming a body in (intake.py), moving bodies (compaction.py), rows (records/sqlite.py).

A body is appended and synced before the commit that names it, so bytes without a row are dead. A
segment is shared by small bodies; a large one has a segment's tail to itself. Everything here runs
on the event loop, except what is handed to the executor.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import BinaryIO, Final

from strongroom.engines.base import Busy, EngineError, Full, Unavailable
from strongroom.engines.embedded.bodies.buffers import aligned
from strongroom.engines.embedded.bodies.segment import Room, Segment
from strongroom.engines.embedded.bodies.segment_content import SegmentContent
from strongroom.engines.embedded.directory import FileLock, Layout
from strongroom.engines.embedded.files import Files, is_no_space
from strongroom.engines.embedded.records.sqlite import Location, SegmentRow

SEGMENT_BYTES: Final = 256 * 1024 * 1024
# From here on a body has a segment's tail, and its syncs, to itself.
LARGE_BODY_BYTES: Final = 1024 * 1024
_READERS_MAX: Final = 64
# So many segments that wait for the next large body keep their descriptors; of more, those that
# are dead, or hold so much that is, are sealed.
_IDLE_MAX: Final = 8
_CROWDED_DEAD_BYTES: Final = 16 * 1024 * 1024
# Dead bytes in an open segment are worth a file of their own from here on, when space is short.
_SEAL_EARLY_BYTES: Final = 1024 * 1024
_TOO_MANY_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})

_log = logging.getLogger(__name__)


class SegmentStore:
    """The segments of one data directory.

    Arguments:
        new_id: unique, rising ids.
        on_sealed: told the id of a segment that will never grow again.
        on_dead_space: told that there may be something to compact.
        on_broken: told when a write or a sync failed; nothing is tried again.
    """

    def __init__(
        self,
        layout: Layout,
        files: Files,
        executor: Executor,
        new_id: Callable[[], int],
        on_sealed: Callable[[int], None],
        on_dead_space: Callable[[], None],
        on_broken: Callable[[Exception], None],
        segment_bytes: int = SEGMENT_BYTES,
        large_body_bytes: int = LARGE_BODY_BYTES,
    ) -> None:
        self.files = files
        self.by_id: dict[int, Segment] = {}
        self._layout = layout
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._new_id = new_id
        self._on_sealed = on_sealed
        self._on_dead_space = on_dead_space
        self._on_broken = on_broken
        self._segment_bytes = segment_bytes
        self._large_body_bytes = large_body_bytes
        self._shared: Segment | None = None
        self._idle: list[Segment] = []
        self._written: dict[int, Location] = {}
        self._adopting: set[int] = set()
        self._discarded: set[int] = set()
        self._readers: OrderedDict[int, Segment] = OrderedDict()
        self._backup_lock = FileLock(layout.backup_lock)
        self._reaping = False
        self._stopped = False

    def load(self, rows: Sequence[SegmentRow]) -> None:
        """Take over what the last run left, with durable names; tails beyond the rows are dead."""
        known = {row.id: row for row in rows}
        for segment_id in self._layout.segment_ids():
            path = self._layout.segment(segment_id)
            row = known.pop(segment_id, SegmentRow(segment_id, 0, False))
            segment = Segment(segment_id, path, os.path.getsize(path), row.live_bytes, named=True)
            segment.sealed = row.sealed or segment.end >= self._segment_bytes
            self.by_id[segment_id] = segment
            if segment.end < row.reach_bytes:
                # What is appended there would be read as the content that was cut off.
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

    def reserve(self, length: int | None) -> Room:
        """Room for a body of so many bytes; None = of any length."""
        if length is None or length >= self._large_body_bytes:
            segment = self._open_segment()
            segment.busy += 1
            return Room(segment, aligned(segment.end), is_tail=True)
        segment = self._shared = self._shared or self._open_segment()
        room = Room(segment, segment.end, is_tail=False)
        segment.end += length
        segment.busy += 1
        if segment.end >= self._segment_bytes:
            self._shared = None
        return room

    def finish_tail(self, room: Room, length: int) -> None:
        """Nobody writes in a tail any more, after `length` bytes: others may append behind it."""
        segment = room.segment
        segment.end = room.offset + length if length else segment.end
        if segment.end < self._segment_bytes:
            self._idle.append(segment)
        self._seal_if_full(segment)

    def keep(self, content_id: int, location: Location) -> None:
        """A reservation became a written content."""
        self._written[content_id] = location

    def release(self, segment: Segment) -> None:
        """A reservation ended without a content: its bytes are dead."""
        segment.busy -= 1
        self._seal_if_full(segment)
        self._look_for_dead(segment)
        self._rest(segment)

    def discard(self, content_id: int) -> None:
        """See Contents.discard; a running commit that adopts the content goes first."""
        if content_id in self._adopting:
            self._discarded.add(content_id)
            return
        location = self._written.pop(content_id, None)
        if location is not None:
            self.release(self.by_id[location.segment])

    def location(self, content_id: int) -> Location | None:
        """Where a written content lies that no commit has adopted."""
        return self._written.get(content_id)

    def adopting(self, content_id: int) -> None:
        """See serial_point.Bodies."""
        self._adopting.add(content_id)

    def settle(self, adopted: Sequence[int], live: Sequence[tuple[int, int]]) -> None:
        """See serial_point.Bodies."""
        for segment_id, change in live:
            if (segment := self.by_id.get(segment_id)) is not None:
                segment.live_bytes += change
                if change < 0:
                    self._look_for_dead(segment)
        for content_id in adopted:
            self._adopting.discard(content_id)
            self._discarded.discard(content_id)
            location = self._written.pop(content_id)
            self.release(self.by_id[location.segment])

    def unsettle(self, adopted: Sequence[int]) -> None:
        """See serial_point.Bodies."""
        self._adopting.difference_update(adopted)
        for content_id in adopted:
            if content_id in self._discarded:
                self._discarded.discard(content_id)
                self.discard(content_id)

    def writing(self, segment: Segment) -> int:
        """The descriptor for writing, opened when it is first needed. Raises OSError,
        Unavailable."""
        if segment.descriptor is None:
            self._check_open()
            segment.descriptor = self.files.reopen(segment.path)
        return segment.descriptor

    def writing_past_cache(self, segment: Segment) -> int:
        """Like `writing`, of aligned bytes at aligned offsets only."""
        if segment.past_cache is None:
            self._check_open()
            segment.past_cache = self.files.open_past_cache(segment.path)
        return segment.past_cache

    def _check_open(self) -> None:
        if self._stopped:
            raise Unavailable("the store is closed")

    def durable(self, segment: Segment) -> asyncio.Future[None]:
        """Done when everything written to `segment` before this call is durable. Shield it.

        All who wait share a sync: whoever comes while one runs waits for the next.
        """
        if segment.next_sync is not None:
            return segment.next_sync
        waiting = segment.next_sync = self._loop.create_future()
        waiting.add_done_callback(_retrieve)
        if not segment.syncing:
            self._start_sync(segment)
        return waiting

    def pin(self, location: Location) -> SegmentContent:
        """A content that stays readable until it is closed. Raises Unavailable."""
        segment = self.by_id.get(location.segment)
        if segment is None:
            raise Unavailable(f"segment {location.segment:016x} is missing")
        reader = self._reader(segment)
        segment.pins += 1
        return SegmentContent(self.unpin, segment, reader, location)

    def unpin(self, segment: Segment) -> None:
        """Give a pin back; the last one of a segment that is gone takes the file with it."""
        segment.pins -= 1
        if segment.gone and not segment.pins and not self.reap():
            # The files are kept just now: somebody must come back for this one.
            self._on_dead_space()

    def retire(self, segment: Segment) -> None:
        """No row points into the segment, durably: it goes with its last pin."""
        segment.gone = True
        self.reap()

    def reap(self) -> bool:
        """Unlink what is gone and not pinned; False when that must be tried again later, because a
        backup keeps the files, say."""
        doomed = [one for one in self.by_id.values() if one.gone and not one.pins]
        if not doomed:
            return True
        if self._stopped or self._reaping or not self._may_unlink():
            return False
        for segment in doomed:
            self._close(segment)
            del self.by_id[segment.id]
        self._reaping = True
        job = self._executor.submit(self._unlink, [segment.path for segment in doomed])
        job.add_done_callback(lambda done: self._loop.call_soon_threadsafe(self._reaped, done))
        return True

    def _may_unlink(self) -> bool:
        """Take the lock that a backup holds while it needs the files."""
        try:
            return self._backup_lock.acquire()
        except OSError as error:  # too many open files, perhaps: the dead can wait
            _log.warning("dead segments cannot be removed now: %s", error)
            return False

    def _unlink(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.files.unlink(path)

    def _reaped(self, job: Future[None]) -> None:
        self._reaping = False
        self._backup_lock.release()
        error = job.exception()
        if isinstance(error, Exception):
            self._on_broken(error)
            return
        self.reap()

    def stop(self) -> None:
        """Begin nothing more that takes a thread; what runs is finished."""
        self._stopped = True

    def close(self) -> None:
        """Close every file; after `stop`, and the threads' end."""
        for segment in self.by_id.values():
            self._close(segment)

    def broken(self, error: OSError) -> EngineError:
        """What a failed write or sync means for the caller: Full, or the end of the engine."""
        if is_no_space(error):
            return Full()
        if error.errno in _TOO_MANY_FILES:
            # Nothing was written: this caller is refused, and the disk is not to blame.
            return Busy(f"a segment cannot be opened now: {error}")
        self._on_broken(error)
        return Unavailable(f"the store has stopped after an I/O error: {error}")

    def _open_segment(self) -> Segment:
        if self._idle:
            return self._idle.pop()
        segment_id = self._new_id()
        path = self._layout.segment(segment_id)
        try:
            # Who writes opens it in his way: a crowd of uploads needs one descriptor each.
            self.files.close(self.files.create(path))
        except OSError as error:
            raise self.broken(error) from error
        segment = Segment(segment_id, path)
        self.by_id[segment_id] = segment
        return segment

    def _start_sync(self, segment: Segment) -> None:
        waiting, segment.next_sync = segment.next_sync, None
        assert waiting is not None, "a sync starts for somebody"
        try:
            self._check_open()
            descriptor = segment.past_cache
            if descriptor is None:
                descriptor = self.writing(segment)
        except EngineError as error:
            waiting.set_exception(error)
            return
        except OSError as error:
            waiting.set_exception(self.broken(error))
            return
        segment.syncing = True
        segment.busy += 1
        job = self._executor.submit(self._sync, segment, descriptor)
        job.add_done_callback(
            lambda done: self._loop.call_soon_threadsafe(self._synced, segment, waiting, done)
        )

    def _sync(self, segment: Segment, descriptor: int) -> None:
        self.files.sync(descriptor)
        if not segment.named:
            self.files.sync_directory(self._layout.segments)
            segment.named = True

    def _synced(self, segment: Segment, waiting: asyncio.Future[None], job: Future[None]) -> None:
        segment.syncing = False
        segment.busy -= 1
        error = job.exception()
        if isinstance(error, OSError) and error.errno in _TOO_MANY_FILES:
            # The directory could not be opened. Whoever tries again syncs it again.
            waiting.set_exception(self.broken(error))
        elif error is not None:
            # Not even "no space" may be tried again here: the kernel may have dropped the pages.
            stopped = Unavailable(f"the store has stopped after a failed sync: {error}")
            self._on_broken(error if isinstance(error, Exception) else stopped)
            waiting.set_exception(stopped)
            if segment.next_sync is not None:
                segment.next_sync.set_exception(stopped)
                segment.next_sync = None
            return
        else:
            waiting.set_result(None)
        if segment.next_sync is not None:
            self._start_sync(segment)
        self._seal_if_full(segment)
        self._look_for_dead(segment)
        self._rest(segment)

    def _seal_if_full(self, segment: Segment) -> None:
        if segment.end >= self._segment_bytes and not segment.busy and not segment.sealed:
            self._seal(segment)

    def _seal(self, segment: Segment) -> None:
        segment.sealed = True
        self._close_descriptors(segment)
        self._on_sealed(segment.id)

    def _rest(self, segment: Segment) -> None:
        """Of the segments that wait for a body, a crowd of uploads must not leave all open."""
        if segment.busy or segment.sealed or len(self._idle) <= _IDLE_MAX:
            return
        if segment in self._idle:
            self._close_descriptors(segment)

    def _close_descriptors(self, segment: Segment) -> None:
        descriptors = (segment.descriptor, segment.past_cache)
        segment.descriptor = segment.past_cache = None
        for descriptor in descriptors:
            if descriptor is not None:
                self.files.close(descriptor)

    def _look_for_dead(self, segment: Segment) -> None:
        if segment.live_bytes * 2 >= segment.end:
            return
        if not (segment.sealed or segment.busy) and self._is_missed(segment):
            self._seal_early(segment)
        if segment.sealed:
            self._on_dead_space()

    def _is_missed(self, segment: Segment) -> bool:
        """Whether an open segment's dead bytes matter: to the disk, or since so many are open."""
        dead_bytes = segment.end - segment.live_bytes
        if len(self._idle) > _IDLE_MAX and segment in self._idle:
            return not segment.live_bytes or dead_bytes >= _CROWDED_DEAD_BYTES
        if dead_bytes < _SEAL_EARLY_BYTES:
            return False
        try:
            return dead_bytes * 4 > self.files.free_bytes(self._layout.path)
        except OSError as error:  # those who wait for their commit must not pay for it
            _log.warning("how full the disk is cannot be told: %s", error)
            return False

    def _seal_early(self, segment: Segment) -> None:
        """Nothing more goes into a segment that is not full, so that it can be compacted."""
        if self._shared is segment:
            self._shared = None
        if segment in self._idle:
            self._idle.remove(segment)
        self._seal(segment)

    def _reader(self, segment: Segment) -> BinaryIO:
        if segment.reader is None:
            try:
                segment.reader = open(segment.path, "rb", buffering=0)  # noqa: SIM115
            except OSError as error:
                kind = Busy if error.errno in _TOO_MANY_FILES else Unavailable
                raise kind(f"segment {segment.id:016x} cannot be read: {error}") from error
            self._readers[segment.id] = segment
            self._close_idle_readers()
        else:
            self._readers.move_to_end(segment.id)
        return segment.reader

    def _close_idle_readers(self) -> None:
        if len(self._readers) <= _READERS_MAX:
            return
        for segment in [one for one in self._readers.values() if not one.pins][:-1]:
            if len(self._readers) > _READERS_MAX:
                self._close_reader(segment)

    def _close_reader(self, segment: Segment) -> None:
        if segment.reader is not None:
            segment.reader.close()
            segment.reader = None
            del self._readers[segment.id]

    def _close(self, segment: Segment) -> None:
        self._close_reader(segment)
        self._close_descriptors(segment)


def _retrieve(future: asyncio.Future[None]) -> None:
    # Whoever waits hears of a failure; it is no loss when nobody does.
    if not future.cancelled():
        future.exception()
