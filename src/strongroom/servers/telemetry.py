"""The server's telemetry: metrics, one log line per request, and the formats of the log.

Lives here: observation. No secret is recorded: signatures and pop receipts in a query are masked,
and headers and keys are not read. The library of metrics loads an HTTP server and more, an eighth
of what a start imports. So it is imported where metrics are read, and in the background after the
start.
"""

from __future__ import annotations

import asyncio
import bisect
import datetime
import importlib
import itertools
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import unquote_plus

from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.http.settings import Exchange
from strongroom.values import JobFacts, ScrubFacts, StoreFacts
from strongroom.wire.core.http import Response

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

REQUEST_LOG: Final = "strongroom.requests"
BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 60.0)
_SECRET_PARAMETERS: Final = frozenset({"sig", "popreceipt"})
_MISTAKEN_SIGNATURE: Final = re.compile(
    r"((?:[^0-9A-Za-z]|%3F|%26|%3B)sig(?:\[\])?(?:=|%3D))[^&;]*", re.IGNORECASE
)
_NO_OPERATION: Final = "none"
# A server's first seconds are for its clients. A scrape in them loads the library itself.
_LOAD_PAUSE_S: Final = 5.0
_log = logging.getLogger(__name__)
_requests_log = logging.getLogger(REQUEST_LOG)


class _Times:
    """How long the requests of one operation took."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0

    def buckets(self) -> list[tuple[str, float]]:
        """Return cumulative buckets, as Prometheus defines them: each includes the counts below
        it."""
        from prometheus_client.utils import floatToGoString

        bounds = [*map(floatToGoString, BUCKETS_S), "+Inf"]
        return list(zip(bounds, itertools.accumulate(map(float, self.counts)), strict=True))


class MetricSource(Protocol):
    """Something that is counted elsewhere."""

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics with their present values."""
        ...


class ExchangeCounts(NamedTuple):
    """What a Telemetry has counted since its start.

    Attributes:
        requests: by operation and status.
        times: by operation, how many requests took up to each bound of BUCKETS_S, without those of
            the bounds below. The last count has those above all bounds.
    """

    requests: dict[tuple[str, int], int]
    times: dict[str, tuple[int, ...]]
    received_bytes: int
    sent_bytes: int
    connections: int
    waiters: int


class Telemetry:
    """Counts exchanges; the HTTP servers call `observe` for each of them.

    The counters are plain numbers, since only the event loop changes them, and this class is its
    own collector. The library's metrics lock and look up labels. That would cost more than the rest
    of an observation.

    Arguments:
        connections: the number of open connections.
        waiters: the number of records that requests wait for.
    """

    def __init__(self, connections: Callable[[], int], waiters: Callable[[], int]) -> None:
        self._connections = connections
        self._waiters = waiters
        self._requests: dict[tuple[str, int], int] = {}
        self._times: dict[str, _Times] = {}
        self._received_bytes = self._sent_bytes = self._incomplete = 0
        self._sources: list[MetricSource] = []

    def add(self, counts: MetricSource) -> None:
        self._sources.append(counts)

    def observe(self, exchange: Exchange) -> None:
        """Count one exchange, and write its line at log level debug."""
        response = exchange.response
        operation = (response.operation if response is not None else "") or _NO_OPERATION
        key = (operation, exchange.status)
        self._requests[key] = self._requests.get(key, 0) + 1
        times = self._times.get(operation)
        if times is None:
            times = self._times[operation] = _Times()
        times.counts[bisect.bisect_left(BUCKETS_S, exchange.seconds)] += 1
        times.sum_s += exchange.seconds
        self._received_bytes += exchange.bytes_in
        self._sent_bytes += exchange.bytes_out
        if not exchange.complete:
            self._incomplete += 1
        if _requests_log.isEnabledFor(logging.DEBUG):
            _log_request(exchange, operation)

    def counts(self) -> ExchangeCounts:
        return ExchangeCounts(
            dict(self._requests),
            {operation: tuple(times.counts) for operation, times in self._times.items()},
            self._received_bytes,
            self._sent_bytes,
            self._connections(),
            self._waiters(),
        )

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, but those of the process."""
        from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily(
            "strongroom_requests", "Requests answered.", labels=("operation", "status")
        )
        for (operation, status), count in self._requests.items():
            requests.add_metric((operation, str(status)), count)
        seconds = HistogramMetricFamily(
            "strongroom_request_seconds",
            "From the request's head to the answer's last byte.",
            labels=("operation",),
        )
        for operation, times in self._times.items():
            seconds.add_metric((operation,), times.buckets(), times.sum_s)
        yield requests
        yield seconds
        yield counter("received_bytes", "Bytes of request bodies.", self._received_bytes)
        yield counter("sent_bytes", "Bytes of answers, heads included.", self._sent_bytes)
        yield counter("incomplete_answers", "Answers not sent whole.", self._incomplete)
        yield gauge("connections", "Connections open.", self._connections())
        yield gauge("waiters", "Records that requests wait for.", self._waiters())
        for source in self._sources:
            yield from source.collect()

    @cached_property
    def _registry(self) -> CollectorRegistry:
        from prometheus_client import CollectorRegistry, ProcessCollector
        from prometheus_client.registry import Collector

        class All(Collector):
            collect = staticmethod(self.collect)

        registry = CollectorRegistry()
        registry.register(All())
        ProcessCollector(registry=registry)
        return registry

    def exposition(self) -> tuple[bytes, str]:
        """Return every metric as text, and the media type of that text."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self._registry), CONTENT_TYPE_LATEST


async def load_metrics_soon() -> None:
    """Load the library of metrics some seconds after a server's start, before the first scrape of
    most servers."""
    await asyncio.sleep(_LOAD_PAUSE_S)
    library = "prometheus_client"
    await asyncio.get_running_loop().run_in_executor(None, importlib.import_module, library)


class ConnectionMetrics:
    """The counts of connections that had to make room, on all ports, as metrics."""

    def __init__(self, budget: ConnectionBudget) -> None:
        self._budget = budget

    def collect(self) -> Iterator[Metric]:
        ended, refused = self._budget.closed_for_newcomers, self._budget.refused
        yield counter(
            "connections_closed_for_newcomers", "Connections ended for a newcomer.", ended
        )
        yield counter("connections_refused", "Newcomers refused.", refused)


class StoreMetrics:
    """What an operator watches of the store on its disk, as metrics. `facts` may raise OSError."""

    def __init__(self, facts: Callable[[], StoreFacts]) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        """No metrics while the disk cannot be asked."""
        from prometheus_client.metrics_core import GaugeMetricFamily

        try:
            facts = self._facts()
        except OSError as error:
            _log.warning("the metrics of the disk are left out: %s", error)
            return
        yield gauge("disk_free_bytes", "Free space of the disk.", facts.free_bytes)
        yield gauge("disk_full", "1: new data is refused (507), or was just now.", facts.is_full)
        yield gauge("ballast_bytes", "The reserve for a full disk.", facts.ballast_bytes)
        whole_bytes = facts.ballast_whole_bytes
        yield gauge("ballast_whole_bytes", "The reserve when it is whole.", whole_bytes)
        sizes = GaugeMetricFamily("strongroom_data_bytes", "Lengths of files.", labels=("part",))
        sizes.add_metric(("records",), facts.records_bytes)
        sizes.add_metric(("log",), facts.log_bytes)
        sizes.add_metric(("segments",), facts.segments_bytes)
        yield sizes
        yield gauge("live_bytes", "What is needed of the segments.", facts.live_bytes)
        yield histogram(
            "commit_seconds",
            "Commits of records, with their sync to the disk.",
            facts.commits,
            facts.commits_s,
        )
        yield histogram(
            "segment_sync_seconds",
            "Syncs of larger bodies to the disk.",
            facts.segment_syncs,
            facts.segment_syncs_s,
        )
        yield counter("damaged_reads", "Reads that found damaged data.", facts.damaged_reads)
        if facts.backup_ended_s is not None:
            yield GaugeMetricFamily(
                "strongroom_last_backup_timestamp_seconds",
                "When the last backup was complete.",
                value=facts.backup_ended_s,
            )


class ScrubMetrics:
    def __init__(self, facts: Callable[[], ScrubFacts]) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        facts = self._facts()
        interval = "How long a pass of the scrub may take, and how often one begins."
        yield gauge("scrub_interval_seconds", interval, facts.interval_s)
        yield gauge("scrub_progress_ratio", "How much of its pass is read.", facts.progress)
        yield counter("scrub_read_bytes", "What the scrub has read.", facts.read_bytes)
        yield gauge("scrub_damaged", "Places that the scrub found damaged.", facts.damaged)
        began = "When the last pass of the scrub began."
        yield gauge("scrub_pass_started_timestamp_seconds", began, facts.began_s)
        if facts.ended_s is not None:
            last = "When a pass of the scrub was complete last."
            yield gauge("scrub_last_completed_timestamp_seconds", last, facts.ended_s)


class JobMetrics:
    def __init__(self, facts: Callable[[], JobFacts]) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        facts = self._facts()
        yield gauge("jobs_running", "Jobs that run now.", facts.running)
        yield gauge("jobs_failing", "Jobs that failed and are tried again.", facts.failing)
        yield counter("jobs_done", "Jobs that were finished.", facts.done)


def histogram(
    name: str, what: str, by_bound: tuple[tuple[float, int], ...], sum_s: float
) -> Metric:
    from prometheus_client.metrics_core import HistogramMetricFamily
    from prometheus_client.utils import floatToGoString

    bounds, counts = zip(*by_bound, strict=True)
    buckets = list(zip(map(floatToGoString, bounds), map(float, counts), strict=True))
    family = HistogramMetricFamily(f"strongroom_{name}", what)
    family.add_metric((), buckets, sum_s)
    return family


def counter(name: str, what: str, count: int) -> Metric:
    from prometheus_client.metrics_core import CounterMetricFamily

    return CounterMetricFamily(f"strongroom_{name}", what, value=count)


def gauge(name: str, what: str, count: float) -> Metric:
    from prometheus_client.metrics_core import GaugeMetricFamily

    return GaugeMetricFamily(f"strongroom_{name}", what, value=count)


def _log_request(exchange: Exchange, operation: str) -> None:
    request = exchange.request
    facts: dict[str, str | int | float | bool] = {
        "method": "-" if request is None else request.method,
        "target": "-" if request is None else masked_target(request.path, request.query),
        "status": exchange.status,
        "operation": operation,
        "bytes_in": exchange.bytes_in,
        "bytes_out": exchange.bytes_out,
        "ms": round(exchange.seconds * 1000, 3),
        "request_id": _header(exchange.response, "x-ms-request-id"),
        "peer": "-" if request is None else request.peer,
        "complete": exchange.complete,
    }
    _requests_log.debug("request", extra={"facts": facts})


def masked_target(path: str, query: str | None) -> str:
    """Return a request's path and query in printable ASCII, without the signature of a SAS.

    The URL may be mistaken, and its signature valid: `&amp;sig=` is from HTML, and `%3Fsig=` was
    encoded twice. Those are masked too.
    """
    target = path if query is None else f"{path}?{'&'.join(map(_masked, query.split('&')))}"
    target = _MISTAKEN_SIGNATURE.sub(r"\1-", target)
    return "".join(char if " " < char < "\x7f" else f"%{ord(char) & 0xFF:02X}" for char in target)


def _masked(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    # The parser of queries decodes names and ignores their case, so the mask does the same.
    if equals and unquote_plus(name).strip().lower() in _SECRET_PARAMETERS:
        return f"{name}=-"
    return parameter


def _header(response: Response | None, name: str) -> str:
    for header, value in response.headers if response is not None else ():
        if header == name:
            return value
    return "-"


def set_up_logging(level: str, form: str, debug_log: Path | None = None) -> None:
    """Send the project's log to standard error.

    Arguments:
        level: `debug`, `info`, `warning`, `error`.
        form: `text`, or `json` for one object a line.
        debug_log: a file that lines of every level are added to; None = there is none. Only its
            owner can read it.

    Raises: OSError: the file cannot be written.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(level.upper())
    handlers: list[logging.Handler] = [handler]
    if debug_log is not None:
        handlers.append(_PrivateFile(debug_log, encoding="utf-8"))
    logger = logging.getLogger("strongroom")
    for one in handlers:
        one.setFormatter(JsonLines() if form == "json" else TextLines())
    logger.handlers[:] = handlers
    logger.setLevel(level.upper() if debug_log is None else logging.DEBUG)
    logger.propagate = False


class _PrivateFile(logging.FileHandler):
    """A file that only its owner can read: a log has the names of what users keep."""

    def _open(self) -> TextIOWrapper:
        opener = partial(os.open, mode=0o600)
        return open(self.baseFilename, "a", encoding=self.encoding, opener=opener)


class TextLines(logging.Formatter):
    """`2026-01-31T23:59:59.123Z WARNING strongroom.http: text`; requests as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """The traceback of an exception follows on its own lines."""
        facts = getattr(record, "facts", None)
        text = record.getMessage()
        if facts is not None:
            text = " ".join(f"{name}={value}" for name, value in facts.items())
        line = f"{_timestamp(record)} {record.levelname} {record.name}: {text}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonLines(logging.Formatter):
    """Formats one JSON object per line, with the facts of a request as its own fields."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update(getattr(record, "facts", {}))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=True)


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
