"""Lanes: the slots of a gateway with their sessions, and the pools that share them out.

Lives here: `Lane` and `Pool`. Must not live here: opening sessions (openers.py), one statement of
several calls (batcher.py), the outcome of a commit (commits.py).

Each lane has a row in `slots`, its slot. When a lane opens a session, it writes this row, and
waits until the write is confirmed. Everything that the new session can see lies before this write
in the log. So it is as durable as the write, on the standbys too: nothing unconfirmed is answered.
The write also counts the epoch of the slot up, so that a commit of an older session is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Final

from strongroom.engines.postgres.sessions.openers import Opening, SessionOpener, unavailable
from strongroom.engines.postgres.sessions.session import (
    DatabaseSession,
    SessionLost,
    StatementRefused,
    StatementResult,
)
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import CONFIRM, Statement

PATIENCE_S: Final = 10.0
"""For so long a call waits for a database that does not answer, before it fails."""
AGAIN_S: Final = 0.02


class Lane:
    """One slot of a gateway, with at most one session.

    Attributes:
        epoch: by which the slot's present session finds the row.
        batch: the number of the last commit of the slot that happened, as the session found it.
        failed: the units of that commit that failed.
    """

    def __init__(self, opener: SessionOpener, gateway: int, slot: int) -> None:
        self._opener = opener
        self._gateway = gateway
        self.slot = slot
        self._session: DatabaseSession | None = None
        self._opening: Opening | None = None
        self.epoch = self.batch = 0
        self.failed: list[int] = []

    async def session(self, patience_s: float = PATIENCE_S) -> DatabaseSession:
        """Return the session, opened and confirmed.

        Raises: Unavailable: the database did not answer for so long.
        """
        if self._session is not None and not self._session.is_lost:
            return self._session
        if self._opening is None or self._opening.has_failed:
            self._opening = Opening(self._confirmed)
        self._session = await self._opening.session(patience_s)
        self._opening = None
        return self._session

    async def _confirmed(self) -> DatabaseSession:
        session = await self._opener.open()
        try:
            await self.confirm(session)
        except BaseException:
            session.close()
            raise
        return session

    async def confirm(self, session: DatabaseSession) -> None:
        """Write the slot's row, and return when the write is safe wherever it must be.

        Raises: SessionLost.
        """
        while True:
            try:
                answer = await session.run(CONFIRM, wire.int4(self._gateway), wire.int4(self.slot))
            except StatementRefused as error:
                session.close()  # what the commit before came to is asked in another one
                raise SessionLost(str(error)) from None
            epoch, batch, failed = answer.rows[0]
            self.epoch = wire.number_of(epoch or b"")
            self.batch = wire.number_of(batch or b"")
            self.failed = wire.numbers_of(failed or b"")
            if not answer.warned:
                return
            await asyncio.sleep(AGAIN_S)

    def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._session is not None:
            self._session.close()


class Pool:
    """Lanes for statements that may be repeated."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = lanes
        self._free = deque(lanes)
        self._waiting: deque[asyncio.Future[Lane]] = deque()
        self._writers = asyncio.Semaphore(max(1, len(lanes) // 2))
        self._running: set[asyncio.Task[StatementResult]] = set()

    def __len__(self) -> int:
        return len(self.lanes)

    @contextlib.asynccontextmanager
    async def lane(self) -> AsyncIterator[Lane]:
        """Lend a lane, in the order of the requests."""
        lane = self._free.popleft() if self._free else await self._next()
        try:
            yield lane
        finally:
            self._give(lane)

    async def _next(self) -> Lane:
        turn: asyncio.Future[Lane] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give(turn.result())
            raise

    async def run(self, statement: Statement, *values: bytes | None) -> StatementResult:
        """Execute a statement that changes nothing.

        Raises: Unavailable: it was not answered within PATIENCE_S.
        """
        return await self._limited(self._run(statement, lambda _: values))

    async def write(
        self, statement: Statement, values: Callable[[int], Sequence[bytes | None]]
    ) -> StatementResult:
        """Execute a statement that may be repeated. Such statements may wait for a standby, so half
        of the lanes are left for reads.

        Arguments:
            values: returns the parameters for the slot of a lane.

        Raises: Unavailable: it was not answered within PATIENCE_S, and may yet happen; Full.
        """
        return await self._limited(self._write(statement, values))

    async def _limited(self, work: Coroutine[object, object, StatementResult]) -> StatementResult:
        """A caller that is cancelled, or has waited too long, leaves the work to end by itself."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await asyncio.shield(task)
        except TimeoutError:
            raise unavailable(None) from None

    def _ended(self, task: asyncio.Task[StatementResult]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have gone

    async def _write(
        self, statement: Statement, values: Callable[[int], Sequence[bytes | None]]
    ) -> StatementResult:
        async with self._writers:
            return await self._run(statement, values)

    async def _run(
        self, statement: Statement, values: Callable[[int], Sequence[bytes | None]]
    ) -> StatementResult:
        async with self.lane() as lane:
            return await run_again(lane, statement, *values(lane.slot))

    def _give(self, lane: Lane) -> None:
        """Hand a lane to the first who waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(lane)
                return
        self._free.append(lane)

    async def close(self) -> None:
        """End all sessions, and what waits for them."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for lane in self.lanes:
            lane.close()


async def run_again(lane: Lane, statement: Statement, *values: bytes | None) -> StatementResult:
    """Execute a statement that may be repeated, until it is answered without a warning.

    Raises: Unavailable, Full.
    """
    loop = asyncio.get_running_loop()
    until_s = loop.time() + PATIENCE_S
    while True:
        session = await lane.session(max(0.1, until_s - loop.time()))
        try:
            answer = await session.run(statement, *values)
        except SessionLost as error:
            if loop.time() >= until_s:
                raise unavailable(error) from None
            continue
        except StatementRefused as error:
            if not error.is_transient or loop.time() >= until_s:
                raise error.as_engine_error() from None
            await asyncio.sleep(AGAIN_S)
            continue
        if not answer.warned:
            return answer
        await asyncio.sleep(AGAIN_S)
