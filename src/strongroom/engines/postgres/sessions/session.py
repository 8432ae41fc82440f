"""One session of PostgreSQL on the event loop, through libpq's calls that do not block.

Lives here: connecting, one statement at a time, and what an error means for the caller. Source:
PostgreSQL's manual, chapters "libpq" ("Asynchronous Command Processing") and "PostgreSQL Error
Codes". Must not live here: when to connect again (openers.py), what a server must be (checks.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import pq

from strongroom.engines.base import Busy, Full, Unavailable
from strongroom.engines.postgres.sql.schema import Statement
from strongroom.engines.postgres.sql.versions import VERSION

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

Row = list[bytes | None]

_BINARY: Final = pq.Format.BINARY
_DONE: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY)
_WAIT: Final = b"SyncRepWaitForLSN"
"""The function of PostgreSQL that warns of a commit which no standby has confirmed."""
# The messages of a refused connection have no SQLSTATE at the client.
_REFUSED_WORDS: Final = (
    *("authentication failed", "no pg_hba.conf entry", "no password supplied", "does not exist"),
    *("certificate", "does not support SSL", "permission denied", "is not permitted to log in"),
)
_NO_RIGHT: Final = "42501"
_FULL_STATES: Final = ("53100",)
# Deadlocks and the like; cancelled by an administrator; no room for locks.
_AGAIN_STATES: Final = ("40001", "40P01", "55P03", "57014", "53200")
_GONE_CLASSES: Final = ("08", "57P")
# A table, column or function is missing, returns something else, or went missing in a call.
_OTHER_TABLES_STATES: Final = ("42P01", "42703", "42883", "0A000", "XX000")
DEFAULTS: Final = {
    "application_name": "strongroom",
    # A standby's data may be old.
    "target_session_attrs": "read-write",
    "connect_timeout": "3",
    # The kernel detects a dead peer, also while the session is idle.
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Parameters of libpq where the URL does not give them."""


class Away(Unavailable, Busy):
    """The database does not answer, or this gateway may not use it at present; this call changed
    nothing. The same call may succeed soon."""


class DatabaseUnfit(Unavailable):
    """The database cannot carry this store; the text says why, and what to do. Trying again does
    not help."""


class StoreMissing(DatabaseUnfit):
    """The database has no tables of a store."""


class StoreReplaced(DatabaseUnfit):
    """Another store lies where this gateway's was."""


class StatementRefused(Exception):
    """The server refused a statement, which changed nothing.

    Attributes:
        state: the SQLSTATE, five characters.
        text: without details, which could quote values.
    """

    def __init__(self, state: str, text: str) -> None:
        self.state, self.text = state, text
        super().__init__(f"{text} (SQLSTATE {state})")

    @property
    def is_transient(self) -> bool:
        """Whether the same statement may succeed soon, in this session."""
        return self.state in _AGAIN_STATES

    @property
    def ends_session(self) -> bool:
        return self.state.startswith(_GONE_CLASSES)

    def as_engine_error(self) -> Full | Unavailable:
        if self.state == _NO_RIGHT:
            return DatabaseUnfit(
                f"the role may not use the store ({self.text}); `strongroom store init URL "
                "--print-sql ROLE` shows what it must be granted"
            )
        return Full() if self.state in _FULL_STATES else Unavailable(f"PostgreSQL: {self}")


class SessionLost(Exception):
    """The session has ended. What the last statement changed is unknown."""


class StatementResult:
    """The rows of one statement.

    Attributes:
        warned: whether the server ended the wait for its standbys: it may be missing there.
    """

    __slots__ = ("rows", "warned")

    def __init__(self, rows: list[Row], warned: bool) -> None:
        self.rows = rows
        self.warned = warned


class DatabaseSession:
    """One session; make it with `connect`. Only one statement at a time.

    Arguments:
        notified: is told the payload of each notification.

    Attributes:
        timeline: of the server; each promotion begins a new one.
        version: of the tables for which its statements were prepared.
    """

    def __init__(self, connection: PGconn, notified: Callable[[str], None] | None) -> None:
        self._pq = connection
        self._loop = asyncio.get_running_loop()
        self._notified = notified
        self._answer: asyncio.Future[StatementResult] | None = None
        self._rows: list[Row] = []
        self._error: StatementRefused | None = None
        self._fatal = False
        self._warned = False
        self._writing = False
        self.is_lost = False
        self.timeline = 0
        self.version = VERSION
        connection.nonblocking = 1
        connection.notice_handler = self._notice
        self._fd = connection.socket
        self._loop.add_reader(self._fd, self._readable)

    @classmethod
    async def connect(
        cls, conninfo: bytes, timeout_s: float, notified: Callable[[str], None] | None = None
    ) -> DatabaseSession:
        """Connect to one host; libpq's own time limit does not apply to calls that do not block.

        Raises: SessionLost: no server answers, or it may answer later; DatabaseUnfit: it refuses.
        """
        try:
            connection = pq.PGconn.connect_start(conninfo)
            try:
                async with asyncio.timeout(timeout_s):
                    await _until_connected(connection)
                return cls(connection, notified)
            except BaseException:
                connection.finish()
                raise
        except TimeoutError:
            raise SessionLost(f"no connection within {timeout_s:g} s") from None
        except (psycopg.Error, SessionLost) as error:
            text = one_line(str(error))
            if any(words in text for words in _REFUSED_WORDS):
                raise DatabaseUnfit(f"PostgreSQL refuses the connection: {text}") from None
            raise SessionLost(text) from None

    async def prepare(self, statements: Sequence[Statement]) -> None:
        for one in statements:
            self._begin()
            self._pq.send_prepare(one.name.encode(), one.sql.encode(), one.types)
            await self._ended()

    async def simple(self, sql: str, *values: str) -> list[list[str]]:
        """Execute SQL with text parameters; for the start, and for what is rarely asked."""
        self._begin()
        texts = [value.encode() for value in values]
        self._pq.send_query_params(sql.encode(), texts, None, None, pq.Format.TEXT)
        answer = await self._ended()
        return [[(one or b"").decode() for one in row] for row in answer.rows]

    async def script(self, sql: str) -> StatementResult:
        """Execute several statements."""
        self._begin()
        self._pq.send_query(sql.encode())
        return await self._ended()

    async def run(self, statement: Statement, *values: bytes | None) -> StatementResult:
        """Execute a prepared statement; parameters and results are in binary form.

        If the caller is cancelled, the session is ended: its answer would be taken for the next.

        Raises: StatementRefused: nothing was changed; SessionLost: what was changed is unknown.
        """
        self._begin()
        try:
            self._pq.send_query_prepared(
                statement.name.encode(), values, [_BINARY] * len(values), _BINARY
            )
        except psycopg.Error as error:
            self._lose(one_line(str(error)))
        return await self._ended()

    def close(self) -> None:
        """End the session. Idempotent."""
        self._lose("the session was closed")

    def _begin(self) -> None:
        if self.is_lost:
            raise SessionLost("the session has ended")
        if self._answer is not None:
            raise AssertionError("a statement is being executed")
        self._answer = self._loop.create_future()
        self._rows, self._error, self._fatal, self._warned = [], None, False, False

    async def _ended(self) -> StatementResult:
        if not self.is_lost:
            self._flush()
        answer = self._answer
        assert answer is not None
        try:
            return await answer
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._answer = None

    def _flush(self) -> None:
        try:
            is_left = self._pq.flush()
        except psycopg.Error as error:
            self._lose(one_line(str(error)))
            return
        if is_left and not self._writing:
            self._loop.add_writer(self._fd, self._flush)
        elif self._writing and not is_left:
            self._loop.remove_writer(self._fd)
        self._writing = bool(is_left)

    def _readable(self) -> None:
        try:
            self._pq.consume_input()
            if self._notified is not None:
                while (notice := self._pq.notifies()) is not None:
                    self._notified(notice.extra.decode("utf-8", "replace"))
            while self._answer is not None and not self._pq.is_busy():
                result = self._pq.get_result()
                if result is None:
                    self._deliver()
                    return
                self._take(result)
        except psycopg.Error as error:
            self._lose(one_line(str(error)))
            return
        if self._pq.status == pq.ConnStatus.BAD:
            self._lose(one_line(self._pq.get_error_message()))

    def _take(self, result: PGresult) -> None:
        if result.status in _DONE:
            value, columns = result.get_value, range(result.nfields)
            self._rows += [[value(row, at) for at in columns] for row in range(result.ntuples)]
            return
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
        text = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
        self._error = StatementRefused(
            (state or b"08006").decode(), one_line(text.decode(errors="replace"))
        )
        self._fatal = self._fatal or state is None or severity != b"ERROR"

    def _deliver(self) -> None:
        """The statement, and its transaction, have ended: the server waits for the next one."""
        error = self._error
        if error is not None and (self._fatal or self._is_ended_by(error)):
            self._lose(str(error))
            return
        answer = self._answer
        if answer is None or answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(StatementResult(self._rows, self._warned))

    def _is_ended_by(self, error: StatementRefused) -> bool:
        """When a store is migrated, statements for the version before are refused."""
        was_migrated = self.version < VERSION and error.state in _OTHER_TABLES_STATES
        return was_migrated or error.ends_session

    def _notice(self, result: PGresult) -> None:
        # Other warnings, such as those about vacuum, say nothing of the standbys.
        function = result.error_field(pq.DiagnosticField.SOURCE_FUNCTION)
        self._warned = self._warned or function == _WAIT

    def _lose(self, why: str) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        self._loop.remove_reader(self._fd)
        if self._writing:
            self._loop.remove_writer(self._fd)
        self._pq.finish()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(SessionLost(why))


async def _until_connected(connection: PGconn) -> None:
    loop = asyncio.get_running_loop()
    while True:
        status = connection.connect_poll()
        if status == pq.PollingStatus.OK:
            return
        if status == pq.PollingStatus.FAILED:
            raise SessionLost(one_line(connection.get_error_message()))
        await _ready(loop, connection.socket, reading=status == pq.PollingStatus.READING)


async def _ready(loop: asyncio.AbstractEventLoop, fd: int, *, reading: bool) -> None:
    ready: asyncio.Future[None] = loop.create_future()
    add, remove = (
        (loop.add_reader, loop.remove_reader) if reading else (loop.add_writer, loop.remove_writer)
    )
    add(fd, _wake, ready)
    try:
        await ready
    finally:
        remove(fd)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def one_line(text: str) -> str:
    return " ".join(text.split())
