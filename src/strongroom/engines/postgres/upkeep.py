"""The work of a gateway beside its calls: heartbeats, polling, maintenance, notifications.

Lives here: `Upkeep`, which does it in the background. Must not live here: the work itself; see
gateways/heartbeats.py, waiting.py, contents/, commits/.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Final

from strongroom.engines.base import EngineError
from strongroom.engines.postgres.apart.sweep import ApartSweep
from strongroom.engines.postgres.apart.turns import Turns
from strongroom.engines.postgres.commits.commits import Commits
from strongroom.engines.postgres.contents.contents import PostgresContents
from strongroom.engines.postgres.gateways.gateways import PostgresGateways
from strongroom.engines.postgres.gateways.members import SharedTable
from strongroom.engines.postgres.gateways.shared_time import SharedTime
from strongroom.engines.postgres.sessions.lanes import Pool
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import FORGET_PARTITIONS
from strongroom.engines.postgres.waiting import Waits

_MAINTENANCE: Final = b"engine maintenance"
_MAINTENANCE_S: Final = 5.0
_ROUNDS_TO_FORGET: Final = 12
_EXPIRE_S: Final = 1.0
_POLL_S: Final = 2.0
_LOOK_S: Final = 2.5
_log = logging.getLogger(__name__)


class Upkeep:
    """The background work of one gateway, from `start` to `stop`."""

    def __init__(
        self,
        gateways: PostgresGateways,
        members: SharedTable,
        time: SharedTime,
        work: tuple[Commits, PostgresContents, Waits],
        reading: Pool,
        apart: tuple[Turns, ApartSweep] | None = None,
    ) -> None:
        self._gateways = gateways
        self._members = members
        self._time = time
        self._commits, self._contents, self._waits = work
        self._reading = reading
        self._apart = apart
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, *, beats: bool, maintains: bool = True) -> None:
        """Begin all work that repeats; heartbeats only if they shall be sent by themselves."""
        for work in (self._poll_forever, self._expire_forever):
            self._do(work())
        if self._apart is not None:
            self._do(self._each_while(self._look))
            # Calls of a sweep may hang for minutes, and looks must go on.
            self._do(self._each_while(self._sweep))
        if maintains:
            self._do(self._maintain_forever())
        if beats:
            self._do(self._gateways.heartbeats.beat_forever())

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._apart is not None:
            self._apart[0].release()

    def notified(self, payload: str) -> None:
        """Another gateway, or this one, has sent a notification."""
        kind, _, rest = payload.partition(":")
        if kind == "changed":
            self._waits.hinted(rest.split(","))
        elif kind == "shift":
            self._do(_quietly(self._learn_shift))
        elif kind == "beat" and self._gateways.heartbeats.is_beating:
            self._do(_quietly(self._beat))

    def session_opened(self) -> None:
        """Notifications may have been lost."""
        self._do(_quietly(self._poll))

    async def maintain(self, *, forgets: bool = True) -> None:
        """Delete what was dropped and nobody reads.

        Arguments:
            forgets: also delete what dead gateways left, and stamps below which nothing can happen.
        """
        while await self._contents.removal.remove_dropped(
            await self._gateways.horizon(), self._contents.reads.pins
        ):
            pass
        if forgets:
            await self._contents.removal.remove_orphans()
            floor = wire.int8(self._gateways.table.floor)
            await self._reading.write(FORGET_PARTITIONS, lambda _: (floor,))

    async def tend(self) -> None:
        """Look after the place of bodies apart, and remove what nobody needs there."""
        if self._apart is not None:
            await self._look()
            await self._sweep()

    async def _maintain_forever(self) -> None:
        rounds = 0
        while True:
            await asyncio.sleep(_MAINTENANCE_S)
            is_beating = self._gateways.heartbeats.is_beating
            if is_beating and self._gateways.owns(_MAINTENANCE):
                forgets = rounds % _ROUNDS_TO_FORGET == 0
                await _quietly(partial(self.maintain, forgets=forgets))
                rounds += 1

    async def _each_while(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        while True:
            if self._gateways.heartbeats.is_beating:
                await _quietly(work)
            await asyncio.sleep(_LOOK_S)

    async def _look(self) -> None:
        assert self._apart is not None, "it is asked before"
        await self._apart[0].tend()

    async def _sweep(self) -> None:
        assert self._apart is not None, "it is asked before"
        sweep = self._apart[1]
        while await sweep.remove_dropped(self._gateways.horizon):
            pass
        await sweep.remove_orphans_in_time()

    async def _poll_forever(self) -> None:
        while True:
            await asyncio.sleep(_POLL_S)
            await _quietly(self._poll)

    async def _poll(self) -> None:
        if await self._waits.poll():
            await self._learn_shift()

    async def _expire_forever(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRE_S)
            await _quietly(self._expire)

    async def _expire(self) -> None:
        self._commits.expire()

    async def _learn_shift(self) -> None:
        self._time.learn((await self._members.look()).shift)

    async def _beat(self) -> None:
        await self._gateways.heartbeats.beat()

    def _do(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _quietly(work: Callable[[], Coroutine[object, object, None]]) -> None:
    """Do background work. If the database is away, the work is done later by other means."""
    try:
        await work()
    except EngineError as error:
        _log.debug("put off: %s", error)
    except Exception:
        _log.exception("background work failed; the next round tries again")
