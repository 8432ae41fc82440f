"""Precedence on one blob, so that a commit with a long preparation is not outdated for ever.

Lives here: the order, within this process. Must not live here: correctness, which is the engine's.
A commit is refused when its inputs have changed, on whichever gateway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from strongroom.engines.base import Partition


class Precedence:
    """The operations with precedence on a blob, for which other operations wait."""

    def __init__(self) -> None:
        self._taken: dict[Partition, set[asyncio.Event]] = {}

    @contextmanager
    def hold(self, partition: Partition) -> Iterator[None]:
        """Within this context, `wait_for_holders` waits. Several callers may hold it at once."""
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

    async def wait_for_holders(self, partition: Partition) -> None:
        """Wait until all present holders of precedence are done; later ones are not waited for."""
        for done in tuple(self._taken.get(partition, ())):
            await done.wait()
