"""The removal of segments, and of the rest behind their contents, once no row, reader or backup
needs them.

Lives here: pins, and when a dead segment is unlinked or a sealed one is cut. Must not live here:
when a segment is dead (compaction.py), or has such a rest (segments.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future

from strongroom.engines.embedded.bodies.cuts import cut_file
from strongroom.engines.embedded.bodies.failures import Failures
from strongroom.engines.embedded.bodies.handles import Handles
from strongroom.engines.embedded.bodies.segment import Segment
from strongroom.engines.embedded.disk.directory import FileLock

_log = logging.getLogger(__name__)

Cut = tuple[Segment, int]
"""A segment, and the length of its file."""


class Unlinking:
    """Removes the dead segments of one store. Used on the event loop.

    Arguments:
        by_id: all segments; removed segments are deleted from it.
        backup_lock: a backup holds it while it needs the files.
        on_left: called when `reap` must be called again later.
    """

    def __init__(
        self,
        by_id: dict[int, Segment],
        backup_lock: FileLock,
        executor: Executor,
        handles: Handles,
        failures: Failures,
        on_left: Callable[[], None],
    ) -> None:
        self._by_id = by_id
        self._backup_lock = backup_lock
        self._executor = executor
        self._handles = handles
        self._failures = failures
        self._on_left = on_left
        self._loop = asyncio.get_running_loop()
        self._ends: dict[int, int] = {}
        self._running = False
        self._stopped = False

    def unpin(self, segment: Segment) -> None:
        """The last pin of a dead segment removes its file."""
        segment.pins -= 1
        if segment.gone and not segment.pins and not self.reap():
            # The files must be kept at present: another call must remove this one.
            self._on_left()

    def retire(self, segment: Segment) -> None:
        """Mark a segment that durably has no rows as dead: its file is removed with its last
        pin."""
        segment.gone = True
        self.reap()

    def cut(self, segment: Segment, end: int) -> None:
        """Cut a segment that is durably sealed to its first `end` bytes: no row names others."""
        self._ends[segment.id] = end
        if not self.reap():
            self._on_left()

    def reap(self) -> bool:
        """Unlink all dead segments that are not pinned, and cut the others that are to be. Return
        False when this must be tried again later, for example because a backup needs the files."""
        doomed = [one for one in self._by_id.values() if one.gone and not one.pins]
        if not (doomed or self._ends):
            return True
        if self._stopped or self._running or not self._may_unlink():
            return False
        for segment in doomed:
            self._handles.close(segment)
            del self._by_id[segment.id]
        ends, self._ends = self._ends, {}
        cuts = [(self._by_id[one], end) for one, end in ends.items() if one in self._by_id]
        self._running = True
        job = self._executor.submit(self._remove, [one.path for one in doomed], cuts)
        job.add_done_callback(lambda done: self._loop.call_soon_threadsafe(self._removed, done))
        return True

    def _may_unlink(self) -> bool:
        try:
            return self._backup_lock.acquire()
        except OSError as error:  # too many open files, perhaps: try again later
            _log.warning("dead segments cannot be removed now: %s", error)
            return False

    def _remove(self, paths: Sequence[str], cuts: Sequence[Cut]) -> list[Cut]:
        """Return how long the segments are that were to be cut."""
        files = self._handles.files
        for path in paths:
            files.unlink(path)
        return [(segment, cut_file(files, segment, end)) for segment, end in cuts]

    def _removed(self, job: Future[list[Cut]]) -> None:
        self._running = False
        self._backup_lock.release()
        error = job.exception()
        if isinstance(error, Exception):
            self._failures.fatal(error, "an attempt to remove segments")
            return
        for segment, end in job.result():
            segment.end = end
        self.reap()

    def stop(self) -> None:
        """Begin no more work; running work is finished."""
        self._stopped = True
