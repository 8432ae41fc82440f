"""A store in this process's memory, for tests and for the threads and tasks of one process.

Lives here: `MemoryStore` and its asyncio interface, which uses no threads. Must not live here: the
semantics (registers.py).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.effects import (
    UNCHANGED,
    CasOutcome,
    Entry,
    LeaseTerms,
    Watched,
)
from strongroom.coordination.errors import Unsupported
from strongroom.coordination.options.url_options import UrlOptions, check_options
from strongroom.coordination.store import AsyncStore, Promises
from strongroom.coordination.stores.registers import Registers
from strongroom.coordination.stores.threaded_store import StoreBase

_OPTIONS: Final = UrlOptions({"lease": ("server",)})
_named: dict[str, MemoryStore] = {}
_naming = threading.Lock()


class MemoryStore(StoreBase):
    """A store that one lock makes linearizable; watches are pushed.

    Arguments:
        clock: the clock of leases.
        server_lease: end holds by the store's own clock, as some real stores do.
    """

    def __init__(self, clock: Clocks | None = None, server_lease: bool = False) -> None:
        self._clock = clock or SystemClocks()
        self._registers = Registers(server_lease)
        self._lock = threading.Lock()
        self._watchers: dict[str, list[Callable[[], None]]] = {}

    def get(self, key: str, timeout_s: float) -> Entry | None:
        with self._lock:
            return self._registers.get(key, self._clock.boot_s())

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        now_s = self._clock.boot_s() if lease is not None else 0.0
        with self._lock:
            outcome = self._registers.cas(key, expected, value, lease, note, now_s)
            watchers = self._watchers.pop(key, None) if self._watchers else None
        if watchers:
            _wake(watchers)
        return outcome

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        with self._lock:
            outcome = self._registers.delete(key, expected)
            watchers = self._watchers.pop(key, [])
        _wake(watchers)
        return outcome

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        with self._lock:
            return self._registers.list_keys(prefix)

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        changed = threading.Event()
        if not self.subscribe(key, version, changed.set):
            return self.get(key, timeout_s)
        if changed.wait(timeout_s):
            return self.get(key, timeout_s)
        self.unsubscribe(key, changed.set)
        return UNCHANGED

    def subscribe(self, key: str, version: str | None, wake: Callable[[], None]) -> bool:
        """Have `wake` called at the key's next write. Return False if its version differs now."""
        with self._lock:
            if self._registers.version(key) != version:
                return False
            self._watchers.setdefault(key, []).append(wake)
            return True

    def unsubscribe(self, key: str, wake: Callable[[], None]) -> None:
        with self._lock:
            watchers = self._watchers.get(key, [])
            if wake in watchers:
                watchers.remove(wake)
            if not watchers:
                self._watchers.pop(key, None)

    def promises(self) -> Promises:
        return Promises(
            store="this process's memory",
            mutual_exclusion="server-clock" if self._registers.server_lease else "clock-rate",
            assumption="all participants live in this process, so that one clock serves them all",
            fencing="durable",
            watch="push",
            durable=False,
            scope="process",
            server_lease=self._registers.server_lease,
            poll_min_s=0.005,
            poll_max_s=0.05,
            notes=("everything is gone when the process ends",),
        )

    def aio(self) -> AsyncStore:
        return AsyncMemoryStore(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._watchers = {}


class AsyncMemoryStore:
    """The asyncio interface of a `MemoryStore`; no call blocks.

    Arguments:
        store: the store whose data it shares.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def get(self, key: str, timeout_s: float) -> Entry | None:
        return self._store.get(key, timeout_s)

    async def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        # Yield to the event loop before and after, so that a busy task cannot starve the others.
        await asyncio.sleep(0)
        outcome = self._store.cas(key, expected, value, timeout_s, lease, note)
        await asyncio.sleep(0)
        return outcome

    async def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        return self._store.delete(key, expected, timeout_s)

    async def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        return self._store.list_keys(prefix, timeout_s)

    async def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(changed.set)

        if not self._store.subscribe(key, version, wake):
            return self._store.get(key, timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                await changed.wait()
        except TimeoutError:
            return UNCHANGED
        finally:
            self._store.unsubscribe(key, wake)
        return self._store.get(key, timeout_s)

    def promises(self) -> Promises:
        return self._store.promises()

    async def close(self) -> None:
        """Do nothing: this store has nothing to close."""


def _wake(watchers: list[Callable[[], None]]) -> None:
    for wake in watchers:
        wake()


def open_url(url: str, query: Mapping[str, str]) -> MemoryStore:
    """Return this process's store of that name. Without a name, return a new store each time.

    Arguments:
        url: memory://name
        query: `lease=server` makes the store end holds by its own clock.

    Raises:
        Unsupported: an option is unknown, or that name was opened with other options.
    """
    check_options(url, query, _OPTIONS)
    name = urlsplit(url).netloc
    server_lease = query.get("lease") == "server"
    if not name:
        return MemoryStore(server_lease=server_lease)
    with _naming:
        found = _named.get(name)
        if found is None:
            found = _named[name] = MemoryStore(server_lease=server_lease)
        elif found.promises().server_lease is not server_lease:
            raise Unsupported(
                f"memory://{name} is already open with another value of lease: give every URL of"
                " this name the same options"
            )
        return found
