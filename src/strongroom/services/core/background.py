"""The removal of records and contents that are no longer needed, in commits of a bounded size.

Lives here: `RemovalBatch`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from strongroom.engines.base import Commit, Key, Partition, Step, Write
from strongroom.services.core.decisions import Decision, Found
from strongroom.services.core.runner import Services
from strongroom.values import Purpose

REMOVALS_PER_COMMIT: Final = 256


class RemovalBatch:
    """Collects removals and commits them when there are enough; it never writes a value.

    Removals are committed in the order in which they were added, so a crash leaves a prefix of them
    done. Add an index entry only after everything that is reachable through it alone.

    Arguments:
        pause_s: pause after each commit, so that requests are served first.
    """

    def __init__(self, services: Services, pause_s: float) -> None:
        self._services = services
        self._pause_s = pause_s
        self._steps: list[tuple[Partition, list[Write], list[int]]] = []
        self._weight = 0

    async def add(
        self, partition: Partition, record_keys: Iterable[Key] = (), contents: Iterable[int] = ()
    ) -> None:
        """Add records and contents to remove in one commit. Many `contents` are split and removed
        first."""
        writes = [Write(key, None) for key in record_keys]
        drops = list(contents)
        while len(drops) + len(writes) > REMOVALS_PER_COMMIT:
            await self._put(partition, [], drops[:REMOVALS_PER_COMMIT])
            drops = drops[REMOVALS_PER_COMMIT:]
        if writes or drops:
            await self._put(partition, writes, drops)

    async def _put(self, partition: Partition, writes: list[Write], drops: list[int]) -> None:
        weight = len(writes) + len(drops)
        if self._weight + weight > REMOVALS_PER_COMMIT:
            await self.commit()
        self._weight += weight
        if self._steps and self._steps[-1][0] == partition:
            self._steps[-1][1].extend(writes)
            self._steps[-1][2].extend(drops)
        else:
            self._steps.append((partition, writes, drops))

    async def commit(self) -> None:
        if not self._steps:
            return
        steps = tuple(
            Step(partition, tuple(writes), drop=tuple(dict.fromkeys(drops)))
            for partition, writes, drops in self._steps
        )
        self._steps, self._weight = [], 0
        await self._services.commit(_Remove(steps[0].partition, (), Purpose.FREEING, steps))
        await asyncio.sleep(self._pause_s)


class _Remove(Decision[None], frozen=True):
    steps: tuple[Step, ...]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        return Commit(None, self.steps)
