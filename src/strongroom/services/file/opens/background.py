"""Work beside requests: tasks that outlive their request, and waits in store time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from strongroom.engines.base import EngineError, Key, Partition, Ref
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.services.core.runner import Services
from strongroom.services.core.waiting import MustWait
from strongroom.values import TICKS_PER_S

# No record is ever stored here, so that a wait for it ends by the clock alone.
_NEVER: Final = Ref(Partition(b"!", b"timers"), Key(True, b"timer"))
_LONG_S: Final = 365 * 24 * 3600.0
# How often it is checked whether there is store time again.
_LATE_S: Final = 0.5


class BackgroundTasks:
    """Tasks that continue even if the requests that began them end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(fetch_error)
        return task

    async def wait(self) -> None:
        """Return when no task is running any more."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))


def fetch_error(task: asyncio.Task[None]) -> None:
    """Keep asyncio from logging the error of a task. A waiter gets the error itself; a task without
    a waiter has no client left."""
    if not task.cancelled():
        task.exception()


async def wait_store_time(services: Services, seconds: float) -> bool:
    """Wait for some seconds of store time. Returns False when the server stops before they are
    over.

    A gateway that is late has no store time, nor may an engine whose disk is full. The wait
    continues, since time may be had again.
    """
    until: int | None = None
    while not services.waiting.is_stopping:
        try:
            if until is None:
                until = await services.store.now() + round(seconds * TICKS_PER_S)
            return await _wait_until(services, until)
        except EngineError:
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
