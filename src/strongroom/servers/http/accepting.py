"""Listening sockets, and the setup of new connections: TLS or plain, at once or when there is room.

Lives here: listening, and connections until their setup is finished. Must not live here:
established connections (http/protocol.py), their number (http/server.py). Source: RFC 8446 section
5.1 (the first byte of a TLS connection is 22, the record type `handshake`, which begins no HTTP
method).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Sized
from typing import Final

from strongroom.servers.http.settings import HttpSettings

_logger = logging.getLogger("strongroom.http")
_TLS_HANDSHAKE: Final = b"\x16"
_ACCEPT_PAUSE_S: Final = 0.5
# How many connections beyond the limit are answered 503 at a time; more stay in the backlog.
_REFUSALS_MAX: Final = 64

Make = Callable[[asyncio.AbstractEventLoop], asyncio.BaseProtocol]


class Acceptor:
    """Accepts connections while there is room for them.

    Arguments:
        settings: limits and timeouts.
        tls: if given, a connection that begins with a TLS handshake is encrypted; others stay
            plain.
        served: the open connections.
        make: creates the protocol of a new connection.
    """

    def __init__(
        self, settings: HttpSettings, tls: ssl.SSLContext | None, served: Sized, make: Make
    ) -> None:
        self._settings = settings
        self._tls = tls
        self._served = served
        self._make = make
        self._in_setup: set[asyncio.BaseProtocol] = set()  # accepted, setup not finished
        self._has_room = asyncio.Event()
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int) -> int:
        """Listen on every address of `host`; see HttpServer.listen."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        opened: list[socket.socket] = []
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                listener = _open(family, (address[0], port, *address[2:]), self._settings.backlog)
                opened.append(listener)
                port = listener.getsockname()[1]
        except OSError:
            for listener in opened:
                listener.close()
            raise
        for listener in opened:
            self._listeners.append(listener)
            self._start(self._accept(loop, listener))
        return port

    def stop(self) -> None:
        """Accept no more connections, and drop those whose setup is not finished."""
        for task in self._tasks:
            task.cancel()
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    def made(self, connection: asyncio.BaseProtocol) -> None:
        """Note that the setup of a connection is finished, so that it counts among the served
        ones."""
        self._in_setup.discard(connection)

    def make_room(self) -> None:
        """Note that a connection has ended."""
        self._has_room.set()

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
        while True:
            await self._room()
            try:
                client, _ = await loop.sock_accept(listener)
                self._begin(loop, client)
            except (OSError, MemoryError) as error:
                # Too many open files, or a client that is gone already. Other clients are still
                # accepted.
                _report(loop, "a connection could not be accepted", error)
                await asyncio.sleep(_ACCEPT_PAUSE_S)

    def _begin(self, loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
        try:
            connection = self._make(loop)
            self._start(self._connect(loop, client, connection))
        except MemoryError:
            client.close()
            raise
        # Counted from here on, since a whole backlog may be accepted before one is set up.
        self._in_setup.add(connection)

    async def _room(self) -> None:
        """Wait until another connection can be served, or answered 503.

        Until then, connections stay in the kernel's backlog. Closing them at once would reset them
        without a reason.
        """
        most = self._settings.connections_max + _REFUSALS_MAX
        while len(self._served) + len(self._in_setup) >= most:
            self._has_room.clear()
            await self._has_room.wait()

    async def _connect(
        self,
        loop: asyncio.AbstractEventLoop,
        client: socket.socket,
        connection: asyncio.BaseProtocol,
    ) -> None:
        settings, tls = self._settings, None
        try:
            if self._tls is not None:
                async with asyncio.timeout(settings.head_timeout_s):
                    if await _first_byte(loop, client) == _TLS_HANDSHAKE:
                        tls = self._tls
            await loop.connect_accepted_socket(
                lambda: connection,
                client,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else settings.tls_handshake_timeout_s,
                # A client that does not close TLS properly must not delay the end of a connection.
                ssl_shutdown_timeout=None if tls is None else settings.tls_shutdown_timeout_s,
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
            self._in_setup.discard(connection)
            self._has_room.set()


def _report(loop: asyncio.AbstractEventLoop, what: str, error: Exception) -> None:
    """Report MemoryError to the loop's exception handler; log every other error."""
    if isinstance(error, MemoryError):
        loop.call_exception_handler({"message": what, "exception": error})
    else:
        _logger.warning("%s: %s", what, error)


async def _first_byte(loop: asyncio.AbstractEventLoop, client: socket.socket) -> bytes:
    """Return the first byte without consuming it; return no byte if the client has closed."""
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
            # Each family has its own socket, so an IPv4 client never appears as `::ffff:...`.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(backlog)
    except BaseException:
        listener.close()
        raise
    return listener
