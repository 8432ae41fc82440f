"""PostgreSQL as a store: one table, one row per key, one statement per operation.

Lives here: `PostgresStore`. A row holds the value, the note, a version and the hold. The version
comes from a sequence, so it is never reused. The server's own clock ends the hold. Advisory locks
are not used: they belong to a session, and a pooler may give a session to another client. Changes
are announced with NOTIFY. Source: PostgreSQL's manual, chapters "INSERT" (ON CONFLICT), "Date/Time
Functions" (clock_timestamp), "NOTIFY", "Asynchronous Commit". Must not live here: sessions
(postgres/wire.py), recipes, fences of other tables (guards/sql.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.effects import (
    CONFLICT,
    Applied,
    CasOutcome,
    Entry,
    LeaseAction,
    LeaseTerms,
    Unknown,
    Watched,
)
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.store import SET_BACK, AsyncStore, Promises
from strongroom.coordination.stores.connections.idle_pool import IdlePool
from strongroom.coordination.stores.connections.listening import (
    ATTEMPT_S,
    NotificationHub,
    Subscriber,
    read_timeout_s,
    unavailable,
    watch_key,
)
from strongroom.coordination.stores.connections.listening_aio import ListeningAio
from strongroom.coordination.stores.postgres.wire import (
    PostgresSession,
    Row,
    SqlError,
    conninfo_of,
    store_error,
)
from strongroom.coordination.stores.threaded_store import StoreBase

_CREATE: Final = """
CREATE TABLE IF NOT EXISTS strongroom_coordination (
    key text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL,
    version bigserial NOT NULL,
    note text NOT NULL,
    holder text NOT NULL,
    expires timestamptz NOT NULL
) WITH (fillfactor = 50)"""
_GET: Final = """
SELECT value, version::text, note, CASE WHEN holder = '' THEN '0'
    ELSE extract(epoch FROM expires - clock_timestamp())::text END
FROM strongroom_coordination WHERE key = $1"""
# An acknowledged write is on the disk, even if the server's default is asynchronous commit.
_INSERT: Final = """
WITH written AS (
    INSERT INTO strongroom_coordination (key, value, note, holder, expires)
    VALUES ($1, $2, $3, CASE WHEN $4 IN ('acquire', 'take_over') THEN $5 ELSE '' END,
        clock_timestamp() + make_interval(secs => $6::float8))
    ON CONFLICT (key) DO NOTHING RETURNING version)
SELECT version::text, pg_notify($7, ''), CASE current_setting('synchronous_commit')
    WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
FROM written"""
_UPDATE: Final = """
WITH written AS (
    UPDATE strongroom_coordination SET value = $2, version = DEFAULT, note = $3,
        holder = CASE WHEN $4 = '' THEN holder
            WHEN $4 IN ('acquire', 'take_over', 'hand_over', 'renew') THEN $5 ELSE '' END,
        expires = CASE WHEN $4 = '' THEN expires
            WHEN $4 IN ('acquire', 'take_over', 'hand_over', 'renew')
                THEN clock_timestamp() + make_interval(secs => $6::float8)
            ELSE '-infinity' END
    WHERE key = $1 AND version = $8::bigint AND CASE $4
        WHEN 'acquire' THEN holder IN ('', $5) OR expires <= clock_timestamp()
        WHEN 'renew' THEN holder = $5 AND expires > clock_timestamp()
        WHEN 'release' THEN holder = $5
        ELSE true END
    RETURNING version)
SELECT version::text, pg_notify($7, ''), CASE current_setting('synchronous_commit')
    WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
FROM written"""
_DELETE: Final = """
WITH written AS (
    DELETE FROM strongroom_coordination WHERE key = $1 AND version = $2::bigint RETURNING version)
SELECT version::text, pg_notify($3, ''), CASE current_setting('synchronous_commit')
    WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
FROM written"""
_LIST: Final = """
SELECT key FROM strongroom_coordination
WHERE key >= $1 AND ($2 = '' OR key < $2) ORDER BY key"""
_PID: Final = "SELECT pg_backend_pid()::text"

_OF_A_HOLD: Final = (LeaseAction.RENEW, LeaseAction.RELEASE, LeaseAction.HAND_OVER)
_NO_TABLE: Final = "42P01"
_STANDBY: Final = "25006"
_CREATED_CONCURRENTLY: Final = ("23505", "42P07", "42710")
"""SQLSTATE codes of a CREATE TABLE while another client creates the same table."""
_CREATE_TRIES: Final = 10
_VERSION_DIGITS: Final = 18  # the sequence never reaches more


class PostgresStore(StoreBase):
    """One database. Thread-safe. The first write creates the table.

    Arguments:
        conninfo: see `wire.conninfo_of`.
        polls: waiters poll instead of listening, as they must behind a pooler that shares sessions.
    """

    def __init__(self, conninfo: str, polls: bool = False, clock: Clocks | None = None) -> None:
        self._conninfo, self._polls = conninfo, polls
        self.clock = clock or SystemClocks()
        self._sessions_shared = polls
        self.after_fork()

    def get(self, key: str, timeout_s: float) -> Entry | None:
        rows = self._read(_GET, (key,), timeout_s)
        if not rows:
            return None
        value, version, note, left_s = rows[0]
        return Entry(value, version.decode(), float(left_s), note.decode())

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        # A HAND_OVER compares only the version: whoever took the hold since has changed it.
        action, ttl_s, nonce = ("", 0.0, "") if lease is None else (lease[0].value, *lease[1:3])
        values = (key, value, note, action, nonce, repr(ttl_s), channel_of(key))
        if expected is not None:
            return self._write(_UPDATE, values, expected, timeout_s)
        # Nobody holds an absent key, so its hold can be neither renewed, released nor handed over.
        if lease is not None and lease.action in _OF_A_HOLD:
            return CONFLICT
        return self._write(_INSERT, values, None, timeout_s)

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        if not _is_version(expected):
            return CONFLICT
        return self._write(_DELETE, (key, expected, channel_of(key)), None, timeout_s)

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        # Keys are ASCII, so all keys with the prefix sort before the successor of its last
        # character.
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else ""
        return [row[0].decode() for row in self._read(_LIST, (prefix, end), timeout_s)]

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        subscriber = Subscriber()
        with self.registered(key, subscriber):
            return watch_key(
                self.clock,
                subscriber,
                lambda: self.get(key, read_timeout_s(timeout_s)),
                version,
                timeout_s,
            )

    @contextmanager
    def registered(self, key: str, subscriber: Subscriber) -> Iterator[None]:
        if self._sessions_shared:
            subscriber.set_subscribed(False)
            yield
            return
        with self._hub.registered(channel_of(key), subscriber):
            yield

    def aio(self) -> AsyncStore:
        return ListeningAio(self)

    def promises(self) -> Promises:
        promised = Promises(
            store="PostgreSQL, a row per key",
            mutual_exclusion="server-clock",
            assumption="the server's clock is not set forward (a failover to a server whose clock"
            " is ahead does that), and no client's clock runs slower than the bound says",
            fencing="durable",
            watch="push",
            durable=True,
            scope="network",
            server_lease=True,
            poll_min_s=0.05,
            poll_max_s=1.0,
            notes=(
                SET_BACK,
                "writes are committed with synchronous_commit at least at 'local', whatever the"
                " server's default; with fsync = off nothing is durable",
                "a failover keeps fences only if synchronous_commit covers the standby that takes"
                " over",
                "behind a pooler that hands sessions around, waiters read (?watch=poll says so"
                " beforehand)",
            ),
        )
        return replace(promised, watch="poll") if self._polls else promised

    def after_fork(self) -> None:
        # The parent uses its sessions; psycopg lets only the process that opened a session end it.
        self._pool = IdlePool(self._open, _is_answer, self.clock)
        self._hub = NotificationHub(self._listen, self.clock)

    def close(self) -> None:
        self._hub.close()
        self._pool.close()

    def _open(self, until_s: float) -> PostgresSession:
        return PostgresSession(self._conninfo, self.clock, until_s)

    def _listen(self) -> PostgresNotifications:
        try:
            return PostgresNotifications(self._conninfo, self.clock)
        except SessionsShared:
            self._sessions_shared = True  # for good: never try to listen again
            raise

    def _read(self, statement: str, values: Sequence[str], timeout_s: float) -> list[Row]:
        until_s = self.clock.monotonic_s() + timeout_s
        try:
            with self._pool.lend(until_s) as session:
                return session.execute(statement, values, until_s)
        except SqlError as error:
            if error.state == _NO_TABLE:
                return []  # no client has written anything yet
            raise store_error(error) from error
        except OSError as error:
            raise unavailable(error) from error

    def _write(
        self, statement: str, values: Sequence[str | bytes], expected: str | None, timeout_s: float
    ) -> CasOutcome:
        if expected is not None:
            if not _is_version(expected):
                return CONFLICT
            values = (*values, expected)
        until_s = self.clock.monotonic_s() + timeout_s
        try:
            with self._pool.lend(until_s) as session:
                rows = self._execute_creating_table(session, statement, values, until_s)
        except SqlError as error:
            raise store_error(error) from error
        except OSError as error:
            return Unknown(str(error) or type(error).__name__)
        return Applied(rows[0][0].decode()) if rows else CONFLICT

    def _execute_creating_table(
        self,
        session: PostgresSession,
        statement: str,
        values: Sequence[str | bytes],
        until_s: float,
    ) -> list[Row]:
        """Create the table if it is missing. Several clients may do so at the same time."""
        for _ in range(_CREATE_TRIES):
            try:
                return session.execute(statement, values, until_s)
            except SqlError as error:
                if error.state != _NO_TABLE:
                    raise
            try:
                session.execute(_CREATE, (), until_s)
            except SqlError as error:
                if error.state not in _CREATED_CONCURRENTLY:
                    raise
        raise StoreUnavailable("the table strongroom_coordination comes and goes")


def _is_answer(error: BaseException) -> bool:
    # A standby's error is an answer too, but the pool must reconnect to find the primary.
    return isinstance(error, SqlError) and error.state != _STANDBY


class SessionsShared(StoreUnavailable):
    """A pooler between this client and the server shares sessions, so LISTEN cannot work."""


class PostgresNotifications:
    """A session that listens; see `listening.NotificationConnection`. Topics are names of channels.

    Arguments:
        conninfo: see `wire.conninfo_of`.

    Raises:
        StoreUnavailable: there is no session.
        SessionsShared: a pooler shares the session, so notifications would not arrive.
        StoreRefused: the server refuses the session, and a retry will not help.
    """

    def __init__(self, conninfo: str, clock: Clocks) -> None:
        self._clock = clock
        until_s = clock.monotonic_s() + ATTEMPT_S
        self._session = PostgresSession(conninfo, clock, until_s)
        try:
            ((pid,),) = self._session.execute(_PID, (), until_s)
            if int(pid) != self._session.backend_pid:
                raise SessionsShared("a pooler in between hands sessions around")
        except SqlError as error:
            self._session.close()
            raise store_error(error) from error
        except BaseException:
            self._session.close()
            raise

    def fileno(self) -> int:
        return self._session.fileno()

    def subscribe(self, topic: str) -> None:
        self._execute(f'LISTEN "{_checked_channel(topic)}"')

    def unsubscribe(self, topic: str) -> None:
        self._execute(f'UNLISTEN "{_checked_channel(topic)}"')

    def received(self) -> list[str]:
        return self._session.received()

    def close(self) -> None:
        self._session.close()

    def _execute(self, statement: str) -> None:
        try:
            self._session.execute(statement, (), self._clock.monotonic_s() + ATTEMPT_S)
        except SqlError as error:
            raise store_error(error) from error


def channel_of(key: str) -> str:
    """Return the channel for changes of a key: a digest, as a name has at most 63 bytes."""
    return f"strongroom_{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"


def _is_version(text: str) -> bool:
    """Return whether a text may be a version of this store. Others cause a server error."""
    return text.isascii() and text.isdigit() and len(text) <= _VERSION_DIGITS


def _checked_channel(channel: str) -> str:
    # A channel cannot be a parameter: it is part of the statement itself.
    if not channel.isidentifier():
        raise ValueError(f"{channel!r} is no channel")
    return channel


def open_url(url: str, query: Mapping[str, str]) -> PostgresStore:
    """Return the store in a database.

    Arguments:
        url: postgres://user:password@host:5432/database; several hosts are tried in turn.
        query: `watch=poll` makes waiters poll. All other options are parameters of libpq.
    """
    conninfo = conninfo_of(url, query, {"watch": ("push", "poll")})
    return PostgresStore(conninfo, query.get("watch") == "poll")
