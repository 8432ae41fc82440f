"""Group commit: decisions run on the event loop in the open transaction; one sync answers many.

Lives here: the queue, which items make a group, its answers, and what happens when the disk
breaks. Must not live here: what is decided of (serial_point.py), how space is made on a full
disk (full_disk.py), threads (commit_thread.py).

Only COMMIT leaves the loop's thread, if anything: two threads that run Python would fight for the
interpreter.
What arrives while a COMMIT runs waits and forms the next group. Groups are serial, so a refusal
leaves only after everything that it saw is durable.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import apsw

from strongroom.engines.base import (
    COMMIT_BYTES_MAX,
    CommitUnknown,
    DataDamaged,
    Decide,
    EngineError,
    Full,
    Ref,
    Unavailable,
)
from strongroom.engines.embedded.commit_thread import CommitThread
from strongroom.engines.embedded.full_disk import FullDisk
from strongroom.engines.embedded.records.checksummed_pages import (
    PAGE_BYTES,
    is_damage,
    record_name,
    unreadable,
)
from strongroom.engines.embedded.records.database_room import DatabaseRoom
from strongroom.engines.embedded.records.record_cache import RecordCache
from strongroom.engines.embedded.records.sqlite import Reader, Writer
from strongroom.engines.embedded.reserve import Reserve
from strongroom.engines.embedded.serial_point import Bodies, Group, QueuedWork, SerialPoint
from strongroom.engines.embedded.store_time import DurableTime
from strongroom.engines.watchers import Watchers
from strongroom.values import Purpose

T = TypeVar("T")

_log = logging.getLogger(__name__)

GROUP_ITEMS_MAX: Final = 256
GROUP_TIME_S: Final = 0.005
GROUP_BYTES_MAX: Final = 4 * COMMIT_BYTES_MAX


class Committer:
    """The queue in front of the serial point of an embedded store. On the event loop.

    Attributes:
        full_disk: what is done on a full disk.

    Arguments:
        writer: the writing connection, lent to `thread` during COMMIT.
        reader: the connection of small reads, which keeps its snapshot while nothing is under way.
        on_committed: told after every durable commit that wrote (checkpoints hang on it).
        on_broken: told once, when an I/O error has stopped the engine.
    """

    def __init__(
        self,
        writer: Writer,
        thread: CommitThread,
        time: DurableTime,
        watchers: Watchers,
        *,
        cache: RecordCache,
        reader: Reader,
        bodies: Bodies,
        reserve: Reserve,
        on_committed: Callable[[], None],
        on_broken: Callable[[EngineError], None],
    ) -> None:
        self._writer = writer
        self._thread = thread
        self._time = time
        self._watchers = watchers
        self._cache = cache
        self._reader = reader
        self._bodies = bodies
        self._room = DatabaseRoom(writer.connection, PAGE_BYTES)
        self._point = SerialPoint(writer, time, cache, bodies, reserve)
        self._on_committed = on_committed
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._queue: deque[QueuedWork] = deque()
        self._between: deque[tuple[Callable[[], object], asyncio.Future[None]]] = deque()
        self._scheduled = False
        self._gathering = _Gathering(self._loop.time)
        self._committing = False
        self._alone = 0  # how many items from the front run in groups of one
        self.broken: EngineError | None = None
        self._idle: asyncio.Future[None] | None = None
        self.full_disk = FullDisk(writer, reserve, self.between_groups, self.fail)

    def decide(
        self, reads: Sequence[Ref], decide: Decide[T], purpose: Purpose = Purpose.GROWTH
    ) -> asyncio.Future[T]:
        """Queue a decision; the future has its result when that is durable."""
        return self._add(reads, decide, None, purpose)

    def work(self, work: Callable[[Group], T]) -> asyncio.Future[T]:
        """Queue the engine's own writes. They may use the whole reserve. They may run twice, so
        they must be idempotent."""
        return self._add((), None, work, Purpose.FREEING)

    def between_groups(
        self, work: Callable[[], object], first: bool = False
    ) -> asyncio.Future[None]:
        """Run `work` on the commit thread while no transaction is open.

        Arguments:
            first: before all that was queued here earlier.
        """
        future: asyncio.Future[None] = self._loop.create_future()
        if self.broken is not None:
            future.set_exception(self.broken)
            return future
        self._between.insert(0 if first else len(self._between), (work, future))
        self._schedule()
        return future

    async def decided(self) -> None:
        """Return when the decisions made so far are committed or refused. What is queued gets its
        stamp later. Raises Unavailable."""
        if self._committing:
            await self.between_groups(_nothing)

    def hold_reader(self) -> None:
        """Have the reader keep its snapshot until something is under way, if nothing is: until then
        nothing changes."""
        if not self._committing:
            self._reader.hold()

    async def drain(self) -> None:
        """Return when everything that was queued is answered. Nothing is queued after this."""
        self.full_disk.stop()
        while (self._queue or self._between or self._committing) and self.broken is None:
            self._idle = self._loop.create_future()
            await self._idle

    def fail(self, error: Exception, attempted: Group | None = None) -> None:
        """Stop for good: an I/O error leaves unknown what the disk holds. Recovery decides."""
        if attempted is not None:
            unknown = CommitUnknown(f"an I/O error left the commit's outcome unknown: {error}")
            for item in attempted.items:
                _refuse(item.future, unknown)
        first = self.broken is None
        self.broken = self.broken or Unavailable(
            f"the store has stopped after an I/O error: {error}"
        )
        for item in self._queue:
            _refuse(item.future, self.broken)
        for _, future in self._between:
            _refuse(future, self.broken)
        self._queue.clear()
        self._between.clear()
        self.full_disk.stop()
        self._wake_drain()
        if first:
            _log.critical("the store stops: %s", error)
            self._watchers.wake_all()
            self._on_broken(self.broken)

    def _add(
        self,
        reads: Sequence[Ref],
        decide: Decide[Any] | None,
        work: Callable[[Group], Any] | None,
        purpose: Purpose,
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        if self.broken is not None:
            future.set_exception(self.broken)
            return future
        self._queue.append(QueuedWork(future, reads, decide, work, purpose))
        self._schedule()
        return future

    def _schedule(self) -> None:
        if not (self._queue or self._between):
            self._wake_drain()
        elif not (self._scheduled or self._committing):
            self._scheduled = True
            # Not at once: what is ready to run now can still join the group.
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        self._scheduled = False
        if self._committing or self.broken is not None:
            return
        can_wait = not (self._between or self._alone)
        if can_wait and self._gathering.goes_on(len(self._queue)):
            self._schedule()
            return
        # Before any of it: a snapshot that is held on to keeps the log from beginning again, and
        # does not show what is about to be committed.
        self._reader.let_go()
        if self._between:
            work, future = self._between.popleft()
            self._committing = True
            self._thread.submit(work, lambda error: self._between_done(future, error))
        elif self._queue:
            self._gathering.seen = 1
            self._run_group()

    def _between_done(self, future: asyncio.Future[None], error: BaseException | None) -> None:
        self._committing = False
        if not future.done():
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
        self._schedule()

    def _run_group(self) -> None:
        group = Group(self._time.now())
        try:
            self._writer.begin()
            self._fill(group)
        except apsw.FullError:
            self._full(group)
        except (apsw.Error, OSError) as error:
            if isinstance(error, apsw.IOError) and is_damage(
                error
            ):  # only items that need the damaged page are refused
                self._redo(group, unreadable(error, _touched(group)))
            else:
                self._roll_back_broken(group, error)
        except Exception as error:  # a value that SQLite cannot hold: its decision's own fault
            self._redo(group, error)
        else:
            self._end(group)

    def _fill(self, group: Group) -> None:
        deadline = self._loop.time() + GROUP_TIME_S
        count = 0
        for item in itertools.islice(self._queue, 1 if self._alone else GROUP_ITEMS_MAX):
            try:
                self._point.look_up(item, group)
            except (apsw.Error, OSError):
                raise
            except DataDamaged as error:
                # SQLite has rolled back before anything was decided, so the others are redone.
                del self._queue[count]
                _refuse(item.future, error)
                raise
            except Exception as error:  # what SQLite cannot look for: its decision's own fault
                if not count:
                    self._queue.popleft()
                    _refuse(item.future, error)
                break
            count += 1
            if self._loop.time() > deadline:
                break
        deadline = self._loop.time() + GROUP_TIME_S
        for _ in range(count):
            item = self._queue.popleft()
            if item.future.done():  # its caller has gone away
                continue
            self._point.take(item, group)
            if group.size_bytes > GROUP_BYTES_MAX or self._loop.time() > deadline:
                break
        self._point.finish(group)
        if group.wrote:
            self._room.make()

    def _end(self, group: Group) -> None:
        if group.wrote:
            self._committing = True
            self._cache.bar(group.changed)
            self._thread.commit(self._writer.commit, functools.partial(self._ended, group))
            return
        try:
            self._writer.rollback()
        except apsw.Error as error:
            self._roll_back_broken(group, error)
            return
        self._answer(group)
        self._next(group)

    def _ended(self, group: Group, error: BaseException | None) -> None:
        self._committing = False
        self._cache.lift(group.changed if error is None else {})
        if error is None:
            self._time.settle(durable=True)
            self._room.settle(durable=True)
            self._bodies.settle(group.adopted, group.live)
            self._answer(group)
            if group.changed:
                self._watchers.notify(group.changed)
            self._on_committed()
            self._next(group)
        elif isinstance(error, apsw.FullError):
            # SQLite has not written the frame that commits, and rolls back.
            self._full(group)
        else:
            self._forget(group)
            self.fail(error if isinstance(error, Exception) else RuntimeError(error), group)

    def _answer(self, group: Group) -> None:
        for future, result, refusal in group.answers:
            if future.done():
                continue
            if refusal is None:
                future.set_result(result)
            else:
                future.set_exception(refusal)

    def _next(self, group: Group) -> None:
        self._alone = max(0, self._alone - len(group.items))
        # Later in this turn of the loop: the answers just given leave first.
        self._schedule()

    def _forget(self, group: Group) -> None:
        self._time.settle(durable=False)
        self._room.settle(durable=False)
        self._bodies.unsettle(group.adopted)

    def _roll_back_broken(self, group: Group, error: Exception) -> None:
        self._forget(group)
        self._queue.extendleft(reversed(group.items))
        self.fail(error)

    def _redo(self, group: Group, error: Exception, again: bool = False) -> None:
        """Nothing of the group happened: run its items one by one, then refuse the one at fault."""
        try:
            self._writer.rollback()
        except apsw.Error as broken:
            self._roll_back_broken(group, broken)
            return
        self._forget(group)
        if self.broken is not None:  # by a sync that failed elsewhere, meanwhile
            for item in group.items:
                _refuse(item.future, self.broken)
            self._wake_drain()
            return
        if len(group.items) == 1 and not again:
            _refuse(group.items[0].future, error)
            self._next(group)
            return
        self._queue.extendleft(reversed(group.items))
        self._alone = max(len(group.items), self._alone)
        self._schedule()

    def _full(self, group: Group) -> None:
        """As `_redo`, but a group of one item is retried if room can be made for it."""
        purpose, is_retried = Purpose.GROWTH, False
        try:
            self._writer.rollback()
            if len(group.items) == 1:
                purpose = self._point.purpose(group)
                is_retried = self.full_disk.make_space_for(group.items[0], purpose)
        except apsw.Error as error:
            self._roll_back_broken(group, error)
            return
        except DataDamaged as error:  # what the item is for depends on a damaged record
            self._redo(group, error)
            return
        self._redo(group, Full(purpose), again=is_retried)

    def _wake_drain(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)


class _Gathering:
    """Whether a group waits for more items: a sync for many costs little more than one for few.

    Attributes:
        seen: how many waited a turn of the loop ago; 1 when a group begins to gather.
    """

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._until = 0.0
        self.seen = 1

    def goes_on(self, count: int) -> bool:
        """Whether another turn of the loop may bring more than the `count` items that wait, as the
        last one did, and not too late."""
        if not self.seen < count < GROUP_ITEMS_MAX:
            return False
        now = self._time()
        if self.seen == 1:
            self._until = now + GROUP_TIME_S
        self.seen = count
        return now <= self._until


def _touched(group: Group) -> str:
    """The first few records that a group changes, for the log."""
    names = [record_name(ref) for ref in itertools.islice(group.changed, 3)]
    return f"what is needed to write the {', '.join(names) or 'place of a content'}"


def _nothing() -> None:
    """Work for `between_groups` of those who only wait for its turn."""


def _refuse(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
