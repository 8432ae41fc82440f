"""All files and directories of this process that are open; semantics/file/opens.py has the rules.

What is kept for one file is in open_node.py, the entry of a REST operation in admission.py.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from strongroom.engines.base import Partition
from strongroom.errors.core import StorageError
from strongroom.semantics.file import byte_ranges, deletion, durability, names, opens
from strongroom.semantics.file.deletion import FileFacts
from strongroom.semantics.file.opens import OpenTable
from strongroom.semantics.file.oplocks import (
    SMB_BREAK_LIMIT_S,
    BreakNotice,
    CachingHolder,
    CachingKey,
    timed_out,
)
from strongroom.services.core.runner import Services
from strongroom.services.file.opens import caches
from strongroom.services.file.opens.background import BackgroundTasks, wait_store_time
from strongroom.services.file.opens.caches import OpenCounts
from strongroom.services.file.opens.durable_handles import DurableHandles
from strongroom.services.file.opens.open_handle import Handle
from strongroom.services.file.opens.open_node import EMPTY_TABLE, OpenNode, Removal
from strongroom.store.core import keys


class _Barrier(NamedTuple):
    end: asyncio.Future[None]
    above: Collection[Hashable]


class Barriers:
    """Names that are being created, and files and directories that are being renamed."""

    def __init__(self) -> None:
        self._barriers: dict[Hashable, _Barrier] = {}

    def blocking(self, keys: Sequence[Hashable]) -> asyncio.Future[None] | None:
        """The end of a creation or rename of one of these keys; None = an open need not wait."""
        return next((self._barriers[key].end for key in keys if key in self._barriers), None)

    def creating_below(self, directory: Hashable) -> asyncio.Future[None] | None:
        """The end of a creation below a directory, whose handle is not open yet; None = there is
        none."""
        return next((one.end for one in self._barriers.values() if directory in one.above), None)

    def block(self, key: Hashable, above: Collection[Hashable] = ()) -> Callable[[], None]:
        """Make opens wait until the returned function is called. `above`: of a creation, the
        directories above it."""
        assert key not in self._barriers, "ask blocking() first"
        end = asyncio.get_running_loop().create_future()
        self._barriers[key] = _Barrier(end, above)

        def lift() -> None:
            del self._barriers[key]
            end.set_result(None)

        return lift


class Opens:
    """All files and directories that are open, and all handles. This state is lost when the process
    ends.

    Attributes:
        handles: the open handles, by id.
        leases: the file that each lease is of.
        ids: of operations and of waiting locks. No id is given twice.
        barriers: creations and renames under way, which opens wait for.
        counts: counts of locks and of notices.
        durable: handles that wait for their clients to reconnect.
        tasks: closes and removals under way.
    """

    def __init__(self) -> None:
        self.handles: dict[int, Handle] = {}
        self.leases: dict[CachingKey, Partition] = {}
        self.ids = itertools.count(byte_ranges.REST_OWNER + 1)
        self.barriers = Barriers()
        self.counts = OpenCounts()
        self.durable = DurableHandles()
        self.tasks = BackgroundTasks()
        self._nodes: dict[Partition, OpenNode] = {}

    # The tables.

    def node(self, file: Partition) -> OpenNode:
        """Raises: KeyError when the file is not open."""
        return self._nodes[file]

    def table(self, file: Partition) -> OpenTable:
        node = self._nodes.get(file)
        return EMPTY_TABLE if node is None else node.table

    def open_among(self, generations: Iterable[int]) -> set[int]:
        """Return the shares of which a file or directory is open, or is being closed or removed."""
        found, wanted = set(), {keys.files(one): one for one in generations}
        for file in self._nodes:
            if not wanted:
                break
            if (generation := wanted.pop(file.keyspace, None)) is not None:
                found.add(generation)
        return found

    def reserved_bytes(self, file: Partition) -> int:
        """How many bytes are reserved behind a file's end."""
        node = self._nodes.get(file)
        return 0 if node is None else node.reserved_bytes

    def put(self, file: Partition, table: OpenTable, granted: Sequence[int] = ()) -> None:
        """Store a table that a rule has changed, and wake those who wait for a change of it.

        This alone begins and ends an `OpenNode`: it exists as long as its table is not empty.
        `granted`: the lock requests that are granted by the change.
        """
        before = self.table(file)
        if table == before:
            return
        self.counts.locks += _lock_count(table) - _lock_count(before)
        node = self._nodes.pop(file, None) or OpenNode()
        if table != EMPTY_TABLE:
            self._nodes[file] = node
        node.put(table, granted)

    def check_not_pending(self, file: Partition) -> None:
        """Refuse a file or directory whose deletion is pending, with SMBDeletePending."""
        refused = deletion.refusal_while_pending(self.table(file).deletion)
        if refused is not None:
            raise StorageError(refused)

    def is_listed(self, file: Partition) -> bool:
        """Whether List Directories and Files shows the file."""
        return deletion.is_listed(self.table(file).deletion, over_rest=True)

    # Handles, and the end of an open.

    def register_handle(self, handle: Handle, removal: Removal) -> None:
        """Its entry is in the table. `removal` removes the file if its deletion is pending when its
        last open leaves."""
        node = self.node(handle.partition)
        node.path, node.removal = handle.path, removal
        self.handles[handle.id] = handle
        if isinstance(handle.key, tuple):
            self.leases[handle.key] = handle.partition

    def handles_on(self, file: Partition) -> list[Handle]:
        """Oldest first."""
        entries = self.table(file).entries
        return [self.handles[one.id] for one in entries if one.id in self.handles]

    def handles_below(
        self, generation: int, path: Sequence[str], snapshot: int | None = None
    ) -> list[Handle]:
        """The handles below a directory, at any depth. `snapshot`: of the share, in which the
        directory is; None = as it is now."""
        folded = [names.fold(name) for name in path]
        return [
            one
            for one in self.handles.values()
            if (one.access.generation, one.access.snapshot) == (generation, snapshot)
            and len(one.path) > len(folded)
            and all(map(names.same, one.path, folded))
        ]

    def moved(self, file: Partition, parent_id: int, path: tuple[str, ...]) -> None:
        if file in self._nodes:
            self._nodes[file].path = path
        for handle in self.handles_on(file):
            handle.move(parent_id, path)

    def remove_entry(
        self, file: Partition, open_id: int, facts: FileFacts
    ) -> asyncio.Task[None] | None:
        """Returns: the removal of the file, if this was its last open and its deletion is
        pending."""
        node, handle = self.node(file), self.handles.pop(open_id, None)
        departure = opens.leave(node.table, open_id, facts)
        self.put(file, departure.table, departure.granted_locks)
        if handle is not None:
            self.durable.end_wait(handle)
            self.durable.forget_create(handle)
            is_last = all(one.key != handle.key for one in self.handles_on(file))
            if is_last and self.leases.get(handle.key) == file:
                del self.leases[handle.key]
        if not departure.removes or node.removal is None:
            return None
        return self.tasks.spawn(self._remove(file, node.removal(node.path)))

    def remove_failed_open(self, file: Partition, open_id: int, facts: FileFacts) -> None:
        """It deletes nothing on close."""
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

    # Breaks of caches.

    def notify(self, services: Services, file: Partition, notices: Sequence[BreakNotice]) -> None:
        """Send break notices to the holders of caches, and start the timers of those that need an
        answer. Handles that wait for their clients to reconnect are closed instead."""
        for notice in notices:
            holders = [one for one in self.handles_on(file) if one.key == notice.key]
            is_connected = caches.send(notice, holders)
            if not durability.survives_break(notice.to, is_anybody_connected=is_connected):
                for handle in holders:
                    self.durable.close_disconnected(handle)
            if notice.needs_answer and is_connected:
                self.counts.asked += 1
                limit = self._end_break(services, file, notice.key)
                self.node(file).timers.start(notice.key, limit)

    async def _end_break(self, services: Services, file: Partition, key: CachingKey) -> None:
        """Take the cache of a holder that does not answer in time."""
        if not await wait_store_time(services, SMB_BREAK_LIMIT_S):
            return
        holder = opens.holder_of(self.table(file), key)
        if holder is not None and holder.is_breaking:
            self.counts.timed_out += 1
            self.put(file, opens.with_holder(self.table(file), timed_out(holder)))

    def answered(self, file: Partition, holder: CachingHolder) -> None:
        """Store the holder of a cache after it has answered a notice."""
        if self.node(file).timers.stop(holder.key):
            self.counts.acknowledged += 1
        self.put(file, opens.with_holder(self.table(file), holder))


def _lock_count(table: OpenTable) -> int:
    return len(table.locks.locks) + len(table.locks.waiting)
