"""The composition root: settings -> engine -> services -> listeners.

Lives here: the construction of all parts, and the order in which they start and stop. Must not live
here: reading of flags or the environment (config.py, cli/), behaviour, how one listener is composed
(servers/service_listeners.py). The only module that knows all layers.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strongroom.auth.request import Service
from strongroom.clock import Clock
from strongroom.config import (
    ConfigError,
    ConsoleSettings,
    Settings,
    SmbFlags,
    accounts_in_store,
    check_gateways,
    check_oauth,
    kept_in,
)
from strongroom.engines.base import EngineError, Unavailable
from strongroom.engines.checksum import load_soon
from strongroom.engines.embedded import EmbeddedEngine
from strongroom.engines.embedded.disk.threads import started_pool
from strongroom.engines.memory import MemoryEngine
from strongroom.observation import ServerObservers, store_scrub
from strongroom.servers import free_memory, service_listeners, smb
from strongroom.servers.certificates.served import ServedCertificate
from strongroom.servers.connections import open_files
from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.console.requests.part import kept_requests
from strongroom.servers.console.serving import NAME as CONSOLE
from strongroom.servers.console.serving import Console
from strongroom.servers.copy_locator import CopyLocator
from strongroom.servers.faults import FaultInjector
from strongroom.servers.free_memory import MemoryReturn
from strongroom.servers.gateway_metrics import GatewayMetrics
from strongroom.servers.identities.accounts_file import ServedAccounts
from strongroom.servers.identities.stored_rows import StoredIdentities
from strongroom.servers.listener import Listener, RequestedListener
from strongroom.servers.memory_pressure import Pressure
from strongroom.servers.one_port import OnePort
from strongroom.servers.open_parts import OpenParts
from strongroom.servers.own_endpoints import OwnEndpoints
from strongroom.servers.own_hosts import OwnHosts
from strongroom.servers.service_listeners import ENDPOINTS, Contexts, Shared
from strongroom.servers.telemetry import (
    ConnectionMetrics,
    JobMetrics,
    StoreMetrics,
    Telemetry,
    load_metrics_soon,
)
from strongroom.servers.wanted_ports import CannotListen as CannotListen
from strongroom.servers.wanted_ports import check_host, not_listening, wanted_ports
from strongroom.services.blob.decisions.rehydration import RehydrationDelays
from strongroom.services.core.delegation import DelegationAccounts
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from strongroom.sources import (
    JobFactsOf,
    console_facts,
    console_options,
    console_url,
    copy_sources,
    forwarding_of,
    served_accounts,
    served_certificate,
    served_identities,
    warn_of_taken_ports,
)
from strongroom.standby import NotServing, ServedElsewhere, Standby
from strongroom.storage import DatabaseAway as DatabaseAway
from strongroom.storage import DataUnusable as DataUnusable
from strongroom.storage import (
    are_bodies_away,
    check_data,
    check_identities,
    opened_store,
    stored_identities,
)
from strongroom.values import Health

if TYPE_CHECKING:
    from strongroom.engines.embedded.scrub.scrub import Scrub
    from strongroom.engines.postgres.store import PostgresEngine
    from strongroom.servers.resets import Resets
    from strongroom.setup.run import SetupRun

# How long a thread may keep the interpreter while another waits for it. The commit thread must get
# it back quickly after its sync.
_SWITCH_INTERVAL_S: Final = 0.0005
_HEALTH_TIMEOUT_S: Final = 5.0
# A balancer must learn within a second that the database is lost.
_DATABASE_HEALTH_TIMEOUT_S: Final = 0.8
# Threads for blocking calls: DNS look-ups, and reading the files of certificates.
_WAITING_THREADS: Final = 6
_log = logging.getLogger(__name__)


class App:
    """One server: `start`, then `stop`. `tell` prints a line about what a setup has made."""

    # `start` sets these.
    store: MemoryEngine | EmbeddedEngine | PostgresEngine
    services: Services
    accounts: ServedAccounts
    observation: ServerObservers

    def __init__(
        self, settings: Settings, clock: Clock, tell: Callable[[str], None] = _log.info
    ) -> None:
        self.settings = settings
        self.failed: asyncio.Future[EngineError] | None = None
        self.tls: ServedCertificate | None = None
        self._clock = clock
        self._tell = tell
        self.scrub: Scrub | None = None  # set if the store is on a disk and is to be scrubbed
        self.console: Console | None = None
        self.pressure: Pressure | None = None  # set if this server has its process for itself
        self.standby = Standby()
        self.releases: list[Callable[[], object]] = [gc.collect, free_memory.trim_heap]
        self.ports: dict[str, int] = {}  # by the listener's name
        self._listeners: list[Listener] = []
        self._parts = OpenParts()

    async def start(self) -> None:
        """Open everything and serve. If a step fails, the parts opened before it are closed again.
        With a database, wait first until no other gateway serves its store.

        Raises: ConfigError, DataUnusable, CannotListen, NotServing.
        """
        try:
            for host in self.settings.listening_hosts():
                await check_host(host)
            faults = FaultInjector() if self.settings.test_clock else None
            locator, stored = await self._open_services(faults)
            await self._listen(locator, faults, stored)
        except BaseException:
            await self._parts.close()
            raise

    async def set_up(self) -> None:
        """Apply the setup of the settings without serving. Raises: ConfigError, DataUnusable."""
        self.standby = Standby(waits=False)
        try:
            await self._open_services(None)
        finally:
            await self._parts.close()

    async def _open_services(
        self, faults: FaultInjector | None
    ) -> tuple[CopyLocator, StoredIdentities | None]:
        """Open all but the listeners, and apply the setup: nobody can reach the server before.

        Returns: what finds the sources of copies, once it knows the services' contexts; and the
            accounts and roles of a database.
        """
        self.failed = asyncio.get_running_loop().create_future()
        check_oauth(self.settings)
        check_gateways(self.settings)
        check_data(self.settings.data)
        given = self.settings
        setup: SetupRun | None = None
        if given.setup is not None:
            from strongroom.setup.run import SetupRun

            setup = SetupRun(given.setup, self._tell)
            self.settings = setup.completed(given, self._own_directory)
        if not accounts_in_store(self.settings):
            self.accounts = served_accounts(self.settings)
        router = OnePort(ENDPOINTS, self.settings.host_suffixes)
        locator = CopyLocator(self.ports, router)
        sources = copy_sources(self.settings, locator, faults)
        self.store = await opened_store(self.settings, self._clock)
        self._parts.add(self.store.close)
        if not isinstance(self.store, MemoryEngine):
            self.store.on_fatal(self._broke)
        if isinstance(self.store, EmbeddedEngine):
            self.releases.insert(0, self.store.release_memory)
        stored = await stored_identities(self.settings, self.store)
        if setup is not None:
            await setup.add_identities(given, self.settings, stored)
        if setup is not None or stored is not None:
            self.accounts = served_accounts(self.settings, stored)
        if stored is not None:
            self._parts.run(stored.follow())
        await check_identities(self.settings, self.store, self.accounts)
        self.tls = served_certificate(self.settings, self._own_directory, self._clock)
        if self.tls is not None:
            self._parts.run(self.tls.watch())  # also while another gateway serves
        self.observation = ServerObservers(self.settings, self.accounts, self._clock)
        self._parts.add(self.observation.close)
        engine = self.observation.engine(self.store)
        delays = RehydrationDelays(*self.settings.rehydration_s)
        composed = sources, delays, DelegationAccounts(self.accounts)
        self.services = Services(engine, self._clock, self.accounts.switches, composed)
        self._parts.add(sources.close)
        if self.settings.store is not None:
            await self._take_right()
        if setup is not None:
            await setup.apply(self.services, self.accounts, self._clock)
        return locator, stored

    async def stop(self) -> bool:
        """Drain and close; return whether every request finished.

        New connections are refused and requests in flight are finished. Every accepted write is
        then durable. Idempotent.
        """
        finished = True
        if self._listeners:
            # A request that waits for a change would delay the end for a minute.
            self.services.waiting.stop()
            self.store.stop_waiting()
            limit_s = self.settings.drain_timeout_s
            draining = [listener.drain(limit_s) for listener in self._listeners]
            finished = all(await asyncio.gather(*draining))
            self._listeners = []
        await self._parts.close()
        return finished

    @property
    def certificate(self) -> Path | None:
        """The file of the certificate that the server made; None if it made none."""
        is_own = self.tls is not None and self.tls.files.remake is not None
        return self.tls.files.paths[0] if self.tls is not None and is_own else None

    def description(self) -> str:
        """Return what is served, as a line of the log."""
        ports = ", ".join(f"{name} {port}" for name, port in self.ports.items())
        hosts = ", ".join(self.settings.listening_hosts())
        return (
            f"ready: {kept_in(self.settings) or 'in memory'}, on {hosts} "
            f"({ports}), accounts: {len(self.accounts.all())}"
        )

    def advance(self, seconds: float) -> None:
        """Move store time forward (test clock only). Raises ValueError without a test clock."""
        if not self.settings.test_clock:
            raise ValueError("this server was not started with a test clock")
        self.store.advance(seconds)

    async def _take_right(self) -> None:
        """Wait until no other gateway serves the store. Raises: NotServing, DataUnusable."""
        from strongroom.engines.postgres.store import PostgresEngine

        store = self.store
        assert isinstance(store, PostgresEngine)
        assert self.failed is not None
        assert self.settings.store is not None
        self.standby.mode = self.settings.store.mode
        self._parts.add(self.standby.release)
        try:
            await self.standby.take(store, self.failed, lambda: warn_of_taken_ports(self.settings))
        except ServedElsewhere as error:
            raise DataUnusable(str(error)) from error
        except Unavailable as error:
            raise DatabaseAway(str(error)) from error
        self._parts.run(self.standby.watch(store, self._broke))

    def _broke(self, error: EngineError) -> None:
        assert self.failed is not None
        if not self.failed.done():
            self.failed.set_result(error)

    def _own_directory(self) -> Path:
        if self.settings.data is not None:
            return self.settings.data
        made = tempfile.TemporaryDirectory(prefix="strongroom-")

        async def remove() -> None:
            made.cleanup()

        self._parts.add(remove)
        return Path(made.name)

    async def _listen(
        self,
        locator: CopyLocator,
        faults: FaultInjector | None,
        stored: StoredIdentities | None,
    ) -> None:
        settings = self.settings
        forwarding = forwarding_of(settings, self.services)
        contexts = service_listeners.contexts(
            self.services,
            self.accounts,
            self._clock,
            host_suffixes=settings.host_suffixes,
            identities=served_identities(settings, stored, self._parts.add),
            strict=settings.strict,
            forward=None if forwarding is None else forwarding.answer,
        )
        locator.connect(contexts)
        ports = wanted_ports(settings.service_ports(), settings.one_port)
        budget = ConnectionBudget(open_files.connections_max())
        telemetry = Telemetry(
            lambda: sum(listener.connection_count for listener in self._listeners),
            self.store.watching,
        )
        telemetry.add(ConnectionMetrics(budget))
        if isinstance(self.store, EmbeddedEngine):
            telemetry.add(StoreMetrics(self.store.facts))
            self.scrub = store_scrub(settings, self.store, self._clock, telemetry)
        elif not isinstance(self.store, MemoryEngine):
            telemetry.add(GatewayMetrics(self.store.facts))
        sweeper = Sweeper(self.services)
        telemetry.add(JobMetrics(sweeper.facts))
        self.observation.add_metrics(telemetry)
        shared = Shared(
            self._own_endpoints(telemetry, faults),
            budget,
            telemetry,
            None if self.tls is None else self.tls.context,
            faults,
            self.pressure,
            requires_https=settings.requires_https,
            observers=self.observation.observers,
        )
        if settings.console is not None:
            shared = await self._open_console(settings.console, contexts, shared, sweeper.facts)
        for wanted in service_listeners.listeners(contexts, locator.router, shared, ports):
            await self._open(wanted)
        if forwarding is not None:
            await forwarding.open(contexts, shared, self._open)
            self._parts.add(forwarding.close)
        if settings.smb is not None:
            await self._open_smb(settings.smb, budget, telemetry)
        self._parts.run(load_soon())
        self._parts.run(load_metrics_soon())
        self._parts.run(sweeper.run())
        self._parts.run(MemoryReturn().run())
        if self.scrub is not None:
            self._parts.run(self.scrub.run())
        if self.pressure is not None:
            self._parts.run(self.pressure.watch(self._health))

    async def _open_console(
        self, flags: ConsoleSettings, contexts: Contexts, shared: Shared, jobs: JobFactsOf
    ) -> Shared:
        """Open the console's port; return what the services' listeners share with it.

        It is opened first, since they tell it of their requests.
        """
        store = self.store.facts if isinstance(self.store, EmbeddedEngine) else None
        server = console_facts(self.settings, self.ports, self.accounts, store, jobs)
        with_tail, requests = kept_requests(shared, contexts[Service.BLOB], server)
        options = await console_options(self.settings, self.tls)
        console = Console(options, server, contexts, with_tail, requests)
        try:
            await self._open(RequestedListener(CONSOLE, console.server, flags.port))
        except CannotListen:
            if flags.is_asked_for:
                raise
            _log.warning("port %d is taken: no console; see --console-port", flags.port)
            return shared
        self.console = console
        self._parts.run(console.run())
        return with_tail

    async def _open_smb(
        self, flags: SmbFlags, budget: ConnectionBudget, telemetry: Telemetry
    ) -> None:
        from strongroom.servers.smb.transport import serving  # large, and rarely wanted

        listener = serving.smb_listener(
            self.services,
            self.accounts,
            self._clock,
            requires_encryption=flags.encryption == "required",
            budget=budget,
            observers=self.observation.observers,
        )
        telemetry.add(serving.SmbMetrics(listener))
        await self._open(RequestedListener(smb.NAME, listener, flags.port))

    async def _open(self, wanted: RequestedListener, own_host: str | None = None) -> int:
        """Return the port. With a host of its own, it is not for clients, nor drained with them."""
        host, listener = own_host or self.settings.host_of(wanted.name), wanted.listener
        self.releases.insert(0, listener.close_idle)
        # Registered first: if a later port cannot be opened, this one is closed again.
        self._parts.add(listener.close)
        try:
            port = await listener.listen(host.strip("[]"), wanted.port)
        except OSError as error:
            raise not_listening(host, wanted, error) from error
        if own_host is None:
            self._listeners.append(listener)
            self.ports[wanted.name] = port
        return port

    def _own_endpoints(self, telemetry: Telemetry, faults: FaultInjector | None) -> OwnEndpoints:
        settings = self.settings
        names = (*map(str.lower, settings.listening_hosts()), *settings.own_hosts)
        return OwnEndpoints(
            is_ready=lambda: bool(self._listeners) and not self._listeners[0].draining,
            health=self._health,
            is_durable=kept_in(settings) is not None,
            metrics=telemetry.exposition,
            metrics_anywhere=settings.metrics_anywhere,
            now=self.store.now,
            advance=self.store.advance if settings.test_clock else None,
            faults=faults,
            is_damaged=lambda: self.scrub is not None and self.scrub.facts().damaged > 0,
            resets=self._resets().answer if settings.may_be_reset() else None,
            hosts=OwnHosts(frozenset(names), settings.host_suffixes),
            console_url=lambda: console_url(settings, self.ports),
            are_bodies_away=lambda: are_bodies_away(self.store),
        )

    def _resets(self) -> Resets:
        from strongroom.servers.resets import Resets

        signed = self.settings.exposed_host() is not None
        durable = kept_in(self.settings) is not None
        wall_ticks = self._clock.wall_ticks
        return Resets(self.services, self.accounts.all, wall_ticks, durable, signed)

    async def _health(self) -> Health:
        has_database = self.settings.store is not None
        limit_s = _DATABASE_HEALTH_TIMEOUT_S if has_database else _HEALTH_TIMEOUT_S
        return await self.store.health(limit_s)


async def serve(
    settings: Settings,
    clock: Clock,
    stop: asyncio.Event,
    started: Callable[[App], None],
    give_up: Callable[[str], None],
    tell: Callable[[str], None] = _log.info,
    *,
    waits: Callable[[str], None] | None = None,
) -> EngineError | None:
    """Serve until `stop` is set or the engine fails.

    Arguments:
        started: called when everything is open.
        give_up: ends the process at once if it serves no requests for lack of memory; its argument
            is the reason.
        tell: see App.
        waits: is told why the server waits before it serves; None = `tell` is.

    Returns: the error that stopped the engine; None after an orderly end.
    Raises: as App.start and `started`; ConfigError too if this process may open too few files.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    open_files.raise_limit()
    try:
        open_files.check_limit()
    except open_files.TooFewOpenFiles as error:
        raise ConfigError(str(error)) from None
    free_memory.limit_arenas()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(started_pool(_WAITING_THREADS, "strongroom-wait"))
    app = App(settings, clock, tell)
    app.pressure = Pressure(loop.time, app.releases, give_up)
    loop.set_exception_handler(app.pressure.handle)
    app.standby = Standby(stop, waits or tell)
    try:
        await app.start()
    except NotServing as ended:
        return ended.error
    assert app.failed is not None
    _log.info("%s", app.description())
    stopping = asyncio.create_task(stop.wait())
    try:
        started(app)
        await asyncio.wait((stopping, app.failed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        began_s = loop.time()
        if not await app.stop():
            _log.warning("some requests did not finish in time and were cut off")
        _log.info("stopped after %.1f s", loop.time() - began_s)
    return app.failed.result() if app.failed.done() else None
