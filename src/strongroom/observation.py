"""What observes a server: the access log, spans for OpenTelemetry, and the scrub of its store.

Lives here: which of them the settings want, and their beginning and end. Must not live here: what a
line or a span has (servers/access_log/, servers/tracing/), what is scrubbed (engines/embedded/).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

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
from strongroom.servers.telemetry import ScrubMetrics, Telemetry
from strongroom.values import TICKS_PER_S, UNIX_EPOCH_TICKS

if TYPE_CHECKING:
    from strongroom.engines.embedded.scrub.scrub import Scrub
    from strongroom.servers.tracing.set_up import Tracing

_DAY_S: Final = 86400.0


class ServerObservers:
    """The observers that the settings want. Without any, requests use the engine itself. Raises:
    ConfigError."""

    def __init__(self, settings: Settings, accounts: ServedAccounts, clock: Clock) -> None:
        places = Places(accounts, ObjectNames(settings.observation.names))
        self.tracing = _tracing(places) if settings.observation.traces else None
        self.access_log = _access_log(settings, places, clock)

    @property
    def observers(self) -> tuple[RequestObserver, ...]:
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
        if self.access_log is not None:
            telemetry.add(AccessLogMetrics(self.access_log.writer))

    async def close(self) -> None:
        if self.tracing is not None:
            await self.tracing.close()
        if self.access_log is not None:
            await self.access_log.close()


def store_scrub(
    settings: Settings, store: EmbeddedEngine, clock: Clock, telemetry: Telemetry
) -> Scrub | None:
    """It does not run yet, but its metrics are added. None if the settings want none."""
    if not settings.scrub_days:
        return None
    from strongroom.engines.embedded.scrub import scrub as scrubbing

    interval_s = settings.scrub_days * _DAY_S
    scrub = scrubbing.Scrub(
        store.scrub_source,
        interval_s,
        lambda: (clock.wall_ticks() - UNIX_EPOCH_TICKS) / TICKS_PER_S,
    )
    telemetry.add(ScrubMetrics(scrub.facts))
    return scrub


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
