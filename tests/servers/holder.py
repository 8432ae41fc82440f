"""A task in whose name work begins, as that of a connection does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from strongroom.servers.http.early_start import Begun

Work = Callable[[], Coroutine[Any, Any, None]]


class Holder:
    """A task that waits for what was begun in its name, and what became of it."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.handed: asyncio.Future[Begun] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._take_over())

    async def _take_over(self) -> None:
        await (await self.handed)

    async def begin(self) -> Begun | None:
        """Begin from a callback of the loop, as a protocol does."""
        await asyncio.sleep(0)
        done: asyncio.Future[Begun | None] = asyncio.get_running_loop().create_future()

        def now() -> None:
            begun = Begun(self._work())
            done.set_result(None if begun.go_on(self.task) else begun)

        asyncio.get_running_loop().call_soon(now)
        return await done
