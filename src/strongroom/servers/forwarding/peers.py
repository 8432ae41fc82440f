"""The connections to the other gateways: made, kept for the next request, closed.

Lives here: one pool for each gateway. Must not live here: what is sent (peer_exchange.py), which
gateway is asked (forwarder.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from strongroom.servers.forwarding.announcements import Announcement, decoded
from strongroom.servers.forwarding.certificate import client_context, is_known
from strongroom.servers.forwarding.peer_exchange import PeerStream
from strongroom.servers.forwarding.stream_room import StreamRoom, leave
from strongroom.services.core.gateway_runs import GatewayRun, Gateways

IDLE_STREAMS_MAX: Final = 32
IDLE_S: Final = 60.0
"""Shorter than the other side keeps them, so that no request meets a connection that ends."""
_CONNECT_S: Final = 3.0
_SHUTDOWN_S: Final = 1.0
_PAUSE_S: Final = 0.2
_ROOM_S: Final = 5.0
_BUFFER_BYTES: Final = 256 * 1024


class PeerUnreachable(Exception):
    """A gateway could not be asked, so it has done nothing. The text says why."""


class Peer:
    """One run of another gateway, and the connections to it."""

    def __init__(self, run: GatewayRun, announced: Announcement, now: Callable[[], float]) -> None:
        self.run = run
        self.announced = announced
        self._now = now
        self._tls = client_context()
        self._idle: list[PeerStream] = []
        self._open: set[PeerStream] = set()
        self._room = StreamRoom()
        self._failed: tuple[float, str] | None = None
        self._is_closed = False

    async def stream(self, client: str, *, is_upload: bool, is_fresh: bool = False) -> PeerStream:
        """Return a connection for one request; `give_back` follows. Raises: PeerUnreachable.

        Arguments:
            client: whose request it is.
            is_upload: whether its body is still to come.
            is_fresh: nothing was sent on the connection before.
        """
        try:
            async with asyncio.timeout(_ROOM_S):
                places = await self._room.enter(client, is_upload=is_upload)
        except TimeoutError:
            raise PeerUnreachable("too many requests to it are under way") from None
        try:
            stream = (None if is_fresh else self._kept()) or await self._connect()
        except BaseException:
            leave(places)
            raise
        stream.places = places
        return stream

    def _kept(self) -> PeerStream | None:
        while self._idle:
            stream = self._idle.pop()
            if stream.is_open:
                return stream
            self._end(stream)
        return None

    def give_back(self, stream: PeerStream, *, is_reusable: bool) -> None:
        """End the use of a connection. Without `is_reusable` it is closed."""
        leave(stream.places)
        stream.places = ()
        if is_reusable and len(self._idle) < IDLE_STREAMS_MAX and stream in self._open:
            stream.uses, stream.idle_since = stream.uses + 1, self._now()
            self._idle.append(stream)
        else:
            self._end(stream)

    def close_idle(self) -> None:
        """Close connections that nobody has used for IDLE_S."""
        ended = [
            one for one in self._idle if not one.is_open or self._now() - one.idle_since > IDLE_S
        ]
        self._idle = [one for one in self._idle if one not in ended]
        for stream in ended:
            self._end(stream)

    def abort(self) -> None:
        """Cut all connections, and make no more. Requests under way fail."""
        self._is_closed = True
        for stream in self._open:
            stream.abort()
        self._idle.clear()
        self._open.clear()

    def _end(self, stream: PeerStream) -> None:
        stream.abort()
        self._open.discard(stream)

    async def _connect(self) -> PeerStream:
        self._check_open()
        host, port = self.announced.host, self.announced.port
        if self._failed is not None and self._now() - self._failed[0] < _PAUSE_S:
            # Many requests wait at a time for a gateway that does not answer.
            raise PeerUnreachable(self._failed[1])
        try:
            async with asyncio.timeout(_CONNECT_S):
                reader, writer = await asyncio.open_connection(
                    host,
                    port,
                    limit=_BUFFER_BYTES,
                    ssl=self._tls,
                    server_hostname="",
                    ssl_shutdown_timeout=_SHUTDOWN_S,
                )
        except OSError as error:  # TimeoutError and ssl.SSLError are among them
            text = f"no connection to {host} port {port}: {str(error) or 'it takes too long'}"
            self._failed = self._now(), text
            raise PeerUnreachable(text) from None
        if not is_known(writer.get_extra_info("ssl_object"), self.announced.fingerprint):
            writer.transport.abort()
            raise PeerUnreachable(f"at {host} port {port} is another server, by its certificate")
        try:
            self._check_open()
        except PeerUnreachable:
            writer.transport.abort()
            raise
        writer.transport.set_write_buffer_limits(high=_BUFFER_BYTES)
        stream = PeerStream(reader, writer)
        self._open.add(stream)
        return stream

    def _check_open(self) -> None:
        """`abort` may come while a request waits for room or for its connection. Nobody would end a
        wait for the answer on a connection that is made after it."""
        if self._is_closed:
            raise PeerUnreachable("it is gone")


class Peers:
    """The other gateways that were asked so far."""

    def __init__(self, gateways: Gateways, now: Callable[[], float]) -> None:
        self._gateways = gateways
        self._now = now
        self._peers: dict[GatewayRun, Peer] = {}

    def of(self, run: GatewayRun) -> Peer | None:
        """None if it is not live, or has not announced where it is."""
        peer = self._peers.get(run)
        if peer is None:
            announced = decoded(self._gateways.announced(run))
            if announced is not None:
                peer = self._peers[run] = Peer(run, announced, self._now)
        return peer

    def sweep(self) -> None:
        """Forget gateways that are no longer live, and close idle connections. A request that waits
        for a dead gateway's answer ends by this."""
        for run, peer in list(self._peers.items()):
            if self._gateways.has_ended(run):
                del self._peers[run]
                peer.abort()
            else:
                peer.close_idle()

    def close(self) -> None:
        for peer in self._peers.values():
            peer.abort()
        self._peers.clear()
