"""The durable ceiling of store time, as commits of the engine's own write it.

Lives here: one commit at a time that raises it, and the last one, which lowers it. Must not live
here: how far it rises (store_time.py), what else is committed (group_commit.py).
"""

from __future__ import annotations

import asyncio

from strongroom.engines.embedded.futures import retrieved
from strongroom.engines.embedded.group_commit import Committer
from strongroom.engines.embedded.records.sqlite import Writer
from strongroom.engines.embedded.store_time import DurableTime


class Ceiling:
    """The ceiling of one store. On the event loop."""

    def __init__(self, time: DurableTime, writer: Writer, committer: Committer) -> None:
        self._time = time
        self._writer = writer
        self._committer = committer
        self._rising: asyncio.Future[None] | None = None

    def rise_to(self, needed: int) -> asyncio.Future[None]:
        """Done when the ceiling has risen to the time `needed`, or when a commit that was to raise
        it already has ended: ask again then."""
        if self._rising is None or self._rising.done():
            self._rising = self._committer.work(lambda group: self._rise(needed))
            self._rising.add_done_callback(retrieved)
        return self._rising

    def _rise(self, needed: int) -> None:
        # Time may have been moved since this was queued.
        ceiling = self._time.rise_soon(max(needed, self._time.now()))
        if ceiling is not None:
            self._writer.raise_ceiling(ceiling)

    def lower(self) -> None:
        """Have the last commit leave a ceiling that the next start need not wait for."""
        last = self._committer.work(
            lambda group: self._writer.raise_ceiling(self._time.last_used())
        )
        last.add_done_callback(retrieved)
