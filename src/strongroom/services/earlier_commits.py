"""Waiting until no earlier commit can happen any more, once for all jobs that wait.

All gateways of a store take part in such a wait: each sends a heartbeat for it. So jobs that begin
together share one. Lives here: `EarlierCommits`. Must not live here: the wait itself (the engines'
`Gateways`), and which stamp a job needs (sweeper.py).
"""

from __future__ import annotations

import asyncio

from strongroom.services.core.runner import Services


class EarlierCommits:
    """The commits of a store, as far as one sweeper has waited for them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._ended_before = self._wanted = 0
        self._waiting: asyncio.Task[None] | None = None

    async def have_ended(self, stamp: int) -> None:
        """Return when no commit below `stamp` can happen any more. What holds once, holds for ever.
        Raises: EngineError."""
        while self._ended_before < stamp:
            self._wanted = max(self._wanted, stamp)
            if self._waiting is None:
                self._waiting = asyncio.create_task(self._wait())
                self._waiting.add_done_callback(_retrieved)
            await asyncio.shield(self._waiting)

    async def _wait(self) -> None:
        stamp = self._wanted
        try:
            await self._services.store.gateways.wait_for_earlier_commits(stamp)
            self._ended_before = stamp
        finally:
            self._waiting = None

    async def stop(self) -> None:
        """Wait no more; whoever waits is told by CancelledError."""
        if (waiting := self._waiting) is not None:
            waiting.cancel()
            await asyncio.wait([waiting])
            self._waiting = None  # it does so itself only if it had begun


def _retrieved(waiting: asyncio.Task[None]) -> None:
    if not waiting.cancelled():
        waiting.exception()  # whoever waited has it, unless all of them have gone
