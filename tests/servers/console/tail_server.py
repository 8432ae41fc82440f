"""The four services with a tail of requests, on ports of loopback, in a thread of this process."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from strongroom.auth.accounts import Account, development_account
from strongroom.auth.request import Service
from strongroom.clock import SystemClock
from strongroom.engines.memory import MemoryEngine
from strongroom.servers import one_port, service_listeners
from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.console.requests.kept import FullRecord, KeptRequests, ShortRecord
from strongroom.servers.console.requests.observer import CONSOLE, RequestTail
from strongroom.servers.one_port import OnePort
from strongroom.servers.service_listeners import ENDPOINTS, Shared
from strongroom.servers.telemetry import Telemetry
from strongroom.services.core.runner import Services
from strongroom.testing.ports import free_port
from strongroom.wire.core.http import Request, Response
from tests.conformance.client import Client, Credential
from tests.conformance.table_client import TableClient

T = TypeVar("T")
OTHER = Account("other", (b"other key" * 4,))


class Accounts:
    """The development account, and another one."""

    def __init__(self) -> None:
        self.all = {one.name: one for one in (development_account(), OTHER)}

    def get(self, name: str) -> Account | None:
        return self.all.get(name)


class _Own:
    """Answers requests for the server's own endpoints."""

    async def respond(self, request: Request) -> Response:
        return Response(200, [], b"own", operation="own endpoint")


class TailServer:
    """A server whose requests are kept. `ports` are by the name of the listener; CONSOLE is a port
    of all services."""

    def __init__(self) -> None:
        self.kept = KeptRequests()
        self.accounts = Accounts()
        self.clock = SystemClock()
        self.ports: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._listeners: list[Any] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self.call(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, made: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop, and return its result."""
        return asyncio.run_coroutine_threadsafe(made, self._loop).result(60)

    def client(self, listener: str = "blob", credential: Credential | None = None) -> Client:
        """A client of the development account at one port."""
        account = development_account()
        given = credential or Credential(account.name, _base64(account.keys[0]))
        prefix = None
        if listener in (CONSOLE, one_port.NAME):
            prefix = f"/blob/{given.account}"
        kind = TableClient if listener == Service.TABLE.value else Client
        return kind(self.ports[listener], given, prefix=prefix)

    def newest(self) -> FullRecord:
        """The newest request, in full."""
        found = self.settled().full(self.kept.newest)
        assert found is not None
        return found

    def records(self) -> list[ShortRecord]:
        """All requests in short, oldest first."""
        return [one for _, one in self.settled().after(0)]

    def settled(self) -> KeptRequests:
        """Return the rings after the loop has finished what it began."""

        async def turn() -> None:
            # A request is kept in the turn that sends its answer, or in one that has begun.
            for _ in range(3):
                await asyncio.sleep(0)
            self.kept.catch_up()

        self.call(turn())
        return self.kept

    async def _start(self) -> None:
        services = Services(MemoryEngine(self.clock), self.clock)
        contexts = service_listeners.contexts(services, self.accounts, self.clock)
        shared = Shared(
            _Own(),  # type: ignore[arg-type]
            ConnectionBudget(100),
            Telemetry(lambda: 0, lambda: 0),
            tail=RequestTail(self.kept, self.clock.wall_ticks, self._loop.call_later),
        )
        wanted = {service.value: free_port() for service in ENDPOINTS} | {
            one_port.NAME: free_port()
        }
        router = OnePort(ENDPOINTS, ())
        made = service_listeners.listeners(contexts, router, shared, wanted)
        for one in made:
            self.ports[one.name] = await one.listener.listen("127.0.0.1", one.port)
            self._listeners.append(one.listener)
        # The console's listener routes as the port of all services does, under its own name.
        for one in service_listeners.listeners(
            contexts, router, shared, {one_port.NAME: free_port()}
        ):
            server: Any = one.listener
            server.observe = service_listeners.observer(CONSOLE, shared)
            self.ports[CONSOLE] = await server.listen("127.0.0.1", one.port)
            self._listeners.append(server)

    async def _stop(self) -> None:
        for one in self._listeners:
            await one.drain(0.0)


def _base64(key: bytes) -> str:
    return base64.b64encode(key).decode()
