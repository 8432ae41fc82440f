"""The HTTP server: listens, counts connections, sweeps deadlines, drains.

Lives here: sockets that listen, TLS or plain by the first byte, the one timer. Must not live
here: the protocol (http/protocol.py), anything about Azure. Source: RFC 9112 section 9; RFC 8446
section 5.1 (the first byte of a TLS connection is 22, the record type `handshake`, which begins
no HTTP method).
"""

from __future__ import annotations

import asyncio
import logging
import operator
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from typing import Final

from strongroom.servers.http.buffers import BodyBuffers
from strongroom.servers.http.documents import Documents
from strongroom.servers.http.outbox import Outbox
from strongroom.servers.http.protocol import Connection
from strongroom.servers.http.settings import (
    Exchange,
    Handler,
    HttpSettings,
    Observer,
    RenderError,
)
from strongroom.servers.http.stages import IN_STEP_MAX, go_in_step

__all__ = ["Exchange", "Handler", "HttpServer", "HttpSettings", "Observer", "RenderError"]

_logger = logging.getLogger("strongroom.http")
_TLS_HANDSHAKE: Final = b"\x16"
_ACCEPT_PAUSE_S: Final = 0.5
# How many connections beyond the limit are answered 503 at a time; more stay in the backlog.
_REFUSALS_MAX: Final = 64
_START: Final = operator.methodcaller("start")


class HttpServer:
    """An HTTP/1.1 server that hands each request to one coroutine function.

    Arguments:
        handler: gives the response to a request. A StorageError that it raises is rendered; any
            other exception is logged and becomes InternalError.
        render_error: gives the response to a StorageError; its request is None when none could be
            read. Its body must be bytes.
        settings: bounds and timeouts.
        observe: told about each exchange.
        tls: when given, connections that begin with a TLS handshake are encrypted; others stay
            plain.
    """

    def __init__(
        self,
        handler: Handler,
        render_error: RenderError,
        *,
        settings: HttpSettings | None = None,
        observe: Observer | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.handler = handler
        self.render_error = render_error
        self.settings = HttpSettings() if settings is None else settings
        self.observe = observe
        self.draining = False
        self.documents = Documents(self.settings.documents_bytes_max)
        self.buffers = BodyBuffers(
            self.settings.body_buffer_bytes_max, self.settings.body_buffers_bytes
        )
        self.outbox = Outbox(self._at_end_of_turn)
        self._served_last: Connection | None = None
        self._starting: list[Connection] = []
        self._tls = tls
        self._connections: set[Connection] = set()
        self._arriving: set[Connection] = set()  # accepted, but TLS or set-up is not complete
        self._has_room = asyncio.Event()
        self._held: dict[Connection, int] = {}  # large answers, the oldest first
        self._held_bytes = 0
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._empty: asyncio.Future[None] | None = None

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    async def listen(self, host: str, port: int) -> int:
        """Listen on every address of `host` (IPv4 and IPv6), as often as wanted.

        Arguments:
            host: a name or an address; "" for every interface.
            port: 0 for a free one.

        Returns: the port. Raises: OSError: an address is in use or not ours.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        opened: list[socket.socket] = []
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                listener = _open(family, (address[0], port, *address[2:]), self.settings.backlog)
                opened.append(listener)
                port = listener.getsockname()[1]
        except OSError:
            for listener in opened:
                listener.close()
            raise
        for listener in opened:
            self._listeners.append(listener)
            self._start(self._accept(loop, listener))
        if self._sweeping is None:
            self._sweep(loop)
        return port

    async def drain(self, timeout_s: float) -> bool:
        """Stop: accept no more, close idle connections, let requests in flight finish.

        Arguments:
            timeout_s: how long to wait for them; the rest is then cut off.

        Returns: whether every request finished.
        """
        self.draining = True
        self._stop_listening()
        for connection in list(self._connections):
            connection.close_if_idle()
        finished = await self._wait_empty(timeout_s)
        if not finished:
            for connection in list(self._connections):
                connection.abort()
            await self._wait_empty(self.settings.sweep_interval_s)
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        return finished

    async def close(self) -> None:
        """Stop at once: requests in flight are cut off."""
        await self.drain(0.0)

    def close_idle(self) -> None:
        """Close the connections without a request, to free memory."""
        for connection in list(self._connections):
            connection.close_if_idle()

    # For connections.

    def admit(self, connection: Connection) -> bool:
        """Count a new connection; False when there are too many."""
        self._arriving.discard(connection)
        self._connections.add(connection)
        return len(self._connections) <= self.settings.connections_max

    def forget(self, connection: Connection) -> None:
        """A connection and its last handler are over."""
        self._connections.discard(connection)
        self._has_room.set()
        if self._served_last is connection:
            self._served_last = None
        if self._empty is not None and not self._connections and not self._empty.done():
            self._empty.set_result(None)

    def take_up(self, connection: Connection) -> None:
        """A request is here: decide when its connection begins with it.

        At once for who is served alone: that saves turns of the loop. Where many come, all are read
        before any is handled: larger groups are cheaper for all, and so is doing one thing many
        times.
        """
        is_alone = self._served_last is connection
        self._served_last = connection
        self.outbox.is_crowd = not is_alone
        if is_alone and asyncio.current_task() is None:
            if connection.start():
                connection.wake()
        else:
            if not self._starting:
                self._at_end_of_turn(self._start_all)
            self._starting.append(connection)

    def _at_end_of_turn(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def _start_all(self) -> None:
        starting, self._starting = self._starting, []
        at_work: Sequence[Connection] = starting
        try:
            for first in range(0, len(starting), IN_STEP_MAX):
                at_work = starting[first:]
                left = go_in_step(at_work[:IN_STEP_MAX], _START)
                for connection in left:
                    connection.wake()
            at_work = ()
        finally:
            # Where one could not begin, and nobody is to wait for ever because of another.
            for connection in at_work:
                connection.wake()

    def hold(self, connection: Connection, size_bytes: int) -> None:
        """A large answer begins to be sent from memory; too many of them end the oldest."""
        self._held[connection] = size_bytes
        self._held_bytes += size_bytes
        while self._held_bytes > self.settings.answers_bytes_max and len(self._held) > 1:
            oldest = next(iter(self._held))
            self.let_go(oldest)
            oldest.give_up()

    def let_go(self, connection: Connection) -> None:
        """It has been sent, or given up. Idempotent."""
        self._held_bytes -= self._held.pop(connection, 0)

    # Inside.

    async def _wait_empty(self, timeout_s: float) -> bool:
        if not self._connections:
            return True
        self._empty = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait_for(self._empty, timeout_s)
        except TimeoutError:
            return False
        finally:
            self._empty = None
        return True

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _stop_listening(self) -> None:
        for task in self._tasks:
            task.cancel()
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """The only timer: connections keep a deadline, and are told when it has passed."""
        # First, so that the timer runs on even if something below fails.
        self._sweeping = loop.call_later(self.settings.sweep_interval_s, self._sweep, loop)
        now = loop.time()
        for connection in list(self._connections):
            if connection.deadline <= now:
                connection.expire(now)

    async def _accept(self, loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
        while True:
            await self._room()
            try:
                client, _ = await loop.sock_accept(listener)
                self._begin(loop, client)
            except (OSError, MemoryError) as error:
                # Too many open files, or a client that is gone already: others are still welcome.
                _report(loop, "a connection could not be accepted", error)
                await asyncio.sleep(_ACCEPT_PAUSE_S)

    def _begin(self, loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
        try:
            connection = Connection(self, loop)
            self._start(self._connect(loop, client, connection))
        except MemoryError:
            client.close()
            raise
        # Counted from here on, since a whole backlog may be accepted before one is set up.
        self._arriving.add(connection)

    async def _room(self) -> None:
        """Wait until another connection can be served, or answered 503. Until then, connections
        stay in the kernel's backlog. Closing them at once would reset them without a reason."""
        most = self.settings.connections_max + _REFUSALS_MAX
        while len(self._connections) + len(self._arriving) >= most:
            self._has_room.clear()
            await self._has_room.wait()

    async def _connect(
        self, loop: asyncio.AbstractEventLoop, client: socket.socket, connection: Connection
    ) -> None:
        try:
            tls = None
            if self._tls is not None:
                async with asyncio.timeout(self.settings.head_timeout_s):
                    if await _first_byte(loop, client) == _TLS_HANDSHAKE:
                        tls = self._tls
            await loop.connect_accepted_socket(
                lambda: connection,
                client,
                ssl=tls,
                ssl_handshake_timeout=None
                if tls is None
                else self.settings.tls_handshake_timeout_s,
                # A client that does not say goodbye must not hold up the end of a connection.
                ssl_shutdown_timeout=None if tls is None else self.settings.tls_shutdown_timeout_s,
            )
        except (OSError, TimeoutError) as error:
            _logger.debug("a connection was not made: %s", error)
            client.close()
        except MemoryError as error:
            client.close()
            _report(loop, "a connection was not made", error)
        except asyncio.CancelledError:
            client.close()
            raise
        finally:
            self._arriving.discard(connection)
            self._has_room.set()


def _report(loop: asyncio.AbstractEventLoop, what: str, error: Exception) -> None:
    """Report MemoryError to the loop's exception handler; log every other error."""
    if isinstance(error, MemoryError):
        loop.call_exception_handler({"message": what, "exception": error})
    else:
        _logger.warning("%s: %s", what, error)


async def _first_byte(loop: asyncio.AbstractEventLoop, client: socket.socket) -> bytes:
    """The first byte, left where it is; empty when the client closed."""
    while True:
        try:
            return client.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            pass
        readable = loop.create_future()
        loop.add_reader(client, _set, readable)
        try:
            await readable
        finally:
            loop.remove_reader(client)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _open(family: int, address: tuple[object, ...], backlog: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # Each family has its own socket: an IPv4 client is never shown as `::ffff:...`.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(backlog)
    except BaseException:
        listener.close()
        raise
    return listener
