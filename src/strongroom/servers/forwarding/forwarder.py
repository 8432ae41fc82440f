"""Who answers a request for a share: this gateway, or the one that serves the share.

Lives here: the choice, when it is made again, and the answer that is passed on. Must not live here:
connections (peers.py), HTTP (peer_exchange.py), the right itself (share_holds.py).

The choice is made before the body is read. It is made again only if nothing can have been carried
out: no gateway was reached, or the one that was asked has said so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Final

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.servers.forwarding import questions
from strongroom.servers.forwarding.counts import ForwardCounts
from strongroom.servers.forwarding.peer_exchange import (
    PeerExchange,
    PeerLost,
    PeerStream,
    answered_fields,
)
from strongroom.servers.forwarding.peers import Peer, Peers, PeerUnreachable
from strongroom.servers.forwarding.proofs import NOT_HERE, Hop, Proofs
from strongroom.servers.http.body import EmptyBody, WholeBody
from strongroom.servers.rationed_log import Ration, more
from strongroom.services.core.copies.sources import LocalSource, SourceRequest
from strongroom.services.core.gateway_runs import GatewayRun
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.reading import OpenFile
from strongroom.services.file.opens.share_holds import (
    YIELD_S,
    ShareHolds,
    served_elsewhere,
    share_name,
)
from strongroom.wire.core.http import Headers, Request, Response

_PATIENCE_S: Final = 2.5
"""So long a request waits until it is known who has the share. A share that moves takes YIELD_S at
most, and then everybody knows within a heartbeat."""
_LOOK_EVERY_S: Final = 0.05
_LOG_EVERY_S: Final = 30.0
_FAREWELL_S: Final = 0.5
_FORBIDDEN: Final = 403
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_log = logging.getLogger(__name__)


class Forwarder:
    """`answer` is what the pipeline calls (requests/admission.py)."""

    def __init__(self, services: Services, peers: Peers, counts: ForwardCounts) -> None:
        self._services = services
        self._gateways = services.store.gateways
        self._holds = services.held.of(ShareHolds)
        self._peers = peers
        self._proofs = Proofs(self._gateways.secret)
        self._counts = counts
        self._ration = Ration(_LOG_EVERY_S)

    async def answer(self, generation: int, request: Request) -> Response | None:
        """Return the answer of the gateway that serves the share. None = this gateway does, also
        until the caller's task ends.

        Raises: StorageError ServerBusy while its holder cannot be asked; as the request's body.
        """
        if request.is_forwarded:
            await self._require_here(generation)
            return None
        if await self._is_here(generation):
            return None
        whole = None
        if isinstance(request.body, WholeBody):
            # It is in memory already, and may be needed twice.
            whole = await request.body.read_all(request.body.received_bytes)
            request.body = WholeBody(whole)
        return await self._settled(generation, lambda peer: self._exchange(peer, request, whole))

    async def open_source(self, source: LocalSource, wanted: SourceRequest) -> OpenFile | None:
        """Open a file that is copied, where its share is served (see reading.OpenElsewhere)."""
        if await self._is_here(source.generation):
            return None
        question = questions.encoded(questions.for_source(source, wanted))
        response = await self._settled(
            source.generation, lambda peer: self._exchange(peer, _no_request(), None, question)
        )
        return None if response is None else questions.opened_by(response)

    async def demand(self, generation: int) -> None:
        """Ask the holder of a share to give it up, and take it then (see ShareHolds.ask)."""
        peer = self._holder(generation)
        if peer is None or not await self._gives_up(peer, generation):
            return
        # It is free when the other one's commit of that has ended.
        loop, pause_s = asyncio.get_running_loop(), _LOOK_EVERY_S
        ends = loop.time() + YIELD_S
        while loop.time() < ends:
            if await self._gets(generation):
                return
            await asyncio.sleep(pause_s)
            pause_s *= 2

    async def _gives_up(self, peer: Peer, generation: int) -> bool:
        question = questions.encoded(questions.GiveUp(generation))
        try:
            response = await self._exchange(peer, _no_request(), None, question)
        except PeerUnreachable as error:
            self._cannot_ask(peer, error)
            return False
        except StorageError:
            return False  # it was lost meanwhile
        return response is not None and questions.is_given_up(response)

    async def _settled(
        self, generation: int, exchange: Callable[[Peer], Awaitable[Response | None]]
    ) -> Response | None:
        """Ask the holder of a share until it has answered, or this gateway has the share: None.
        Raises: StorageError ServerBusy when that takes too long."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            peer = self._holder(generation)
            try:
                response = None if peer is None else await exchange(peer)
            except PeerUnreachable as error:
                self._cannot_ask(peer, error)
                peer = response = None
            if response is not None:
                return response
            # A gateway that was asked and has no share: what this one saw of the table is old.
            take = self._is_here if peer is None else self._gets
            if await take(generation):
                return None
            if loop.time() - began > _PATIENCE_S:
                self._counts.refused += 1
                raise served_elsewhere()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _is_here(self, generation: int) -> bool:
        """Whether this gateway has the share, or gets it now."""
        if not self._holds.has(generation):
            holder = self._gateways.holder(share_name(generation))
            own = self._gateways.run
            # A question to the store for each forwarded request would cost more than the request.
            if holder not in (None, own) and not self._gateways.has_ended(holder):
                return False
        return await self._gets(generation)

    async def _gets(self, generation: int) -> bool:
        return await self._holds.take(self._services, generation)

    async def _require_here(self, generation: int) -> None:
        """No request goes further than one hop."""
        if not await self._holds.take(self._services, generation):
            refusal = served_elsewhere()
            headers = (*refusal.headers, (NOT_HERE, "1"))
            raise StorageError(refusal.row, refusal.message, headers=headers)

    def _holder(self, generation: int) -> Peer | None:
        holder = self._gateways.holder(share_name(generation))
        if holder is None or holder == self._gateways.run:
            return None
        return self._peers.of(holder)

    def _cannot_ask(self, peer: Peer | None, error: PeerUnreachable) -> None:
        if peer is not None:
            self._failed(peer.run, f"gateway {peer.run.number} cannot be asked: {error}")

    async def _exchange(
        self, peer: Peer, request: Request, whole: bytes | None, question: bytes = b""
    ) -> Response | None:
        is_upload = whole is None and request.body.size_bytes != 0
        for is_fresh in (False, True):
            stream = await peer.stream(request.peer, is_upload=is_upload, is_fresh=is_fresh)
            passed = _PassedOn(self, peer, PeerExchange(stream, request), request)
            try:
                return await passed.response(self._proof(peer, request, question), whole)
            except PeerLost as error:
                # A connection that was kept may have ended just then. What may have been carried
                # out is never sent again, unless that changes nothing.
                exchange = passed.exchange
                # Also before its body was asked for: some operations do not look at theirs.
                may_be_done = request.method not in _SAFE
                if stream.has_no_client:
                    raise _unanswered(may_be_done) from None  # it may only send no more
                may_repeat = stream.uses and not may_be_done
                if exchange.has_begun or exchange.is_consumed or not may_repeat:
                    raise self.lost(peer.run, error, may_be_done=may_be_done) from None
        raise self.lost(peer.run, PeerLost("it closed two connections"))

    def _proof(self, peer: Peer, request: Request, question: bytes) -> str:
        hop = Hop(
            sender=self._gateways.run,
            target=peer.run,
            peer=request.peer,
            is_tls=request.tls,
            mount=request.mount,
            request_id=request.request_id,
            has_host="host" in request.headers,
            question=question,
        )
        return self._proofs.header(request, hop, peer.announced.fingerprint)

    def lost(self, run: GatewayRun, error: PeerLost, *, may_be_done: bool = False) -> StorageError:
        """The refusal, or the reason of the cut, for a request whose gateway was lost meanwhile.

        Arguments:
            may_be_done: whether the request may have changed something.
        """
        self._failed(run, f"gateway {run.number} was lost during a request: {error}")
        return _unanswered(may_be_done)

    def answered(self, seconds: float) -> None:
        self._counts.forwarded(seconds)

    def _failed(self, run: GatewayRun, text: str) -> None:
        self._counts.failures += 1
        left_out = self._ration.left_out(run, asyncio.get_running_loop().time())
        if left_out is not None:
            _log.warning("%s%s", text, more(left_out))


def _unanswered(may_be_done: bool) -> StorageError:
    """As after a commit whose outcome is unknown, what may have been done is answered 500: 503 says
    that nothing was done."""
    return StorageError(errors.INTERNAL_ERROR) if may_be_done else served_elsewhere()


def _no_request() -> Request:
    """Of no client: the question is in the header of the hop."""
    return Request("GET", "/", Headers((("Host", "-"),)), EmptyBody())


class _PassedOn:
    """One exchange with another gateway, whose answer becomes the client's."""

    def __init__(
        self, forwarder: Forwarder, peer: Peer, exchange: PeerExchange, request: Request
    ) -> None:
        self._forwarder = forwarder
        self._peer = peer
        self._request = request
        self.exchange = exchange
        self._is_over = self._is_answered = False
        self._began = asyncio.get_running_loop().time()

    async def response(self, proof: str, whole: bytes | None) -> Response | None:
        """None if the other gateway does not have the share, and the request may be sent again."""
        exchange = self.exchange
        # The other gateway learns by this that its client is gone.
        # It refers to the connection only, since a request with a callback to itself is a cycle.
        stream = exchange.stream
        self._request.on_disconnect(partial(_client_gone, stream, stream.uses))
        try:
            await exchange.begin(proof, whole)
            fields, size_bytes = answered_fields(exchange)
        except BaseException:
            self._end()
            raise
        answered = {name.lower(): text for name, text in fields}
        if NOT_HERE in answered:
            self._end()
            if not exchange.is_consumed:
                return None
            raise served_elsewhere()
        own = answered.get("x-ms-request-id") == self._request.request_id
        if not own and questions.HEADER not in answered:
            self._end()
            if exchange.status == _FORBIDDEN:
                raise PeerUnreachable("it does not take this server for a gateway")
            raise PeerLost(f"its answer is not of this request ({exchange.status})")
        self._is_answered = own  # not what this gateway itself has asked
        response = Response(exchange.status, fields, reason=exchange.reason)
        response.size_bytes = size_bytes
        if exchange.is_complete:
            response.body = exchange.whole_body()
            self._end()
        else:
            response.body, response.finished = self._pieces(), self._end
        return response

    async def _pieces(self) -> AsyncGenerator[bytes]:
        try:
            async for piece in self.exchange.body():
                yield piece
        except PeerLost as error:
            if self.exchange.stream.has_no_client:
                raise served_elsewhere() from None
            raise self._forwarder.lost(self._peer.run, error) from None

    def _end(self) -> None:
        """Idempotent."""
        if not self._is_over:
            self._is_over = True
            stream, is_reusable = self.exchange.stream, self.exchange.is_reusable
            self.exchange.end()
            self._peer.give_back(stream, is_reusable=is_reusable)
            if self._is_answered:
                self._forwarder.answered(asyncio.get_running_loop().time() - self._began)


def _client_gone(stream: PeerStream, uses: int) -> None:
    # A client that only sends no more still gets an answer that comes soon.
    asyncio.get_running_loop().call_later(_FAREWELL_S, stream.leave, uses)
