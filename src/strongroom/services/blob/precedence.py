"""Precedence on one blob, so that a commit made from a long look is not overtaken for ever.

Lives here: the order, within this process. Must not live here: correctness, which is the engine's:
a commit is refused when what it was made from has changed, whoever changed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from strongroom.engines.base import Partition


class Precedence:
    """Those who take precedence on a blob, and those who give way until they are done."""

    def __init__(self) -> None:
        self._taken: dict[Partition, set[asyncio.Event]] = {}

    @contextmanager
    def take(self, partition: Partition) -> Iterator[None]:
        """Others that give way wait until this is left; several callers may hold it at once."""
        done = asyncio.Event()
        taken = self._taken.setdefault(partition, set())
        taken.add(done)
        try:
            yield
        finally:
            done.set()
            taken.discard(done)
            if not taken:
                del self._taken[partition]

    async def give_way(self, partition: Partition) -> None:
        """Return when those who take precedence now are done; later ones are not waited for."""
        for done in tuple(self._taken.get(partition, ())):
            await done.wait()
