"""Lanes: sessions that are opened again when they are lost, and the pools that share them out.

Lives here: `Lane`, `Pool`, and `Batcher`, which makes one statement of the calls of one turn of the
loop. Must not live here: a single session (session.py), the outcome of a commit (commits.py).

Each lane has a row in `outcomes`, its slot. When a lane opens a session, it writes this row, and
waits until the write is confirmed. Everything that the new session can see lies before this write
in the log. So it is as durable as the write, on the standbys too: nothing unconfirmed is answered.
The write also counts the epoch of the slot up, so that a commit of an older session is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Final, Generic, TypeVar
from weakref import WeakSet

from strongroom.engines.base import Unavailable
from strongroom.engines.postgres import wire
from strongroom.engines.postgres.address import Address
from strongroom.engines.postgres.checks import settle
from strongroom.engines.postgres.schema import CONFIRM, STATEMENTS, Statement
from strongroom.engines.postgres.session import (
    Answer,
    Session,
    SessionLost,
    SqlError,
    StoreMissing,
    StoreRefused,
)

A = TypeVar("A")
R = TypeVar("R")

PATIENCE_S: Final = 10.0
"""For so long a call waits for a database that does not answer, before it fails."""
AGAIN_S: Final = 0.02
_SETTLE_S: Final = 5.0
_PAUSES_S: Final = (0.02, 0.05, 0.1, 0.2, 0.4)
_TOO_MANY: Final = ("53300", "too many", "remaining connection slots")
# A statement is prepared already, or not at all.
_OTHERS_STATEMENTS: Final = ("42P05", "26000")
POOLED: Final = (
    "a pooler between this server and PostgreSQL lends its connections by transaction; set its "
    "pool_mode to session, or connect to PostgreSQL itself"
)
MISSING: Final = (
    "this database has no store; make one with `strongroom store init URL`, by a role that may "
    "create tables"
)
_log = logging.getLogger(__name__)


class Opener:
    """Opens sessions of a store, at the primary that was promoted last.

    Arguments:
        schema: the schema in which its tables are.

    Attributes:
        settings: those of the server, as the last session found them.
    """

    def __init__(self, address: Address, schema: str) -> None:
        self.address = address
        self.schema = schema
        self.settings: dict[str, str] = {}
        self._timeline = 0
        self._sessions: WeakSet[Session] = WeakSet()

    async def open(self, notified: Callable[[str], None] | None = None) -> Session:
        """Try one host after the other. Raises: StoreRefused: as one of them, which may be written
        to; SessionLost: as the last one."""
        failure: SessionLost | StoreRefused = SessionLost("the URL names no host")
        for conninfo in self.address.hosts:
            try:
                return await self._open(conninfo, notified)
            except SessionLost as error:
                failure = failure if isinstance(failure, StoreRefused) else error
            except StoreRefused as error:
                failure = error
        raise failure

    async def _open(self, conninfo: bytes, notified: Callable[[str], None] | None) -> Session:
        timeout_s = self.address.timeout_s
        session = await Session.connect(conninfo, timeout_s, notified)
        try:
            async with asyncio.timeout(_SETTLE_S):
                self.settings = await settle(session, self.schema, self.address.demanded)
                await session.prepare(STATEMENTS)
            self._check_timeline(session)
        except SqlError as error:
            session.close()
            if error.ends_session:
                raise SessionLost(str(error)) from None
            raise _refusal(error) from None
        except TimeoutError:
            session.close()
            raise SessionLost("the server accepts connections, but does not answer") from None
        except BaseException:
            session.close()
            raise
        self._sessions.add(session)
        return session

    def _check_timeline(self, session: Session) -> None:
        """After a promotion, end all sessions of the old primary: what they show may be old."""
        if session.timeline < self._timeline:
            raise SessionLost("this server was the primary before another one was promoted")
        if session.timeline > self._timeline:
            self._timeline = session.timeline
            for one in [one for one in self._sessions if one.timeline < session.timeline]:
                one.close()

    async def probe(self) -> None:
        """Look whether another primary serves now, when the present one does not answer."""
        with contextlib.suppress(SessionLost, StoreRefused):
            (await self.open()).close()


def _refusal(error: SqlError) -> StoreRefused:
    if error.state in ("42P01", "42883", "3F000"):
        return StoreMissing(MISSING)
    if error.state == "42501":
        return StoreRefused(
            f"the role may not use the store ({error.text}); `strongroom store init URL "
            "--print-sql ROLE` shows what it must be granted"
        )
    if error.state in _OTHERS_STATEMENTS:
        return StoreRefused(POOLED)
    return StoreRefused(f"PostgreSQL cannot serve the store: {error}")


class Lane:
    """One slot of a gateway, with at most one session.

    Attributes:
        epoch: of the slot's present session.
        batch: the number of the last commit of the slot that happened, as the session found it.
        failed: the units of that commit that failed.
    """

    def __init__(self, opener: Opener, gateway: int, slot: int) -> None:
        self._opener = opener
        self._gateway = gateway
        self.slot = slot
        self._session: Session | None = None
        self._opening: Opening | None = None
        self.epoch = self.batch = 0
        self.failed: list[int] = []

    async def session(self, patience_s: float = PATIENCE_S) -> Session:
        """Return the session, opened and confirmed.

        Raises: Unavailable: the database did not answer for so long.
        """
        if self._session is not None and not self._session.is_lost:
            return self._session
        if self._opening is None or self._opening.is_over:
            self._opening = Opening(self._confirmed)
        self._session = await self._opening.session(patience_s)
        return self._session

    async def _confirmed(self) -> Session:
        session = await self._opener.open()
        try:
            await self.confirm(session)
        except BaseException:
            session.close()
            raise
        return session

    async def confirm(self, session: Session) -> None:
        """Write the slot's row, and return when the write is safe wherever it must be.

        Raises: SessionLost.
        """
        while True:
            try:
                answer = await session.run(CONFIRM, wire.int4(self._gateway), wire.int4(self.slot))
            except SqlError as error:
                raise SessionLost(str(error)) from None
            epoch, batch, failed, _ = answer.rows[0]
            self.epoch = wire.number_of(epoch or b"")
            self.batch = wire.number_of(batch or b"")
            self.failed = wire.numbers_of(failed or b"")
            if not answer.warned:
                return

    def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._session is not None:
            self._session.close()


class Opening:
    """Opens a session, again and again, until it succeeds. Callers come and go meanwhile.

    A session that waits for a standby is not given up with its caller: its server process would
    wait on, and soon no connection would be left.

    Arguments:
        accepts_refusal: whether a server that cannot carry the store ends it. Later on, such a
            server may be a standby that is about to become the primary.
    """

    def __init__(
        self, open_: Callable[[], Awaitable[Session]], *, accepts_refusal: bool = False
    ) -> None:
        self._open = open_
        self._accepts_refusal = accepts_refusal
        self._failure: Exception | None = None
        self._task = asyncio.ensure_future(self._until_open())

    @property
    def is_over(self) -> bool:
        return self._task.done()

    async def session(self, patience_s: float) -> Session:
        """Raises: Unavailable, with the reason of the last attempt."""
        try:
            async with asyncio.timeout(patience_s):
                return await asyncio.shield(self._task)
        except TimeoutError:
            raise unavailable(self._failure) from None

    async def _until_open(self) -> Session:
        for attempt in itertools.count():
            try:
                return await self._open()
            except (SessionLost, StoreRefused) as error:
                if self._accepts_refusal and isinstance(error, StoreRefused):
                    raise
                self._failure = error
            await asyncio.sleep(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)])
        raise AssertionError("it ends when it succeeds")

    def cancel(self) -> None:
        self._task.cancel()
        self._task.add_done_callback(_close_opened)


def _close_opened(task: asyncio.Task[Session]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


def unavailable(error: Exception | None) -> Unavailable:
    """Why the database cannot be used, in words for users."""
    if isinstance(error, StoreRefused):
        return error
    text = str(error or "") or "it does not answer"
    if any(sign in text for sign in _TOO_MANY):
        _log.error(
            "PostgreSQL has no connection left: raise its max_connections, or lower "
            "--store-connections at the gateways"
        )
    return Unavailable(f"the database cannot be reached: {text}")


class Pool:
    """Lanes for statements that may be repeated."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = lanes
        self._free = deque(lanes)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._writers = asyncio.Semaphore(max(1, len(lanes) // 2))
        self._running: set[asyncio.Task[Answer]] = set()

    def __len__(self) -> int:
        return len(self.lanes)

    @contextlib.asynccontextmanager
    async def lane(self) -> AsyncIterator[Lane]:
        """Lend a lane, in the order of the requests."""
        while not self._free:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()
                raise
        lane = self._free.popleft()
        try:
            yield lane
        finally:
            self._free.append(lane)
            self._wake()

    async def run(self, statement: Statement, *values: bytes | None) -> Answer:
        """Execute a statement that changes nothing.

        Raises: Unavailable: it was not answered within PATIENCE_S.
        """
        return await self._limited(self._run(statement, lambda _: values))

    async def write(
        self, statement: Statement, values: Callable[[int], Sequence[bytes | None]]
    ) -> Answer:
        """Execute a statement that may be repeated. Such statements may wait for a standby, so half
        of the lanes are left for reads.

        Arguments:
            values: returns the parameters for the slot of a lane.

        Raises: Unavailable: it was not answered within PATIENCE_S, and may yet happen; Full.
        """
        return await self._limited(self._write(statement, values))

    async def _limited(self, work: Coroutine[object, object, Answer]) -> Answer:
        """A caller that is cancelled, or has waited too long, leaves the work to end by itself."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await asyncio.shield(task)
        except TimeoutError:
            raise unavailable(None) from None

    def _ended(self, task: asyncio.Task[Answer]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have gone

    async def _write(
        self, statement: Statement, values: Callable[[int], Sequence[bytes | None]]
    ) -> Answer:
        async with self._writers:
            return await self._run(statement, values)

    async def _run(
        self, statement: Statement, values: Callable[[int], Sequence[bytes | None]]
    ) -> Answer:
        async with self.lane() as lane:
            return await run_again(lane, statement, *values(lane.slot))

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def close(self) -> None:
        """End all sessions, and what waits for them."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for lane in self.lanes:
            lane.close()


async def run_again(lane: Lane, statement: Statement, *values: bytes | None) -> Answer:
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
        except SqlError as error:
            if not error.is_transient or loop.time() >= until_s:
                raise error.as_engine_error() from None
            await asyncio.sleep(AGAIN_S)
            continue
        if not answer.warned:
            return answer


class Batcher(Generic[A, R]):
    """Collects the calls of one turn of the loop, and those that come while all lanes are busy.

    Arguments:
        execute: answers several calls by one statement, in their order.
        lanes: how many statements may be under way.
        batch_max: how many calls become one statement.
    """

    def __init__(
        self,
        execute: Callable[[Sequence[A]], Awaitable[Sequence[R]]],
        lanes: int,
        batch_max: int = 256,
    ) -> None:
        self._execute = execute
        self._idle = lanes
        self._batch_max = batch_max
        self._calls: deque[tuple[A, asyncio.Future[R]]] = deque()
        self._is_scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()

    def call(self, argument: A) -> asyncio.Future[R]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        self._calls.append((argument, answer))
        if not self._is_scheduled and self._idle:
            self._is_scheduled = True
            loop.call_soon(self._start)
        return answer

    def _start(self) -> None:
        self._is_scheduled = False
        while self._calls and self._idle:
            count = min(self._batch_max, len(self._calls))
            batch = [self._calls.popleft() for _ in range(count)]
            self._idle -= 1
            task = asyncio.ensure_future(self._answer(batch))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._idle += 1
        self._start()

    async def _answer(self, batch: Sequence[tuple[A, asyncio.Future[R]]]) -> None:
        try:
            results = await self._execute([argument for argument, _ in batch])
        except Exception as error:  # whatever it is, each caller is told
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
                    answer.exception()  # its caller may have gone
            return
        for (_, answer), result in zip(batch, results, strict=True):
            if not answer.done():
                answer.set_result(result)

    async def drain(self) -> None:
        """Return when all calls are answered."""
        while self._tasks or self._calls:
            self._start()
            await asyncio.gather(*self._tasks, return_exceptions=True)
