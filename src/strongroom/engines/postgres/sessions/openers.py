"""Opening sessions: at which of several servers, again and again, and why it is refused.

Lives here: `SessionOpener`, `Opening`, and refusals as sentences for operators. Must not live here:
a single session (session.py), what a server must be (checks.py), who uses it (lanes.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakSet

from strongroom.engines.postgres.sessions.address import DatabaseAddress, addresses_of
from strongroom.engines.postgres.sessions.checks import Demands, settle
from strongroom.engines.postgres.sessions.session import (
    Away,
    DatabaseSession,
    DatabaseUnfit,
    SessionLost,
    StatementRefused,
    StoreMissing,
)
from strongroom.engines.postgres.sql.schema import STATEMENTS
from strongroom.engines.postgres.sql.versions import of_version, unfit_version

_SETTLE_S: Final = 5.0
_PAUSES_S: Final = (0.02, 0.05, 0.1, 0.2, 0.4)
_TOO_MANY: Final = ("53300", "too many", "remaining connection slots")
# A statement is prepared already, or not at all.
_OTHERS_STATEMENTS: Final = ("42P05", "26000")
# The words of libpq.
_READ_ONLY: Final = "session is read-only"
_WHY_READ_ONLY: Final = (
    ". Either this PostgreSQL is a standby, or default_transaction_read_only is on for the role or "
    "the database: set it to off"
)
POOLED: Final = (
    "a pooler between this server and PostgreSQL lends its connections by transaction; set its "
    "pool_mode to session, or connect to PostgreSQL itself"
)
MISSING: Final = (
    "this database has no store that the role may use; make one with `strongroom store init URL`, "
    "by a role that may create tables, or grant this role what `--print-sql ROLE` prints"
)
_log = logging.getLogger(__name__)


class SessionOpener:
    """Opens sessions of a store, at the primary that was promoted last.

    Arguments:
        schema: the schema in which its tables are.
        needs_standby: see Demands.

    Attributes:
        settings: those of the server, as the last session found them.
        sessions: how many were opened.
        refused: how often the server had no connection left.
        version: of the store's tables, as the last session found it.
    """

    def __init__(
        self, address: DatabaseAddress, schema: str, *, needs_standby: bool = False
    ) -> None:
        self.address = address
        self.schema = schema
        self.demands = Demands(address.demanded, needs_standby)
        self.settings: dict[str, str] = {}
        self.sessions = self.refused = 0
        self.version = 0
        self._timeline = 0
        self._sessions: WeakSet[DatabaseSession] = WeakSet()

    async def open(self, notified: Callable[[str], None] | None = None) -> DatabaseSession:
        """Try one host after the other. Raises: DatabaseUnfit: as one of them, which may be written
        to; SessionLost: as the last one."""
        failure: SessionLost | DatabaseUnfit = SessionLost("no host of the URL has an address")
        for parameters in self.address.hosts:
            for conninfo in await addresses_of(parameters, self.address.timeout_s):
                try:
                    return await self._open(conninfo, notified)
                except SessionLost as error:
                    self.refused += _is_too_many(str(error))
                    failure = failure if isinstance(failure, DatabaseUnfit) else error
                except DatabaseUnfit as error:
                    failure = error
        raise failure

    async def _open(
        self, conninfo: bytes, notified: Callable[[str], None] | None
    ) -> DatabaseSession:
        timeout_s = self.address.timeout_s
        session = await DatabaseSession.connect(conninfo, timeout_s, notified)
        try:
            async with asyncio.timeout(_SETTLE_S):
                self.settings = await settle(session, self.schema, self.demands)
                session.version = await _version(session)
                await session.prepare(of_version(STATEMENTS, session.version))
            self._check_timeline(session)
            self._check_version(session)
        except StatementRefused as error:
            session.close()
            if error.ends_session or error.is_transient:
                raise SessionLost(str(error)) from None
            raise refusal(error) from None
        except TimeoutError:
            session.close()
            raise SessionLost("the server accepts connections, but does not answer") from None
        except BaseException:
            session.close()
            raise
        self._sessions.add(session)
        self.sessions += 1
        return session

    def _check_timeline(self, session: DatabaseSession) -> None:
        """After a promotion, end all sessions of the old primary: what they show may be old."""
        if session.timeline < self._timeline:
            raise SessionLost("this server was the primary before another one was promoted")
        if session.timeline > self._timeline:
            self._timeline = session.timeline
            for one in [one for one in self._sessions if one.timeline < session.timeline]:
                one.close()

    def _check_version(self, session: DatabaseSession) -> None:
        """After a migration, end all sessions with statements for the version before."""
        self.version = session.version
        for one in [one for one in self._sessions if one.version < session.version]:
            one.close()

    async def probe(self) -> None:
        """Look whether another primary serves now, when the present one does not answer."""
        with contextlib.suppress(SessionLost, DatabaseUnfit):
            (await self.open()).close()


async def _version(session: DatabaseSession) -> int:
    """The version of the store's tables. Raises: DatabaseUnfit: this program does not serve it."""
    rows = await session.simple("SELECT version FROM store")
    if not rows:
        raise StoreMissing(MISSING)
    version = int(rows[0][0])
    if (unfit := unfit_version(version)) is not None:
        raise DatabaseUnfit(unfit)
    return version


def refusal(error: StatementRefused) -> DatabaseUnfit:
    """Why a server that refuses a statement cannot carry the store."""
    if error.state in ("42P01", "42883", "3F000"):
        return StoreMissing(MISSING)
    if isinstance(unfit := error.as_engine_error(), DatabaseUnfit):
        return unfit
    if error.state == "42703":
        return DatabaseUnfit(
            f"the schema has tables that are none of a store ({error.text}); name another schema"
        )
    if error.state in _OTHERS_STATEMENTS:
        return DatabaseUnfit(POOLED)
    return DatabaseUnfit(f"PostgreSQL cannot serve the store: {error}")


class Opening:
    """Opens a session, again and again, until it succeeds. Callers come and go meanwhile.

    A session that waits for a standby is not given up with its caller. Its process at the server
    would wait on, and soon no connection would be left.

    Arguments:
        accepts_refusal: whether a server that cannot carry the store ends it. Later on, such a
            server may be a standby that is about to become the primary.
    """

    def __init__(
        self, open_: Callable[[], Awaitable[DatabaseSession]], *, accepts_refusal: bool = False
    ) -> None:
        self._open = open_
        self._accepts_refusal = accepts_refusal
        self._failure: Exception | None = None
        self._task = asyncio.ensure_future(self._until_open())

    @property
    def has_failed(self) -> bool:
        """Whether it has ended without a session."""
        task = self._task
        return task.done() and (task.cancelled() or task.exception() is not None)

    async def session(self, patience_s: float) -> DatabaseSession:
        """Raises: Unavailable, with the reason of the last attempt."""
        try:
            async with asyncio.timeout(patience_s):
                return await asyncio.shield(self._task)
        except TimeoutError:
            raise unavailable(self._failure) from None

    async def _until_open(self) -> DatabaseSession:
        for attempt in itertools.count():
            try:
                return await self._open()
            except (SessionLost, DatabaseUnfit) as error:
                if self._accepts_refusal and isinstance(error, DatabaseUnfit):
                    raise
                self._failure = error
            await asyncio.sleep(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)])
        raise AssertionError("it ends when it succeeds")

    def cancel(self) -> None:
        self._task.cancel()
        self._task.add_done_callback(_close_opened)


def _close_opened(task: asyncio.Task[DatabaseSession]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


def _is_too_many(text: str) -> bool:
    return any(sign in text for sign in _TOO_MANY)


def unavailable(error: Exception | None) -> Away:
    """Why the database cannot be used, in words for users."""
    text = str(error or "") or "it does not answer"
    if _READ_ONLY in text:
        text += _WHY_READ_ONLY
    if _is_too_many(text):
        _log.error(
            "PostgreSQL has no connection left: raise its max_connections, or lower "
            "--store-connections at the gateways"
        )
    return Away(f"the database cannot be reached: {text}")
