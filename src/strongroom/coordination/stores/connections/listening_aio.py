"""Waiting for notifications on an event loop: a waiter is a task and occupies no thread.

Lives here: the asyncio interface of stores that listen through a `NotificationHub`. Its short
calls run on threads, and so does each read of a waiter. Must not live here: how long to wait
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
    Subscriber,
    WatchState,
    read_timeout_s,
)
from strongroom.coordination.stores.threaded_store import ThreadedStore


class TaskSubscriber(Subscriber):
    """One waiter's registration with a hub, for a task of the running loop."""

    def __init__(self) -> None:
        super().__init__()
        self._loop, self._woken = asyncio.get_running_loop(), asyncio.Event()

    def set_subscribed(self, subscribed: bool) -> None:
        super().set_subscribed(subscribed)
        self._wake()

    def notify(self) -> None:
        super().notify()
        self._wake()

    async def is_subscribed_aio(self, timeout_s: float) -> bool:
        if not self._decided.is_set():
            await self._sleep(timeout_s)
        return self.is_subscribed(0)

    async def wait_aio(self, seconds: float) -> bool:
        if not self._notified.is_set():
            await self._sleep(seconds)
        return self.wait(0)

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._woken.set)
        except RuntimeError:
            pass  # the loop is closed, so its task has ended

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()


class ListeningStore(Store, Protocol):
    """A store that notifies waiters through subscribers."""

    @property
    def clock(self) -> Clocks: ...

    def registered(self, key: str, subscriber: Subscriber) -> AbstractContextManager[None]:
        """Notify `subscriber` of changes to a key, for the length of a `with` block."""
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
        state, subscriber = WatchState(self._listener.clock, version, timeout_s), TaskSubscriber()
        read_timeout = read_timeout_s(timeout_s)
        with self._listener.registered(key, subscriber):
            subscribed = await subscriber.is_subscribed_aio(min(timeout_s, ATTEMPT_S))
            while True:
                wait_s = state.next_wait_s(await self.get(key, read_timeout), subscribed)
                if wait_s is None:
                    break
                notified = await subscriber.wait_aio(wait_s)
                subscribed = subscribed and subscriber.is_subscribed(0)
                if state.is_over(notified, subscribed):
                    break
        return state.result
