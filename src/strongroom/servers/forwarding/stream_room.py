"""How many requests may be under way to one other gateway at a time, and of whom.

Lives here: the limits. Must not live here: the connections (peers.py).

A client that sends slowly, or does not read, keeps a connection for as long as its limits let it.
One such client must not keep all of them, and uploads must not keep those that reads need.
"""

from __future__ import annotations

import asyncio
from typing import Final
from weakref import WeakValueDictionary

STREAMS_MAX: Final = 512
"""How many connections to one gateway may be open. Each request under way has one."""
CLIENT_STREAMS_MAX: Final = 448
"""Of one client's address. That may be a balancer's, so it is no small part."""
UPLOADS_MAX: Final = 384
"""Of requests whose bodies are still to come."""

Places = tuple[asyncio.Semaphore, ...]


class StreamRoom:
    """The places of one gateway."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(STREAMS_MAX)
        self._uploads = asyncio.Semaphore(UPLOADS_MAX)
        # A place refers to the client's semaphore, and nobody else does.
        self._clients: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def enter(self, client: str, *, is_upload: bool) -> Places:
        """Wait for a place, and return it; `leave` follows."""
        own = self._clients.get(client)
        if own is None:
            own = self._clients[client] = asyncio.Semaphore(CLIENT_STREAMS_MAX)
        # A request that waits for a part of the places has none of all.
        wanted = (self._uploads, own, self._all) if is_upload else (own, self._all)
        taken: Places = ()
        try:
            for one in wanted:
                await one.acquire()
                taken = (*taken, one)
        except BaseException:
            leave(taken)
            raise
        return taken


def leave(places: Places) -> None:
    for one in places:
        one.release()
