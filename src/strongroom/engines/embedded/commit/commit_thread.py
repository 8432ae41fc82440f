"""The thread that waits for the disk on behalf of the commits, one piece of work at a time.

Lives here: where a commit runs, and how work and its outcome pass between the threads.

On a fast disk, two threads that share an interpreter cost more than the sync. The work passes from
one to the other and back, and the thread waits for the interpreter while the loop computes. So a
commit runs on the event loop. Other requests then wait for up to a millisecond, as they do for
decisions. After a slower commit, all commits run on the thread for ten times as long as it took. So
the loop spends at most a tenth of its time on a disk that is sometimes slow.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Final

from strongroom.engines.embedded.disk.threads import start
from strongroom.engines.measured import CommitTimes

Work = Callable[[], object]
Done = Callable[[BaseException | None], None]

QUICK_S: Final = 0.001
_THREAD_TIME_FACTOR: Final = 10


class CommitThread:
    """Runs work in order, and reports its outcome on the event loop.

    A thread pool would do the same, but each hand-over would cost three times as much.

    Attributes:
        times: how long the commits took.

    Raises: MemoryError: there is no memory for the thread, or the system allows no more.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self.times = CommitTimes()
        self._thread_until_s = 0.0  # until then, commits run on the thread
        self._work: queue.SimpleQueue[tuple[Work, Done] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        start(self._thread)

    def submit(self, work: Work, done: Done) -> None:
        """`done(error or None)` is called on the loop."""
        self._work.put((work, done))

    def commit(self, work: Work, done: Done) -> None:
        """Like `submit`, for commits. `done` may be called before this returns."""
        if self._loop.time() >= self._thread_until_s:
            error = _outcome(lambda: self._timed(work))
            done(error)
            if error is not None and not isinstance(error, Exception):
                raise error  # Ctrl-C ends the thread that runs the loop, here as anywhere
        else:
            self.submit(lambda: self._timed(work), done)

    def use_thread_for(self, duration_s: float) -> None:
        """All commits run on the thread for this time."""
        self._thread_until_s = self._loop.time() + duration_s

    def stop(self) -> None:
        """Wait for all submitted work."""
        self._work.put(None)
        self._thread.join()

    def _timed(self, work: Work) -> None:
        began_s = self._loop.time()
        try:
            work()
        finally:
            took_s = self._loop.time() - began_s
            self.times.note(took_s)
            if took_s > QUICK_S:
                self.use_thread_for(_THREAD_TIME_FACTOR * took_s)

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            work, done = item
            try:
                self._loop.call_soon_threadsafe(done, _outcome(work))
            except RuntimeError:
                return  # the loop is closed: no caller is left


def _outcome(work: Work) -> BaseException | None:
    try:
        work()
    except BaseException as raised:  # any error must reach the loop
        return raised
    return None
