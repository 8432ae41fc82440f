"""A session with PostgreSQL in which nothing waits longer than it was told to.

Lives here: `PostgresSession` over libpq's non-blocking calls, the reading of URLs, what an error of
the server means. Source: PostgreSQL's manual, chapters "libpq" ("Asynchronous Command
Processing", "Connection Strings") and "PostgreSQL Error Codes". Must not live here: any statement.
"""

from __future__ import annotations

import select
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlencode

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from strongroom.coordination.clock import Clocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable, Unsupported
from strongroom.coordination.url_options import UrlOptions, check_options, split_hosts

DEFAULTS: Final[Mapping[str, str]] = {
    "application_name": "strongroom",
    # A standby would answer with what was true some time ago.
    "target_session_attrs": "read-write",
    # The kernel finds out that the other side is gone, also while nothing is asked.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
}
"""Parameters of libpq where the URL does not give them."""

_SECRETS: Final = frozenset({"password", "sslpassword"})
_REFUSED_WORDS: Final = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "no password supplied",
    "certificate",
    "does not support SSL",
    "permission denied",
    "is not permitted to log in",
)
_REFUSED_CLASSES: Final = ("22", "28", "3D", "3F", "42")
_DONE: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY)
_BINARY: Final = pq.Format.BINARY
_TEXT: Final = pq.Format.TEXT

Row = list[bytes]


class SqlError(Exception):
    """The server answered a statement with an error; the statement was not applied.

    Arguments:
        state: the five characters of the error's code.
        words: its message, without details, which could quote values.
    """

    def __init__(self, state: str, words: str) -> None:
        self.state, self.words = state, words
        super().__init__(f"{words} (SQLSTATE {state})")


def meaning(error: SqlError) -> StoreRefused | StoreUnavailable:
    """Return what an error of the server means to whoever asked."""
    refused = error.state.startswith(_REFUSED_CLASSES)
    return (StoreRefused if refused else StoreUnavailable)(str(error))


def conninfo_of(
    url: str, query: Mapping[str, str], own: Mapping[str, tuple[str, ...]] | None = None
) -> str:
    """Return libpq's form of a URL.

    Arguments:
        url: postgres://user:password@host:5432/database. A server that is reached through a Unix
            socket has the socket's folder in place of the host: postgres:///database?host=/tmp, or
            postgres://%2Ftmp/database. Without any host libpq takes its default, a socket.
        query: of the URL; parameters of libpq.
        own: options that are not libpq's; see `UrlOptions.values`.

    Raises:
        Unsupported: no database, or something that libpq does not know; it quotes no value.
    """
    known = UrlOptions(own or {}, _SECRETS, frozenset(), _parameters(), "libpq's parameters")
    check_options(url, query, known)
    hosts, path = split_hosts(url)
    if not path.strip("/"):
        raise Unsupported("the URL names no database: postgres://user@host:5432/database")
    options = {name: value for name, value in query.items() if not own or name not in own}
    # Put together by hand: `urlunsplit` drops the "//" before an empty host, and libpq needs it. A
    # space is %20, since libpq takes a plus sign for itself.
    encoded = urlencode(options, quote_via=quote)
    plain = f"postgresql://{hosts}{path}" + (f"?{encoded}" if encoded else "")
    try:
        given = conninfo_to_dict(plain)
        if all(port.isdigit() or not port for port in str(given.get("port", "")).split(",")):
            return make_conninfo("", **{**DEFAULTS, **given})
    except psycopg.Error:
        pass  # its own text would quote the URL, the password included
    raise Unsupported(
        "the postgres:// URL cannot be read: is everything in it percent-encoded, and is the port a"
        " number?"
    )


def _parameters() -> tuple[str, ...]:
    """Return the names that this libpq knows, and the one that it takes in URLs alone."""
    known = (row.keyword.decode() for row in pq.Conninfo.get_defaults())
    return tuple(sorted({*known, "ssl"}))


class PostgresSession:
    """One session; one thread at a time. It commits every statement by itself.

    Arguments:
        conninfo: see `conninfo_of`.
        clock: for time limits.
        until_s: give up connecting then, by the monotonic clock.

    Raises:
        StoreUnavailable: it cannot be had now; StoreRefused: it never will.
    """

    def __init__(self, conninfo: str, clock: Clocks, until_s: float) -> None:
        self._clock = clock
        self._poll = select.poll()
        self._fd = -1
        try:
            self._pq = pq.PGconn.connect_start(conninfo.encode())
        except psycopg.Error as error:
            raise StoreUnavailable(_words(str(error))) from None
        try:
            self._connect(until_s)
        except (psycopg.Error, OSError) as error:
            self._pq.finish()
            words = _words(str(error)) or f"no connection: {type(error).__name__}"
            refused = any(sign in words for sign in _REFUSED_WORDS)
            raise (StoreRefused if refused else StoreUnavailable)(words) from None
        self._pq.nonblocking = 1
        self._watch(self._pq.socket)

    @property
    def backend_pid(self) -> int:
        """The server's process, as the server said at the beginning; a pooler says something."""
        return self._pq.backend_pid

    def fileno(self) -> int:
        """Where to wait for what comes unasked."""
        return self._pq.socket

    def ask(self, statement: str, values: Sequence[str | bytes], until_s: float) -> list[Row]:
        """Send a statement and return its rows, each column in its binary form; NULL is empty.

        Arguments:
            statement: with $1, $2, ... for values.
            values: in their text form; bytes for a bytea.
            until_s: by the monotonic clock.

        Raises:
            SqlError: the server refuses it: it was certainly not applied.
            OSError: no answer (TimeoutError: not in time); the session is useless then, and
                the statement may be applied, now or later.
        """
        formats = [_BINARY if isinstance(value, bytes) else _TEXT for value in values]
        raw = [value if isinstance(value, bytes) else value.encode() for value in values]
        try:
            self._pq.send_query_params(statement.encode(), raw, None, formats, _BINARY)
            while self._pq.flush():
                self._await(select.POLLIN | select.POLLOUT, until_s)
                self._pq.consume_input()
            return self._answer(until_s)
        except psycopg.Error as error:
            raise ConnectionError(_words(str(error))) from None

    def heard(self) -> list[str]:
        """Return the channels that were notified since the last call; does not wait.

        Raises:
            OSError: the session is over.
        """
        try:
            if self._ready(select.POLLIN, 0):
                self._pq.consume_input()
            found = []
            while (notice := self._pq.notifies()) is not None:
                found.append(notice.relname.decode())
        except psycopg.Error as error:
            raise ConnectionError(_words(str(error))) from None
        return found

    def is_stale(self) -> bool:
        """Whether the server said something unasked: good-bye, most likely."""
        return self._ready(select.POLLIN, 0)

    def close(self) -> None:
        """End it."""
        self._pq.finish()

    def _connect(self, until_s: float) -> None:
        while True:
            status = self._pq.connect_poll()
            if status == pq.PollingStatus.OK:
                return
            if status == pq.PollingStatus.FAILED:
                raise ConnectionError(self._pq.get_error_message())
            self._watch(self._pq.socket)  # with several hosts it is another one each time
            reading = status == pq.PollingStatus.READING
            self._await(select.POLLIN if reading else select.POLLOUT, until_s)

    def _answer(self, until_s: float) -> list[Row]:
        rows: list[Row] = []
        problem: SqlError | None = None
        while True:
            while self._pq.is_busy():
                self._await(select.POLLIN, until_s)
                self._pq.consume_input()
            result = self._pq.get_result()
            if result is None:
                break
            if result.status in _DONE:
                rows = [_row(result, at) for at in range(result.ntuples)]
            else:
                problem = _problem(result)
        if problem is not None:
            raise problem
        return rows

    def _watch(self, fd: int) -> None:
        if self._fd >= 0:
            self._poll.unregister(self._fd)
        self._poll.register(fd, select.POLLIN)
        self._fd = fd

    def _await(self, events: int, until_s: float) -> None:
        left_s = until_s - self._clock.monotonic_s()
        if left_s <= 0 or not self._ready(events, left_s):
            raise TimeoutError("no answer in time")

    def _ready(self, events: int, wait_s: float) -> bool:
        self._poll.modify(self._fd, events)
        return bool(self._poll.poll(wait_s * 1000))


def _row(result: pq.abc.PGresult, at: int) -> Row:
    return [result.get_value(at, column) or b"" for column in range(result.nfields)]


def _problem(result: pq.abc.PGresult) -> SqlError:
    state = result.error_field(pq.DiagnosticField.SQLSTATE)
    severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
    words = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    text = _words(words.decode("utf-8", "replace"))
    if state is None or severity != b"ERROR":
        # The session ends with that, and nobody says what became of the statement.
        raise ConnectionError(text)
    return SqlError(state.decode(), text)


def _words(text: str) -> str:
    return " ".join(text.split())
