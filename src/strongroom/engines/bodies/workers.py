"""Threads for calls that may never return: a server of files that hangs stops its clients.

Lives here: `Workers` and `PieceWorkers`. A call that hangs keeps its thread, and no caller: each
waits for a limited time. The threads do not delay the end of the process.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from strongroom.engines.base import Busy

T = TypeVar("T")

_End: Final = None


class _Job:
    """A call, and who waits for it.

    Arguments:
        undo: is given the result if nobody takes it.
    """

    def __init__(self, work: Callable[[], Any], undo: Callable[[Any], object] | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self.loop.create_future()
        self._work, self._undo = work, undo

    def run(self) -> None:
        if self.answer.done():
            return  # its caller has gone before it began
        result, error = None, None
        try:
            result = self._work()
        except BaseException as raised:
            error = raised
        try:
            self.loop.call_soon_threadsafe(self._deliver, result, error)
        except RuntimeError:  # the loop has ended
            self._give_back(result, error)

    def _deliver(self, result: object, error: BaseException | None) -> None:
        if self.answer.done():
            self._give_back(result, error)
        elif error is not None:
            self.answer.set_exception(error)
        else:
            self.answer.set_result(result)

    def _give_back(self, result: object, error: BaseException | None) -> None:
        if self._undo is not None and error is None:
            threading.Thread(target=self._undo, args=(result,), daemon=True).start()


class Workers:
    """A few threads.

    Arguments:
        count: of the threads.
        name: of the threads.

    Raises: Busy: the system allows no more threads.
    """

    def __init__(self, count: int, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._count = count
        try:
            for number in range(count):
                own = f"{name}-{number}"
                threading.Thread(target=self._work, name=own, daemon=True).start()
        except RuntimeError as error:
            self.stop()
            raise Busy(f"a thread cannot be started: {error}") from None

    def submit(
        self, work: Callable[[], T], undo: Callable[[T], object] | None = None
    ) -> asyncio.Future[T]:
        """Return the result of a call in a thread, whenever it comes."""
        job = _Job(work, undo)
        self._jobs.put(job)
        return job.answer

    async def run(
        self, work: Callable[[], T], limit_s: float, undo: Callable[[T], object] | None = None
    ) -> T:
        """Return the result of a call in a thread.

        Arguments:
            undo: is given the result if it comes too late.

        Raises: TimeoutError: the call may yet happen.
        """
        async with asyncio.timeout(limit_s):
            return await self.submit(work, undo)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()
            del job  # what it refers to may have to be closed

    def stop(self) -> None:
        """The threads end after the calls that were submitted before."""
        for _ in range(self._count):
            self._jobs.put(_End)


class PieceWorkers(Workers):
    """Threads that write pieces of bodies, too.

    Arguments:
        pieces: how many may be on their way, since each one is in memory.
    """

    def __init__(self, count: int, name: str, pieces: int) -> None:
        super().__init__(count, name)
        self._room = asyncio.Semaphore(pieces)

    async def submit_piece(self, work: Callable[[], None], limit_s: float) -> asyncio.Future[None]:
        """As `submit`, when there is room for one more. Raises: TimeoutError."""
        async with asyncio.timeout(limit_s):
            await self._room.acquire()
        piece = self.submit(work)
        piece.add_done_callback(lambda _: self._room.release())
        return piece
