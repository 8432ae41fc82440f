"""Whether an embedded store serves, asked where a disk that hangs would hold it up.

Lives here: the question and its answers. Must not live here: who asks, what is done about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strongroom.engines.base import COMMIT_BYTES_MAX, EngineError, Full
from strongroom.engines.embedded.futures import retrieved
from strongroom.engines.embedded.group_commit import Committer
from strongroom.values import Health


class HealthCheck:
    """The health of one store.

    Arguments:
        free_bytes: how much space its disk has. Raises OSError.
    """

    def __init__(self, committer: Committer, free_bytes: Callable[[], int]) -> None:
        self._committer = committer
        self._free_bytes = free_bytes
        self._asking: asyncio.Future[None] | None = None

    async def ask(self, timeout_s: float) -> Health:
        """See Engine.health. It asks the serial point. All who ask meanwhile share one question."""
        if self._committer.broken is not None:
            return Health.STOPPED
        if self._asking is None or self._asking.done():
            self._asking = self._committer.work(lambda group: None)
            self._asking.add_done_callback(retrieved)
        try:
            await asyncio.wait_for(asyncio.shield(self._asking), timeout_s)
            free_bytes = self._free_bytes()
        except (TimeoutError, OSError):
            return Health.STALLED
        except Full:
            return Health.FULL
        except EngineError:
            return Health.STOPPED
        is_full = self._committer.full_disk.is_low or free_bytes < COMMIT_BYTES_MAX
        return Health.FULL if is_full else Health.SERVING
