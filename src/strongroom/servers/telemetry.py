"""What the server tells about itself: metrics, one line a request, and the form of its log.

Lives here: observing. Must not live here: deciding. Secrets never get here: of a query, the
signature is replaced; headers and keys are not looked at.
"""

from __future__ import annotations

import datetime
import json
import logging
import sys
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote_plus

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from strongroom.servers.http_settings import Exchange
from strongroom.wire.http import Response

REQUEST_LOG: Final = "strongroom.requests"
_BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 60.0)
_SECRET_PARAMETERS: Final = frozenset({"sig"})
_NO_OPERATION: Final = "none"
_requests_log = logging.getLogger(REQUEST_LOG)


class Telemetry:
    """Counts what is observed; `observe` is handed to the HTTP servers.

    Arguments:
        connections: how many connections are open.
        waiters: how many requests wait for a change.
    """

    def __init__(self, connections: Callable[[], int], waiters: Callable[[], int]) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self._requests = Counter(
            "strongroom_requests", "Requests answered.", ("operation", "status"), registry=registry
        )
        self._seconds = Histogram(
            "strongroom_request_seconds",
            "From the request's head to the answer's last byte.",
            ("operation",),
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._received = _counter(registry, "received_bytes", "Bytes of request bodies.")
        self._sent = _counter(registry, "sent_bytes", "Bytes of answers, heads included.")
        self._incomplete = _counter(registry, "incomplete_answers", "Answers not sent whole.")
        open_now = Gauge("strongroom_connections", "Connections open.", registry=registry)
        open_now.set_function(connections)
        waiting = Gauge("strongroom_waiters", "Requests waiting for a change.", registry=registry)
        waiting.set_function(waiters)
        ProcessCollector(registry=registry)
        # A look-up of labels costs more than the rest of an observation.
        self._by_status: dict[tuple[str, int], Counter] = {}
        self._by_operation: dict[str, Histogram] = {}

    def observe(self, exchange: Exchange) -> None:
        """Count one exchange, and write its line at log level debug."""
        response = exchange.response
        operation = (response.operation if response is not None else "") or _NO_OPERATION
        counter = self._by_status.get((operation, exchange.status))
        if counter is None:
            counter = self._requests.labels(operation, str(exchange.status))
            self._by_status[operation, exchange.status] = counter
        counter.inc()
        seconds = self._by_operation.get(operation)
        if seconds is None:
            seconds = self._by_operation[operation] = self._seconds.labels(operation)
        seconds.observe(exchange.seconds)
        self._received.inc(exchange.bytes_in)
        self._sent.inc(exchange.bytes_out)
        if not exchange.complete:
            self._incomplete.inc()
        if _requests_log.isEnabledFor(logging.DEBUG):
            _log_request(exchange, operation)

    def exposition(self) -> tuple[bytes, str]:
        """Everything counted so far, and its media type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


def _counter(registry: CollectorRegistry, name: str, what: str) -> Counter:
    return Counter(f"strongroom_{name}", what, registry=registry)


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
    """A request's path and query in printable ASCII, without the signature of a SAS."""
    target = path if query is None else f"{path}?{'&'.join(map(_masked, query.split('&')))}"
    return "".join(char if " " < char < "\x7f" else f"%{ord(char) & 0xFF:02X}" for char in target)


def _masked(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    # Names may be encoded, and their case does not count: so it is for whoever reads the query.
    if equals and unquote_plus(name).strip().lower() in _SECRET_PARAMETERS:
        return f"{name}=-"
    return parameter


def _header(response: Response | None, name: str) -> str:
    for header, value in response.headers if response is not None else ():
        if header == name:
            return value
    return "-"


def set_up_logging(level: str, form: str) -> None:
    """Send the project's log to standard error.

    Arguments:
        level: `debug`, `info`, `warning`, `error`.
        form: `text`, or `json` for one object a line.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logger = logging.getLogger("strongroom")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False


class TextLines(logging.Formatter):
    """`2026-01-31T23:59:59.123Z WARNING strongroom.http: text`; requests as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as text; what belongs to an exception follows on its own lines."""
        facts = getattr(record, "facts", None)
        text = record.getMessage()
        if facts is not None:
            text = " ".join(f"{name}={value}" for name, value in facts.items())
        line = f"{_moment(record)} {record.levelname} {record.name}: {text}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonLines(logging.Formatter):
    """One JSON object a line, with the facts of a request as its own fields."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as a JSON object."""
        entry: dict[str, object] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update(getattr(record, "facts", {}))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=True)


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
