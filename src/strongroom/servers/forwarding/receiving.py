"""The listener for the other gateways.

Lives here: the check of a forwarded request, and its way into the path of every request. Must not
live here: the proof (proofs.py), HTTP (http/).

What is not proven gets 403 without a body, and its connection ends. An unproven request may come
from anybody who reaches the port, so a log line is written only now and then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from strongroom.auth.request import Service
from strongroom.errors.core import StorageError
from strongroom.servers.forwarding import questions
from strongroom.servers.forwarding.certificate import GatewayCertificate
from strongroom.servers.forwarding.counts import ForwardCounts
from strongroom.servers.forwarding.proofs import HEADER_CHARS_MAX, NOT_HERE, Proofs, restore
from strongroom.servers.forwarding.questions import GiveUp, ReadSource
from strongroom.servers.http.server import Exchange, HttpServer, HttpSettings
from strongroom.servers.observers import watched
from strongroom.servers.rationed_log import Ration, more
from strongroom.servers.requests import pipeline
from strongroom.servers.service_listeners import Contexts, Shared
from strongroom.services.file.copies.reading import open_for_another
from strongroom.services.file.opens.share_leaving import ShareLeaving
from strongroom.wire.core.http import Request, Response

_DEFAULTS: Final = HttpSettings()
# The client's own gateway has the limits for clients, and is the first to act. A head has the
# header of the hop beside what the client may send.
_SETTINGS: Final = msgspec.structs.replace(
    _DEFAULTS,
    head_bytes_max=_DEFAULTS.head_bytes_max + 2 * HEADER_CHARS_MAX,
    headers_max=_DEFAULTS.headers_max + 4,
    idle_timeout_s=300.0,
    body_stall_timeout_s=2 * _DEFAULTS.body_stall_timeout_s,
    write_stall_timeout_s=2 * _DEFAULTS.write_stall_timeout_s,
    # A gateway ends a connection itself as soon as it has read such an answer.
    linger_timeout_s=1.0,
    linger_idle_timeout_s=0.2,
    sweep_interval_s=0.2,
)
_LOG_EVERY_S: Final = 60.0
_FORBIDDEN: Final = 403
_BUSY: Final = 503
_log = logging.getLogger(__name__)


class _Receiver:
    def __init__(
        self,
        contexts: Contexts,
        shared: Shared,
        certificate: GatewayCertificate,
        counts: ForwardCounts,
        leaving: ShareLeaving,
    ) -> None:
        self._context = contexts[Service.FILE]
        self._gateways = self._context.services.store.gateways
        self._proofs = Proofs(self._gateways.secret)
        self._certificate = certificate
        self._counts = counts
        self._leaving = leaving
        self._pressure = shared.pressure
        self._answer = watched(self._respond, shared.observers)
        self._ration = Ration(_LOG_EVERY_S)

    async def handle(self, request: Request) -> Response:
        hop = None
        if request.tls:
            run, fingerprint = self._gateways.run, self._certificate.fingerprint
            hop = self._proofs.proven(request, run, fingerprint)
        if hop is None:
            self._note(request.peer)
            return Response(_FORBIDDEN, close=True)
        self._counts.received += 1
        if hop.question:
            return await self._answered(questions.decoded(hop.question))
        restore(request, hop)
        return await self._answer(request)

    def render(self, error: StorageError, request: Request | None) -> Response:
        """A client's request gets the refusal of any request; anybody else learns nothing."""
        if request is None or not request.is_forwarded:
            return Response(_FORBIDDEN, close=True)
        return pipeline.refuse(self._context, error, request)

    async def _respond(self, request: Request) -> Response:
        if self._pressure is not None:
            self._pressure.refuse_upload(request)
        return await pipeline.respond(self._context, request)

    async def _answered(self, question: ReadSource | GiveUp) -> Response:
        services = self._context.services
        if isinstance(question, GiveUp):
            return questions.given_up(await self._leaving.give_up(question.generation))
        if not await self._leaving.holds.take(services, question.source.generation):
            return Response(_BUSY, [(NOT_HERE, "1")])
        try:
            opened = await open_for_another(services, question.source, question.wanted)
            return questions.answer_of(opened)
        except StorageError as error:
            return questions.refusal_of(error)

    def _note(self, peer: str) -> None:
        self._counts.unproven += 1
        left_out = self._ration.left_out(peer, asyncio.get_running_loop().time())
        if left_out is not None:
            text = "a client at %s is no gateway of this store: the port is for gateways only%s"
            _log.warning(text, peer, more(left_out))


def gateway_listener(
    contexts: Contexts,
    shared: Shared,
    certificate: GatewayCertificate,
    counts: ForwardCounts,
    leaving: ShareLeaving,
    observe: Callable[[Exchange], None],
) -> HttpServer:
    """Return the listener, which is not open yet.

    Arguments:
        observe: is told of each request of another gateway.
    """
    receiver = _Receiver(contexts, shared, certificate, counts, leaving)

    def observe_proven(exchange: Exchange) -> None:
        if exchange.request is not None and exchange.request.is_forwarded:
            observe(exchange)

    handle: Callable[[Request], Awaitable[Response]] = receiver.handle
    return HttpServer(
        handle,
        receiver.render,
        settings=_SETTINGS,
        observe=observe_proven,
        tls=lambda: certificate.tls,
        slices=contexts[Service.FILE].services.turns,
        budget=shared.connections,
    )
