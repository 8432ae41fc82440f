"""The scrub of a store: when a pass begins, how fast it goes, and what is kept and shown of it.

Lives here: the loop in the background. Must not live here: what is read (pieces.py), the arithmetic
of rates (pace.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final

import apsw

from strongroom.engines.base import EngineError
from strongroom.engines.embedded.scrub import kept, pace
from strongroom.engines.embedded.scrub.pieces import ScrubPieces
from strongroom.engines.embedded.scrub.source import ScrubSource, ScrubThread
from strongroom.engines.embedded.scrub.state import ScrubState
from strongroom.values import ScrubFacts

# A start reads enough by itself.
START_AFTER_S: Final = 60.0
SAVE_EVERY_S: Final = 300.0
_SAVE_FOUND_AFTER_S: Final = 10.0
_LOOK_AGAIN_EVERY_S: Final = 3600.0
_RETRY_S: Final = 60.0

_log = logging.getLogger(__name__)


class Scrub:
    """The scrub of one store. Used on the event loop; `run` or `one_pass`, then `close`.

    Arguments:
        interval_s: how long a pass may take, and how often one begins.
        wall_s: returns the time in seconds since 1970.
        sleep: pauses for some seconds, by the time of the loop.
    """

    def __init__(
        self,
        source: ScrubSource,
        interval_s: float,
        wall_s: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._source = source
        self._interval_s = interval_s
        self._wall_s = wall_s
        self._sleep = sleep
        self._thread = ScrubThread(source.connect)
        self._state = ScrubState(kept.load(source.layout.path))
        self._pieces = ScrubPieces(source, self._thread, self._state, wall_s, sleep)
        self._loop_s = asyncio.get_running_loop().time
        self._saved = self._state.kept()
        self._saved_s = self._looked_s = self._loop_s()
        self._due_s = wall_s()
        self._total_bytes = self._read_bytes = 0

    def facts(self) -> ScrubFacts:
        state = self._state
        return ScrubFacts(
            interval_s=self._interval_s,
            progress=self._progress(),
            read_bytes=self._read_bytes,
            damaged=state.findings.count,
            began_s=self._due_s if state.began_s is None else state.began_s,
            ended_s=state.ended_s,
        )

    async def run(self) -> None:
        """Runs until cancelled. What cannot be read at present is tried again later."""
        is_waiting = False
        try:
            await self._sleep(START_AFTER_S)
            while True:
                try:
                    await self._wait_until_due()
                    await self.one_pass()
                    await self._thread.close()
                    is_waiting = False
                except (EngineError, apsw.Error, OSError, MemoryError) as error:
                    if not is_waiting:
                        _log.warning("the scrub waits: %s", error)
                    is_waiting = True
                    await self._save()
                    await self._sleep(_RETRY_S)
        finally:
            await self.close()

    async def one_pass(self) -> None:
        """Begin a pass, or go on with the one that was interrupted, and end it. Raises as
        ScrubPieces.of_pass does."""
        self._state.begin_pass(self._wall_s())
        await self._pieces.open()
        await self._measure()
        async with aclosing(self._pieces.of_pass()) as pieces:
            began_s = self._loop_s()
            async for read_bytes in pieces:
                took_s = self._loop_s() - began_s
                self._read_bytes += read_bytes
                self._state.read_bytes += read_bytes
                await self._upkeep()
                await self._sleep(pace.pause_s(read_bytes, took_s, self._rate()))
                began_s = self._loop_s()
        self._state.end_pass(self._wall_s())
        await self._save()
        _log.info("the scrub has read everything; damaged places: %d", self._state.findings.count)

    async def close(self) -> None:
        """Keep what is to be kept, and end the thread. Idempotent."""
        try:
            await self._save()
        finally:
            await self._thread.close()

    async def _wait_until_due(self) -> None:
        while not self._state.is_running and self._state.began_s is not None:
            since_s = self._wall_s() - self._state.began_s
            if pace.is_due(since_s, self._interval_s):
                return
            left_s = self._interval_s - max(0.0, since_s)
            await self._sleep(min(_LOOK_AGAIN_EVERY_S, max(1.0, left_s)))
            await self._upkeep()
            await self._thread.close()  # until it is needed again

    async def _upkeep(self) -> None:
        now_s = self._loop_s()
        if now_s - self._looked_s >= _LOOK_AGAIN_EVERY_S:
            self._looked_s = now_s
            if self._state.findings.all():
                await self._pieces.look_again()
            if self._state.is_running:
                await self._measure()
        has_found = self._state.findings.all() != self._saved.findings
        if now_s - self._saved_s >= (_SAVE_FOUND_AFTER_S if has_found else SAVE_EVERY_S):
            await self._save()

    async def _measure(self) -> None:
        records_bytes = await self._thread.ask(lambda reader: reader.records_bytes())
        self._total_bytes = records_bytes + self._source.live_bytes()

    async def _save(self) -> None:
        """Keep the state, unless the disk is full: then a part of the pass is read again."""
        now = self._state.kept()
        self._saved_s = self._loop_s()
        if now == self._saved or not self._source.may_write():
            return
        layout = self._source.layout
        try:
            await self._thread.run(kept.save, layout.path, self._source.files, now)
        except (OSError, MemoryError) as error:
            _log.info("the state of the scrub cannot be kept now: %s", error)
        else:
            self._saved = now

    def _rate(self) -> float:
        since_s = self._wall_s() - (self._state.began_s or 0.0)
        left_bytes = max(0, self._total_bytes - self._state.read_bytes)
        return pace.rate_bytes_s(left_bytes, since_s, self._interval_s)

    def _progress(self) -> float:
        if not self._state.is_running:
            return 0.0 if self._state.ended_s is None else 1.0
        return min(0.99, self._state.read_bytes / max(1, self._total_bytes))
