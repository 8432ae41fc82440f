"""Waiting for what a store tells of, for tasks: a waiter costs no thread.

Lives here: the asyncio face of stores that listen through a `Switchboard`. Their short calls go to
threads; a waiter is a task, which needs a thread only while it looks. Must not live
here: how long to wait (connections/listening.py).
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Protocol

from strongroom.coordination.clock import Clocks
from strongroom.coordination.effects import Watched
from strongroom.coordination.store import Store
from strongroom.coordination.stores.connections.listening import (
    ATTEMPT_S,
    Ticket,
    Vigil,
    look_timeout_s,
)
from strongroom.coordination.threaded_store import ThreadedStore


class TaskTicket(Ticket):
    """One waiter's place at a switchboard, for a task of the running loop."""

    def __init__(self) -> None:
        super().__init__()
        self._loop, self._poked = asyncio.get_running_loop(), asyncio.Event()

    def settle(self, hears: bool) -> None:
        """See `Ticket.settle`."""
        super().settle(hears)
        self._poke()

    def ring(self) -> None:
        """See `Ticket.ring`."""
        super().ring()
        self._poke()

    async def hears_aio(self, timeout_s: float) -> bool:
        """See `Ticket.hears`."""
        if not self._settled.is_set():
            await self._await_poke(timeout_s)
        return self.hears(0)

    async def wait_aio(self, seconds: float) -> bool:
        """See `Ticket.wait`."""
        if not self._rung.is_set():
            await self._await_poke(seconds)
        return self.wait(0)

    def _poke(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._poked.set)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    async def _await_poke(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._poked.wait()
        except TimeoutError:
            pass
        self._poked.clear()


class ListeningStore(Store, Protocol):
    """A store whose waiters have tickets."""

    @property
    def clock(self) -> Clocks:
        """The store's."""
        ...

    def ticket(self, key: str, ticket: Ticket) -> AbstractContextManager[None]:
        """Have a ticket told of a key."""
        ...


class ListeningAio(ThreadedStore):
    """The asyncio face of a store that listens.

    Arguments:
        store: what is called.
    """

    def __init__(self, store: ListeningStore) -> None:
        super().__init__(store)
        self._listener = store

    async def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        """See `Store.watch`."""
        vigil, ticket = Vigil(self._listener.clock, version, timeout_s), TaskTicket()
        look_s = look_timeout_s(timeout_s)
        with self._listener.ticket(key, ticket):
            hears = await ticket.hears_aio(min(timeout_s, ATTEMPT_S))
            while (wait_s := vigil.judge(await self.get(key, look_s), hears)) is not None:
                rang = await ticket.wait_aio(wait_s)
                hears = hears and ticket.hears(0)
                if vigil.ends_quietly(rang, hears):
                    break
        return vigil.outcome
