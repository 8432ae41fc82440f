"""Bodies apart that nobody needs any more: dropped ones, and those without a row.

Lives here: `ApartSweep`. Both kinds stay for some days, so that a database that is recovered to any
moment of these days finds all its bodies. Must not live here: who may remove (turns.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Final

from strongroom.engines.bodies.base import BodyStore
from strongroom.engines.gateways import Horizon
from strongroom.engines.postgres.apart.turns import Turns
from strongroom.engines.postgres.sessions.lanes import Pool
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import (
    DROPPED_APART,
    DROPPED_MAX,
    REMOVE_DROPPED,
    UNOWNED,
)

KEEP_DROPPED_S: Final = 7 * 24 * 3600
_ASKED_MAX: Final = 4096
ORPHANS_KEEP_S: Final = 24 * 3600
"""A body gets its row when it is complete, and no upload pauses for so long."""
_ORPHANS_S: Final = 6 * 3600.0
_ORPHANS_AGAIN_S: Final = 600.0
_log = logging.getLogger(__name__)


class ApartSweep:
    """What one gateway removes of the bodies apart.

    Arguments:
        pins: the bodies that this gateway reads.
        keep_s: for how long a body stays that no record names; one without a row stays for
            ORPHANS_KEEP_S at least.
    """

    def __init__(
        self, store: BodyStore, turns: Turns, pool: Pool, pins: Container[int], keep_s: int
    ) -> None:
        self._store = store
        self._turns = turns
        self._pool = pool
        self._pins = pins
        self._keep_s = keep_s
        self._next_orphans_s = 0.0

    async def remove_dropped(self, horizon_now: Callable[[], Awaitable[Horizon]]) -> bool:
        """Remove bodies that were dropped long ago and that nobody reads. Return whether there may
        be more of them."""
        if not await self._turns.may_remove():
            return False
        horizon = await horizon_now()
        free: list[int] = []
        rows = (await self._pool.run(DROPPED_APART, wire.int8(self._keep_s))).rows
        for row in rows:
            content_id, stamp = (wire.number_of(cell or b"") for cell in row)
            if horizon.frees(content_id, stamp) and content_id not in self._pins:
                free.append(content_id)
        if free:
            await self._store.remove(free)
            ids = wire.int8s(free)
            await self._pool.write(REMOVE_DROPPED, lambda _: (ids,))
        return bool(free) and len(rows) == DROPPED_MAX

    async def remove_orphans_in_time(self) -> None:
        """As `remove_orphans`, once in some hours."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._next_orphans_s and await self._turns.may_remove():
            self._next_orphans_s = now_s + _ORPHANS_AGAIN_S
            await self.remove_orphans()
            self._next_orphans_s = now_s + _ORPHANS_S

    async def remove_orphans(self) -> None:
        """Remove bodies that have no row. They were on their way to a gateway that died, or belong
        to a state before the database was recovered."""
        count = 0
        async for ids in self._store.ids():
            for at in range(0, len(ids), _ASKED_MAX):
                count += await self._remove_unowned(ids[at : at + _ASKED_MAX])
        if count:
            _log.info("%d bodies without an owner were removed from %s", count, self._store.shown)

    async def _remove_unowned(self, ids: Sequence[int]) -> int:
        """Remove those of these bodies that are old and have no row; return how many."""
        # Few are left, so the place tells the ages of few.
        young_and_old = await self._store.states(await self._unowned(ids))
        keep_s = max(self._keep_s, ORPHANS_KEEP_S)
        old = [body.id for body in young_and_old if body.age_s > keep_s]
        # The rows are asked again, after the ages: a row comes after its body.
        if not old or not (orphans := await self._unowned(old)):
            return 0
        if not await self._turns.may_remove():
            return 0
        await self._store.remove(orphans)
        return len(orphans)

    async def _unowned(self, ids: Sequence[int]) -> list[int]:
        if not ids:
            return []
        rows = (await self._pool.run(UNOWNED, wire.int8s(ids))).rows
        return [wire.number_of(row[0] or b"") for row in rows]
