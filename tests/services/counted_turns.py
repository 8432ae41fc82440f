"""Counts the turns of the event loop that some work takes, with a clock that makes every pause end
its turn. In memory nothing else ends a turn."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from strongroom.services.core.runner import Services
from strongroom.slices import SliceTurns


class CountedTurns:
    """The number of turns so far."""

    def __init__(self) -> None:
        self.number = 0

    async def count(self) -> None:
        while True:
            self.number += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def counted_turns(on: Services) -> AsyncIterator[CountedTurns]:
    """Count turns during the block. Whatever is done there takes longer than a slice."""
    seconds = itertools.count()
    on.turns = on.store.turns = SliceTurns(lambda: float(next(seconds)))  # type: ignore[misc]
    turns = CountedTurns()
    counting = asyncio.ensure_future(turns.count())
    try:
        yield turns
    finally:
        counting.cancel()
