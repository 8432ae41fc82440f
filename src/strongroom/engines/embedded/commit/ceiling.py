"""The durable ceiling of store time, and the engine's own commits that write it.

Lives here: one commit at a time that raises it, and the last one, which lowers it. Must not live
here: how far it rises (store_time.py), what else is committed (group_commit.py).
"""

from __future__ import annotations

import asyncio

from strongroom.engines.embedded.commit.futures import retrieve_exception
from strongroom.engines.embedded.commit.group_commit import Committer
from strongroom.engines.embedded.commit.store_time import DurableTime
from strongroom.engines.embedded.records.sqlite import Writer


class Ceiling:
    """The ceiling of one store. Used on the event loop."""

    def __init__(self, time: DurableTime, writer: Writer, committer: Committer) -> None:
        self._time = time
        self._writer = writer
        self._committer = committer
        self._rising: asyncio.Future[None] | None = None

    def rise_to(self, needed: int) -> asyncio.Future[None]:
        """Return a future that is done when a commit that raises the ceiling has ended. If such a
        commit was already in progress, the ceiling may still be below `needed`: call again then."""
        if self._rising is None or self._rising.done():
            self._rising = self._committer.work(lambda group: self._rise(needed))
            self._rising.add_done_callback(retrieve_exception)
        return self._rising

    def _rise(self, needed: int) -> None:
        # A test clock may have moved time since this was queued.
        ceiling = self._time.rise_soon(max(needed, self._time.now()))
        if ceiling is not None:
            self._writer.raise_ceiling(ceiling)

    def lower(self) -> None:
        """Lower the ceiling with the last commit, so that the next start need not wait for it."""
        last = self._committer.work(
            lambda group: self._writer.raise_ceiling(self._time.last_used())
        )
        last.add_done_callback(retrieve_exception)
