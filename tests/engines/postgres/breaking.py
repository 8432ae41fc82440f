"""A session of the engine is ended inside its commit, which then has happened, or has not.

Lives here: how the moment is found. A commit that shall not happen is stopped by a lock. One that
shall happen is stopped in its wait for a standby that does not exist: it is durable here by then.
"""

from __future__ import annotations

import threading
from typing import Final

import psycopg

from tests.engines.postgres.patience import PATIENCE_S, until
from tests.engines.postgres.servers import Administrator

_COMMIT: Final = "%commit_(%"
_PROBE: Final = "SELECT pg_logical_emit_message(true, 'strongroom', 'a write that waits')"
_WAITING: Final = (
    "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE %s LIMIT 1"
)
_LOCKED_OUT: Final = (
    "SELECT pid FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid)) AND query LIKE %s"
)


def _first(administrator: Administrator, statement: str, *given: str | int) -> int:
    """Return the process that a statement finds, as soon as it finds one."""
    found: list[tuple[int]] = []

    def looks() -> bool:
        found.extend(administrator.run(statement, given))
        return bool(found)

    until(looks, "no commit came")
    return found[0][0]


def end_session(administrator: Administrator, process: int) -> None:
    """Terminate a session, and wait until it has ended."""
    administrator.run("SELECT pg_terminate_backend(%s, 20000)", (process,))


class WritesWait:
    """From `begin` to `end`, each commit of a server waits for a standby that does not exist.

    A commit that waits is durable at this server, and nobody sees it.
    """

    def __init__(self, administrator: Administrator) -> None:
        self._administrator = administrator
        self._probing = True
        self._probe = threading.Thread(target=self._write, daemon=True)

    def begin(self) -> None:
        """Return once a write waits. The server looks at its settings some time after it was told:
        so somebody has to try."""
        self._administrator.configure(synchronous_standby_names="nobody")
        self._probe.start()
        self.waiting("%pg_logical_emit_message%")

    def waiting(self, like: str = _COMMIT) -> int:
        """Return the process of a session that waits in its commit, as soon as there is one.

        Arguments:
            like: a pattern of its statement.
        """
        return _first(self._administrator, _WAITING, like)

    def end(self) -> None:
        """Let all writes pass."""
        self._probing = False
        self._administrator.configure(synchronous_standby_names=None)
        self._probe.join(PATIENCE_S)

    def _write(self) -> None:
        with psycopg.connect(self._administrator.url, autocommit=True) as session:
            while self._probing:
                session.execute(_PROBE)


class CommitsLockedOut:
    """From `begin` to `end`, no commit comes to its end: each waits for the row of its outcome.

    Arguments:
        gateway: the number of the only gateway that is meant; None = all of them.
    """

    def __init__(
        self, administrator: Administrator, schema: str, gateway: int | None = None
    ) -> None:
        self._administrator = administrator
        self._session = psycopg.connect(administrator.url)
        self._own = self._session.info.backend_pid
        which = "" if gateway is None else f" WHERE gateway = {gateway}"
        self._lock = f"SELECT FROM {schema}.slots{which} FOR UPDATE"

    def begin(self) -> None:
        self._session.execute(self._lock.encode())

    def waiting(self) -> int:
        """Return the process of a session that waits in its commit, as soon as there is one."""
        return _first(self._administrator, _LOCKED_OUT, self._own, _COMMIT)

    def end(self) -> None:
        self._session.close()


def break_a_commit(administrator: Administrator, schema: str, *, happens: bool) -> None:
    """End the session of the next commit inside of it; return once the commit may be sent.

    Arguments:
        happens: whether the commit has happened at that moment.
    """
    stopping = WritesWait(administrator) if happens else CommitsLockedOut(administrator, schema)
    stopping.begin()

    def end_it() -> None:
        try:
            end_session(administrator, stopping.waiting())
        finally:
            stopping.end()

    threading.Thread(target=end_it, daemon=True).start()
