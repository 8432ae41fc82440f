"""Syncs of segments: all waiters share one, and those that arrive during it share the next.

Lives here: when a segment is synced, and how waiters learn the outcome. Must not live here: what
was written (body_writes.py), where there is room (segments.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future

from strongroom.engines.base import EngineError
from strongroom.engines.embedded.bodies.failures import Failures
from strongroom.engines.embedded.bodies.handles import Handles
from strongroom.engines.embedded.bodies.segment import Segment
from strongroom.engines.embedded.commit.futures import retrieve_exception
from strongroom.engines.embedded.disk.files import is_too_many_open_files
from strongroom.engines.measured import CommitTimes


class Syncs:
    """The syncs of one store's segments. Used on the event loop; each runs in the executor.

    Arguments:
        directory: the directory of the segments. It is synced once after a segment was created.
        on_ended: called at the end of each sync, which has kept its segment busy.

    Attributes:
        times: how long the syncs took that succeeded.
    """

    def __init__(
        self,
        directory: str,
        executor: Executor,
        handles: Handles,
        failures: Failures,
        on_ended: Callable[[Segment], None],
    ) -> None:
        self._directory = directory
        self._executor = executor
        self._handles = handles
        self._failures = failures
        self._on_ended = on_ended
        self._loop = asyncio.get_running_loop()
        self.times = CommitTimes()

    def durable(self, segment: Segment) -> asyncio.Future[None]:
        """Return a future that is done when everything written to `segment` before is durable.
        Shield it.

        All waiters share a sync. A caller that arrives while one runs waits for the next.
        """
        if segment.next_sync is not None:
            return segment.next_sync
        waiting = segment.next_sync = self._loop.create_future()
        waiting.add_done_callback(retrieve_exception)
        if not segment.syncing:
            self._start(segment)
        return waiting

    def _start(self, segment: Segment) -> None:
        waiting, segment.next_sync = segment.next_sync, None
        assert waiting is not None, "a sync starts for somebody"
        try:
            self._handles.check_open()
            descriptor = segment.past_cache
            if descriptor is None:
                descriptor = self._handles.writing(segment)
        except EngineError as error:
            waiting.set_exception(error)
            return
        except OSError as error:
            waiting.set_exception(self._failures.of_write(error))
            return
        segment.syncing = True
        segment.busy += 1
        job = self._executor.submit(self._sync, segment, descriptor)
        job.add_done_callback(
            lambda done: self._loop.call_soon_threadsafe(self._synced, segment, waiting, done)
        )

    def _sync(self, segment: Segment, descriptor: int) -> float:
        """Return how many seconds it took."""
        began_s = self._loop.time()
        files = self._handles.files
        files.sync(descriptor)
        if not segment.named:
            files.sync_directory(self._directory)
            segment.named = True
        return self._loop.time() - began_s

    def _synced(self, segment: Segment, waiting: asyncio.Future[None], job: Future[float]) -> None:
        segment.syncing = False
        error = job.exception()
        if isinstance(error, OSError) and is_too_many_open_files(error):
            # The directory could not be opened. The next sync syncs it again.
            waiting.set_exception(self._failures.of_write(error))
        elif error is not None:
            # Even after "no space" no retry is safe here: the kernel may have dropped the pages.
            stopped = self._failures.fatal(error, "a failed sync")
            waiting.set_exception(stopped)
            if segment.next_sync is not None:
                segment.next_sync.set_exception(stopped)
                segment.next_sync = None
            return
        else:
            self.times.note(job.result())
            waiting.set_result(None)
        if segment.next_sync is not None:
            self._start(segment)
        self._on_ended(segment)
