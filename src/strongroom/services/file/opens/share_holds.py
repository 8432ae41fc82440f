"""The shares that this gateway serves; one gateway at a time keeps the table of opens of a share.

Lives here: the holds of shares, and the answer to a request for a share that another gateway
serves. Must not live here: when a gateway counts as dead (engines/membership.py).

A gateway takes a share with the first request in it, and keeps it until it stops or dies. Every
commit checks that its gateway is alive. So a gateway that was paused, and whose shares others have
taken over, commits nothing more. No decision here needs a guard of its own for that.

A gateway that takes a share over gives stamps above all those of the gateway before. So the rule of
snapshots holds too: a commit with a later stamp happened later.

On an engine that one process has to itself, the hold is always granted.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.engines.gateways import ExclusiveRight
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.services.core.runner import Services

RETRY_AFTER_S: Final = 1
"""The Retry-After of an error. Another gateway may serve the share, or this one may get it soon."""
_BUSY: Final = "Another gateway serves this share at present. Retry your request, also elsewhere."


class ShareHolds:
    """By their generations."""

    def __init__(self) -> None:
        self._holds: dict[int, ExclusiveRight] = {}
        self._taking: dict[int, asyncio.Task[bool]] = {}

    def has(self, generation: int) -> bool:
        """Whether this gateway has the share now, as far as it can know."""
        hold = self._holds.get(generation)
        return hold is not None and hold.is_held

    def check(self, generation: int) -> None:
        """Check that this gateway still has the share, before it grants something from memory
        alone. Raises: ServerBusy."""
        if not self.has(generation):
            raise served_elsewhere()

    async def take(self, services: Services, generation: int) -> bool:
        """Take a share, unless this gateway has it already. Returns whether it has it. Raises:
        Unavailable when this gateway is late or dead."""
        hold = self._holds.get(generation)
        if hold is not None:
            return hold.is_held
        taking = self._taking.get(generation)
        if taking is None:
            taking = asyncio.ensure_future(self._take(services, generation))
            self._taking[generation] = taking
            taking.add_done_callback(lambda done: self._taken(generation, done))
        # Concurrent callers share one attempt. It continues if the first caller is cancelled.
        try:
            return await asyncio.shield(taking)
        finally:
            # The traceback of an error has this frame, and the task has the error: a cycle.
            del taking

    def release(self, generation: int) -> None:
        """It was deleted for good."""
        hold = self._holds.pop(generation, None)
        if hold is not None:
            hold.release()

    async def _take(self, services: Services, generation: int) -> bool:
        hold = await services.store.gateways.hold(b"share/%d" % generation)
        if hold is not None:
            self._holds[generation] = hold
        return hold is not None

    def _taken(self, generation: int, done: asyncio.Task[bool]) -> None:
        del self._taking[generation]
        if not done.cancelled():
            done.exception()  # The callers may have been cancelled.


def served_elsewhere() -> StorageError:
    """503 ServerBusy, with Retry-After."""
    headers = (("Retry-After", str(RETRY_AFTER_S)),)
    return StorageError(errors.SERVER_BUSY, _BUSY, headers=headers)


async def require_share(services: Services, generation: int) -> None:
    """Take the share, so that its files may be read and changed here. ServerBusy when another
    gateway has it."""
    if not await services.held.of(ShareHolds).take(services, generation):
        raise served_elsewhere()
