"""RESP, the protocol of Redis: a connection that sends commands and reads bounded replies.

Source: Redis documentation, "Redis serialization protocol specification" (RESP2). Must not live
here: addresses (redis/address.py), the commands of the store (redis/store.py).
"""

from __future__ import annotations

import socket
import ssl
from typing import Final

from strongroom.coordination.clock import Clocks
from strongroom.coordination.stores.connections.tls_refusals import tls_alert_of
from strongroom.platform.sockets import POLLIN, new_poll

Reply = bytes | int | None | list["Reply"]
_LINE_MAX: Final = 64 * 1024
_REPLY_MAX: Final = 16 * 1024 * 1024
_ITEMS_MAX: Final = 100_000
_DEPTH_MAX: Final = 8
_CHUNK: Final = 64 * 1024


class RedisError(Exception):
    """The server answered with an error; `code` is its first word."""

    def __init__(self, words: str) -> None:
        self.code = words.partition(" ")[0]
        super().__init__(words)


class RedisConnection:
    """A connection to a Redis server. Only one thread at a time may use it.

    Arguments:
        host, port: the server.
        tls: the context for TLS; None for a plain connection.
        clock: the clock that time limits are measured by.
        until_s: the monotonic time at which connecting is given up.

    Raises:
        OSError: the server cannot be reached.
    """

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None, clock: Clocks, until_s: float
    ) -> None:
        self._clock, self._until_s = clock, until_s
        self._socket = socket.create_connection((host, port), self._left_s())
        try:
            _keep_alive(self._socket)
            if tls is not None:
                self._socket.settimeout(self._left_s())
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        except BaseException:
            self._socket.close()
            raise
        self._poll = new_poll()
        self._poll.register(self._socket, POLLIN)
        self._buffer = bytearray()
        self._left_bytes = 0

    def fileno(self) -> int:
        """The descriptor to poll for unsolicited data."""
        return self._socket.fileno()

    def call(self, until_s: float, *words: str | bytes | int) -> Reply:
        """Send a command and return its reply.

        Arguments:
            until_s: when to give up, by the monotonic clock.
            words: the command and its arguments.

        Raises:
            RedisError: the server refuses the command.
            OSError: there was no reply (TimeoutError: not in time). The connection is then
                unusable.
        """
        self.send(until_s, *words)
        return self.receive(until_s)

    def send(self, until_s: float, *words: str | bytes | int) -> None:
        """Send a command; `receive` returns its reply. Raises: OSError."""
        self._until_s = until_s
        parts = [_raw(word) for word in words]
        command = b"*%d\r\n" % len(parts)
        command += b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
        self._socket.settimeout(self._left_s())
        try:
            self._socket.sendall(command)
        except OSError as error:
            raise tls_alert_of(self._socket, error) from error

    def receive(self, until_s: float) -> Reply:
        """Return the next reply, or the next message of a subscription. Raises: see `call`."""
        self._until_s = until_s
        self._left_bytes = _REPLY_MAX
        return self._read_reply(_DEPTH_MAX)

    def has_more(self) -> bool:
        """Unread data, or the connection was closed."""
        if self._buffer:
            return True
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        return bool(self._poll.poll(0))

    def is_stale(self) -> bool:
        """Unsolicited data has arrived; usually the server is closing the connection."""
        return self.has_more()

    def close(self) -> None:
        self._socket.close()

    def _read_reply(self, depth: int) -> Reply:
        line = self._read_line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"-":
            raise RedisError(rest.decode("utf-8", "replace"))
        if not rest.removeprefix(b"-").isdigit() or len(rest) > 20:
            raise ConnectionError("the reply is no RESP")
        number = int(rest)
        if kind == b":":
            return number
        if number < 0 and kind in (b"$", b"*"):
            return None
        if kind == b"$":
            return self._read_exactly(number + 2)[:-2]
        if kind == b"*" and number <= _ITEMS_MAX and depth > 0:
            return [self._read_reply(depth - 1) for _ in range(number)]
        raise ConnectionError("the reply is no RESP, or too large")

    def _read_line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _LINE_MAX:
                raise ConnectionError("the reply is no RESP: its line does not end")
            self._receive_more()
        return self._read_exactly(end + 2)[:-2]

    def _read_exactly(self, count: int) -> bytes:
        self._left_bytes -= count
        if self._left_bytes < 0:
            raise ConnectionError(f"the reply has more than {_REPLY_MAX} bytes")
        while len(self._buffer) < count:
            self._receive_more()
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def _receive_more(self) -> None:
        self._socket.settimeout(self._left_s())
        received = self._socket.recv(_CHUNK)
        if not received:
            raise ConnectionError("the server closed the connection")
        self._buffer += received

    def _left_s(self) -> float:
        left_s = self._until_s - self._clock.monotonic_s()
        if left_s <= 0:
            raise TimeoutError("no answer in time")
        return left_s


def _keep_alive(connected: socket.socket) -> None:
    """Let the kernel detect a dead peer, also while the connection is idle."""
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 2)):
        option = getattr(socket, name, None)  # not every system has all of them
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def _raw(word: str | bytes | int) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()
