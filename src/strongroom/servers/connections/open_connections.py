"""The open connections of one listener: their number, their one timer, their end.

Lives here: what listeners of all protocols do with connections. Must not live here: listening
(accepting.py), places (budget.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from strongroom.servers.connections.budget import WaitingConnection


class OpenConnection(Protocol):
    def abort(self) -> None:
        """End the connection and its requests at once."""
        ...

    def waiting(self) -> WaitingConnection | None:
        """Return since when the connection waits for its client; None if it does not wait."""
        ...


C = TypeVar("C", bound=OpenConnection)


class OpenConnections(Generic[C]):
    """The open connections of one listener. Iteration is over those of its beginning."""

    def __init__(self) -> None:
        self._connections: set[C] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._empty: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._connections)

    def __contains__(self, connection: object) -> bool:
        return connection in self._connections

    def __iter__(self) -> Iterator[C]:
        return iter(list(self._connections))

    def add(self, connection: C) -> None:
        self._connections.add(connection)

    def discard(self, connection: C) -> None:
        """Remove a connection that is over. Idempotent."""
        self._connections.discard(connection)
        if self._empty is not None and not self._connections and not self._empty.done():
            self._empty.set_result(None)

    def waiting(self) -> Iterator[WaitingConnection]:
        for connection in self._connections:
            waiting = connection.waiting()
            if waiting is not None:
                yield waiting

    def start_sweeping(self, interval_s: float, sweep: Callable[[float], None]) -> None:
        """Call `sweep` with the loop's time, every so often, until `end`. Idempotent. This is the
        listener's only timer."""
        if self._sweeping is None:
            self._sweep(asyncio.get_running_loop(), interval_s, sweep)

    async def end(self, timeout_s: float, abort_timeout_s: float | None) -> bool:
        """Wait until all are over, and abort those that are left after `timeout_s`.

        Arguments:
            abort_timeout_s: how long to wait after that; None = until all are over.

        Returns: whether none was aborted.
        """
        finished = await self._wait_empty(timeout_s)
        if not finished:
            for connection in self:
                connection.abort()
            await self._wait_empty(abort_timeout_s)
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        return finished

    def _sweep(
        self, loop: asyncio.AbstractEventLoop, interval_s: float, sweep: Callable[[float], None]
    ) -> None:
        # First, so that the timer runs on even if something below fails.
        self._sweeping = loop.call_later(interval_s, self._sweep, loop, interval_s, sweep)
        sweep(loop.time())

    async def _wait_empty(self, timeout_s: float | None) -> bool:
        if not self._connections:
            return True
        self._empty = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait_for(self._empty, timeout_s)
        except TimeoutError:
            return False
        finally:
            self._empty = None
        return True
