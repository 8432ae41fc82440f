"""The tables of opens of this process; semantics/file/opens.py decides who may enter them.

Lives here: held state: one table for each open file or directory, the waiters for its change, the
entry of a REST operation. Must not live here: rules, records, what SMB does by handles (handles/).

An operation enters before it decides, and leaves when its commit is durable or refused. Nothing is
awaited between reading a table and changing it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from msgspec.structs import replace

from strongroom.engines.base import Key, Partition, Ref, Unavailable
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import copies
from strongroom.semantics.file import byte_ranges, deletion, durability, names, opens
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Attribute
from strongroom.semantics.file.byte_ranges import LockUse
from strongroom.semantics.file.deletion import FileFacts
from strongroom.semantics.file.opens import (
    BreakAwaited,
    OpenAdmitted,
    OpenRefused,
    OpenTable,
    RestRequest,
)
from strongroom.semantics.file.oplocks import (
    REST_WAIT_LIMIT_S,
    SMB_BREAK_LIMIT_S,
    BreakNotice,
    CachingKey,
    Cause,
    timed_out,
)
from strongroom.services.core import timeouts
from strongroom.services.core.runner import Services
from strongroom.services.core.waiting import MustWait
from strongroom.services.file.held.barriers import Barriers, WritesUnderWay
from strongroom.services.file.held.durable_handles import DurableHandles
from strongroom.services.file.held.open_handle import Handle
from strongroom.store.file.file_records import FileRecord
from strongroom.values import TICKS_PER_S

EMPTY_TABLE: Final = OpenTable()
_READ_ONLY: Final = int(Attribute.READ_ONLY)
# No record is ever stored here, so that a wait for it ends by the clock alone.
_NEVER: Final = Ref(Partition(b"!", b"timers"), Key(True, b"timer"))
_LONG_S: Final = 365 * 24 * 3600.0
# How often a gateway that is late checks whether it has store time again.
_LATE_S: Final = 0.5

Removal = Callable[[tuple[str, ...]], Coroutine[Any, Any, None]]
"""Removes the name of a file when its last open has left and its deletion is pending. The argument
is the path."""


def facts_of(record: FileRecord, *, is_root: bool = False) -> FileFacts:
    """Return the facts that admission depends on. A file's lease in the records never expires by
    time alone."""
    lease = record.lease
    return FileFacts(
        is_directory=record.is_directory,
        is_read_only=bool(record.attributes & _READ_ONLY),
        is_leased=lease is not None and not lease.breaks,
        is_root=is_root,
        has_pending_copy=copies.is_pending(record.copy),
    )


@dataclass(slots=True)
class OpenCounts:
    """Counts of byte-range locks, and of how break notices to holders of caches have ended. A
    holder that closes its handle instead of answering counts as neither `acknowledged` nor
    `timed_out`.

    Attributes:
        locks: granted locks and waiting lock requests together.
        asked: notices that need an answer.
    """

    locks: int = 0
    asked: int = 0
    acknowledged: int = 0
    timed_out: int = 0


def _locks_of(table: OpenTable) -> int:
    return len(table.locks.locks) + len(table.locks.waiting)


class Opens:
    """All tables of opens, and all handles. This state is lost when the process ends.

    Attributes:
        handles: the open handles, by id.
        reserved: bytes reserved behind a file's end, until its last open leaves.
        barriers: creations and renames under way, which opens wait for.
        writes: writes under way, which locks wait for.
        counts: counts of locks and of notices.
        durable: handles that wait for their clients to reconnect.
    """

    def __init__(self) -> None:
        self.handles: dict[int, Handle] = {}
        self.reserved: dict[Partition, int] = {}
        self.barriers = Barriers()
        self.writes = WritesUnderWay()
        self.counts = OpenCounts()
        self.durable = DurableHandles()
        self._tables: dict[Partition, OpenTable] = {}
        self._removals: dict[Partition, Removal] = {}
        self._paths: dict[Partition, tuple[str, ...]] = {}
        self._changes: dict[Partition, list[asyncio.Future[None]]] = {}
        self._granted: dict[int, asyncio.Future[None]] = {}
        self._timers: dict[tuple[Partition, CachingKey], asyncio.Task[None]] = {}
        self._leases: dict[CachingKey, Partition] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._last = byte_ranges.REST_OWNER

    def table(self, file: Partition) -> OpenTable:
        """Return the present opens of a file."""
        return self._tables.get(file, EMPTY_TABLE)

    def put(self, file: Partition, table: OpenTable) -> None:
        """Store a table that a rule has changed, and wake those who wait for a change of it."""
        before = self.table(file)
        if table == before:
            return
        self.counts.locks += _locks_of(table) - _locks_of(before)
        if table == EMPTY_TABLE:
            self._tables.pop(file, None)
            self._removals.pop(file, None)
            self._paths.pop(file, None)
            self.reserved.pop(file, None)
        else:
            self._tables[file] = table
        breaking = {one.key for one in table.holders if one.is_breaking}
        for key in [key for at, key in self._timers if at == file and key not in breaking]:
            self._timers.pop((file, key)).cancel()
        for waiter in self._changes.pop(file, ()):
            if not waiter.done():
                waiter.set_result(None)

    def change(self, file: Partition) -> asyncio.Future[None]:
        """Return a future that is done once the table of a file has changed. Call this before
        anything is awaited.

        While a disconnected handle of the file is being closed, the future is done once it is
        closed.
        """
        closing = self.durable.closing(file)
        if closing is not None:
            return closing
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters = self._changes.setdefault(file, [])
        waiters[:] = [one for one in waiters if not one.done()]
        waiters.append(waiter)
        return waiter

    def next_id(self) -> int:
        """Return an id for an operation or a waiting lock. No id is given twice."""
        self._last += 1
        return self._last

    def handles_on(self, file: Partition) -> list[Handle]:
        """Return the handles of a file or directory, oldest first."""
        entries = self.table(file).entries
        return [self.handles[one.id] for one in entries if one.id in self.handles]

    def handles_below(
        self, generation: int, path: Sequence[str], snapshot: int | None = None
    ) -> list[Handle]:
        """Return the handles on the files and directories below a directory, at any depth.

        Arguments:
            snapshot: of the share, in which the directory is; None = as it is now.
        """
        folded = [names.fold(name) for name in path]
        return [
            one
            for one in self.handles.values()
            if (one.access.generation, one.access.snapshot) == (generation, snapshot)
            and len(one.path) > len(folded)
            and all(map(names.same, one.path, folded))
        ]

    def moved(self, file: Partition, parent_id: int, path: tuple[str, ...]) -> None:
        """Give the handles of a file, or of a directory, the new path."""
        if file in self._paths:
            self._paths[file] = path
        for handle in self.handles_on(file):
            handle.parent_id, handle.path = parent_id, path

    def is_listed(self, file: Partition) -> bool:
        """Return whether List Directories and Files shows the file."""
        return deletion.is_listed(self.table(file).deletion, over_rest=True)

    def register_handle(self, handle: Handle) -> None:
        """Register a handle whose entry is in the table."""
        self.handles[handle.id] = handle
        self._paths[handle.partition] = handle.path
        if isinstance(handle.key, tuple):
            self._leases[handle.key] = handle.partition

    def leased_file(self, key: CachingKey) -> Partition | None:
        """Return the file whose opens hold this lease; None = there is none."""
        return self._leases.get(key)

    def check_not_pending(self, file: Partition) -> None:
        """Refuse a file or directory whose deletion is pending. Raises: StorageError
        SMBDeletePending."""
        refused = deletion.refusal_while_pending(self.table(file).deletion)
        if refused is not None:
            raise StorageError(refused)

    def register_removal(self, file: Partition, removal: Removal) -> None:
        """Register how a file is removed if its deletion is pending when its last open leaves."""
        self._removals[file] = removal

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work in a task of its own, which continues even if the request that began it ends."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # A waiter gets the error itself. A task without a waiter has no client left.
            task.exception()

    async def wait_for_tasks(self) -> None:
        """Return when no spawned task is running any more."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def register_lock_wait(self, wait_id: int) -> asyncio.Future[None]:
        """Return a future that is done once a waiting lock request is granted."""
        self._granted[wait_id] = asyncio.get_running_loop().create_future()
        return self._granted[wait_id]

    def forget_lock(self, wait_id: int) -> None:
        """Forget a lock request that no longer waits."""
        self._granted.pop(wait_id, None)

    def stop_break_timer(self, file: Partition, key: CachingKey) -> None:
        """Stop the timer of a notice that its holder has answered in time."""
        timer = self._timers.pop((file, key), None)
        if timer is not None:
            self.counts.acknowledged += 1
            timer.cancel()

    def wake_granted(self, wait_ids: Sequence[int]) -> None:
        """Wake the requests whose waiting locks were granted."""
        for wait_id in wait_ids:
            waiter = self._granted.get(wait_id)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def remove_entry(
        self, file: Partition, open_id: int, facts: FileFacts
    ) -> asyncio.Task[None] | None:
        """Remove an entry from its table.

        Returns: the removal of the file, if this was its last open and its deletion is pending.
        """
        gone = self.handles.pop(open_id, None)
        found = opens.leave(self.table(file), open_id, facts)
        removal, path = self._removals.get(file), self._paths.get(file, ())
        self.put(file, found.table)
        self.wake_granted(found.granted_locks)
        if gone is not None:
            self.durable.end_wait(gone)
            self.durable.forget_create(gone)
            if all(one.key != gone.key for one in self.handles_on(file)):
                self._leases.pop(gone.key, None)
        if not found.removes or removal is None:
            return None
        return self.spawn(self._remove(file, removal(path)))

    def remove_failed_open(self, file: Partition, open_id: int, facts: FileFacts) -> None:
        """Remove the entry of an open that has failed. It deletes nothing on close."""
        table = self.table(file)
        state = replace(table.deletion, on_close=table.deletion.on_close - {open_id})
        self.put(file, replace(table, deletion=state))
        self.remove_entry(file, open_id, facts)

    async def _remove(self, file: Partition, removal: Coroutine[Any, Any, None]) -> None:
        try:
            await removal
        finally:
            # Every open was refused until now. A file that could not be removed can be opened.
            self.put(file, EMPTY_TABLE)

    def notify(self, services: Services, file: Partition, notices: Sequence[BreakNotice]) -> None:
        """Send break notices to the holders of caches, and start the timers of those that need an
        answer. Handles that wait for their clients to reconnect are closed instead."""
        for notice in notices:
            holders = [one for one in self.handles_on(file) if one.key == notice.key]
            connected = [one for one in holders if one.owner is not None]
            alive = [one for one in connected if one.owner is not None and one.owner.alive]
            if alive:
                owner = alive[0].owner
                assert owner is not None, "it is alive"
                owner.notify_break(alive[0], notice)
            if not durability.survives_break(notice.to, is_anybody_connected=bool(connected)):
                for handle in holders:
                    self.durable.close_disconnected(handle)
            if notice.needs_answer and connected:
                self.counts.asked += 1
                timer = asyncio.ensure_future(self._timer(services, file, notice.key))
                timer.add_done_callback(self._finished)
                self._timers[file, notice.key] = timer

    async def _timer(self, services: Services, file: Partition, key: CachingKey) -> None:
        if not await wait_store_time(services, SMB_BREAK_LIMIT_S):
            return
        self._timers.pop((file, key), None)
        table = self.table(file)
        holder = opens.holder_of(table, key)
        if holder is not None and holder.is_breaking:
            self.counts.timed_out += 1
            self.put(file, opens.with_holder(table, timed_out(holder)))


async def wait_store_time(services: Services, seconds: float) -> bool:
    """Wait for some seconds of store time.

    A gateway that is late has no store time. The wait continues, since the gateway may serve again.

    Returns: False when the server stops before the time is over.
    """
    until: int | None = None
    while not services.waiting.is_stopping:
        try:
            if until is None:
                until = await services.store.now() + round(seconds * TICKS_PER_S)
            return await _wait_until(services, until)
        except Unavailable:
            await asyncio.sleep(_LATE_S)
    return False


async def _wait_until(services: Services, until: int) -> bool:
    async def check_time() -> None:
        now = await services.store.now()
        if now < until:
            late = StorageError(file_errors.CLIENT_CACHE_FLUSH_DELAY)
            raise MustWait(late, [(_NEVER, None)], now, until)

    try:
        await services.waiting.until_answered(_LONG_S, check_time)
    except StorageError:
        return False
    return True


class OperationEntry:
    """The entry of a REST operation. As a context manager, it leaves the table at the end.

    Attributes:
        has_waited: whether the operation waited for a cache to be broken. If so, what it read
            before may be stale.
    """

    __slots__ = ("_stack", "has_waited")

    def __init__(self, stack: ExitStack, *, has_waited: bool) -> None:
        self.has_waited = has_waited
        self._stack = stack

    def leave(self) -> None:
        """Leave the table. If the file's deletion is pending and this was its last open, the file
        is removed."""
        self._stack.close()

    def __enter__(self) -> OperationEntry:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()


async def break_handle_caches_below(
    services: Services,
    generation: int,
    path: Sequence[str],
    wait: Callable[[asyncio.Future[None]], Awaitable[None]],
) -> None:
    """Make clients that cache handles below a directory close those that their users have closed.

    Arguments:
        wait: waits for a change of a table; it raises when that takes too long.
    """
    held = services.held.of(Opens)
    while True:
        changes = []
        for file in {one.partition for one in held.handles_below(generation, path)}:
            found = opens.break_caches_without_open(held.table(file), Cause.NAME_CHANGE)
            held.put(file, found.table)
            held.notify(services, file, found.notices)
            if isinstance(found, BreakAwaited):
                changes.append(held.change(file))
        if not changes:
            return
        await wait(changes[0])


class RestWaitLimit:
    """Limits how long a REST operation waits for all breaks together. Use it as a context manager.

    The `timeout` of the request may end the wait earlier, with the same answer.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._limit: asyncio.Task[bool] | None = None

    @property
    def has_waited(self) -> bool:
        """Whether the operation had to wait for anything."""
        return self._limit is not None

    async def until(self, change: asyncio.Future[None]) -> None:
        """Wait for a change of a table. Raises: StorageError ClientCacheFlushDelay."""
        if self._limit is None:
            self._limit = asyncio.ensure_future(wait_store_time(self._services, REST_WAIT_LIMIT_S))
        with timeouts.waiting(file_errors.CLIENT_CACHE_FLUSH_DELAY):
            await asyncio.wait((change, self._limit), return_when=asyncio.FIRST_COMPLETED)
        if not change.done():
            raise StorageError(file_errors.CLIENT_CACHE_FLUSH_DELAY)

    def __enter__(self) -> RestWaitLimit:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._limit is not None:
            self._limit.cancel()


async def enter(
    services: Services,
    file: Partition,
    operation: FileOperation,
    facts: FileFacts,
    *,
    clears_read_only: bool = False,
    byte_range: tuple[int, int] = byte_ranges.WHOLE_FILE,
) -> OperationEntry:
    """Let a REST operation enter, after the breaks of caches that it has to wait for.

    Records that were read before may be stale now, since a client sends its cached writes first. So
    the caller reads them again, or its decision does.

    Arguments:
        byte_range: (offset, length) of the bytes that the operation reads or writes.

    Raises: StorageError SMBDeletePending, ReadOnlyAttribute, SharingViolation, FileLockConflict,
        ClientCacheFlushDelay.
    """
    held = services.held.of(Opens)
    request = RestRequest(held.next_id(), operation, clears_read_only, *byte_range)
    with RestWaitLimit(services) as wait_limit:
        while True:
            found = opens.admit_rest(held.table(file), request, facts)
            if isinstance(found, OpenRefused):
                raise StorageError(found.row)
            held.put(file, found.table)
            held.notify(services, file, found.notices)
            if isinstance(found, OpenAdmitted):
                stack = ExitStack()
                stack.callback(held.remove_entry, file, request.id, facts)
                if byte_ranges.REST_LOCK_USES.get(operation) is LockUse.WRITE:
                    stack.enter_context(held.writes.changing(file, *byte_range))
                return OperationEntry(stack, has_waited=wait_limit.has_waited)
            await wait_limit.until(held.change(file))
