"""Stores in a PostgreSQL for tests of servers: one PostgreSQL for each process of tests.

`STRONGROOM_TEST_STORE=postgres` lets every server that would keep its data in memory keep it there,
each in a schema of its own. So any suite of tests runs over this engine:

    STRONGROOM_TEST_STORE=postgres make test ARGS=tests/conformance/blob

Lives here: that switch, which conftest.py asks for, and stores by name. Must not live here: tests
of the engine itself (tests/engines/postgres/).
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import tempfile
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from strongroom.config import Settings
from strongroom.database import DatabaseSettings
from strongroom.engines.memory import MemoryEngine
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing.server import InProcessServer
from tests.coordination.servers import PostgresServer, postgres_server

VARIABLE: Final = "STRONGROOM_TEST_STORE"
_CONNECTIONS: Final = 4
_numbers = itertools.count(1)


@functools.cache
def database() -> PostgresServer:
    """Return the PostgreSQL of this process; it runs until the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="strongroom-test-")
    atexit.register(folder.cleanup)
    server = postgres_server(Path(folder.name), "-c", "max_connections=300")
    atexit.register(server.stop)
    return server


def new_store(url: str = "") -> DatabaseSettings:
    """Return a store that no other test uses. `url` is another way to the same database."""
    schema = f"store_{next(_numbers)}"
    return DatabaseSettings(url or database().url, connections=_CONNECTIONS, schema=schema)


def engine_of_servers_in_memory() -> type[MemoryEngine] | type[PostgresEngine]:
    """Return the class of the engine that servers have in place of a data directory."""
    return PostgresEngine if os.environ.get(VARIABLE) == "postgres" else MemoryEngine


def keep_in_postgres() -> None:
    """Let every server in memory of this process keep its data in a new store."""
    start = InProcessServer.__init__

    def started(self: InProcessServer, settings: Settings) -> None:
        if settings.data is None and settings.store is None:
            may_be_reset = settings.may_be_reset()
            settings = replace(settings, store=new_store(), allow_reset=may_be_reset)
        start(self, settings)

    InProcessServer.__init__ = started  # type: ignore[method-assign]  # of tests alone
