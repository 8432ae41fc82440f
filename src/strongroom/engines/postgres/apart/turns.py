"""Turns: by which a database proves that it, and no copy of it, is served with a place of bodies.

Lives here: `Turns`, one gateway's part in it. Must not live here: what is removed (sweep.py).

One gateway holds the right to sweep. Every few seconds it writes a new turn, first to the database
and then into the place's mark. All gateways compare: a database that does not know the turn of the
place is behind it. It is a copy, or was recovered, so its gateways end.

A copy that was made just now knows the turn, too. So whoever gets the right only looks on for
OBSERVE_S before its first turn, and removes nothing. If the mark changes meanwhile, another
database is being served with the place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final
from uuid import UUID

import msgspec

from strongroom.engines.base import EngineError
from strongroom.engines.bodies.base import BodiesUnfit, BodyStore
from strongroom.engines.bodies.mark import BodiesMark
from strongroom.engines.gateways import ExclusiveRight, Gateways
from strongroom.engines.postgres.apart.place import OTHER_STATE
from strongroom.engines.postgres.sessions.lanes import Pool
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import KNOWS_TURN, NEXT_TURN

SWEEP: Final = b"bodies sweep"
TURN_S: Final = 10.0
OBSERVE_S: Final = 30.0


class Turns:
    """The turns of a place, as one gateway sees and writes them.

    Arguments:
        failed: is told that another database has the place.
        observe_s: for how long a new holder only looks on.
    """

    def __init__(
        self,
        store: BodyStore,
        gateways: Gateways,
        pool: Pool,
        failed: Callable[[EngineError], None],
        observe_s: float = OBSERVE_S,
    ) -> None:
        self._store = store
        self._gateways = gateways
        self._pool = pool
        self._failed = failed
        self._observe_s = observe_s
        self._right: ExclusiveRight | None = None
        self._own: tuple[BodiesMark, ...] = ()
        self._since_s = 0.0
        self._tending = asyncio.Lock()

    async def look(self) -> BodiesMark:
        """Compare the mark with the database.

        Raises: BodiesUnfit: another database has the place, and this gateway ends; Unavailable.
        """
        mark = await self._store.look()
        generation, turn = (str(one).encode() for one in (mark.generation, mark.turn))
        ((same, known, database),) = (await self._pool.run(KNOWS_TURN, generation, turn)).rows
        own = (database or b"").decode()
        if same == b"\1" and known == b"\1" and mark.database in ("", own):
            return msgspec.structs.replace(mark, database=own)
        error = BodiesUnfit(OTHER_STATE.format(place=self._store.shown))
        self._failed(error)
        raise error

    async def tend(self) -> None:
        """Look, and write the next turn if this gateway has the right to. Raises as `look`."""
        async with self._tending:
            await self._tend(await self.look())

    async def _tend(self, mark: BodiesMark) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._right is None or self._right.is_lost:
            self.release()  # once lost, it stays lost, and nobody else gets it before
            self._right = await self._taken()
            self._since_s = now_s
        elif not self._own:
            if now_s - self._since_s >= self._observe_s:
                await self._turn(mark)
        elif now_s - self._since_s >= TURN_S:
            await self._turn(mark)

    async def may_remove(self) -> bool:
        """Whether this gateway may remove bodies that it has not written itself. It reads the mark
        anew. Raises as `look`."""
        if not self._own or self._right is None or not self._right.is_held:
            return False
        return await self.look() in self._own

    async def _taken(self) -> ExclusiveRight | None:
        if not self._gateways.owns(SWEEP):
            return None
        return await self._gateways.hold(SWEEP)

    async def _turn(self, mark: BodiesMark) -> None:
        run = (wire.int4(self._gateways.number), wire.int8(self._gateways.incarnation))
        generation, turn = (str(one).encode() for one in (mark.generation, mark.turn))
        rows = (await self._pool.write(NEXT_TURN, lambda _: (generation, turn, *run))).rows
        if not rows or self._right is None or not self._right.is_held:
            return
        own = msgspec.structs.replace(mark, turn=UUID((rows[0][0] or b"").decode()))
        # Whoever asks meanwhile may see the mark before or after, and both are of this gateway. So
        # is one that is put later than this call was waited for.
        self._own = (*self._own[-1:], own)
        self._since_s = asyncio.get_running_loop().time()
        await self._store.put_mark(own)

    def release(self) -> None:
        """Give the right back. Idempotent."""
        self._own = ()
        if self._right is not None:
            self._right.release()
            self._right = None
