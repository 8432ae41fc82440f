"""Two servers with one store in memory, in a thread of this process, as gateways to each other.

Lives here: their composition, which app.py has for a server alone, and a port that leads each new
connection to the next of them, as a balancer does.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import itertools
import tempfile
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from strongroom.auth.accounts import Account, development_account
from strongroom.clock import SystemClock
from strongroom.config import AccountSources, Settings
from strongroom.engines.memory import MemoryEngine
from strongroom.servers import service_listeners
from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.copy_locator import CopyLocator
from strongroom.servers.forwarding.forwarding import Forwarding
from strongroom.servers.http.server import HttpServer
from strongroom.servers.identities.accounts_file import ServedAccounts, change_accounts
from strongroom.servers.listener import RequestedListener
from strongroom.servers.observers import RequestObserver
from strongroom.servers.one_port import OnePort
from strongroom.servers.service_listeners import ENDPOINTS, Shared
from strongroom.servers.telemetry import Telemetry
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.sources import copy_sources, served_accounts
from strongroom.testing.ports import HOST, free_port
from strongroom.wire.core.http import Request, Response
from tests.conformance.answer import Answer
from tests.conformance.client import Client, Credential, Fields

T = TypeVar("T")
NAMES = ("blob", "file")
_PIECE_BYTES = 64 * 1024


class _Own:
    async def respond(self, request: Request) -> Response:
        return Response(200, [], b"own", operation="own endpoint")


class Gateway:
    """One of the servers. `ports` are those of its services."""

    def __init__(
        self,
        store: MemoryEngine,
        accounts: ServedAccounts,
        names: dict[str, int],
        observers: tuple[RequestObserver, ...] = (),
    ) -> None:
        self.clock = SystemClock()
        self.store = store
        self.accounts = accounts
        self.ports: dict[str, int] = {}
        self._settings = Settings(data=None)
        router = OnePort(ENDPOINTS, ())
        self.locator = CopyLocator(names, router)
        sources = copy_sources(self._settings, self.locator, None)
        self.services = Services(store, self.clock, accounts.switches, (sources,))
        self.observers = observers
        self.gateway_listener: HttpServer | None = None
        self.listeners: list[Any] = []
        self._tasks: list[asyncio.Task[Any]] = []

    async def start(self) -> None:
        forwarding = self.forwarding = Forwarding(self.services, (HOST, free_port()), ())
        self.contexts = contexts = service_listeners.contexts(
            self.services, self.accounts, self.clock, strict=True, forward=forwarding.answer
        )
        self.locator.connect(contexts)
        self.telemetry = Telemetry(lambda: 0, lambda: 0)
        shared = Shared(
            _Own(),  # type: ignore[arg-type]
            ConnectionBudget(1000),
            self.telemetry,
            observers=self.observers,
        )
        wanted = {name: free_port() for name in NAMES}
        router = OnePort(ENDPOINTS, ())
        for one in service_listeners.listeners(contexts, router, shared, wanted):
            self.ports[one.name] = await one.listener.listen(HOST, one.port)
            self.listeners.append(one.listener)
        await forwarding.open(contexts, shared, self._open)
        self._tasks = [asyncio.create_task(self._sweep())]

    async def _open(self, wanted: RequestedListener, host: str) -> int:
        assert isinstance(wanted.listener, HttpServer)
        self.gateway_listener = wanted.listener
        self.listeners.append(wanted.listener)
        self.gateway_port = await wanted.listener.listen(host, wanted.port)
        return self.gateway_port

    async def _sweep(self) -> None:
        await Sweeper(self.services).run()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in self.listeners:
            await one.close()
        await self.forwarding.close()
        if self.store.gateways.is_beating:
            await self.store.close()

    def kill(self) -> None:
        """End without a word: connections are cut, and no heartbeat is sent any more."""
        self.store.gateways.is_beating = False
        for task in self._tasks:
            task.cancel()
        for one in self.listeners:
            one._acceptor.stop()
            for connection in list(one._connections):
                connection.abort()


class TwoServers:
    """The servers, and ports that lead to them in turn.

    Attributes:
        both: the servers.
        ports: of the balancer, by service.
    """

    def __init__(self, observers: tuple[tuple[RequestObserver, ...], ...] = ((), ())) -> None:
        account = development_account()
        key = base64.b64encode(account.keys[0]).decode()
        self.credential = Credential(account.name, key)
        self._numbers = itertools.count(1)
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / "accounts.json"
        change_accounts(self._file, lambda _: (account,))
        self.ports: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._balancers: list[asyncio.Server] = []
        self._turns = itertools.count()
        self._spliced: set[asyncio.Task[Any]] = set()
        self.both = self.call(self._start(observers))

    def call(self, made: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the servers' loop, and return its result."""
        return asyncio.run_coroutine_threadsafe(made, self._loop).result(60)

    def stop(self) -> None:
        self.call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()

    def at(self, number: int, service: str = "file") -> Client:
        """A client of the development account at one of the servers."""
        return Client(self.both[number].ports[service], self.credential)

    # As tests/conformance/running.py.

    def client(self) -> Client:
        return Switching(self.ports["blob"], self.credential)

    def files(self) -> Client:
        return Switching(self.ports["file"], self.credential)

    def account(self) -> Client:
        return Switching(self.ports["blob"], self._new_account())

    def file_account(self) -> Client:
        return Switching(self.ports["file"], self._new_account())

    def switch(self, name: str, **changes: Any) -> None:
        def edit(before: tuple[Account, ...]) -> tuple[Account, ...]:
            return tuple(
                one.switched(msgspec.structs.replace(one.switches, **changes))
                if one.name == name
                else one
                for one in before
            )

        change_accounts(self._file, edit)

    def advance(self, seconds: float) -> None:
        async def advance() -> None:
            self.both[0].store.advance(seconds)

        self.call(advance())

    def _new_account(self) -> Credential:
        name = f"account{next(self._numbers)}"
        key = name.encode() * 4
        change_accounts(self._file, lambda before: (*before, Account(name, (key,))))
        return Credential(name, base64.b64encode(key).decode())

    async def _start(self, observers: tuple[tuple[RequestObserver, ...], ...]) -> list[Gateway]:
        settings = Settings(data=None, accounts=AccountSources(file=self._file))
        first = MemoryEngine(SystemClock())
        for name in NAMES:
            server = await asyncio.start_server(
                functools.partial(self._balance, name),
                HOST,
                free_port(),
            )
            self._balancers.append(server)
            self.ports[name] = server.sockets[0].getsockname()[1]
        both = [
            Gateway(store, served_accounts(settings), self.ports, watching)
            for store, watching in zip((first, first.second()), observers, strict=True)
        ]
        for one in both:
            await one.start()
        return both

    async def _balance(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._spliced.add(task)
        chosen = self.both[next(self._turns) % 2]
        there_reader, there = await asyncio.open_connection(HOST, chosen.ports[name])
        try:
            await asyncio.gather(_splice(reader, there), _splice(there_reader, writer))
        except OSError:
            pass
        finally:
            there.close()
            writer.close()
            self._spliced.discard(task)

    async def _stop(self) -> None:
        for server in self._balancers:
            server.close()
        for one in self.both:
            await one.stop()
        for task in list(self._spliced):
            task.cancel()
        await asyncio.gather(*self._spliced, return_exceptions=True)


async def _splice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_PIECE_BYTES):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


class Switching(Client):
    """Each request goes by a connection of its own, so to the next server."""

    def another(self, prefix: str | None = None) -> Client:
        found = super().another(prefix)
        return Switching(found.port, found.credential, found.auth, found.prefix)

    @property
    def anonymous(self) -> Client:
        return Switching(self.port, self.credential, None, self.prefix)

    def send(
        self,
        method: str,
        target: str,
        headers: Fields = (),
        body: bytes = b"",
        auth: str | None = "",
    ) -> Answer:
        try:
            return super().send(method, target, headers, body, auth)
        finally:
            self.close()
