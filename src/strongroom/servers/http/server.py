"""The HTTP server: sweeps the deadlines of its connections, drains.

Lives here: what its connections share. Must not live here: the protocol (http/protocol.py), sockets
that listen (connections/accepting.py), the set of connections (connections/open_connections.py).
Source: RFC 9112 section 9.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from strongroom.servers.connections.accepting import Acceptor, TlsContexts
from strongroom.servers.connections.budget import ConnectionBudget
from strongroom.servers.connections.open_connections import OpenConnections
from strongroom.servers.http.buffers import BodyBuffers
from strongroom.servers.http.documents import DocumentBudget
from strongroom.servers.http.large_answers import LargeAnswerBudget
from strongroom.servers.http.life import timeouts_s
from strongroom.servers.http.protocol import Connection
from strongroom.servers.http.settings import (
    Exchange,
    Handler,
    HttpSettings,
    Observer,
    RenderError,
)
from strongroom.servers.http.turns import RequestTurns
from strongroom.servers.rationed_log import KEYS_MAX
from strongroom.slices import SliceTurns

_logger = logging.getLogger("strongroom.http")

__all__ = ["Exchange", "Handler", "HttpServer", "HttpSettings", "Observer", "RenderError"]


class HttpServer:
    """An HTTP/1.1 server that hands each request to one coroutine function.

    Arguments:
        handler: returns the response to a request. A StorageError that it raises is rendered; any
            other exception is logged and becomes InternalError.
        render_error: returns the response to a StorageError, with a body of bytes. Its request is
            None if none could be read.
        settings: limits and timeouts.
        observe: called with each exchange.
        tls: returns the context for a new connection. If given, connections that begin with a TLS
            handshake are encrypted; others stay plain.
        slices: the slices of the loop's other long work; None = this server has its own.
        budget: the places for connections of all servers of the process; None = this server has
            `connections_max` for itself.
    """

    def __init__(
        self,
        handler: Handler,
        render_error: RenderError,
        *,
        settings: HttpSettings | None = None,
        observe: Observer | None = None,
        tls: TlsContexts | None = None,
        slices: SliceTurns | None = None,
        budget: ConnectionBudget | None = None,
    ) -> None:
        self.handler = handler
        self.render_error = render_error
        self.settings = HttpSettings() if settings is None else settings
        self.observe = observe
        self.slices = SliceTurns() if slices is None else slices
        self.draining = False
        self.documents = DocumentBudget(self.settings.documents_bytes_max)
        self.buffers = BodyBuffers(
            self.settings.body_buffer_bytes_max, self.settings.body_buffers_bytes
        )
        self.large_answers = LargeAnswerBudget(self.settings.answers_bytes_max)
        self.timeouts_s = timeouts_s(self.settings)
        self.turns = RequestTurns(lambda call: asyncio.get_running_loop().call_soon(call))
        self._connections: OpenConnections[Connection] = OpenConnections()
        self._tried_tls: set[str] = set()
        if budget is None:
            budget = ConnectionBudget(self.settings.connections_max)
        make = partial(Connection, self)
        self._acceptor = Acceptor(self.settings, tls, make, budget, self._connections.waiting)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def warn_of_tls(self, peer: str) -> None:
        """One line is written for each client, and no more after KEYS_MAX of them: a client may
        have ever new addresses."""
        if peer in self._tried_tls or len(self._tried_tls) >= KEYS_MAX:
            return
        self._tried_tls.add(peer)
        _logger.warning(
            "a client at %s speaks TLS (https) on a port without it: let it use http, or start "
            "the server with --cert and --key, or --tls",
            peer,
        )

    async def listen(self, host: str, port: int) -> int:
        """Listen as Listener.listen says. It may be called several times."""
        port = await self._acceptor.listen(host, port)
        self._connections.start_sweeping(self.settings.sweep_interval_s, self._sweep)
        return port

    async def drain(self, timeout_s: float) -> bool:
        self.draining = True
        self._acceptor.stop()
        self.close_idle()
        return await self._connections.end(timeout_s, self.settings.sweep_interval_s)

    async def close(self) -> None:
        await self.drain(0.0)

    def close_idle(self) -> None:
        for connection in self._connections:
            connection.close_if_idle()

    # For connections.

    def admit(self, connection: Connection) -> bool:
        self._connections.add(connection)
        return self._acceptor.admit(connection)

    def forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._acceptor.forget(connection)

    # Inside.

    def _sweep(self, now: float) -> None:
        for connection in self._connections:
            if connection.pacing.deadline <= now:
                connection.expire()
