"""The console's port: its page, the data of all services, the read API, the own endpoints.

Lives here: which of them answers a request, and that every answer gets its headers last. The path
of a request to a service is in requests/pipeline.py, and is the same as on the services' own ports.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from strongroom.auth.request import Service
from strongroom.auth.sas import is_sas
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.servers.console.answers import finish, page_policy
from strongroom.servers.console.api.endpoints import OPERATION, ReadApi, refused_by_rule
from strongroom.servers.console.origin import (
    Area,
    ConsoleOrigin,
    OriginRefusal,
    area_of,
    host_name,
)
from strongroom.servers.console.pages import BuiltPage, PageFile, no_ipv6
from strongroom.servers.http.server import HttpServer
from strongroom.servers.requests import pipeline
from strongroom.servers.requests.admission import ANONYMOUS_REFUSED, ServiceContext
from strongroom.servers.service_listeners import Contexts, Shared, http_server
from strongroom.wire.core.http import Request, Response

NAME: Final = "console"
"""The name of this listener among all listeners."""
_READING: Final = ("GET", "HEAD")
_TEXT: Final = "text/plain; charset=utf-8"
_log = logging.getLogger(__name__)


class ConsolePort(msgspec.Struct, frozen=True):
    """Answers every request of the console's port.

    Attributes:
        contexts: of the services, as `guarded` returns them.
    """

    origin: ConsoleOrigin
    page: BuiltPage
    api: ReadApi
    contexts: Mapping[Service, ServiceContext]
    shared: Shared
    answer_data: Callable[[ServiceContext, Request], Awaitable[Response]]

    async def handle(self, request: Request) -> Response:
        area = area_of(request.path)
        refusal = self.origin.refusal(request)
        if refusal is not None:
            return finish(self._refused(area, refusal), request, area)
        if self.shared.requires_https and not request.tls:
            raise StorageError(errors.ACCOUNT_REQUIRES_HTTPS)
        if area is Area.DATA:
            return finish(await self._data(request), request, area)
        if area is Area.API:
            return finish(await self.api.respond(request), request, area)
        if area is Area.OWN:
            return finish(await self.shared.own.respond(request), request, area)
        return self._page(request, area)

    def render(self, error: StorageError, request: Request | None) -> Response:
        """Return the answer to a request that failed; None = it could not be read."""
        area = Area.DATA if request is None else area_of(request.path)
        try:
            context = self.contexts[Service.BLOB]
            if request is not None and area is Area.DATA:
                context = self._context(request)
            response = pipeline.refuse(context, error, request)
        except Exception:
            _log.exception("an error could not be rendered")
            response = Response(error.row.status)
        return finish(response, request, area)

    async def _data(self, request: Request) -> Response:
        context = self._context(request)
        if request.headers.get("authorization") is None and not is_sas(request.query or ""):
            # At once: the answer must not depend on what there is.
            challenge = (("WWW-Authenticate", "SharedKey"),)
            row = errors.NO_AUTHENTICATION_INFORMATION
            raise StorageError(row, ANONYMOUS_REFUSED, headers=challenge)
        if self.shared.pressure is not None:
            self.shared.pressure.refuse_upload(request)
        return await self.answer_data(context, request)

    def _context(self, request: Request) -> ServiceContext:
        """Return the context of the service that the path names, and set the request's `mount`."""
        name = request.path[1:].partition("/")[0]
        request.mount = f"/{name}"
        return self.contexts[Service(name)]

    def _page(self, request: Request, area: Area) -> Response:
        found = self.page.find(request.path)
        if found is None:
            return finish(_text(404, "The console has no such page."), request, area)
        if request.method not in _READING:
            response = _text(405, "Allowed: GET, HEAD.")
            response.headers.append(("Allow", "GET, HEAD"))
            return finish(response, request, area)
        if area is Area.ASSET:
            return finish(_file(found), request, area)
        name = host_name(request.host) or ""
        if self.origin.url is None and ":" in name:
            # A policy of content cannot name files of a bare IPv6 address.
            port = request.host.rpartition("]")[2]
            scheme = "https" if request.tls else "http"
            return finish(_file(no_ipv6(f"{scheme}://localhost{port}/")), request, area)
        policy = page_policy(self.origin.of(request), self.page.paths)
        return finish(_file(found), request, area, policy)

    def _refused(self, area: Area, refusal: OriginRefusal) -> Response:
        if area is Area.API:
            return refused_by_rule(refusal.status, refusal.rule, refusal.text)
        return _text(refusal.status, refusal.text)


def guarded(contexts: Contexts) -> Contexts:
    """Return the contexts of the console's port: it serves nobody without credentials, and its
    paths begin with the service and the account, whatever the host."""
    return {
        service: replace(context, serves_anonymous=False, suffixes=())
        for service, context in contexts.items()
    }


def console_server(
    origin: ConsoleOrigin, page: BuiltPage, api: ReadApi, contexts: Contexts, shared: Shared
) -> HttpServer:
    answer = pipeline.respond if shared.faults is None else shared.faults.respond
    port = ConsolePort(origin, page, api, guarded(contexts), shared, answer)
    slices = contexts[Service.BLOB].services.turns
    return http_server(NAME, port.handle, port.render, slices, shared)


def _file(found: PageFile) -> Response:
    response = Response(200, [("Content-Type", found.media_type)], found.body, len(found.body))
    response.operation = OPERATION
    return response


def _text(status: int, text: str) -> Response:
    body = f"{text}\n".encode()
    response = Response(status, [("Content-Type", _TEXT)], body, len(body))
    response.operation = OPERATION
    return response
