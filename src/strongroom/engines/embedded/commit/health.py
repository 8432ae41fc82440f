"""The health of an embedded store, checked where a hanging disk would delay it.

Lives here: the check and its results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strongroom.engines.base import COMMIT_BYTES_MAX, EngineError, Full
from strongroom.engines.embedded.commit.futures import retrieve_exception
from strongroom.engines.embedded.commit.group_commit import Committer
from strongroom.values import Health


class HealthCheck:
    """The health of one store.

    Arguments:
        free_bytes: returns the free space of its disk. Raises OSError.
    """

    def __init__(self, committer: Committer, free_bytes: Callable[[], int]) -> None:
        self._committer = committer
        self._free_bytes = free_bytes
        self._pending_check: asyncio.Future[None] | None = None

    async def check(self, timeout_s: float) -> Health:
        """Return the health; see Engine.health. It sends a request to the serial point; concurrent
        callers share one request."""
        if self._committer.broken is not None:
            return Health.STOPPED
        if self._pending_check is None or self._pending_check.done():
            self._pending_check = self._committer.work(lambda group: None)
            self._pending_check.add_done_callback(retrieve_exception)
        try:
            await asyncio.wait_for(asyncio.shield(self._pending_check), timeout_s)
            free_bytes = self._free_bytes()
        except (TimeoutError, OSError):
            return Health.STALLED
        except Full:
            return Health.FULL
        except EngineError:
            return Health.STOPPED
        is_full = self._committer.full_disk.is_low or free_bytes < COMMIT_BYTES_MAX
        return Health.FULL if is_full else Health.SERVING
