"""A PostgreSQL session in which every call has a time limit.

Lives here: `PostgresSession` over libpq's non-blocking calls, the parsing of URLs, and the meaning
of server errors. Source: PostgreSQL's manual, chapters "libpq" ("Asynchronous Command Processing",
"Connection Strings") and "PostgreSQL Error Codes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlencode

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from strongroom.coordination.clock import Clocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable, Unsupported
from strongroom.coordination.options.url_options import (
    UrlOptions,
    check_options,
    split_hosts,
    unreadable_url,
)
from strongroom.platform.sockets import POLLIN, POLLOUT, new_poll

DEFAULTS: Final[Mapping[str, str]] = {
    "application_name": "strongroom",
    # A standby's data may be stale.
    "target_session_attrs": "read-write",
    # The kernel detects a dead peer, also while the session is idle.
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
        state: the SQLSTATE code, five characters.
        message: the error message, without its details, which could quote values.
    """

    def __init__(self, state: str, message: str) -> None:
        self.state, self.message = state, message
        super().__init__(f"{message} (SQLSTATE {state})")


def store_error(error: SqlError) -> StoreRefused | StoreUnavailable:
    """Return the exception for a server error: retry later, or never."""
    refused = error.state.startswith(_REFUSED_CLASSES)
    return (StoreRefused if refused else StoreUnavailable)(str(error))


def conninfo_of(
    url: str, query: Mapping[str, str], own: Mapping[str, tuple[str, ...]] | None = None
) -> str:
    """Return libpq's connection string for a URL.

    Arguments:
        url: postgres://user:password@host:5432/database. A server on a Unix socket has the socket's
            folder in place of the host: postgres:///database?host=/tmp, or
            postgres://%2Ftmp/database. Without a host, libpq uses its default, a socket.
        query: the options of the URL, which are parameters of libpq.
        own: further options that are not libpq's; see `UrlOptions.values`.

    Raises:
        Unsupported: no database, or an option that libpq does not know. The message quotes no
            value.
    """
    known = UrlOptions(own or {}, _SECRETS, frozenset(), _parameters(), "libpq's parameters")
    check_options(url, query, known)
    hosts, path = split_hosts(url)
    if not path.strip("/"):
        raise Unsupported("the URL names no database: postgres://user@host:5432/database")
    options = {name: value for name, value in query.items() if not own or name not in own}
    # Assembled by hand: `urlunsplit` drops the "//" before an empty host, which libpq needs. A
    # space is %20, since libpq does not decode a plus sign to a space.
    encoded = urlencode(options, quote_via=quote)
    plain = f"postgresql://{hosts}{path}" + (f"?{encoded}" if encoded else "")
    try:
        parameters = conninfo_to_dict(plain)
        ports = str(parameters.get("port", "")).split(",")
        # After a password with a plain @, libpq would take the rest of it for a part of the host.
        if hosts.count("@") < 2 and all(not port or _is_port(port) for port in ports):
            return make_conninfo("", **{**DEFAULTS, **parameters})
    except psycopg.Error:
        pass  # its text would quote the URL, and with it the password
    raise unreadable_url("postgres")


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < 65536


def _parameters() -> tuple[str, ...]:
    """Return the parameters that this libpq knows, and "ssl", which only its URLs accept."""
    known = (row.keyword.decode() for row in pq.Conninfo.get_defaults())
    return tuple(sorted({*known, "ssl"}))


class PostgresSession:
    """One session, which commits every statement by itself. Only one thread at a time may use it.

    Arguments:
        conninfo: see `conninfo_of`.
        until_s: when to give up connecting, by the monotonic clock.

    Raises:
        StoreUnavailable: the connection failed; a retry may succeed.
        StoreRefused: the server refuses, and a retry will not help.
    """

    def __init__(self, conninfo: str, clock: Clocks, until_s: float) -> None:
        self._clock = clock
        self._poll = new_poll()
        self._fd = -1
        try:
            self._pq = pq.PGconn.connect_start(conninfo.encode())
        except psycopg.Error as error:
            raise StoreUnavailable(_one_line(str(error))) from None
        try:
            self._connect(until_s)
        except (psycopg.Error, OSError) as error:
            self._pq.finish()
            words = _one_line(str(error)) or f"no connection: {type(error).__name__}"
            refused = any(sign in words for sign in _REFUSED_WORDS)
            raise (StoreRefused if refused else StoreUnavailable)(words) from None
        self._pq.nonblocking = 1
        self._watch(self._pq.socket)

    @property
    def backend_pid(self) -> int:
        """The process id that the server sent at the start. A pooler may send any number."""
        return self._pq.backend_pid

    def fileno(self) -> int:
        """The descriptor to poll for unsolicited data."""
        return self._pq.socket

    def execute(self, statement: str, values: Sequence[str | bytes], until_s: float) -> list[Row]:
        """Columns of the rows are in binary form; NULL is empty.

        Arguments:
            statement: SQL with $1, $2, ... for values.
            values: in their text form; bytes for a bytea.
            until_s: when to give up, by the monotonic clock.

        Raises:
            SqlError: the server refuses the statement, which was certainly not applied.
            OSError: there was no answer (TimeoutError: not in time). The session is then unusable,
                and the statement may be applied, now or later.
        """
        formats = [_BINARY if isinstance(value, bytes) else _TEXT for value in values]
        raw = [value if isinstance(value, bytes) else value.encode() for value in values]
        try:
            self._pq.send_query_params(statement.encode(), raw, None, formats, _BINARY)
            while self._pq.flush():
                self._await(POLLIN | POLLOUT, until_s)
                self._pq.consume_input()
            return self._answer(until_s)
        except psycopg.Error as error:
            raise ConnectionError(_one_line(str(error))) from None

    def received(self) -> list[str]:
        """The channels that were notified since the last call; does not wait.

        Raises: OSError: the session has ended.
        """
        try:
            if self._ready(POLLIN, 0):
                self._pq.consume_input()
            found = []
            while (notice := self._pq.notifies()) is not None:
                found.append(notice.relname.decode())
        except psycopg.Error as error:
            raise ConnectionError(_one_line(str(error))) from None
        return found

    def is_stale(self) -> bool:
        """Unsolicited data has arrived; usually the server ends the session."""
        return self._ready(POLLIN, 0)

    def close(self) -> None:
        self._pq.finish()

    def _connect(self, until_s: float) -> None:
        while True:
            status = self._pq.connect_poll()
            if status == pq.PollingStatus.OK:
                return
            if status == pq.PollingStatus.FAILED:
                raise ConnectionError(self._pq.get_error_message())
            self._watch(self._pq.socket)  # with several hosts the socket changes
            reading = status == pq.PollingStatus.READING
            self._await(POLLIN if reading else POLLOUT, until_s)

    def _answer(self, until_s: float) -> list[Row]:
        rows: list[Row] = []
        problem: SqlError | None = None
        while True:
            while self._pq.is_busy():
                self._await(POLLIN, until_s)
                self._pq.consume_input()
            result = self._pq.get_result()
            if result is None:
                break
            if result.status in _DONE:
                rows = [_row(result, at) for at in range(result.ntuples)]
            else:
                problem = _sql_error(result)
        if problem is not None:
            raise problem
        return rows

    def _watch(self, fd: int) -> None:
        if self._fd >= 0:
            self._poll.unregister(self._fd)
        self._poll.register(fd, POLLIN)
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


def _sql_error(result: pq.abc.PGresult) -> SqlError:
    state = result.error_field(pq.DiagnosticField.SQLSTATE)
    severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
    message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    text = _one_line(message.decode("utf-8", "replace"))
    if state is None or severity != b"ERROR":
        # This error ends the session, and the fate of the statement is unknown.
        raise ConnectionError(text)
    return SqlError(state.decode(), text)


def _one_line(text: str) -> str:
    return " ".join(text.split())
