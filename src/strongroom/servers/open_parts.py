"""The open parts of a server: its end closes them, and ends what runs in the background.

Lives here: the order, and what becomes of an error. Must not live here: which parts there are
(app.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

_log: Final = logging.getLogger(__name__)


class OpenParts:
    """Closed in the opposite order of their opening."""

    def __init__(self) -> None:
        self._closing: list[Callable[[], Awaitable[object]]] = []

    def add(self, close: Callable[[], Awaitable[object]]) -> None:
        """`close` is called once."""
        self._closing.append(close)

    def run(self, work: Coroutine[object, object, None]) -> None:
        """Run a work in the background until its turn to be closed. Nobody waits for it, so an
        error that ends it is logged."""
        task = asyncio.create_task(work)
        task.add_done_callback(_log_error)

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.add(stop)

    async def close(self) -> None:
        """Close all. A part that fails keeps no other one open: a gateway that does not leave its
        store is waited for. Raises: the first error, once all are closed."""
        first: Exception | None = None
        while self._closing:
            try:
                await self._closing.pop()()
            except Exception as error:
                if first is not None:
                    _log.error("another part of the server failed at its end", exc_info=error)
                first = first or error
        if first is not None:
            raise first


def _log_error(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a work in the background has ended", exc_info=error)
