"""Listening sockets, and the setup of new connections: TLS or plain, at once or when there is room.

Lives here: listening, and connections until their setup is finished. Must not live here:
established connections (http/protocol.py), their number (budget.py). Source: RFC 8446
section 5.1 (the first byte of a TLS connection is 22, the record type `handshake`, which begins no
HTTP method).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator
from typing import Final

from strongroom.platform.sockets import take_address_of_ended_server
from strongroom.servers.connections.budget import ConnectionBudget, Search, WaitingConnection
from strongroom.servers.connections.idle_sockets import is_quiet_socket
from strongroom.servers.connections.settings import AcceptSettings
from strongroom.servers.rationed_log import Ration, more

_logger = logging.getLogger("strongroom.http")
TLS_HANDSHAKE: Final = b"\x16"
_ACCEPT_PAUSE_S: Final = 0.5
# While no connection can be accepted, a search for one that has become idle is made this often.
_SEARCH_EVERY_S: Final = 1.0
# While no connection can be accepted, a line says so this often.
_REPORT_EVERY_S: Final = 30.0

Make = Callable[[asyncio.AbstractEventLoop], asyncio.BaseProtocol]
TlsContexts = Callable[[], ssl.SSLContext]
"""Returns the context of a new connection: a certificate may be replaced meanwhile."""


class _Setup:
    """A connection whose setup is not finished.

    Attributes:
        has_begun: whether it is being made. Before that, a server with TLS waits for its first
            byte.
    """

    __slots__ = ("_client", "_task", "has_begun", "since")

    def __init__(self, client: socket.socket, task: asyncio.Task[None], since: float) -> None:
        self._client = client
        self._task = task
        self.since = since
        self.has_begun = True

    def give_way(self, since: float) -> bool:
        if since != self.since or not is_quiet_socket(self._client.fileno()):
            return False
        self._task.cancel()
        return True


class Acceptor:
    """Accepts connections while there is room for them.

    Arguments:
        tls: returns the context for a new connection. If given, a connection that begins with a TLS
            handshake is encrypted; others stay plain.
        budget: the places for connections of all ports.
        search: finds the connections that wait for their clients, once their setup is finished.
        most: the most connections of this port; None = no limit of its own.
    """

    def __init__(
        self,
        settings: AcceptSettings,
        tls: TlsContexts | None,
        make: Make,
        budget: ConnectionBudget,
        search: Search,
        *,
        most: int | None = None,
    ) -> None:
        self._settings = settings
        self._tls = tls
        self._make = make
        self._search = search
        self._in_setup: dict[asyncio.BaseProtocol, _Setup] = {}
        self._settling: set[asyncio.BaseProtocol] = set()  # they wait for no client yet
        self._has_room = asyncio.Event()
        self._places = budget.port(self._waiting, self._has_room.set, most)
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._ration = Ration(_REPORT_EVERY_S)

    async def listen(self, host: str, port: int) -> int:
        """Listen on every address of `host`; see Listener.listen."""
        loop = asyncio.get_running_loop()
        opened: list[socket.socket] = []
        try:
            for family, address in await _addresses(host, port):
                listener = _bound(family, (address[0], port, *address[2:]))
                opened.append(listener)
                listener.listen(self._settings.backlog)
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
            # The cancelled task has not run yet, and `select` fails if a socket is closed.
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        self._listeners.clear()

    def admit(self, connection: asyncio.BaseProtocol) -> bool:
        """Note that the setup of a connection is finished. Returns False if it must be refused."""
        self._in_setup.pop(connection, None)
        self._settle(connection)
        return self._places.enter(connection, asyncio.get_running_loop().time())

    def forget(self, connection: asyncio.BaseProtocol) -> None:
        self._places.leave(connection)

    def _waiting(self) -> Iterator[WaitingConnection]:
        for connection, setup in self._in_setup.items():
            yield WaitingConnection(setup.has_begun, setup.since, connection, setup.give_way)
        yield from self._search()

    def _start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
        while True:
            await self._room(loop)
            try:
                client, _ = await loop.sock_accept(listener)
                self._begin(loop, client)
            except (OSError, MemoryError) as error:
                # Too many open files, or a client that is gone already. Other clients are still
                # accepted.
                self._report(loop, "a connection could not be accepted", error)
                await asyncio.sleep(_ACCEPT_PAUSE_S)

    def _begin(self, loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
        try:
            connection = self._make(loop)
            task = self._start(self._connect(loop, client, connection))
        except MemoryError:
            client.close()
            raise
        now = loop.time()
        self._in_setup[connection] = _Setup(client, task, now)
        self._settling.add(connection)
        # It has its place from here on, since a whole backlog may be accepted before one is set up.
        self._places.enter(connection, now)

    def _report(self, loop: asyncio.AbstractEventLoop, what: str, error: Exception) -> None:
        """Report MemoryError to the loop's exception handler; log every other error, but not each
        time."""
        if isinstance(error, MemoryError):
            loop.call_exception_handler({"message": what, "exception": error})
            return
        number = getattr(error, "errno", None)
        left_out = self._ration.left_out((what, number), loop.time())
        if left_out is not None:
            _logger.warning("%s: %s%s", what, error, more(left_out))

    async def _room(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until another connection may be accepted. Until then, it stays in the kernel's
        backlog."""
        places = self._places
        # A whole backlog comes at once. At the limit, the first of it can give way to the rest only
        # after a turn of the loop or two.
        while (self._settling and not places.has_room) or not places.may_accept(loop.time()):
            self._has_room.clear()
            try:
                async with asyncio.timeout(_SEARCH_EVERY_S):
                    await self._has_room.wait()
            except TimeoutError:
                pass

    def _settle(self, connection: asyncio.BaseProtocol) -> None:
        self._settling.discard(connection)
        if not self._settling:
            self._has_room.set()

    async def _connect(
        self,
        loop: asyncio.AbstractEventLoop,
        client: socket.socket,
        connection: asyncio.BaseProtocol,
    ) -> None:
        settings = self._settings
        tls: ssl.SSLContext | None = None
        try:
            if self._tls is not None:
                setup = self._in_setup[connection]
                setup.has_begun = False
                self._settle(connection)
                async with asyncio.timeout(settings.head_timeout_s):
                    if await _first_byte(loop, client) == TLS_HANDSHAKE:
                        tls = self._tls()
                setup.has_begun, setup.since = True, loop.time()
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
            self._report(loop, "a connection was not made", error)
        except asyncio.CancelledError:
            client.close()
            raise
        finally:
            self._settle(connection)
            if self._in_setup.pop(connection, None) is not None:  # it failed
                self._places.leave(connection)


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


async def why_not_bound(host: str, port: int) -> OSError | None:
    """Why nobody could listen on a port now, at one of the addresses of `host`; None if one could.
    Nothing is accepted meanwhile."""
    try:
        for family, address in await _addresses(host, port):
            _bound(family, address).close()
    except OSError as error:
        return error
    return None


async def _addresses(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    """The family of each address of `host`, with the address as a socket takes it."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except UnicodeError as error:  # a part of the name has more than 63 characters
        raise OSError(errno.EINVAL, f"no such name: {error}") from None
    return [(family, address) for family, _, _, _, address in dict.fromkeys(found)]


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        take_address_of_ended_server(listener)
        if family == socket.AF_INET6:
            # Each family has its own socket, so an IPv4 client never appears as `::ffff:...`.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener
