"""The access log as an observer of requests, and its counts as metrics.

Lives here: the way from an exchange to the queue of the writer. Must not live here: the content of
a record (exchanges.py, messages.py), files (writer.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from strongroom.limits import KIB
from strongroom.servers.access_log.exchanges import ExchangeRecords
from strongroom.servers.access_log.messages import MessageRecords
from strongroom.servers.access_log.places import Places
from strongroom.servers.access_log.record import line_of
from strongroom.servers.access_log.writer import LogTarget, LogWriter
from strongroom.servers.http.settings import Exchange
from strongroom.servers.observers import SmbExchange
from strongroom.wire.core.http import Request

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

# The lines of several requests are made one after the other, while their code and data are in the
# processor's caches. So few are held that no pass of the garbage collector sees them, and none that
# has a large body.
_HELD_MAX: Final = 32
_HELD_BYTES_MAX: Final = 16 * KIB
_HELD_S: Final = 0.05
_STOP_TIMEOUT_S: Final = 5.0
_SMB: Final = "smb"
_log = logging.getLogger(__name__)


class EngineTime(Protocol):
    """How long requests wait for the engine (engines/measured.py)."""

    def begin(self) -> None:
        """Begin a request in the current task."""
        ...

    def spent_s(self) -> float:
        """Return how many seconds the current request has waited so far."""
        ...


class AccessLog:
    """Writes a line for each request. It is made in the event loop.

    Arguments:
        name: the path of the file, or writer.STDOUT.
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
        self._now = now
        self._exchanges = ExchangeRecords(places)
        self._messages = MessageRecords(places)
        self._held: list[tuple[Exchange, str, int, float]] = []
        self._is_due = False  # whether a call is arranged that empties the list
        self._call_later = asyncio.get_running_loop().call_later
        self.writer = LogWriter(target)
        self.writer.start()

    def begin(self, request: Request | None) -> None:
        # Batches and time limits start tasks of their own, which then share the sum of the request.
        if request is None or request.query is not None:
            self._engine.begin()

    def observe(self, exchange: Exchange, listener: str) -> None:
        held = self._held
        held.append((exchange, listener, self._now(), self._engine.spent_s()))
        is_large = exchange.bytes_in + exchange.bytes_out > _HELD_BYTES_MAX
        if is_large or len(held) >= _HELD_MAX:
            self._record_held()
        elif not self._is_due:
            self._is_due = True
            self._call_later(_HELD_S, self._record_due)

    def observe_smb(self, exchange: SmbExchange) -> None:
        record = self._messages.of(exchange, _SMB, self._now(), self._engine.spent_s())
        self.writer.put(line_of(record))

    def _record_held(self) -> None:
        held, self._held = self._held, []
        lines: list[bytes] = []
        for exchange, listener, now, engine_s in held:
            try:
                lines += self._exchanges.lines(exchange, listener, now, engine_s)
            except Exception:
                _log.exception("a request could not be recorded in the access log")
        if lines:
            self.writer.put(b"".join(lines))

    def _record_due(self) -> None:
        self._is_due = False
        self._record_held()

    async def close(self) -> None:
        """Write what is queued, within a bounded time."""
        self._record_held()
        await asyncio.to_thread(self.writer.stop, _STOP_TIMEOUT_S)


class AccessLogMetrics:
    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.metrics_core import CounterMetricFamily

        for name, what, count in (
            ("lines", "Lines of the access log.", self._writer.written),
            ("dropped_lines", "Lines that found no room in the queue.", self._writer.dropped),
            ("failures", "Failed writes of the access log.", self._writer.failures),
        ):
            yield CounterMetricFamily(f"strongroom_access_log_{name}", what, value=count)
