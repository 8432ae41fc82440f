"""Takes the samples of the last hour, and knows the server's present state.

Lives here: the timer, and the reading of counters. Must not live here: what a sample has
(samples.py), documents (api/figures.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from strongroom.servers.console.samples import (
    STEP_S,
    IntervalSample,
    Ring,
    Traffic,
    by_service,
    traffic_of,
)
from strongroom.servers.telemetry import ExchangeCounts
from strongroom.values import JobFacts, StoreFacts

_log = logging.getLogger(__name__)


class Gauges(msgspec.Struct, frozen=True):
    """What is read of the server.

    Attributes:
        counts: of requests.
        store: the facts of the disk; it may raise OSError. None = in memory.
        memory_bytes: the resident memory; 0 = unknown.
        operations: the names of each service's operations, by the service's name.
    """

    counts: Callable[[], ExchangeCounts]
    store: Callable[[], StoreFacts] | None
    jobs: Callable[[], JobFacts]
    memory_bytes: Callable[[], int]
    wall_ticks: Callable[[], int]
    operations: Mapping[str, Sequence[str]]

    def store_facts(self) -> StoreFacts | None:
        """Return the facts of the disk; None in memory, or while the disk cannot be asked."""
        if self.store is None:
            return None
        try:
            return self.store()
        except OSError:
            return None


@dataclass(slots=True)
class _Totals:
    """The counters at the end of a sample."""

    traffic: Traffic
    services: dict[str, Traffic]
    counts: ExchangeCounts
    store: StoreFacts | None


@dataclass(slots=True)
class Sampler:
    """Samples the figures.

    Attributes:
        ended: the wall time in ticks at which the newest sample ended; 0 = there is none.
        services: the traffic of each service in the newest sample.
    """

    gauges: Gauges
    ring: Ring = field(default_factory=Ring)
    ended: int = 0
    started: int = 0
    services: dict[str, Traffic] = field(default_factory=dict)
    _last: _Totals | None = None
    _last_s: float = 0.0

    def begin(self, now_s: float) -> None:
        """Note the counters from which the first sample counts."""
        self.started = self.gauges.wall_ticks()
        self._last, self._last_s = self._totals(), now_s

    def take(self, now_s: float) -> None:
        if self._last is None:
            self.begin(now_s)
            return
        last, now = self._last, self._totals()
        interval_s = max(now_s - self._last_s, 0.001)
        self._last, self._last_s = now, now_s
        self.services = {name: one - last.services[name] for name, one in now.services.items()}
        self.ended = self.gauges.wall_ticks()
        store, before = now.store, last.store
        has_both = store is not None and before is not None
        self.ring.add(
            IntervalSample(
                interval_s=interval_s,
                traffic=now.traffic - last.traffic,
                received_bytes=now.counts.received_bytes - last.counts.received_bytes,
                sent_bytes=now.counts.sent_bytes - last.counts.sent_bytes,
                commits=_commits(store) - _commits(before) if has_both else None,
                decisions=_decisions(store) - _decisions(before) if has_both else None,
                disk_free_bytes=None if store is None else store.free_bytes,
                memory_bytes=self.gauges.memory_bytes() or None,
                connections=now.counts.connections,
            )
        )

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self.begin(loop.time())
        while True:
            await asyncio.sleep(STEP_S)
            try:
                self.take(loop.time())
            except Exception:
                _log.exception("a sample of the console's figures could not be taken")

    def _totals(self) -> _Totals:
        counts = self.gauges.counts()
        services = by_service(counts, self.gauges.operations)
        return _Totals(traffic_of(counts), services, counts, self.gauges.store_facts())


def _commits(store: StoreFacts | None) -> int:
    return 0 if store is None else store.commits[-1][1]


def _decisions(store: StoreFacts | None) -> int:
    return 0 if store is None else store.decisions
