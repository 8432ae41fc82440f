"""One persistent HTTP/1.1 connection: sends a request in one piece, and reads its response.

Lives here: the syntax of messages and the time limit of every step. The standard library's client
parses headers as mail and sends a message in two pieces. That costs more than the rest of a lock's
cycle. Source: RFC 9112. Must not live here: the choice of a connection, retries
(connections/http_pool.py).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple

from strongroom.coordination.clock import Clocks
from strongroom.coordination.errors import StoreRefused
from strongroom.coordination.stores.connections.tls_refusals import tls_alert_of
from strongroom.platform.sockets import POLLERR, POLLHUP, POLLIN, new_poll

BODY_BYTES_MAX: Final = 16 << 20
_HEAD_BYTES_MAX: Final = 256 << 10
_PIECE_BYTES: Final = 64 << 10
_BODILESS: Final = frozenset({204, 304})
_TIMEOUT_STEP_S: Final = 0.001


class HttpResponse(NamedTuple):
    """A server's response; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str) -> str:
        """Empty if the header is absent."""
        return self.headers.get(name.lower(), "")

    @property
    def etag(self) -> str:
        """With its quotes; empty if there is none."""
        return self.headers.get("etag", "")


class BadResponse(Exception):
    """The response is not valid HTTP, or is incomplete."""


class HttpConnection:
    """A connection to a server; it connects when it is created.

    Arguments:
        host, port: the address of the server.
        context: the TLS context; None for plain HTTP.
        until_s: when to give up connecting, by the monotonic clock.

    Raises:
        OSError: the server cannot be reached.
    """

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext | None, clock: Clocks, until_s: float
    ) -> None:
        self._clock = clock
        self._buffer = bytearray()
        self._timeout_s = max(0.001, until_s - clock.monotonic_s())
        self.sock: socket.socket = socket.create_connection((host, port), self._timeout_s)
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                self._set_timeout(until_s)
                self.sock = context.wrap_socket(self.sock, server_hostname=host)
        except BaseException:
            self.sock.close()
            raise
        self._poll = new_poll()
        self._poll.register(self.sock, POLLIN | POLLHUP | POLLERR)

    def is_reusable(self) -> bool:
        """Data on an idle connection means that it closed."""
        return not self._buffer and not self._poll.poll(0)

    def exchange(
        self, method: str, head: str, body: bytes, until_s: float
    ) -> tuple[HttpResponse, bool]:
        """Return the response, and whether the connection may be reused.

        Arguments:
            method: decides whether the response has a body.
            head: the request line and the headers, with the empty line.
            until_s: when to give up, by the monotonic clock.

        Raises:
            OSError, BadResponse: the fate of the request is unknown.
            StoreRefused: the response has more than `BODY_BYTES_MAX` bytes.
        """
        self._send(head.encode("latin-1") + body, until_s)
        while True:
            version, status, headers = _parse_head(self._read_until(b"\r\n\r\n", until_s))
            if status >= 200:
                break
        reusable = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
        if method == "HEAD" or status in _BODILESS:
            content = b""
        elif "transfer-encoding" in headers:
            content = self._read_chunks(until_s)
        elif "content-length" in headers:
            content = self._read_exactly(_number(headers["content-length"], 10), until_s)
        else:
            content, reusable = self._read_to_end(until_s), False
        return HttpResponse(status, headers, content), reusable

    def close(self) -> None:
        self.sock.close()

    def interrupt(self) -> None:
        """The thread that reads or writes on this connection fails at once."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the connection had ended already

    def _send(self, raw: bytes, until_s: float) -> None:
        self._set_timeout(until_s)
        try:
            self.sock.sendall(raw)
        except OSError as error:
            raise tls_alert_of(self.sock, error) from error

    def _set_timeout(self, until_s: float) -> None:
        left_s = until_s - self._clock.monotonic_s()
        if left_s <= 0:
            raise TimeoutError("the time is up")
        # Each setting is a system call, and most differ only by microseconds.
        if abs(left_s - self._timeout_s) > _TIMEOUT_STEP_S or left_s < _TIMEOUT_STEP_S:
            self.sock.settimeout(left_s)
            self._timeout_s = left_s

    def _fill(self, until_s: float) -> bool:
        self._set_timeout(until_s)
        piece = self.sock.recv(_PIECE_BYTES)
        self._buffer += piece
        return bool(piece)

    def _read_until(self, end: bytes, until_s: float) -> bytes:
        """Return the data before `end`, and remove both from the buffer."""
        start = 0
        while (at := self._buffer.find(end, start)) < 0:
            start = max(0, len(self._buffer) - len(end))
            if len(self._buffer) > _HEAD_BYTES_MAX:
                raise BadResponse("the answer's head does not end")
            if not self._fill(until_s):
                raise BadResponse("the connection was closed")
        found = bytes(self._buffer[:at])
        del self._buffer[: at + len(end)]
        return found

    def _read_exactly(self, size_bytes: int, until_s: float) -> bytes:
        _check_size(size_bytes)
        while len(self._buffer) < size_bytes:
            if not self._fill(until_s):
                raise BadResponse("the answer was cut off")
        found = bytes(self._buffer[:size_bytes])
        del self._buffer[:size_bytes]
        return found

    def _read_chunks(self, until_s: float) -> bytes:
        content = bytearray()
        while True:
            size = _number(
                self._read_until(b"\r\n", until_s).partition(b";")[0].decode("latin-1"), 16
            )
            if size == 0:
                while self._read_until(b"\r\n", until_s):
                    pass  # trailers
                return bytes(content)
            _check_size(len(content) + size)
            content += self._read_exactly(size, until_s)
            if self._read_until(b"\r\n", until_s):
                raise BadResponse("a chunk is longer than it says")

    def _read_to_end(self, until_s: float) -> bytes:
        while self._fill(until_s):
            _check_size(len(self._buffer))
        return bytes(self._buffer)


def _parse_head(head: bytes) -> tuple[str, int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not (status.isdigit() and len(status) == 3):
        raise BadResponse(f"{first[:40]!r} is no HTTP")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadResponse(f"{line[:40]!r} is no header")
        name = name.lower()
        value = value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return version, int(status), headers


def _number(text: str, base: int) -> int:
    try:
        number = int(text.strip(), base)
    except ValueError:
        number = -1
    if number < 0:
        raise BadResponse(f"{text[:40]!r} is no length")
    return number


def _check_size(size_bytes: int) -> None:
    if size_bytes > BODY_BYTES_MAX:
        raise StoreRefused(f"the server's answer has more than {BODY_BYTES_MAX} bytes")
