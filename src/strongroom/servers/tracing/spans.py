"""A span for each request over HTTP.

Lives here: its parent, its name and its attributes. Must not live here: where spans are sent
(set_up.py). Sources: OpenTelemetry's semantic conventions for HTTP spans; W3C Trace Context.

No header is recorded but User-Agent, and no query. The names of objects are shown as in the access
log.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.propagators.textmap import Getter
from opentelemetry.trace import Span, SpanContext, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from strongroom.operations.core.endpoint import ResourceAddress
from strongroom.servers.access_log.places import Places
from strongroom.servers.access_log.texts import cut
from strongroom.servers.http.settings import Exchange
from strongroom.servers.observers import SmbExchange
from strongroom.servers.requests.admission import ParsedRequest
from strongroom.servers.requests.facts import Refusal
from strongroom.wire.core.http import Headers, Request

_SPAN: Final[ContextVar[Span | None]] = ContextVar("strongroom-span", default=None)
# Methods of a client that is no HTTP client would be names of spans without end.
_METHODS: Final = frozenset(("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE"))
_HOST: Final = re.compile(
    r"(?:\[(?P<bracketed>[^\]]*)\]|(?P<name>[^:]*))(?::(?P<port>[0-9]{1,5}))?"
)
_OTHER: Final = "_OTHER"
_SERVER_ERROR: Final = 500


class _HeaderGetter(Getter[Headers]):
    """Reads the headers of a trace's context."""

    def get(self, carrier: Headers, key: str) -> list[str] | None:
        value = carrier.get(key.lower())
        return None if value is None else [value]

    def keys(self, carrier: Headers) -> list[str]:
        return [name for name, _ in carrier.lowered()]


class RequestSpans:
    """Makes the spans of requests. Messages of SMB have none."""

    def __init__(self, tracer: Tracer, places: Places) -> None:
        self._tracer = tracer
        self._places = places
        self._propagator = TraceContextTextMapPropagator()
        self._getter = _HeaderGetter()

    def begin(self, request: Request | None) -> None:
        if request is None:
            return
        parent = self._propagator.extract(request.headers, getter=self._getter)
        # Without a context of its own, the parent would be that of this task.
        _SPAN.set(self._tracer.start_span(_method(request), parent, SpanKind.SERVER))

    def observe(self, exchange: Exchange, listener: str) -> None:
        span, request = _SPAN.get(), exchange.request
        if span is None or request is None:
            return
        if span.is_recording():
            self._describe(span, exchange, request)
        span.end()

    def observe_smb(self, exchange: SmbExchange) -> None:
        """A message of SMB has no span."""

    def _describe(self, span: Span, exchange: Exchange, request: Request) -> None:
        facts = None if exchange.response is None else exchange.response.facts
        parsed = facts if isinstance(facts, ParsedRequest) else None
        addressed = None if parsed is None else parsed.addressed
        host, port = _address(request.host)
        attributes: dict[str, AttributeValue] = {
            "http.request.method": _method(request),
            "url.scheme": "https" if request.tls else "http",
            "url.path": urlsplit(self._places.of(request, addressed).uri).path,
            "server.address": cut(host),
            "client.address": request.peer,
            "network.protocol.name": "http",
            "user_agent.original": cut(request.headers.get("user-agent") or ""),
            "http.request.body.size": exchange.bytes_in,
            "http.response.status_code": exchange.status,
            "http.response.body.size": max(0, exchange.bytes_out - exchange.head_bytes),
        }
        if port is not None:
            attributes["server.port"] = port
        if parsed is not None and parsed.operation is not None:
            attributes["strongroom.operation"] = parsed.operation.name
        if addressed is not None:
            attributes["http.route"] = route = _route(addressed)
            span.update_name(f"{_method(request)} {route}")
        refusal = _refusal(facts)
        if refusal is not None:
            attributes["error.type"] = refusal.row.code
        elif not exchange.complete:
            attributes["error.type"] = "interrupted"
        span.set_attributes(attributes)
        if exchange.status >= _SERVER_ERROR or not exchange.complete:
            span.set_status(StatusCode.ERROR)


def current_context() -> SpanContext | None:
    """Return the context of the current request's span; None without one."""
    span = _SPAN.get()
    return None if span is None else span.get_span_context()


def _method(request: Request) -> str:
    return request.method if request.method in _METHODS else _OTHER


def _address(host: str) -> tuple[str, int | None]:
    """Return the name or address of a header Host without brackets, and its port."""
    named = _HOST.fullmatch(host)
    if named is None:
        return host, None
    return named["bracketed"] or named["name"] or "", int(named["port"]) if named["port"] else None


def _route(addressed: ResourceAddress) -> str:
    """Return the form of a URL: how deep it goes, without names."""
    target = addressed.target
    route = "/{account}"
    if target.container is not None:
        route += "/{container}"
    if addressed.entity is not None or target.blob is not None:
        route += "/{name}"
    return route


def _refusal(facts: object) -> Refusal | None:
    if isinstance(facts, ParsedRequest):
        return facts.outcome if isinstance(facts.outcome, Refusal) else None
    if isinstance(facts, tuple):
        return _refusal(facts[-1])
    return facts if isinstance(facts, Refusal) else None
