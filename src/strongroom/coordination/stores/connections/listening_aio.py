"""Waiting for notifications on an event loop: a waiter is a task and occupies no thread.

Lives here: the asyncio interface of stores that listen through a `Switchboard`. Its short calls run
on threads, and so does each read of a waiter. Must not live here: how long to wait
(connections/listening.py).
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
    """One waiter's registration with a switchboard, for a task of the running loop."""

    def __init__(self) -> None:
        super().__init__()
        self._loop, self._poked = asyncio.get_running_loop(), asyncio.Event()

    def settle(self, hears: bool) -> None:
        """Set whether the task will be notified; see `Ticket.settle`."""
        super().settle(hears)
        self._poke()

    def ring(self) -> None:
        """Notify the task; see `Ticket.ring`."""
        super().ring()
        self._poke()

    async def hears_aio(self, timeout_s: float) -> bool:
        """Return whether the task will be notified; see `Ticket.hears`."""
        if not self._settled.is_set():
            await self._await_poke(timeout_s)
        return self.hears(0)

    async def wait_aio(self, seconds: float) -> bool:
        """Wait for a notification; see `Ticket.wait`."""
        if not self._rung.is_set():
            await self._await_poke(seconds)
        return self.wait(0)

    def _poke(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._poked.set)
        except RuntimeError:
            pass  # the loop is closed, so its task has ended

    async def _await_poke(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._poked.wait()
        except TimeoutError:
            pass
        self._poked.clear()


class ListeningStore(Store, Protocol):
    """A store that notifies waiters through tickets."""

    @property
    def clock(self) -> Clocks:
        """The clock of the store."""
        ...

    def ticket(self, key: str, ticket: Ticket) -> AbstractContextManager[None]:
        """Notify `ticket` of changes to a key, for the length of a `with` block."""
        ...


class ListeningAio(ThreadedStore):
    """The asyncio interface of a store that listens.

    Arguments:
        store: the store that is called on threads.
    """

    def __init__(self, store: ListeningStore) -> None:
        super().__init__(store)
        self._listener = store

    async def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        """Wait for another version; see `Store.watch`."""
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
