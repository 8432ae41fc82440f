"""Group commit: decisions run on the event loop in the open transaction; one sync answers many.

Lives here: the transaction of a group, its commit, and the reaction to errors of the disk. Must not
live here: the queue, and when a group begins (writer_turns.py), the decisions (serial_point.py),
how space is made on a full disk (full_disk.py).

Groups are serial, so a refusal leaves only after everything that it saw is durable.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import apsw

from strongroom.engines.base import (
    CommitUnknown,
    DataDamaged,
    Decide,
    EngineError,
    Full,
    Ref,
)
from strongroom.engines.embedded.commit.commit_thread import CommitThread
from strongroom.engines.embedded.commit.full_disk import FullDisk
from strongroom.engines.embedded.commit.serial_point import Bodies, Group, SerialPoint
from strongroom.engines.embedded.commit.store_life import StoreLife
from strongroom.engines.embedded.commit.store_time import DurableTime
from strongroom.engines.embedded.commit.writer_turns import (
    GROUP_BYTES_MAX,
    GROUP_ROWS_MAX,
    GroupPace,
    Phase,
    WorkQueue,
    WriterTurns,
)
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import (
    is_damage,
    record_name,
    unreadable,
)
from strongroom.engines.embedded.records.database_space import DatabaseFileSpace
from strongroom.engines.embedded.records.record_cache import RecordCache
from strongroom.engines.embedded.records.sqlite import Reader, Writer
from strongroom.engines.embedded.space.reserve import Reserve
from strongroom.engines.watchers import Watchers
from strongroom.slices import SliceTurns
from strongroom.values import Purpose

T = TypeVar("T")

_log = logging.getLogger(__name__)


class GroupTransaction:
    """The transaction of one group at a time: its phases, and the state that its commit or rollback
    settles. That state is store time, room in the database's file, contents and cached records.
    Used on the event loop.

    A group is begun with `new_group` and filled. It ends with `prepare` and a commit, after which
    `committed` or `forget` is called, or with `roll_back`.
    """

    def __init__(
        self,
        writer: Writer,
        time: DurableTime,
        cache: RecordCache,
        bodies: Bodies,
        reserve: Reserve,
        pace: GroupPace,
    ) -> None:
        self._writer = writer
        self._time = time
        self._cache = cache
        self._bodies = bodies
        self._pace = pace
        self._file_space = DatabaseFileSpace(writer.connection, PAGE_BYTES)
        self._point = SerialPoint(writer, time, cache, bodies, reserve)

    def new_group(self) -> Group:
        return Group(self._time.now())

    def fill(self, group: Group, queue: WorkQueue) -> None:
        """Open the transaction, and run queued items in it, as many as the group may have.

        Raises: apsw.FullError: something did not fit; apsw.Error, OSError: the store is broken;
            any other exception is the fault of one item. DataDamaged: a page is damaged that the
            group needs; an item that was to be refused for it has been.
        """
        try:
            self._writer.begin()
            self._take(self._look_up(group, queue), group, queue)
            self._point.finish(group)
            if group.wrote:
                self._file_space.extend()
        except apsw.IOError as error:
            if is_damage(error):
                raise unreadable(error, _touched(group)) from error
            raise

    def _look_up(self, group: Group, queue: WorkQueue) -> int:
        """Look up the records that the items at the front will see. Return for how many items that
        is done."""
        count, time, deadline = 0, self._pace.time, self._pace.deadline()
        for item in queue.next_items():
            try:
                self._point.look_up(item, group)
            except (apsw.Error, OSError):
                raise
            except DataDamaged as error:
                # SQLite has rolled back before anything was decided, so the others are redone.
                queue.refuse(count, error)
                raise
            except Exception as error:  # what SQLite cannot look for: its decision's own fault
                if not count:
                    queue.refuse(count, error)
                break
            count += 1
            if time() > deadline:
                break
        return count

    def _take(self, count: int, group: Group, queue: WorkQueue) -> None:
        """As long as the group keeps its bounds."""
        time, deadline = self._pace.time, self._pace.deadline()
        for _ in range(count):
            item = queue.take()
            if item.future.done():  # its caller has gone away
                continue
            self._point.take(item, group)
            if group.size_bytes > GROUP_BYTES_MAX or group.rows > GROUP_ROWS_MAX:
                break
            if time() > deadline:
                break

    def purpose(self, group: Group) -> Purpose:
        return self._point.purpose(group)

    def prepare(self, group: Group) -> None:
        """Bar the changed records from the cache while the commit runs."""
        self._cache.begin_commit(group.changed)

    def committed(self, group: Group) -> None:
        """Call it when the commit is durable."""
        self._cache.end_commit(group.changed)
        self._time.end_transaction(durable=True)
        self._file_space.end_transaction(durable=True)
        self._bodies.adoption_committed(group.adopted, group.live)

    def discard(self, group: Group) -> None:
        """The transaction ended or failed, without a commit."""
        self._cache.end_commit({})
        self._time.end_transaction(durable=False)
        self._file_space.end_transaction(durable=False)
        self._bodies.adoption_rolled_back(group.adopted)

    def roll_back(self, group: Group) -> None:
        """Raises apsw.Error: the store is broken."""
        try:
            self._writer.rollback()
        finally:
            self.discard(group)


class CommitObserver(Protocol):
    """Observes the commits that write, one after the other, on the event loop."""

    def begins(self, results: Iterable[asyncio.Future[Any]]) -> None:
        """The sync to the disk is a part of it.

        Arguments:
            results: of the updates that it makes durable.
        """
        ...

    def ended(self, error: BaseException | None) -> None:
        """Note that the commit has ended, with an error or None."""
        ...


class Committer:
    """The commits of an embedded store. Used on the event loop.

    Attributes:
        observer: is told of each commit; None = nobody is.
        full_disk: the measures on a full disk.
        turns: the uses of the writing connection.

    Arguments:
        writer: the writing connection, lent to `thread` during COMMIT.
        reader: the connection of small reads, which keeps its snapshot while nothing is under way.
        life: whether the store serves; an error of a commit stops it.
        slices: the time slices of the loop, which a group keeps to.
        on_committed: called with this committer after every durable commit that wrote; it may start
            a checkpoint.
    """

    def __init__(
        self,
        writer: Writer,
        thread: CommitThread,
        time: DurableTime,
        watchers: Watchers,
        life: StoreLife,
        *,
        cache: RecordCache,
        reader: Reader,
        bodies: Bodies,
        reserve: Reserve,
        slices: SliceTurns,
        on_committed: Callable[[Committer], None],
    ) -> None:
        self.observer: CommitObserver | None = None
        self._commit = writer.commit
        self._times = thread.times
        self._watchers = watchers
        self._on_committed = on_committed
        self._life = life
        loop = asyncio.get_running_loop()
        pace = GroupPace(loop.time)
        self._queue = WorkQueue(loop)
        self._transaction = GroupTransaction(writer, time, cache, bodies, reserve, pace)
        self.turns = WriterTurns(self._queue, pace, thread, reader, self._run_group, slices)
        self.full_disk = FullDisk(writer, reserve, self.between_groups, life.fail)
        life.on_failure(self._store_stopped)

    @property
    def broken(self) -> EngineError | None:
        """None while the store serves."""
        return self._life.broken

    def decide(
        self, reads: Sequence[Ref], decide: Decide[T], purpose: Purpose = Purpose.GROWTH
    ) -> asyncio.Future[T]:
        """The future gets its result as soon as the commit is durable."""
        future = self._queue.add(reads, decide, None, purpose)
        self.turns.schedule()
        return future

    def work(self, work: Callable[[Group], T]) -> asyncio.Future[T]:
        """Queue writes of the engine itself, which may use the whole reserve. They must be
        idempotent, because they may run twice."""
        future = self._queue.add((), None, work, Purpose.FREEING)
        self.turns.schedule()
        return future

    def between_groups(
        self, work: Callable[[], object], first: bool = False
    ) -> asyncio.Future[None]:
        """Run `work` on the commit thread while no transaction is open.

        Arguments:
            first: run it before the work that was queued here earlier.
        """
        future = self._queue.add_between(work, first)
        self.turns.schedule()
        return future

    async def wait_for_decisions(self) -> None:
        """Wait until the decisions made so far are committed or refused. Queued items get their
        stamps later. Raises Unavailable."""
        if self.turns.phase is Phase.BUSY:
            await self.between_groups(_nothing)

    async def drain(self) -> None:
        """Until everything in the queue is answered. Nothing may be queued afterwards."""
        self.full_disk.stop()
        await self.turns.drain()

    def _store_stopped(self, broken: EngineError) -> None:
        self._queue.close(broken)
        self.full_disk.stop()
        self._watchers.wake_all()

    def _run_group(self) -> None:
        group = self._transaction.new_group()
        try:
            self._transaction.fill(group, self._queue)
        except (apsw.Error, OSError) as error:
            if isinstance(error, apsw.FullError):
                self._undo(group, error)
            else:
                self._stop(group, error)
        except Exception as error:  # a damaged page, or a value that SQLite cannot hold
            self._undo(group, error)
        else:
            self._end(group)

    def _end(self, group: Group) -> None:
        if group.wrote:
            self._transaction.prepare(group)
            if self.observer is not None:
                self._tell(lambda observer: observer.begins(item.future for item in group.items))
            self.turns.commit(self._commit, functools.partial(self._ended, group))
            return
        try:
            self._transaction.roll_back(group)
        except apsw.Error as error:
            self._stop(group, error)
            return
        self._answer(group)

    def _ended(self, group: Group, error: BaseException | None) -> None:
        """Answer or undo the group."""
        if self.observer is not None:
            self._tell(lambda observer: observer.ended(error))
        if error is None:
            self._transaction.committed(group)
            self._times.decisions += len(group.items)
            self._answer(group)
            if group.changed:
                self._watchers.notify(group.changed)
            self._on_committed(self)
        elif isinstance(error, apsw.FullError):
            # SQLite has not written the frame that commits, and rolls back.
            self._undo(group, error)
        else:
            self._transaction.discard(group)
            group.refuse(CommitUnknown(f"an I/O error left the commit's outcome unknown: {error}"))
            self._life.fail(error if isinstance(error, Exception) else RuntimeError(error))

    def _tell(self, event: Callable[[CommitObserver], None]) -> None:
        """No fault of the observer may delay a commit."""
        if self.observer is None:
            return
        try:
            event(self.observer)
        except Exception:
            _log.exception("the observer of commits failed")

    def _answer(self, group: Group) -> None:
        group.answer()
        self._queue.done(len(group.items))

    def _undo(self, group: Group, error: Exception) -> None:
        """Undo a group of which nothing was committed. A single item is refused if the error is its
        own fault. Otherwise the items run again, one by one."""
        try:
            self._transaction.roll_back(group)
            fault = self._make_space(group) if isinstance(error, apsw.FullError) else error
        except apsw.Error as broken:
            self._stop(group, broken)
            return
        # The store may have been stopped meanwhile, by a sync that failed elsewhere.
        if len(group.items) == 1 and fault is not None and self.broken is None:
            group.refuse(fault)
            self._queue.done(1)
        else:
            self._queue.put_back(group.items)

    def _make_space(self, group: Group) -> Exception | None:
        """Return the error of a group that did not fit; None if space is being made for its item.

        Raises: apsw.Error.
        """
        if len(group.items) != 1:
            return Full(Purpose.GROWTH)
        try:
            purpose = self._transaction.purpose(group)
        except DataDamaged as error:
            return error
        is_made = self.full_disk.make_space_for(group.items[0], purpose)
        return None if is_made else Full(purpose)

    def _stop(self, group: Group, error: Exception) -> None:
        """A group whose commit had not begun is refused."""
        self._transaction.discard(group)
        self._life.fail(error)
        self._queue.put_back(group.items)


def _nothing() -> None:
    """The work of callers that only wait for their place between groups."""


def _touched(group: Group) -> str:
    """The first few records that a group changes, for the log."""
    names = [record_name(ref) for ref in itertools.islice(group.changed, 3)]
    return f"what is needed to write the {', '.join(names) or 'place of a content'}"
