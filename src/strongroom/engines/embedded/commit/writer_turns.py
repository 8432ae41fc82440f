"""The use of the writing connection: one group at a time, or one piece of work between groups.

Lives here: the queue for the connection, the choice and the begin of its next use, and whether the
readers may keep their snapshot meanwhile. Must not live here: the work of a group, and its commit
(group_commit.py).

At most COMMIT runs on another thread: two threads that run Python would compete for the
interpreter. Items that arrive while a COMMIT runs wait, and form the next group.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from strongroom.engines.base import Decide, EngineError, Ref
from strongroom.engines.embedded.commit.commit_thread import CommitThread, Done, Work
from strongroom.engines.embedded.commit.futures import refuse
from strongroom.engines.embedded.commit.serial_point import Group, QueuedWork
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.slices import SliceTurns
from strongroom.values import Purpose

GROUP_ITEMS_MAX: Final = 256
GROUP_TIME_S: Final = 0.005
# A group that has more takes no further item. The loop waits while the decisions make the bytes and
# SQLite takes them, some 5 ms for so many.
GROUP_BYTES_MAX: Final = 1024 * 1024
# The same for the rows that SQLite takes (`Group.rows`), some 4 ms for so many. A decision on a
# megabyte of a file has about a hundred, so a group has two of these.
GROUP_ROWS_MAX: Final = 192

WorkBetween = tuple[Callable[[], object], asyncio.Future[None]]


class WorkQueue:
    """The queue of one store. Used on the event loop.

    A closed queue is empty: its items were refused when it closed, and new ones are refused.

    Attributes:
        broken: why the queue is closed; None while it is open.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._new_future = loop.create_future
        self._items: deque[QueuedWork] = deque()
        self._between: deque[WorkBetween] = deque()
        self._alone = 0  # how many items from the front run in groups of one
        self.broken: EngineError | None = None

    def __len__(self) -> int:
        return len(self._items) + len(self._between)

    def add(
        self,
        reads: Sequence[Ref],
        decide: Decide[Any] | None,
        work: Callable[[Group], Any] | None,
        purpose: Purpose,
    ) -> asyncio.Future[Any]:
        """Queue an item for a group, and return the future of its answer."""
        future: asyncio.Future[Any] = self._new_future()
        if self.broken is None:
            self._items.append(QueuedWork(future, reads, decide, work, purpose))
        else:
            future.set_exception(self.broken)
        return future

    def add_between(self, work: Callable[[], object], first: bool) -> asyncio.Future[None]:
        """Queue work that needs the connection without a transaction; it runs before any group.

        Arguments:
            first: run it before the work that was queued here earlier.
        """
        future: asyncio.Future[None] = self._new_future()
        if self.broken is not None:
            future.set_exception(self.broken)
        elif first:
            self._between.appendleft((work, future))
        else:
            self._between.append((work, future))
        return future

    @property
    def may_wait_for_more(self) -> bool:
        """Whether the next use is a group that may wait for more items."""
        return not (self._between or self._alone)

    def take_between(self) -> WorkBetween | None:
        """None if a group comes next."""
        return self._between.popleft() if self._between else None

    def next_items(self) -> Iterator[QueuedWork]:
        """What the next group may take; the items stay in the queue."""
        return itertools.islice(self._items, 1 if self._alone else GROUP_ITEMS_MAX)

    def take(self) -> QueuedWork:
        return self._items.popleft()

    def refuse(self, place: int, error: Exception) -> None:
        item = self._items[place]
        del self._items[place]
        refuse(item.future, error)

    def put_back(self, items: Sequence[QueuedWork]) -> None:
        """The items of a failed group, before all others. Each then runs in a group of its own."""
        if self.broken is not None:
            for item in items:
                refuse(item.future, self.broken)
            return
        self._items.extendleft(reversed(items))
        self._alone = max(len(items), self._alone)

    def done(self, count: int) -> None:
        """`count` items were taken and answered."""
        self._alone = max(0, self._alone - count)

    def close(self, error: EngineError) -> None:
        """Refuse all queued items, and all that are added later."""
        self.broken = error
        for item in self._items:
            refuse(item.future, error)
        for _, future in self._between:
            refuse(future, error)
        self._items.clear()
        self._between.clear()


class GroupPace:
    """Measures the time of one group after the other. A sync for many items costs little more than
    one for few, so a group gathers items while more of them arrive.

    Arguments:
        time: a monotonic clock, in seconds.
    """

    def __init__(self, time: Callable[[], float]) -> None:
        self.time = time
        self._gathers_until = 0.0
        # How many items waited one turn of the loop ago; 1 while no group gathers.
        self._seen = 1

    def waits_for_more(self, count: int) -> bool:
        """Return whether the next group waits one more turn of the loop.

        It does so if the last turn brought more items and the time of a group is not over. After
        False the next group begins to gather.

        Arguments:
            count: how many items wait now.
        """
        if self._seen < count < GROUP_ITEMS_MAX:
            now = self.time()
            if self._seen == 1:
                self._gathers_until = now + GROUP_TIME_S
            if now <= self._gathers_until:
                self._seen = count
                return True
        self._seen = 1
        return False

    def deadline(self) -> float:
        """When a phase of a group that begins now must end, by the clock `time`."""
        return self.time() + GROUP_TIME_S


class Phase(enum.Enum):
    """The state of the connection."""

    IDLE = enum.auto()
    """It is unused, and nothing is queued."""
    SCHEDULED = enum.auto()
    """Its next use begins with the next turn of the event loop."""
    BUSY = enum.auto()
    """The commit thread uses it."""


class WriterTurns:
    """The uses of the connection of one store. Used on the event loop.

    Arguments:
        thread: runs commits, and the work between groups.
        reader: the connection of small reads, which keeps its snapshot while nothing is under way.
        run_group: runs the next group, and may end it with `commit`.
        slices: the time slices of the loop. A group that would begin at the end of a long turn
            begins in the next one.

    Attributes:
        phase: what the connection does.
    """

    def __init__(
        self,
        queue: WorkQueue,
        pace: GroupPace,
        thread: CommitThread,
        reader: Reader,
        run_group: Callable[[], None],
        slices: SliceTurns,
    ) -> None:
        self._queue = queue
        self._pace = pace
        self._thread = thread
        self._reader = reader
        self._run_group = run_group
        self._slices = slices
        self._is_put_off = False
        self._loop = asyncio.get_running_loop()
        self._drained: asyncio.Future[None] | None = None
        self.phase = Phase.IDLE

    def schedule(self) -> None:
        """If the connection is idle and something is queued."""
        if self.phase is not Phase.IDLE:
            return
        if self._queue:
            self.phase = Phase.SCHEDULED
            # Not at once: what is ready to run now can still join the group.
            self._loop.call_soon(self._begin)
        elif self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def commit(self, work: Work, done: Done) -> None:
        """End a group with a commit; it may be over on return.

        Arguments:
            done: called with the commit's error, or None, before the next use begins.
        """
        self.phase = Phase.BUSY
        self._thread.commit(work, functools.partial(self._finish, done))

    def hold_reader(self) -> None:
        """Let the reader keep its snapshot until the next group begins. A group that commits now
        prevents it."""
        if self.phase is not Phase.BUSY:
            self._reader.begin_snapshot()

    async def drain(self) -> None:
        """Until everything in the queue is answered. Nothing may be queued afterwards."""
        while self._queue or self.phase is Phase.BUSY:
            self._drained = self._loop.create_future()
            await self._drained

    def _begin(self) -> None:
        if self._slices.is_over and not self._is_put_off:
            self._is_put_off = True  # once: every turn may be long
            self._loop.call_soon(self._begin)
            return
        self._is_put_off = False
        self.phase = Phase.IDLE
        queue = self._queue
        if queue and not (queue.may_wait_for_more and self._pace.waits_for_more(len(queue))):
            # Before any of it: a snapshot that is held on to keeps the log from beginning again,
            # and does not show what is about to be committed.
            self._reader.end_snapshot()
            between = queue.take_between()
            if between is None:
                self._run_group()
            else:
                work, future = between
                self.phase = Phase.BUSY
                done = functools.partial(_end, future)
                self._thread.submit(work, functools.partial(self._finish, done))
        self.schedule()

    def _finish(self, done: Done, error: BaseException | None) -> None:
        self.phase = Phase.IDLE
        done(error)
        # In a later turn of the loop: the answers just given leave first.
        self.schedule()


def _end(future: asyncio.Future[None], error: BaseException | None) -> None:
    """End the future of work between groups."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
