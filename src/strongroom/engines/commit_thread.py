"""The one thread that waits for the disk on behalf of the commits, one piece of work at a time.

Lives here: handing work over and its outcome back, and when that is not worth it. Must not live
here: what the work is.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Final

# Waking a thread and being woken by it takes about as long as a quick sync.
_QUICK_S: Final = 0.0005
_DECAY: Final = 0.95
_UNKNOWN_S: Final = 1.0

Work = Callable[[], object]
Done = Callable[[BaseException | None], None]


class CommitThread:
    """Runs work in order; its outcome is told on the event loop.

    A thread pool would do as well, for three times the price of a hand-over.

    Arguments:
        time_s: tells how long work takes; the loop's time by default.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        time_s: Callable[[], float] | None = None,
    ) -> None:
        self._loop = loop
        self._time_s = time_s or loop.time
        # The slowest work of late: one slow sync is remembered for dozens of quick ones.
        self._recent_s = _UNKNOWN_S
        self._work: queue.SimpleQueue[tuple[Work, Done] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Work, done: Done) -> None:
        """Run `work` on the thread, then `done(error or None)` on the loop."""
        self._work.put((work, done))

    def run(self, work: Work, done: Done) -> None:
        """As `submit`, for whoever is alone: on the loop itself while work has been quick of late,
        so that a disk that turns slow holds the loop up once, and not time after time."""
        if self._recent_s > _QUICK_S:
            self.submit(work, done)
        else:
            done(self._outcome(work))

    def stop(self) -> None:
        """Let the thread end after what was submitted, and wait for that."""
        self._work.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            work, done = item
            error = self._outcome(work)
            try:
                self._loop.call_soon_threadsafe(done, error)
            except RuntimeError:
                return  # the loop is closed: nobody is left to be told

    def _outcome(self, work: Work) -> BaseException | None:
        began_s = self._time_s()
        try:
            work()
        except BaseException as raised:  # whatever it is, the loop must hear of it
            return raised
        finally:
            self._recent_s = max(self._time_s() - began_s, self._recent_s * _DECAY)
        return None
