"""Stores in a PostgreSQL for tests of servers: one PostgreSQL for each process of tests.

`STRONGROOM_TEST_STORE=postgres` lets every server that would keep its data in memory keep it there,
each in a schema of its own. So any suite of tests runs over this engine:

    STRONGROOM_TEST_STORE=postgres make test ARGS=tests/conformance/blob

With `two-gateways` in place of `postgres`, two servers serve each store beside each other. The
client of the conformance tests sends its requests to them in turn. With `balanced`, HAProxy is in
front of both, so that requests of every client go to them in turn. The tests of the services, which
have no server, take the engine itself by the same variable (tests/services/service_engine.py).

Lives here: that switch, which conftest.py asks for, and stores by name. Must not live here: tests
of the engine itself (tests/engines/postgres/).
"""

from __future__ import annotations

import asyncio
import atexit
import dataclasses
import functools
import itertools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from strongroom.config import Settings
from strongroom.database import DatabaseSettings, StoreMode
from strongroom.engines.memory import MemoryEngine
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.services.core.copies.sources import CopySources
from strongroom.testing.ports import free_port
from strongroom.testing.server import InProcessServer
from strongroom.values import TICKS_PER_S
from tests.balancing import GATEWAYS, Balancer
from tests.conformance.client import OTHER_GATEWAYS
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import quick_server

VARIABLE: Final = "STRONGROOM_TEST_STORE"
_CONNECTIONS: Final = 4
_SERVICES: Final = ("blob", "queue", "table", "file")
_numbers = itertools.count(1)
Beside = tuple[InProcessServer, Callable[[], None]]
"""Another gateway, and what ends the way to both."""


@functools.cache
def database() -> PostgresServer:
    """Return the PostgreSQL of this process; it runs until the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="strongroom-test-")
    atexit.register(folder.cleanup)
    server = quick_server(Path(folder.name), "-c", "max_connections=300")
    atexit.register(server.stop)
    return server


def new_store(url: str = "") -> DatabaseSettings:
    """Return a store that no other test uses. `url` is another way to the same database."""
    schema = f"store_{next(_numbers)}"
    return DatabaseSettings(url or database().url, connections=_CONNECTIONS, schema=schema)


def keeps_in_postgres() -> bool:
    """Whether servers keep in a database what they would keep in memory."""
    return os.environ.get(VARIABLE) in ("postgres", "two-gateways", "balanced")


def is_balanced() -> bool:
    """Whether HAProxy is in front of two gateways of each store."""
    return os.environ.get(VARIABLE) == "balanced"


def has_two_gateways() -> bool:
    """Whether two gateways serve each of these stores beside each other."""
    return os.environ.get(VARIABLE) in ("two-gateways", "balanced")


def engine_of_servers_in_memory() -> type[MemoryEngine] | type[PostgresEngine]:
    """Return the class of the engine that servers have in place of a data directory."""
    return PostgresEngine if keeps_in_postgres() else MemoryEngine


def keep_in_postgres() -> None:
    """Let every server in memory of this process keep its data in a new store."""
    start = InProcessServer.__init__
    has_two = has_two_gateways()

    def started(self: InProcessServer, settings: Settings) -> None:
        if settings.data is not None or settings.store is not None:
            start(self, settings)
            return
        store = new_store()
        if has_two:
            store = dataclasses.replace(store, mode=StoreMode.ACTIVE_ACTIVE)
        settings = replace(settings, store=store, allow_reset=settings.may_be_reset())
        if is_balanced():
            settings = replace(settings, host=GATEWAYS[0])
        start(self, settings)
        if has_two:
            _beside(self, settings)

    InProcessServer.__init__ = started  # type: ignore[method-assign]  # of tests alone


def _beside(first: InProcessServer, settings: Settings) -> None:
    """Start another gateway of a server's store, which ends with it."""
    settings = replace(settings, smb=None, console=None)
    second, end = (_balanced if is_balanced() else _in_turn)(first, settings)
    stop, advance = first.stop, first.advance

    def stop_both() -> None:
        end()
        second.stop()
        stop()

    def advance_both(seconds: float) -> None:
        advance(seconds)
        least = _now(first)
        while _now(second) < least - TICKS_PER_S:
            time.sleep(0.005)

    first.stop, first.advance = stop_both, advance_both  # type: ignore[method-assign]  # as above


def _in_turn(first: InProcessServer, settings: Settings) -> Beside:
    """On ports of its own, which tests/conformance/client.py knows."""
    ports = {f"{name}_port": free_port() for name in _SERVICES}
    second = InProcessServer(replace(settings, **ports))
    urls = ((one.url, one.queue_url, one.table_url, one.file_url) for one in (first, second))
    for own, other in zip(*urls, strict=True):
        OTHER_GATEWAYS[_port(own)] = _port(other)
    # URLs of copy sources have ports of the first one, as if both were behind one address.
    locate: Any = second._app.services.held.of(CopySources).locate
    locate.__self__._ports = first._app.ports
    return second, lambda: None


def _balanced(first: InProcessServer, settings: Settings) -> Beside:
    """On the same ports of another address, behind a balancer."""
    ports = dict(first._app.ports)
    of_services = {f"{name}_port": ports.pop(name) for name in _SERVICES}
    second = InProcessServer(replace(settings, host=GATEWAYS[1], **of_services))
    balancer = Balancer([*of_services.values()], [*ports.values()])
    atexit.register(balancer.stop)
    return second, balancer.stop


def _now(server: InProcessServer) -> int:
    return asyncio.run_coroutine_threadsafe(server._app.store.now(), server.loop).result()


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])
