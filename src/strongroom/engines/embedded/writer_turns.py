"""Turns on the connection that writes: one group, or one piece of work between groups, at a time.

Lives here: what waits for the connection, when its next turn begins and what for, and whether the
readers' snapshot may be kept meanwhile. Must not live here: what a group does, and what becomes of
it (group_commit.py).

Only COMMIT leaves the loop's thread, if anything: two threads that run Python would fight for the
interpreter. What arrives while a COMMIT runs waits and forms the next group.
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
from strongroom.engines.embedded.commit_thread import CommitThread, Done, Work
from strongroom.engines.embedded.futures import refuse
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.engines.embedded.serial_point import Group, QueuedWork
from strongroom.values import Purpose

GROUP_ITEMS_MAX: Final = 256
GROUP_TIME_S: Final = 0.005
# A group that has more takes no further item: the loop waits while it is handed to SQLite.
GROUP_BYTES_MAX: Final = 4 * 1024 * 1024

Between = tuple[Callable[[], object], asyncio.Future[None]]


class WorkQueue:
    """The queue of one store. On the event loop.

    Nothing waits in a queue that is closed: what waited was refused, and so is what is added.

    Attributes:
        broken: why the queue is closed; None while it is open.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._new_future = loop.create_future
        self._items: deque[QueuedWork] = deque()
        self._between: deque[Between] = deque()
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
        """Queue an item for a group; the future is for its answer."""
        future: asyncio.Future[Any] = self._new_future()
        if self.broken is None:
            self._items.append(QueuedWork(future, reads, decide, work, purpose))
        else:
            future.set_exception(self.broken)
        return future

    def add_between(self, work: Callable[[], object], first: bool) -> asyncio.Future[None]:
        """Queue work that needs the connection without a transaction. It comes before all groups.

        Arguments:
            first: before all that was queued here earlier.
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
    def may_gather(self) -> bool:
        """Whether what comes next is a group that may wait for more items."""
        return not (self._between or self._alone)

    def take_between(self) -> Between | None:
        """The next work between groups, None if a group comes next."""
        return self._between.popleft() if self._between else None

    def front(self) -> Iterator[QueuedWork]:
        """The items that the next group may have; they stay in the queue."""
        return itertools.islice(self._items, 1 if self._alone else GROUP_ITEMS_MAX)

    def take(self) -> QueuedWork:
        """The next item; a group has it from now on."""
        return self._items.popleft()

    def refuse(self, place: int, error: Exception) -> None:
        """Refuse the item at this place of the queue."""
        item = self._items[place]
        del self._items[place]
        refuse(item.future, error)

    def put_back(self, items: Sequence[QueuedWork]) -> None:
        """Queue the items of a group that did not happen before all others, to run one by one."""
        if self.broken is not None:
            for item in items:
                refuse(item.future, self.broken)
            return
        self._items.extendleft(reversed(items))
        self._alone = max(len(items), self._alone)

    def done(self, count: int) -> None:
        """So many items were taken and answered."""
        self._alone = max(0, self._alone - count)

    def close(self, error: EngineError) -> None:
        """Refuse everything, now and from now on."""
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

    def gathers_on(self, count: int) -> bool:
        """Whether the next group waits one more turn of the loop.

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
        """By when a phase of a group ends that begins now, by the clock of `time`."""
        return self.time() + GROUP_TIME_S


class Phase(enum.Enum):
    """What the connection does."""

    IDLE = enum.auto()
    """Nothing; nothing waits."""
    SCHEDULED = enum.auto()
    """Nothing yet: a turn begins with the next turn of the event loop."""
    BUSY = enum.auto()
    """It is lent to the commit thread."""


class WriterTurns:
    """The turns of one store. On the event loop.

    Arguments:
        thread: runs commits, and the work between groups.
        reader: the connection of small reads, which keeps its snapshot while nothing is under way.
        run_group: runs the next group, and may end it with `commit`.

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
    ) -> None:
        self._queue = queue
        self._pace = pace
        self._thread = thread
        self._reader = reader
        self._run_group = run_group
        self._loop = asyncio.get_running_loop()
        self._drained: asyncio.Future[None] | None = None
        self.phase = Phase.IDLE

    def schedule(self) -> None:
        """Have what waits run, if the connection is idle."""
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
            done: told of its error, or None, before anything else begins.
        """
        self.phase = Phase.BUSY
        self._thread.commit(work, functools.partial(self._over, done))

    def hold_reader(self) -> None:
        """Have the reader keep its snapshot until something is under way, if nothing is: until then
        nothing changes."""
        if self.phase is not Phase.BUSY:
            self._reader.hold()

    async def drain(self) -> None:
        """Return when everything that was queued is answered. Nothing is queued after this."""
        while self._queue or self.phase is Phase.BUSY:
            self._drained = self._loop.create_future()
            await self._drained

    def _begin(self) -> None:
        self.phase = Phase.IDLE
        queue = self._queue
        if queue and not (queue.may_gather and self._pace.gathers_on(len(queue))):
            # Before any of it: a snapshot that is held on to keeps the log from beginning again,
            # and does not show what is about to be committed.
            self._reader.let_go()
            between = queue.take_between()
            if between is None:
                self._run_group()
            else:
                work, future = between
                self.phase = Phase.BUSY
                done = functools.partial(_end, future)
                self._thread.submit(work, functools.partial(self._over, done))
        self.schedule()

    def _over(self, done: Done, error: BaseException | None) -> None:
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
