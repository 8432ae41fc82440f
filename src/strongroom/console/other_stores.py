"""The further stores that the operator named: each read on a thread of its own.

Lives here: the time limit of a panel, and the client of each store. Must not live here: who may see
them (access.py). A store that does not answer keeps its own thread busy, and nothing else. Its
panel then says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from strongroom.console.known_records import KnownRecords
from strongroom.console.record_pages import PageOf, read_page
from strongroom.console.store_sources import StoreSource
from strongroom.coordination import Client, StoreUnavailable, connect
from strongroom.coordination.options.url_options import shown_url
from strongroom.servers.console.api.coordination import OtherStore, PlaceRecords

ANSWER_S: Final = 2.0
"""A panel has its answer after so long, whether or not the store has answered."""
_READ_S: Final = 1.5
_READER: Final = "console"
T = TypeVar("T")


class OutOfTime(StoreUnavailable):
    """The store has not answered in time, and may still do what it was asked."""


class OtherStorePanel:
    """One further store.

    Arguments:
        source: which.
        may_act: whether the console may open gates and break locks there.
    """

    def __init__(self, source: StoreSource, may_act: bool) -> None:
        self.shown = OtherStore(source.name, shown_url(source.url), may_act)
        self._url = source.url
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="console-store")
        self._running: asyncio.Future[None] | None = None
        self._connected: Client | None = None
        self._reader: Client | None = None

    async def read(self, page: PageOf) -> PlaceRecords:
        """Return a page of its records, which may be a shorter one than asked for.

        Raises: StoreUnavailable, also after `ANSWER_S`; other errors of the toolkit.
        """
        return await self._on_thread(lambda: self._read(page))

    async def act(self, act: Callable[[Client], T], label: str) -> T:
        """Let `act` change a record, by a client of this label. Raises: as `read`."""

        def work() -> T:
            self._client()
            assert self._connected is not None
            return act(self._connected.sibling(label))

        try:
            return await self._on_thread(work)
        except OutOfTime as error:
            raise StoreUnavailable(f"{error}: look again before you repeat it") from None

    async def _on_thread(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ANSWER_S):
                while self._running is not None and not self._running.done():
                    await asyncio.wait((self._running,))
                future = loop.run_in_executor(self._pool, work)
                self._running = asyncio.ensure_future(_outcome(future))
                return await asyncio.shield(future)
        except TimeoutError:
            name = self.shown.name
            raise OutOfTime(f"the store {name!r} did not answer within {ANSWER_S:g} s") from None

    def _read(self, page: PageOf) -> PlaceRecords:
        client = self._client()
        until_s = client.context.clock.monotonic_s() + _READ_S
        return read_page(client, page._replace(until_s=until_s), {})

    def _client(self) -> Client:
        if self._reader is None:
            self._connected = connect(self._url, label=_READER)
            self._reader = Client(KnownRecords(self._connected.store), label=_READER)
        return self._reader

    def close(self) -> None:
        """Close the store's connections. A thread that waits for an answer ends with it."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._reader is not None:
            self._reader.close()


async def _outcome(future: asyncio.Future[T]) -> None:
    """Wait for a call, whatever comes of it: its caller may have gone."""
    await asyncio.wait((future,))
    if not future.cancelled():
        future.exception()
