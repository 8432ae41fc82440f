"""PostgreSQL servers for tests of the engine: on loopback, with their data in memory if possible.

Lives here: one server for all tests of a process, and a pooler in front of a server. Must not live
here: several servers that replicate (cluster.py); how a server is started at all
(tests/coordination/servers.py).
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
import psycopg.sql

from strongroom.testing.ports import HOST, free_port
from tests.coordination.servers import (
    PostgresServer,
    StoreServer,
    folder_of,
    postgres_server,
    program,
    user_of_postgres,
)

_MEMORY: Final = Path("/dev/shm")
_FREE_BYTES: Final = 2 * 1024**3
SMALL: Final = ("-c", "shared_buffers=64MB", "-c", "max_wal_size=256MB")
"""Settings of a server that has little data."""
_schemas: Final = itertools.count(1)


def memory_folder() -> Path | None:
    """Return a folder whose files lie in memory, or None if it has too little room.

    A killed process loses no more there than on a disk, since the kernel keeps both.
    """
    is_there = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _FREE_BYTES
    return _MEMORY if is_there else None


def quick_server(folder: Path, *flags: str) -> PostgresServer:
    """Start a server whose syncs cost nothing where a file system in memory is there."""
    return postgres_server(folder, *SMALL, *flags, within=memory_folder())


def fresh_schema() -> str:
    """Return a name of a schema that no other test of this process uses."""
    return f"store{next(_schemas)}"


class Administrator:
    """A superuser's session, in which each statement is a transaction of its own.

    Arguments:
        url: of a single server.

    Attributes:
        name: by which the server knows such sessions.
    """

    name: Final = "strongroom-tests"

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = psycopg.connect(url, autocommit=True, application_name=self.name)

    def run(self, statement: str, given: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        answer = self._session.execute(statement.encode(), given or None)
        return answer.fetchall() if answer.description else []

    def value(self, statement: str, given: Sequence[Any] = ()) -> Any:
        """Return the only value of the only row."""
        ((found,),) = self.run(statement, given)
        return found

    def configure(self, **settings: str | None) -> None:
        """Set settings of the whole server; None takes one back."""
        for name, value in settings.items():
            if value is None:
                self.run(f"ALTER SYSTEM RESET {name}")
            else:
                self.run(f"ALTER SYSTEM SET {name} = '{value}'")
        self.run("SELECT pg_reload_conf()")

    def close(self) -> None:
        self._session.close()


def pgbouncer(folder: Path, server: PostgresServer, mode: str) -> StoreServer:
    """Start a pooler.

    Arguments:
        folder: for its log.
        server: what it connects to.
        mode: when it takes a session back, "session" or "transaction".
    """
    port = free_port()
    host, _, far = server.address.rpartition(":")
    user = user_of_postgres()
    own = folder_of(user)
    (own / "users.txt").write_text('"postgres" ""\n')
    settings = own / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={host} port={far}\n[pgbouncer]\n"
        f"listen_addr = {HOST}\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {own}/users.txt\n"
        f"pool_mode = {mode}\ndefault_pool_size = 40\n"
        # Without this it refuses a session that sets a parameter which it does not know.
        "ignore_startup_parameters = options,extra_float_digits\n"
    )
    command = [program("pgbouncer", "pgbouncer"), str(settings)]
    pooler = StoreServer(command, port, folder / f"pgbouncer-{mode}.log", user)
    pooler.url = f"postgresql://postgres@{pooler.address}/postgres"
    pooler.wait(pooler.listens)
    return pooler
