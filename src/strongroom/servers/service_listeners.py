"""The HTTP listeners of the storage services: one for each service, and one for all of them.

Lives here: the assembly of such a listener. Must not live here: settings (config.py), opening of
ports (app.py), the path of a request (requests/pipeline.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import msgspec

from strongroom.auth.accounts import Accounts
from strongroom.auth.request import Service
from strongroom.clock import Clock
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.operations.blob import endpoint as blob_service
from strongroom.operations.core.endpoint import Endpoint
from strongroom.operations.file import endpoint as file_service
from strongroom.operations.queue import endpoint as queue_service
from strongroom.operations.table import endpoint as table_service
from strongroom.servers import landing, one_port
from strongroom.servers.connections.accepting import TlsContexts
from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.failed_logons import FailedLogons
from strongroom.servers.faults import FaultInjector
from strongroom.servers.http.server import Exchange, Handler, HttpServer, RenderError
from strongroom.servers.identities.identities import ServedIdentities
from strongroom.servers.listener import RequestedListener
from strongroom.servers.memory_pressure import Pressure
from strongroom.servers.observers import ExchangeObserver, RequestObserver, watched
from strongroom.servers.one_port import OnePort
from strongroom.servers.own_endpoints import PREFIX, OwnEndpoints
from strongroom.servers.requests import pipeline
from strongroom.servers.requests.admission import Forward, ServiceContext
from strongroom.servers.telemetry import Telemetry
from strongroom.services.core.runner import Services
from strongroom.slices import SliceTurns
from strongroom.wire.core.http import Request, Response

ENDPOINTS: Final[Mapping[Service, Endpoint]] = {
    endpoint.service: endpoint
    for endpoint in (
        blob_service.ENDPOINT,
        queue_service.ENDPOINT,
        table_service.ENDPOINT,
        file_service.ENDPOINT,
    )
}

Contexts = Mapping[Service, ServiceContext]
_NO_IDENTITIES: Final[Mapping[Service, ServedIdentities]] = MappingProxyType({})
_ContextOf = Callable[[Request], ServiceContext]
_Answer = Callable[[ServiceContext, Request], Awaitable[Response]]


class Shared(msgspec.Struct, frozen=True):
    """The objects that all listeners share.

    Attributes:
        own: the endpoints below `/.strongroom/`, which every listener has.
        connections: the places for connections of all listeners.
        tls: returns the context of a new connection; None = there is no TLS.
        faults: injects faults for tests; None on a server without a test clock.
        pressure: refuses uploads while memory is short; None if the server does not have its
            process for itself.
        requires_https: whether requests over plain HTTP are refused. The server's own endpoints
            answer them.
        observers: are told of each request, beside the telemetry.
        tail: is told of each ended request over HTTP; None = nobody keeps a tail of them.
    """

    own: OwnEndpoints
    connections: ConnectionBudget
    telemetry: Telemetry
    tls: TlsContexts | None = None
    faults: FaultInjector | None = None
    pressure: Pressure | None = None
    requires_https: bool = False
    observers: tuple[RequestObserver, ...] = ()
    tail: ExchangeObserver | None = None


def suffixes(service: Service, host_suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the domains whose first label below them is an account of this service."""
    return (f"{service.value}.localhost", *host_suffixes)


def contexts(
    services: Services,
    accounts: Accounts,
    clock: Clock,
    *,
    host_suffixes: tuple[str, ...] = (),
    identities: Mapping[Service, ServedIdentities] = _NO_IDENTITIES,
    strict: bool = False,
    forward: Forward | None = None,
) -> Contexts:
    """Return the context of a request's path, for each service.

    Arguments:
        host_suffixes: domains below which a label is an account, besides `blob.localhost` etc.
        identities: judges bearer tokens, by service; a service that is missing accepts none.
        strict, forward: see ServiceContext.
    """
    failed_logons = FailedLogons()
    return {
        service: ServiceContext(
            services,
            endpoint,
            accounts,
            clock,
            suffixes=suffixes(service, host_suffixes),
            strict=strict,
            identities=identities.get(service),
            failed_logons=failed_logons,
            forward=forward,
        )
        for service, endpoint in ENDPOINTS.items()
    }


def listeners(
    contexts: Contexts, router: OnePort, shared: Shared, ports: Mapping[str, int]
) -> list[RequestedListener]:
    """Return the listeners that `ports` names: services, and one_port.NAME for all of them."""
    requested = []
    for name, port in ports.items():
        if name == one_port.NAME:
            made = _server(name, partial(_routed, contexts, router), contexts[Service.BLOB], shared)
        else:
            context = contexts[Service(name)]
            made = _server(name, partial(_single_service, context), context, shared)
        requested.append(RequestedListener(name, made, port))
    return requested


def _single_service(context: ServiceContext, request: Request) -> ServiceContext:
    return context


def _routed(contexts: Contexts, router: OnePort, request: Request) -> ServiceContext:
    return contexts[router.route_request(request)]


def _server(
    name: str, context_of: _ContextOf, fallback_context: ServiceContext, shared: Shared
) -> HttpServer:
    """Return a server that answers each request in the context that `context_of` returns.

    `fallback_context` is that of refusals if a request names no service or could not be read.
    """
    own, pressure = shared.own, shared.pressure
    answer: _Answer = pipeline.respond if shared.faults is None else shared.faults.respond

    def handle(request: Request) -> Awaitable[Response]:
        if request.path.startswith(PREFIX):
            return own.respond(request)
        if landing.is_for(request):
            return landing.answer()
        if shared.requires_https and not request.tls:
            raise StorageError(errors.ACCOUNT_REQUIRES_HTTPS)
        context = context_of(request)
        if pressure is not None:
            pressure.refuse_upload(request)
        return answer(context, request)

    def render(error: StorageError, request: Request | None) -> Response:
        context = fallback_context
        if request is not None:
            try:
                context = context_of(request)
            except StorageError:
                pass  # the request names no service
        return pipeline.refuse(context, error, request)

    return http_server(name, handle, render, fallback_context.services.turns, shared)


def http_server(
    name: str, handle: Handler, render: RenderError, slices: SliceTurns, shared: Shared
) -> HttpServer:
    """With what all listeners share. `handle` and `render` are HttpServer's `handler` and
    `render_error`."""
    return HttpServer(
        watched(handle, shared.observers),
        render,
        observe=observer(name, shared),
        tls=shared.tls,
        slices=slices,
        budget=shared.connections,
    )


def observer(name: str, shared: Shared) -> Callable[[Exchange], None]:
    """Return what a listener tells of each request."""
    telemetry, pressure, observers = shared.telemetry, shared.pressure, shared.observers
    tell_tail = None if shared.tail is None else shared.tail.of_listener(name)
    if pressure is None and not observers and tell_tail is None:
        return telemetry.observe

    def observe(exchange: Exchange) -> None:
        if pressure is not None and exchange.complete:
            pressure.request_served()
        telemetry.observe(exchange)
        if tell_tail is not None:
            tell_tail(exchange)
        for observer in observers:
            observer.observe(exchange, name)

    return observe
