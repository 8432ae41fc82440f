"""How a REST operation enters the table of opens, waits for the caches of others, and leaves.

Lives here: the entry of a REST operation, the facts that it depends on, its waits. Must not live
here: the tables (opens.py), rules (semantics/file/opens.py).

An operation enters before it decides, and leaves when its commit is durable or refused. Nothing is
awaited between reading a table and changing it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Final

from strongroom.engines.base import Partition
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import copies
from strongroom.semantics.file import byte_ranges, opens
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Attribute
from strongroom.semantics.file.byte_ranges import LockUse
from strongroom.semantics.file.deletion import FileFacts
from strongroom.semantics.file.opens import BreakAwaited, OpenAdmitted, OpenRefused, RestRequest
from strongroom.semantics.file.oplocks import REST_WAIT_LIMIT_S, Cause
from strongroom.services.core import timeouts
from strongroom.services.core.runner import Services
from strongroom.services.file.opens.background import wait_store_time
from strongroom.services.file.opens.opens import Opens
from strongroom.store.file.file_records import FileRecord

_READ_ONLY: Final = int(Attribute.READ_ONLY)


def facts_of(record: FileRecord, *, is_root: bool = False) -> FileFacts:
    """A file's lease in the records never expires by time alone."""
    lease = record.lease
    return FileFacts(
        is_directory=record.is_directory,
        is_read_only=bool(record.attributes & _READ_ONLY),
        is_leased=lease is not None and not lease.breaks,
        is_root=is_root,
        has_pending_copy=copies.is_pending(record.copy),
    )


class OperationEntry:
    """The entry of a REST operation. As a context manager, it leaves the table at the end. If the
    file's deletion is pending and this was its last open, the file is removed. `has_waited`: the
    operation waited for a cache to be broken, so what it read before may be stale."""

    __slots__ = ("_stack", "has_waited")

    def __init__(self, stack: ExitStack, *, has_waited: bool) -> None:
        self.has_waited = has_waited
        self._stack = stack

    def __enter__(self) -> OperationEntry:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


async def break_handle_caches_below(
    services: Services,
    generation: int,
    path: Sequence[str],
    wait: Callable[[asyncio.Future[None]], Awaitable[None]],
) -> None:
    """Make clients that cache handles below a directory close those that their users have closed.
    `wait` waits for a change of a table; it raises when that takes too long."""
    held = services.held.of(Opens)
    while True:
        changes = []
        for file in {one.partition for one in held.handles_below(generation, path)}:
            outcome = opens.break_caches_without_open(held.table(file), Cause.NAME_CHANGE)
            held.put(file, outcome.table)
            held.notify(services, file, outcome.notices)
            if isinstance(outcome, BreakAwaited):
                changes.append(held.node(file).change())
        if not changes:
            return
        await wait(changes[0])


class RestWaitLimit:
    """Limits how long a REST operation waits for all breaks together. Use it as a context manager.
    The `timeout` of the request may end the wait earlier, with the same answer."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._limit: asyncio.Task[bool] | None = None

    @property
    def has_waited(self) -> bool:
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

    def __exit__(self, *_: object) -> None:
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
    request = RestRequest(next(held.ids), operation, clears_read_only, *byte_range)
    with RestWaitLimit(services) as wait_limit:
        while True:
            outcome = opens.admit_rest(held.table(file), request, facts)
            if isinstance(outcome, OpenRefused):
                raise StorageError(outcome.row)
            held.put(file, outcome.table)
            held.notify(services, file, outcome.notices)
            if isinstance(outcome, OpenAdmitted):
                stack = ExitStack()
                stack.callback(held.remove_entry, file, request.id, facts)
                if byte_ranges.REST_LOCK_USES.get(operation) is LockUse.WRITE:
                    stack.enter_context(held.node(file).writing(*byte_range))
                return OperationEntry(stack, has_waited=wait_limit.has_waited)
            await wait_limit.until(held.node(file).change())
