"""Removing contents: those that no commit adopted, and those that were dropped.

Lives here: `ContentRemoval`. Must not live here: when a dropped content is free (`Horizon`), bodies
apart that were dropped (apart/sweep.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Sequence
from typing import Final

from strongroom.engines.base import EngineError
from strongroom.engines.gateways import Horizon
from strongroom.engines.postgres.contents.rows import ApartBodies, ContentWriter
from strongroom.engines.postgres.sessions.batcher import Batcher
from strongroom.engines.postgres.sessions.lanes import Pool
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import (
    DISCARD,
    DISCARD_APART,
    DROPPED,
    DROPPED_MAX,
    REMOVE_DROPPED,
    REMOVE_ORPHANS,
)

_REMOVALS_S: Final = 5.0
_REMOVED_BYTES: Final = 256 * 1024 * 1024
"""About so much is deleted by one statement."""
_log = logging.getLogger(__name__)


class ContentRemoval:
    """What one gateway removes."""

    def __init__(self, pool: Pool, gateway: ContentWriter, apart: ApartBodies | None) -> None:
        self._pool = pool
        self._gateway = gateway
        self._apart = apart
        self._discards: Batcher[tuple[int, bool], None] = Batcher(self._discard_rows, 1)
        # Of its own, so that a folder that hangs delays no other row.
        self._removals: Batcher[int, None] = Batcher(self._remove_apart, 1)

    def delete(self, content_id: int, is_apart: bool) -> None:
        self._discards.call((content_id, is_apart))

    async def _discard_rows(self, contents: Sequence[tuple[int, bool]]) -> list[None]:
        gateway = (wire.int4(self._gateway.number), wire.int8(self._gateway.incarnation))
        if rows := [one for one, is_apart in contents if not is_apart]:
            ids = wire.int8s(rows)
            await self._pool.write(DISCARD, lambda slot: (ids, *gateway, wire.int4(slot)))
        if bodies := [one for one, is_apart in contents if is_apart]:
            apart = wire.int8s(bodies)
            answer = await self._pool.write(
                DISCARD_APART, lambda slot: (apart, *gateway, wire.int4(slot))
            )
            for (content_id,) in answer.rows:
                self._removals.call(wire.number_of(content_id or b""))
        return [None] * len(contents)

    async def _remove_apart(self, ids: Sequence[int]) -> list[None]:
        """Remove bodies that this gateway wrote, and that no commit has adopted. What fails is left
        to the sweep."""
        assert self._apart is not None, "the bodies lay there"
        try:
            await self._apart.store.remove(ids)
        except EngineError as error:
            _log.debug("bodies are left to the sweep: %s", error)
        return [None] * len(ids)

    async def remove_dropped(self, horizon: Horizon, pins: Container[int]) -> bool:
        """Delete the chunks of dropped contents that nobody reads. Return whether there may be more
        of them."""
        rows = (await self._pool.run(DROPPED)).rows
        free: list[int] = []
        size_bytes = 0
        for row in rows:
            content_id, stamp, content_bytes = (wire.number_of(cell or b"") for cell in row)
            if horizon.frees(content_id, stamp) and content_id not in pins:
                free.append(content_id)
                size_bytes += content_bytes
            if size_bytes >= _REMOVED_BYTES:
                break
        if free:
            ids = wire.int8s(free)
            await self._pool.write(REMOVE_DROPPED, lambda _: (ids,))
        return size_bytes >= _REMOVED_BYTES or len(free) == DROPPED_MAX

    async def remove_orphans(self) -> None:
        """Delete what dead gateways wrote and no commit adopted."""
        number = wire.int4(self._gateway.number)
        await self._pool.write(REMOVE_ORPHANS, lambda slot: (number, wire.int4(slot)))

    async def drain(self) -> None:
        await self._discards.drain()
        try:
            async with asyncio.timeout(_REMOVALS_S):
                await self._removals.drain()
        except TimeoutError:
            _log.debug("bodies are left to the sweep: their place does not answer")
