"""Keepers of the highest fence that was seen, for resources that cannot remember it themselves.

Lives here: the protocol, and a keeper in memory and one in SQL; each says what it promises. Both
fail closed: a keeper that cannot decide raises, and no request passes. Must not live here: HTTP
(http.py), SQL (sql.py).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Protocol

from strongroom.coordination.errors import CoordinationError, StoreUnavailable
from strongroom.coordination.guards import sql
from strongroom.coordination.guards.fencing import FencedOut, Token

_TRIES: Final = 5


class KeeperFull(CoordinationError):
    """A keeper has as many names as it may remember; forgetting one would admit old fences."""


class FenceKeeper(Protocol):
    """A memory of the highest fence of each name."""

    @property
    def blocks(self) -> bool:
        """Whether `admit` does IO, so that an event loop must call it on a thread."""
        ...

    def admit(self, name: str, fence: int) -> int:
        """Record a fence; return the highest one seen. If that is greater, the fence is refused.

        Recording and comparing are one atomic step. Of two concurrent calls, a smaller fence is
        never admitted after a greater one.
        """
        ...


class MemoryKeeper:
    """The highest fences in this process's memory.

    Promises: after a fence was admitted, this process admits no smaller one. A second process
    behind the same address does not know the fence, and a restarted process has forgotten it. Such
    a process admits the old holder until the new one's first request.

    Arguments:
        names_max: how many names it remembers; it refuses others (`KeeperFull`) to bound its
            memory.
    """

    blocks = False

    def __init__(self, names_max: int = 100_000) -> None:
        self._names_max = names_max
        self._highest: dict[str, int] = {}
        self._lock = threading.Lock()

    def admit(self, name: str, fence: int) -> int:
        """Raises: KeeperFull."""
        with self._lock:
            known = self._highest.get(name)
            if known is None and len(self._highest) >= self._names_max:
                raise KeeperFull(f"{self._names_max} names are remembered, and {name!r} is new")
            highest = fence if known is None else max(known, fence)
            self._highest[name] = highest
            return highest


class KeeperConnection(sql.SqlConnection, Protocol):
    """The methods that a keeper needs of a DB-API connection (PEP 249)."""

    def close(self) -> Any:
        """Close the connection, or return it to its pool."""
        ...


class SqlKeeper:
    """The highest fences in a database, in the table and under the names of the SQL guard.

    Promises: after a fence was admitted, no process with the same database admits a smaller one.
    The fence survives the death of any process, and is as durable as the database's commits. An
    application may have its data in that database. It then enters `sql.SqlGuard` with the admitted
    token, in the transaction that changes the data. So nothing of an old holder is committed after
    a later one was admitted.

    Arguments:
        connect: returns a new connection, or one of a pool; `close` returns it to the pool.
        paramstyle: as of `sql.SqlGuard`; detected by default.
    """

    blocks = True

    def __init__(
        self, connect: Callable[[], KeeperConnection], paramstyle: str | None = None
    ) -> None:
        self._connect, self._paramstyle = connect, paramstyle

    def create_table(self) -> None:
        """Create the table of fences where it does not exist. Raises: the driver's errors."""
        with closing(self._connect()) as connection:
            self._guard(connection, "", 0).create_table()

    def admit(self, name: str, fence: int) -> int:
        """Each call is a transaction of its own.

        Raises: StoreUnavailable if other holders won each race; CorruptRecord; the driver's errors.
        """
        last = StoreUnavailable("no try was made")
        for _ in range(_TRIES):
            with closing(self._connect()) as connection:
                try:
                    with self._guard(connection, name, fence):
                        return fence
                except FencedOut as error:
                    return fence + 1 if error.seen is None else error.seen
                except StoreUnavailable as error:
                    last = error
        raise last

    def _guard(self, connection: KeeperConnection, name: str, fence: int) -> sql.SqlGuard:
        return sql.SqlGuard(Token(name, fence), connection, paramstyle=self._paramstyle)


def sqlite_keeper(path: Path | str, timeout_s: float = 5.0) -> SqlKeeper:
    """Return a keeper in a SQLite file of this host, and create its table.

    Arguments:
        path: of the file.
        timeout_s: how long to wait for another process's write.
    """

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=timeout_s)

    keeper = SqlKeeper(connect)
    keeper.create_table()
    return keeper
