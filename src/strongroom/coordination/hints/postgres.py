"""PostgreSQL as a bus: NOTIFY and LISTEN.

PostgreSQL does not keep messages for a listener that is not connected. A listener that connects
again reads the store once. Source: PostgreSQL's manual, "NOTIFY". Must not live here: sessions
(stores/postgres/wire.py), reconnecting (bus.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from psycopg.conninfo import conninfo_to_dict

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.hints.bus import ATTEMPT_S, BusHints, TopicListeners
from strongroom.coordination.hints.store_line import listen_on, translated_errors
from strongroom.coordination.options.url_options import ANY
from strongroom.coordination.stores.postgres.store import PostgresNotifications, channel_of
from strongroom.coordination.stores.postgres.wire import (
    PostgresSession,
    SqlError,
    conninfo_of,
    store_error,
)

_NOTIFY: Final = "SELECT pg_notify($1, '')"


class PostgresBus:
    """A bus for hints over one PostgreSQL database.

    Arguments:
        conninfo: see `stores.postgres.wire.conninfo_of`.
        prefix: of every topic; it separates the programs that share a database.
        clock: for time limits.
    """

    def __init__(self, conninfo: str, prefix: str, clock: Clocks | None = None) -> None:
        self._conninfo, self._prefix, self._clock = conninfo, prefix, clock or SystemClocks()
        named = conninfo_to_dict(conninfo)
        self._user = str(named.get("user") or "")
        hosts = str(named.get("host") or "localhost").split(",")
        ports = str(named.get("port") or "5432").split(",")
        self._display_url = f"postgres://{hosts[0]}:{ports[0]}"

    @property
    def display_url(self) -> str:
        return self._display_url

    def publish(self, topic: str) -> None:
        until_s = self._clock.monotonic_s() + ATTEMPT_S
        with translated_errors(self._display_url, self._user):
            session = PostgresSession(self._conninfo, self._clock, until_s)
            try:
                session.execute(_NOTIFY, (self._channel(topic),), until_s)
            except SqlError as error:
                raise store_error(error) from error
            finally:
                session.close()

    def listen(self, listeners: TopicListeners) -> None:
        with translated_errors(self._display_url, self._user):
            connection = PostgresNotifications(self._conninfo, self._clock)
            try:
                listen_on(connection, self._channel(listeners.topic), listeners)
            finally:
                connection.close()

    def _channel(self, topic: str) -> str:
        return channel_of(f"{self._prefix}/{topic}")


def open_url(url: str, query: Mapping[str, str]) -> BusHints:
    """Return hints over PostgreSQL.

    Arguments:
        url: postgres://[USER:PASSWORD@]HOST[:5432]/DATABASE
        query: `prefix` of the topics, "hints" by default; everything else is a parameter of libpq.
    """
    return BusHints(
        PostgresBus(conninfo_of(url, query, {"prefix": ANY}), query.get("prefix", "hints"))
    )
