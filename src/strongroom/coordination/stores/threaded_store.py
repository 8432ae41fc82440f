"""The asyncio interface of a blocking store: every call runs on a thread.

Lives here: `ThreadedStore` and its thread pools; `StoreBase`, the defaults of a store. Renewals are
writes, and a hold is lost if they are late. Writes, reads and watches therefore each have their own
pool: many waiting callers, or a slow read, cannot delay a write. Must not live here: any store, or
asyncio interfaces without threads (stores/connections/listening_aio.py, stores/memory.py).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import CasOutcome, Entry, LeaseTerms, Watched
from strongroom.coordination.errors import USED_AFTER_CLOSE, ClientClosed
from strongroom.coordination.store import AsyncStore, Promises, Store

P = ParamSpec("P")
T = TypeVar("T")
_WRITES: Final = 16
_READS: Final = 32
_WATCHES: Final = 64
_POLL_TIMEOUT_S: Final = 5.0


class StoreBase:
    """Defaults for stores: an asyncio interface on threads, and no connections to close."""

    def aio(self: Store) -> AsyncStore:
        """Return an asyncio interface that calls this store on threads."""
        return ThreadedStore(self)

    def after_fork(self) -> None:
        """Do nothing: this store has no inherited connections."""

    def close(self) -> None:
        """Do nothing: this store has nothing to close."""


class ThreadedStore:
    """The asyncio interface of a blocking store.

    Arguments:
        store: the blocking store.
        watches: how many watches may run at once, each on a thread. Any further watch is one read
            after a pause, at the store's polling interval.
    """

    def __init__(self, store: Store, watches: int = _WATCHES) -> None:
        self._store = store
        self._writes = _pool(_WRITES, "write")
        self._reads = _pool(_READS, "read")
        self._watches = _pool(watches, "watch")
        self._free_watches = threading.Semaphore(watches)
        self._clock = SystemClocks()
        self._closed = False

    async def get(self, key: str, timeout_s: float) -> Entry | None:
        return await self._run_on(self._reads, self._store.get, key, timeout_s)

    async def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        cas = self._store.cas
        return await self._run_on(self._writes, cas, key, expected, value, timeout_s, lease, note)

    async def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        return await self._run_on(self._writes, self._store.delete, key, expected, timeout_s)

    async def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        return await self._run_on(self._reads, self._store.list_keys, prefix, timeout_s)

    async def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        self._refuse_closed()
        if not self._free_watches.acquire(blocking=False):
            return await self._poll_later(key, timeout_s)
        try:
            watching = self._watches.submit(self._store.watch, key, version, timeout_s)
        except BaseException:
            self._free_watches.release()
            raise
        # The watch of a cancelled caller runs on; its thread is free only when the watch ends.
        watching.add_done_callback(lambda _: self._free_watches.release())
        return await self._outcome(watching)

    async def _poll_later(self, key: str, timeout_s: float) -> Watched:
        """Poll once instead of a watch: return the entry after a pause. A watch may end early."""
        promises = self._store.promises()
        spread_s = promises.poll_max_s - promises.poll_min_s
        pause_s = promises.poll_min_s + spread_s * self._clock.random()
        await asyncio.sleep(max(0.0, min(timeout_s, pause_s)))
        return await self.get(key, _POLL_TIMEOUT_S)

    def promises(self) -> Promises:
        return self._store.promises()

    async def close(self) -> None:
        self._closed = True
        for pool in (self._writes, self._reads, self._watches):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _run_on(
        self, pool: ThreadPoolExecutor, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        self._refuse_closed()
        return await self._outcome(pool.submit(call, *args, **kwargs))

    async def _outcome(self, running: Future[T]) -> T:
        """Wait for a call on a thread. Raises: ClientClosed: `close` came before it had begun."""
        future = asyncio.wrap_future(running)
        try:
            return await future
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._closed or (task is not None and task.cancelling()):
                raise
            # Nobody has cancelled the caller, which must not end as if somebody had.
            raise ClientClosed(USED_AFTER_CLOSE) from None

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ClientClosed(USED_AFTER_CLOSE)


def _pool(threads: int, what: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=f"coordination-{what}")
