"""When a gateway gives a share up that it has.

Lives here: shares that nobody uses, shares that another gateway asks for, and the end of a server.
Must not live here: how a share is taken (share_holds.py).

A gateway among others gives a share up that it has not used for a while. The next request then
decides anew which gateway has it. Nothing of this process may rely on the share then: no handle, no
lock, no request under way.

Requests over REST can be forwarded, and clients of SMB cannot. So a gateway to which such a client
comes asks the one that has the share to give it up. That one does so if it can do without it. It
looks at first whether the requests under way end soon, and only then lets new ones wait. After a no
it says no for a while. So a client that tries to connect again and again stops no requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.opens.share_holds import YIELD_S, ShareHolds

IDLE_S: Final = 30.0
"""A share that was not used for so long is given up, if other gateways may serve it."""
REFUSED_S: Final = 5.0
"""So long a share that could not be given up is not tried to be given up again."""
_LOOK_EVERY_S: Final = 0.01


class ShareLeaving:
    """By the shares' generations. `holds` are those that it gives up."""

    def __init__(self, holds: ShareHolds, opens: Opens) -> None:
        self.holds = holds
        self._opens = opens
        self._refused: dict[int, float] = {}

    def release_idle(self, now_s: float) -> list[int]:
        """Give up the shares that nobody has used for IDLE_S, and return them. It must be called
        more often than that, with the event loop's time."""
        self.holds.end_withheld(now_s)
        self._refused = {one: until for one, until in self._refused.items() if until > now_s}
        unused = self._unused(self.holds.generations())
        idle = self.holds.note_unused(unused, now_s, IDLE_S)
        for generation in idle:
            self.holds.release(generation)
        return idle

    def release_unused(self) -> None:
        """Give up the shares that nobody uses now, and take no more: this server stops."""
        self.holds.stop()
        for generation in self._unused(self.holds.generations()):
            self.holds.release(generation)

    async def give_up(self, generation: int) -> bool:
        """Give a share up to a gateway that asks for it, unless it is needed here. Requests under
        way end before. Return whether this gateway has it no more."""
        now = asyncio.get_running_loop().time
        if self.holds.may_be_held(generation):
            refused = now() < self._refused.get(generation, 0.0)
            if refused or self.holds.is_mounted(generation):
                return False
            if not await self._left(generation):
                self._refused[generation] = now() + REFUSED_S
                return False
        # It is left to the gateway that has asked.
        self.holds.withhold(generation, now() + YIELD_S)
        return True

    async def _left(self, generation: int) -> bool:
        """Give a share up that is not mounted, if its requests end."""
        requests = self.holds.requests(generation)
        if not await self._soon(generation, lambda: all(one.done() for one in requests)):
            return False
        self.holds.withhold(generation, asyncio.get_running_loop().time() + YIELD_S)
        if not await self._soon(generation, lambda: bool(self._unused((generation,)))):
            return False
        self.holds.release(generation)
        return True

    async def _soon(self, generation: int, is_so: Callable[[], bool]) -> bool:
        """Whether it comes true within YIELD_S, and before a client mounts the share."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + YIELD_S
        while not is_so():
            if self.holds.is_mounted(generation) or loop.time() > ends:
                return False
            await asyncio.sleep(_LOOK_EVERY_S)
        return True

    def _unused(self, generations: Iterable[int]) -> list[int]:
        """Return those that no request uses, and that have neither handles nor operations in the
        table of opens."""
        free = [one for one in generations if self.holds.is_free(one)]
        are_open = self._opens.open_among(free)
        return [one for one in free if one not in are_open]
