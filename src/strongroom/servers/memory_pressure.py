"""The server when memory is short: it frees memory, refuses large uploads, or ends.

Lives here: the reaction to a failed allocation (`ulimit -v`, a full container). Must not live here:
who uses memory, and how the process ends. An allocation may fail anywhere, so every part reports a
failure to the event loop's exception handler, which calls `Pressure`. A process that can serve no
request must end, since a supervisor restarts it only then.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from strongroom.errors.core import SERVER_BUSY, StorageError
from strongroom.limits import KIB
from strongroom.values import Health
from strongroom.wire.core.http import Request

_log = logging.getLogger(__name__)

# How long large uploads are refused after a failed allocation.
_SHEDDING_S: Final = 5.0
_RELEASE_EVERY_S: Final = 1.0
_WARN_EVERY_S: Final = 30.0
# The process ends if allocations failed and no request was served for this long.
GIVE_UP_S: Final = 30.0
_POLL_INTERVAL_S: Final = 5.0
# Bodies of at most this size are never refused: they need little more memory than their request.
_SMALL_BODY_BYTES: Final = 16 * KIB
_DISCONNECT_ERRNOS: Final = frozenset({errno.ENOTCONN, errno.EPIPE, errno.ECONNRESET})


class Pressure:
    """Reacts to failed allocations of one process. On the event loop.

    Arguments:
        now: seconds of the loop's clock.
        release: functions that free memory; each may raise MemoryError.
        give_up: ends the process; its argument is the reason.
    """

    def __init__(
        self,
        now: Callable[[], float],
        release: Sequence[Callable[[], object]],
        give_up: Callable[[str], None],
    ) -> None:
        self._now = now
        self._release = release
        self._give_up = give_up
        self._failed_at = -math.inf
        self._released_at = -math.inf
        self._warned_at = -math.inf
        self._serves_nobody_since: float | None = None
        self._is_stalled = False

    def allocation_failed(self) -> None:
        """Note that an allocation has failed: free memory, and give up if no request is served any
        more."""
        now = self._failed_at = self._now()
        if self._serves_nobody_since is None:
            self._serves_nobody_since = now
        if now - self._warned_at >= _WARN_EVERY_S:
            self._warned_at = now
            _log.warning("memory is short: large uploads are refused, idle connections closed")
        if now - self._released_at >= _RELEASE_EVERY_S:
            self._released_at = now
            for release in self._release:
                try:
                    release()
                except MemoryError:
                    continue
        self._judge(now)

    def request_served(self) -> None:
        if not self._is_stalled:
            self._serves_nobody_since = None

    def observe_health(self, health: Health) -> None:
        """While the engine is stalled, answered requests do not count as service, since some need
        no engine.

        If no allocation has failed lately, there may simply have been no requests. A server without
        requests does not count as one that serves none.
        """
        now = self._now()
        self._is_stalled = health is Health.STALLED
        if not self._is_stalled and now - self._failed_at >= _SHEDDING_S:
            self._serves_nobody_since = None  # no recent failure: perhaps no request came
        elif self._is_stalled and self._serves_nobody_since is None:
            self._serves_nobody_since = now
        self._judge(now)

    def refuse_upload(self, request: Request) -> None:
        """Refuse a large body shortly after an allocation failed."""
        size_bytes = request.body.size_bytes
        if size_bytes is not None and size_bytes <= _SMALL_BODY_BYTES:
            return
        if self._now() - self._failed_at < _SHEDDING_S:
            raise StorageError(SERVER_BUSY, "The server is short of memory.")

    def _judge(self, now: float) -> None:
        since = self._serves_nobody_since
        if since is not None and now - since >= GIVE_UP_S:
            self._give_up(
                f"memory ran out: no request was served for {now - since:.0f} s. Every "
                "acknowledged change is kept; give the process more memory (ulimit -v, the "
                "container's limit), then start again."
            )

    async def watch(self, health: Callable[[], Awaitable[Health]]) -> None:
        """Poll the engine's health every 5 seconds while memory is short, until cancelled.

        A thread of the engine may have died for lack of memory.
        """
        while True:
            try:
                await asyncio.sleep(_POLL_INTERVAL_S)
                if self._is_stalled or self._now() - self._failed_at < 2 * GIVE_UP_S:
                    self.observe_health(await health())
            except MemoryError:
                self.allocation_failed()

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an error of the event loop (the loop's exception handler)."""
        error = context.get("exception")
        if isinstance(error, MemoryError):
            self.allocation_failed()
        elif isinstance(error, OSError) and error.errno in _DISCONNECT_ERRNOS:
            _log.debug("a client has gone: %s", error)
        else:
            _log.error("%s", context.get("message"), exc_info=error)
