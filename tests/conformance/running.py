"""The server under test, in this process: a thread with an event loop, in memory, strict.

Strict: an error that an operation does not declare becomes a 500, which no test expects.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import socket
from concurrent.futures import Future
from threading import Thread

from strongroom.auth.accounts import Account, development_account
from strongroom.clock import SystemClock
from strongroom.engines.memory import MemoryStore
from strongroom.operations.blob_service import ROUTES
from strongroom.servers import pipeline
from strongroom.servers.http import HttpServer
from strongroom.servers.pipeline import Context, respond
from strongroom.services.runner import Services
from tests.conformance.client import HOST, Client, Credential

_PORTS = range(20_000, 32_000)


class KnownAccounts:
    """Accounts that a test may add to and change while the server runs."""

    def __init__(self) -> None:
        self.found: dict[str, Account] = {}

    def get(self, name: str) -> Account | None:
        return self.found.get(name)

    def set(self, name: str, *keys: str) -> None:
        """Let `name` have these keys (base64) only."""
        self.found[name] = Account(name, tuple(base64.b64decode(key) for key in keys))


class Running:
    """A server on a free port of loopback."""

    def __init__(self) -> None:
        self.accounts = KnownAccounts()
        development = development_account()
        self.accounts.found[development.name] = development
        key = base64.b64encode(development.keys[0]).decode()
        self.credential = Credential(development.name, key)
        self._numbers = itertools.count(1)
        started: Future[int] = Future()
        self._thread = Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        self.port = started.result(timeout=20)

    def client(self) -> Client:
        """A client of the development account."""
        return Client(self.port, self.credential)

    def account(self) -> Client:
        """A client of a new account of its own."""
        name = f"account{next(self._numbers)}"
        key = base64.b64encode(name.encode() * 4).decode()
        self.accounts.set(name, key)
        return Client(self.port, Credential(name, key))

    def advance(self, seconds: float) -> None:
        """Let `seconds` of store time pass at once."""
        moved: Future[None] = Future()

        def move() -> None:
            self.store.advance(seconds)
            moved.set_result(None)

        self._loop.call_soon_threadsafe(move)
        moved.result(timeout=10)

    def stop(self) -> None:
        """End the server and its thread."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(timeout=20)
        assert not self._thread.is_alive()

    def _run(self, started: Future[int]) -> None:
        asyncio.run(self._serve(started))

    async def _serve(self, started: Future[int]) -> None:
        clock = SystemClock()
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self.store = MemoryStore(clock)
        services = Services(self.store, clock)
        context = Context(services, ROUTES, self.accounts, clock, strict=True)
        http = HttpServer(
            lambda request: respond(context, request),
            lambda error, request: pipeline.refuse(context, error, request),
        )
        started.set_result(await http.listen(HOST, free_port()))
        await self._stopped.wait()
        services.waiting.stop()
        await http.close()
        await self.store.close()


def free_port() -> int:
    """A port of loopback that nobody listens on, below the ephemeral ones."""
    offset = os.getpid() * 7 % len(_PORTS)
    for index in range(len(_PORTS)):
        port = _PORTS[(offset + index) % len(_PORTS)]
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
