"""What observes a server's requests and commits: the access log, and spans for OpenTelemetry.

Lives here: which of them the settings want, and their beginning and end. Must not live here: what a
line or a span has (servers/access_log/, servers/tracing/).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strongroom.clock import Clock
from strongroom.config import ConfigError, Settings
from strongroom.engines import measured
from strongroom.engines.base import StorageEngine
from strongroom.engines.embedded import EmbeddedEngine
from strongroom.engines.measured import MeasuredEngine
from strongroom.servers.access_log.log import AccessLog, AccessLogMetrics
from strongroom.servers.access_log.places import Places
from strongroom.servers.access_log.texts import ObjectNames
from strongroom.servers.access_log.writer import AccessLogUnusable
from strongroom.servers.identities.accounts_file import ServedAccounts
from strongroom.servers.observers import RequestObserver
from strongroom.servers.telemetry import Telemetry

if TYPE_CHECKING:
    from strongroom.servers.tracing.set_up import Tracing


class ServerObservers:
    """The observers that the settings want. Without any, requests use the engine itself.

    Raises: ConfigError.
    """

    def __init__(self, settings: Settings, accounts: ServedAccounts, clock: Clock) -> None:
        places = Places(accounts, ObjectNames(settings.observation.names))
        self.tracing = _tracing(places) if settings.observation.traces else None
        self.access_log = _access_log(settings, places, clock)

    @property
    def observers(self) -> tuple[RequestObserver, ...]:
        """What is told of each request."""
        spans = None if self.tracing is None else self.tracing.requests
        return tuple(one for one in (spans, self.access_log) if one is not None)

    def engine(self, store: StorageEngine) -> StorageEngine:
        """Return the store for the services: measured if an observer needs that."""
        if not self.observers:
            return store
        updating = None if self.tracing is None else self.tracing.commits.updating
        if self.tracing is not None and isinstance(store, EmbeddedEngine):
            store.observe_commits(self.tracing.commits)
        return MeasuredEngine(store, asyncio.get_running_loop().time, updating)

    def add_metrics(self, telemetry: Telemetry) -> None:
        """Add what the observers count."""
        if self.access_log is not None:
            telemetry.add(AccessLogMetrics(self.access_log.writer))

    async def close(self) -> None:
        """Write and send what waits."""
        if self.tracing is not None:
            await self.tracing.close()
        if self.access_log is not None:
            await self.access_log.close()


def _access_log(settings: Settings, places: Places, clock: Clock) -> AccessLog | None:
    target = settings.observation.access_log
    if target is None:
        return None
    try:
        return AccessLog(target, places, clock.wall_ticks, measured)
    except AccessLogUnusable as error:
        raise ConfigError(f"--access-log: {error}") from None


def _tracing(places: Places) -> Tracing:
    try:
        from strongroom.servers.tracing.set_up import Tracing
    except ImportError as error:
        raise ConfigError(
            f"--otel needs the extra: pip install strongroom[otel] ({error})"
        ) from None
    return Tracing(places)
