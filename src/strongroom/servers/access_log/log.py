"""The access log as an observer of requests, and its counts as metrics.

Lives here: the way from an exchange to the queue of the writer. Must not live here: the content of
a record (exchanges.py, messages.py), files (writer.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from strongroom.servers.access_log.exchanges import ExchangeRecords
from strongroom.servers.access_log.messages import MessageRecords
from strongroom.servers.access_log.places import Places
from strongroom.servers.access_log.record import line_of
from strongroom.servers.access_log.writer import LogTarget, LogWriter
from strongroom.servers.http.settings import Exchange
from strongroom.servers.observers import SmbExchange
from strongroom.wire.core.http import Request

_STOP_TIMEOUT_S: Final = 5.0
_SMB: Final = "smb"


class EngineTime(Protocol):
    """How long requests wait for the engine (engines/measured.py)."""

    def begin(self) -> None:
        """Begin a request in the current task."""
        ...

    def spent_s(self) -> float:
        """Return how many seconds the current request has waited so far."""
        ...


class AccessLog:
    """Writes a line for each request.

    Arguments:
        name: the path of the file, or writer.STDOUT.
        places: writes addresses.
        now: wall time in ticks.
        engine: measures the waits for the engine.

    Raises: AccessLogUnusable.
    """

    def __init__(
        self,
        name: str,
        places: Places,
        now: Callable[[], int],
        engine: EngineTime,
    ) -> None:
        target = LogTarget(name)
        target.check()
        self._engine = engine
        self._exchanges = ExchangeRecords(places, now, engine.spent_s)
        self._messages = MessageRecords(places, now, engine.spent_s)
        self.writer = LogWriter(target)
        self.writer.start()

    def begin(self, request: Request | None) -> None:
        """See RequestObserver."""
        self._engine.begin()

    def observe(self, exchange: Exchange, listener: str) -> None:
        """See RequestObserver."""
        for record in self._exchanges.of(exchange, listener):
            self.writer.put(line_of(record))

    def observe_smb(self, exchange: SmbExchange) -> None:
        """See RequestObserver."""
        self.writer.put(line_of(self._messages.of(exchange, _SMB)))

    async def close(self) -> None:
        """Write what is queued, within a bounded time."""
        await asyncio.to_thread(self.writer.stop, _STOP_TIMEOUT_S)


class AccessLogMetrics(Collector):
    """The counts of an access log as metrics."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics with their present values."""
        for name, what, count in (
            ("lines", "Lines of the access log.", self._writer.written),
            ("dropped_lines", "Lines that found no room in the queue.", self._writer.dropped),
            ("failures", "Failed writes of the access log.", self._writer.failures),
        ):
            yield CounterMetricFamily(f"strongroom_access_log_{name}", what, value=count)
