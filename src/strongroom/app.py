"""The composition root: settings -> engine -> services -> pipeline -> HTTP server.

Lives here: what is made from what, in which order it starts and stops. Must not live here: reading
of flags or the environment (config.py, cli/), behaviour. The only module that knows all layers.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Final

from strongroom.auth.accounts import Account, AccountsError, development_account
from strongroom.auth.request import Service
from strongroom.clock import Clock
from strongroom.config import (
    ConfigError,
    SelfMade,
    Settings,
    TlsFiles,
    check_exposure,
)
from strongroom.engines.base import EngineError
from strongroom.engines.embedded import EmbeddedStore, open_store
from strongroom.engines.memory import MemoryStore
from strongroom.engines.threads import started_pool
from strongroom.errors import StorageError
from strongroom.operations.blob import endpoint as blob_service
from strongroom.operations.core.endpoint import Endpoint
from strongroom.operations.queue import endpoint as queue_service
from strongroom.operations.table import endpoint as table_service
from strongroom.servers import free_memory, open_files, pipeline
from strongroom.servers.accounts_file import ServedAccounts
from strongroom.servers.admission import Context
from strongroom.servers.copy_addresses import SourceHosts
from strongroom.servers.copy_client import CopyClient
from strongroom.servers.copy_locator import CopyLocator
from strongroom.servers.faults import Faults
from strongroom.servers.free_memory import MemoryReturn
from strongroom.servers.http import Exchange, HttpServer, HttpSettings
from strongroom.servers.memory_pressure import Pressure
from strongroom.servers.own_endpoints import PREFIX, OwnEndpoints
from strongroom.servers.own_hosts import OwnHosts
from strongroom.servers.telemetry import Telemetry
from strongroom.servers.tls import load_context
from strongroom.services.blob.copy_sources import CopySources
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.wire.core.http import Request, Response

# How long a thread may keep the interpreter while another wants it: the commit thread must get it
# back quickly when its sync is over.
_SWITCH_INTERVAL_S: Final = 0.0005
_HEALTH_TIMEOUT_S: Final = 5.0
# For calls that block: DNS look-ups, and reading the files of certificates.
_WAITING_THREADS: Final = 6
ENDPOINTS: Final = {
    endpoint.service: endpoint
    for endpoint in (blob_service.ENDPOINT, queue_service.ENDPOINT, table_service.ENDPOINT)
}
_log = logging.getLogger(__name__)


class CannotListen(Exception):
    """The address or the port cannot be had; the text says which and why."""


class DataUnusable(Exception):
    """The data directory cannot be opened; the text says why and what to do."""


class App:
    """One server: `start`, then `stop`.

    Arguments:
        settings: everything that can be set.
        clock: where time and randomness come from.
    """

    # What `start` makes.
    store: MemoryStore | EmbeddedStore
    services: Services
    accounts: ServedAccounts
    ports: dict[Service, int]

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self.failed: asyncio.Future[EngineError] | None = None
        self.certificate: Path | None = None  # the one that the server made itself
        self._clock = clock
        self.pressure: Pressure | None = None  # set if the whole process is this server
        self.releases: list[Callable[[], object]] = [gc.collect, free_memory.give_back]
        self._http: list[HttpServer] = []
        self._closing: list[Callable[[], Awaitable[object]]] = []

    async def start(self) -> None:
        """Open everything and serve. What was opened is closed again when something fails.

        Raises: ConfigError, DataUnusable, CannotListen.
        """
        self.failed = asyncio.get_running_loop().create_future()
        try:
            self.accounts = _served_accounts(self.settings)
            remote = CopyClient(_source_hosts(self.settings))
            self.store = await self._open_store()
            self._closing.append(self.store.close)
            tls = self._tls_context()
            self.services = Services(self.store, self._clock)
            self._closing.append(self.services.held.of(CopySources).close)
            self.services.held.of(CopySources).remote = remote
            await self._listen(tls)
        except BaseException:
            await self._close()
            raise

    async def stop(self) -> bool:
        """Drain and close: no new connections, requests in flight are finished, everything that
        was accepted is durable. Returns whether every request finished. Idempotent."""
        finished = True
        if self._http:
            # Whoever waits for a change would hold up the end for a minute.
            self.services.waiting.stop()
            self.store.stop_waiting()
            limit_s = self.settings.drain_timeout_s
            finished = all(await asyncio.gather(*(http.drain(limit_s) for http in self._http)))
            self._http = []
        await self._close()
        return finished

    def advance(self, seconds: float) -> None:
        """Move store time (test clock only). Raises ValueError without a test clock."""
        if not self.settings.test_clock:
            raise ValueError("this server was not started with a test clock")
        self.store.advance(seconds)

    async def _close(self) -> None:
        while self._closing:
            await self._closing.pop()()

    async def _open_store(self) -> MemoryStore | EmbeddedStore:
        settings = self.settings
        if settings.data is None:
            return MemoryStore(self._clock)
        try:
            store = await open_store(settings.data, self._clock, test_clock=settings.test_clock)
        except EngineError as error:
            raise DataUnusable(str(error)) from error
        except OSError as error:
            raise DataUnusable(f"{settings.data} cannot be opened: {error}") from error
        store.on_fatal(self._broke)
        self.releases.insert(0, store.release_memory)
        return store

    def _broke(self, error: EngineError) -> None:
        assert self.failed is not None
        if not self.failed.done():
            self.failed.set_result(error)

    def _tls_context(self) -> ssl.SSLContext | None:
        wanted = self.settings.tls
        if wanted is None:
            return None
        try:
            if isinstance(wanted, SelfMade):
                from strongroom.servers.self_made import self_made_certificate

                wanted = TlsFiles(*self_made_certificate(self._own_directory(), self._clock))
                self.certificate = wanted.certificate
            return load_context(wanted.certificate, wanted.key)
        except OSError as error:  # ssl.SSLError is one
            raise ConfigError(f"TLS cannot be used: {error}") from None

    def _own_directory(self) -> Path:
        if self.settings.data is not None:
            return self.settings.data
        made = tempfile.TemporaryDirectory(prefix="strongroom-")

        async def remove() -> None:
            made.cleanup()

        self._closing.append(remove)
        return Path(made.name)

    async def _listen(self, tls: ssl.SSLContext | None) -> None:
        telemetry = Telemetry(self._connections, self._waiters)
        settings = self.settings
        faults = Faults() if settings.test_clock else None
        self.services.held.of(CopySources).hold = faults
        own = self._own_endpoints(telemetry, faults)
        bounds = HttpSettings(connections_max=open_files.connections_max() // len(ENDPOINTS))
        wanted = {
            Service.BLOB: settings.blob_port,
            Service.QUEUE: settings.queue_port,
            Service.TABLE: settings.table_port,
        }
        self.ports = {}
        for service, endpoint in ENDPOINTS.items():
            context = self._context(endpoint)
            http = _server(context, own, faults, bounds, telemetry, tls, self.pressure)
            self.releases.insert(0, http.close_idle)
            # Told at once: a later port that cannot be had closes those before it.
            self._closing.append(http.close)
            self.ports[service] = await self._open(http, wanted[service])
            self._http.append(http)
            if service is Service.BLOB:
                locator = CopyLocator(context, frozenset({self.ports[service]}))
                self.services.held.of(CopySources).locate = locator.locate
        self._in_background(Sweeper(self.services).run())
        self._in_background(MemoryReturn().run())
        if self.pressure is not None:
            self._in_background(self.pressure.watch(lambda: self.store.health(_HEALTH_TIMEOUT_S)))

    def _context(self, endpoint: Endpoint) -> Context:
        settings = self.settings
        return Context(
            self.services,
            endpoint,
            self.accounts,
            self._clock,
            suffixes=(f"{endpoint.service.value}.localhost", *settings.host_suffixes),
            strict=settings.strict,
        )

    async def _open(self, http: HttpServer, port: int) -> int:
        host = self.settings.host
        try:
            return await http.listen(host.strip("[]"), port)
        except OSError as error:
            reason = error.strerror or str(error)
            raise CannotListen(f"cannot listen on {host} port {port}: {reason}") from error

    def _in_background(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._closing.append(stop)

    def _own_endpoints(self, telemetry: Telemetry, faults: Faults | None) -> OwnEndpoints:
        settings = self.settings
        return OwnEndpoints(
            is_ready=lambda: bool(self._http) and not self._http[0].draining,
            health=lambda: self.store.health(_HEALTH_TIMEOUT_S),
            is_durable=settings.data is not None,
            metrics=telemetry.exposition,
            metrics_anywhere=settings.metrics_anywhere,
            now=self.store.now,
            advance=self.store.advance if settings.test_clock else None,
            faults=faults,
            hosts=OwnHosts(
                frozenset((settings.host.lower(), *settings.own_hosts)), settings.host_suffixes
            ),
        )

    def _connections(self) -> int:
        return sum(http.connection_count for http in self._http)

    def _waiters(self) -> int:
        return self.store.watching()


def _server(
    context: Context,
    own: OwnEndpoints,
    faults: Faults | None,
    bounds: HttpSettings,
    telemetry: Telemetry,
    tls: ssl.SSLContext | None,
    pressure: Pressure | None,
) -> HttpServer:
    """The HTTP server of one service; the server's own endpoints are on every port."""
    observe = telemetry.observe if pressure is None else _observing(telemetry, pressure)

    def handle(request: Request) -> Awaitable[Response]:
        if request.path.startswith(PREFIX):
            return own.respond(request)
        if pressure is not None:
            pressure.refuse_upload(request)
        if faults is not None:
            return faults.respond(context, request)
        return pipeline.respond(context, request)

    def render(error: StorageError, request: Request | None) -> Response:
        return pipeline.refuse(context, error, request)

    return HttpServer(handle, render, settings=bounds, observe=observe, tls=tls)


def _observing(telemetry: Telemetry, pressure: Pressure) -> Callable[[Exchange], None]:
    def observe(exchange: Exchange) -> None:
        if exchange.complete:
            pressure.served()
        telemetry.observe(exchange)

    return observe


def _source_hosts(settings: Settings) -> SourceHosts:
    try:
        return SourceHosts.parse(settings.copy_source_hosts)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _served_accounts(settings: Settings) -> ServedAccounts:
    sources = settings.accounts

    def admit(accounts: tuple[Account, ...]) -> None:
        try:
            check_exposure(settings, accounts)
        except ConfigError as error:
            raise AccountsError(str(error)) from None

    if sources.must_exist and sources.file is not None and not sources.file.is_file():
        raise ConfigError(f"there is no accounts file {sources.file}")
    try:
        soon = asyncio.get_running_loop().call_soon
        return ServedAccounts(sources.fixed, sources.file, development_account(), admit, soon)
    except (AccountsError, OSError) as error:
        raise ConfigError(str(error)) from None


async def serve(
    settings: Settings,
    clock: Clock,
    stop: asyncio.Event,
    started: Callable[[App], None],
    give_up: Callable[[str], None],
) -> EngineError | None:
    """Serve until `stop` is set or the engine fails.

    Arguments:
        started: told once everything is open.
        give_up: ends the process at once when it can serve nobody for lack of memory; its
            argument is the reason.

    Returns: what stopped the engine, None after an orderly end.
    Raises: as App.start.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    open_files.raise_limit()
    free_memory.limit_arenas()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(started_pool(_WAITING_THREADS, "strongroom-wait"))
    app = App(settings, clock)
    app.pressure = Pressure(loop.time, app.releases, give_up)
    loop.set_exception_handler(app.pressure.handle)
    await app.start()
    assert app.failed is not None
    started(app)
    asked = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((asked, app.failed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        if not await app.stop():
            _log.warning("some requests did not finish in time and were cut off")
    return app.failed.result() if app.failed.done() else None
