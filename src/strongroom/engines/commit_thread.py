"""The one thread that waits for the disk on behalf of the commits, one piece of work at a time.

Lives here: handing work over and its outcome back. Must not live here: what the work is.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable

Work = Callable[[], object]
Done = Callable[[BaseException | None], None]


class CommitThread:
    """Runs work in order; its outcome is told on the event loop.

    A thread pool would do as well, for three times the price of a hand-over.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._work: queue.SimpleQueue[tuple[Work, Done] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Work, done: Done) -> None:
        """Run `work` on the thread, then `done(error or None)` on the loop."""
        self._work.put((work, done))

    def stop(self) -> None:
        """Let the thread end after what was submitted, and wait for that."""
        self._work.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            work, done = item
            error: BaseException | None = None
            try:
                work()
            except BaseException as raised:  # whatever it is, the loop must hear of it
                error = raised
            try:
                self._loop.call_soon_threadsafe(done, error)
            except RuntimeError:
                return  # the loop is closed: nobody is left to be told
