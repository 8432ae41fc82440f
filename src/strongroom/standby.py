"""Which gateways serve a store in a database: one at a time, or all beside each other.

In the mode active-passive a gateway takes the right to serve alone. The others wait, and one of
them takes over. In the mode active-active each gateway takes a share of the right. So gateways of
both modes never serve beside each other.

Lives here: waiting for the right to serve, watching it, and giving it back. Must not live here:
when a gateway counts as dead (engines/membership.py), what begins with the right (app.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from strongroom.database import StoreMode
from strongroom.engines.base import EngineError, Unavailable
from strongroom.engines.membership import shared_name, sharers

if TYPE_CHECKING:
    from strongroom.engines.gateways import ExclusiveRight
    from strongroom.engines.postgres.store import PostgresEngine

HOLD: Final = b"server"
_LOOK_S: Final = 1.0
_log = logging.getLogger(__name__)


class NotServing(Exception):
    """The wait ended without the right to serve.

    Attributes:
        error: what stopped the engine meanwhile; None = the server itself was to stop.
    """

    def __init__(self, error: EngineError | None) -> None:
        super().__init__(str(error) if error else "asked to stop")
        self.error = error


class ServedElsewhere(EngineError):
    """Another gateway serves the store, or may do so."""


class Standby:
    """Takes the right to serve, and waits for it if it may.

    Arguments:
        stop: ends the wait when it is set; None = nothing ends it.
        tell: is told what it waits for, once each time that this changes.
        waits: whether it waits as long as another gateway serves.

    Attributes:
        mode: whether it takes the right alone, or a share of it.
    """

    def __init__(
        self,
        stop: asyncio.Event | None = None,
        tell: Callable[[str], None] = _log.warning,
        waits: bool = True,
    ) -> None:
        self._stop = stop or asyncio.Event()
        self._tell = tell
        self._told = ""
        self._waits = waits
        self.mode = StoreMode.ACTIVE_PASSIVE
        self._right: ExclusiveRight | None = None

    async def take(
        self,
        store: PostgresEngine,
        failed: asyncio.Future[EngineError],
        look_ahead: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Return when this gateway has the right.

        Arguments:
            failed: gets the error that stops the engine.
            look_ahead: is begun once when it waits, to look whether it could serve. The wait does
                not wait for it.

        Raises: NotServing; ServedElsewhere and Unavailable if it may not wait.
        """
        stopping = asyncio.ensure_future(self._stop.wait())
        looking: asyncio.Future[None] | None = None
        try:
            while not await self._try(store):
                if look_ahead is not None and looking is None:
                    looking = asyncio.ensure_future(look_ahead())
                ended = asyncio.FIRST_COMPLETED
                await asyncio.wait((stopping, failed), timeout=_LOOK_S, return_when=ended)
                if failed.done() or stopping.done():
                    raise NotServing(failed.result() if failed.done() else None)
        finally:
            stopping.cancel()
            if looking is not None:
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)

    async def watch(self, store: PostgresEngine, lost: Callable[[EngineError], None]) -> None:
        """Call `lost` when this gateway no longer has the right.

        A heartbeat that is late is no loss. The engine refuses requests as long as it is, and no
        other gateway has the right before this one was declared dead.
        """
        name = shared_name(HOLD, store.gateways.number) if self._shares else HOLD
        while True:
            await asyncio.sleep(_LOOK_S)
            if not _may_have(store, name):
                lost(ServedElsewhere("this gateway was declared dead"))
                return

    async def release(self) -> None:
        """Give the right back. Idempotent."""
        if self._right is not None:
            self._right.release()
            self._right = None

    async def _try(self, store: PostgresEngine) -> bool:
        gateways = store.gateways
        take = gateways.share if self._shares else gateways.hold
        try:
            self._right = await take(HOLD)
        except Unavailable as error:
            if not self._waits:
                raise
            self._say(f"waiting: {error}")
            return False
        # One that waits leaves all works to those that serve.
        gateways.state.is_idle = self._right is None
        if self._right is None:
            if not self._waits:
                raise ServedElsewhere(f"{self._who_serves(store)}: stop it first")
            self._say(f"waiting: {self._who_serves(store)}")
            return False
        if not self._shares:
            # So decisions may rely on it that nobody else reads.
            gateways.exclusive = self._right
        return True

    @property
    def _shares(self) -> bool:
        return self.mode is StoreMode.ACTIVE_ACTIVE

    def _who_serves(self, store: PostgresEngine) -> str:
        table = store.gateways.table
        sharing = sharers(table, HOLD)
        if not self._shares and sharing:
            who = f"gateway {sharing[0].number}"
            return f"{who} serves this store in the mode {StoreMode.ACTIVE_ACTIVE.value}"
        holder = table.holds.get(HOLD)
        who = "another gateway" if holder is None else f"gateway {holder.number}"
        mode = f" in the mode {StoreMode.ACTIVE_PASSIVE.value}" if self._shares else ""
        return f"{who} serves this store{mode}"

    def _say(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._tell(text)


def _may_have(store: PostgresEngine, name: bytes) -> bool:
    own = store.gateways.run
    return not store.gateways.has_ended(own) and store.gateways.holder(name) in (own, None)
