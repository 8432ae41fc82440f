"""The writing side of a connection: heads as bytes, and small responses.

Lives here: framing of responses, what waits to be written. Must not live here: bodies that are sent
in pieces (http/send_bodies.py), which response is sent, or when a connection ends
(http/protocol.py). Source: RFC 9110 sections 6.4, 8.6 and 15.4.5 (responses without content), RFC
9112 section 6.
"""

from __future__ import annotations

import asyncio
import operator
from http import HTTPStatus
from typing import Final

import msgspec

from strongroom.limits import KIB
from strongroom.servers.http.turns import RequestTurns
from strongroom.wire.core.http import Response

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_JOINED_BYTES_MAX: Final = 64 * KIB  # up to this size, one write with the head; above, no copy
_WAITING_BYTES_MAX: Final = 8 * KIB  # above this size, an answer does not wait for others

_OWN_FIELDS: Final = frozenset(
    {
        "Connection",
        "Content-Length",
        "Transfer-Encoding",
        "connection",
        "content-length",
        "transfer-encoding",
    }
)
_status_lines: dict[int, str] = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus
}
# Both work on pairs, without a Python call for each header.
_NAME: Final = operator.itemgetter(0)
_LINE: Final = ": ".join


class BodyMismatch(Exception):
    """A response body did not have the bytes that were announced."""


class Plan(msgspec.Struct, frozen=True):
    """The framing of a response: its head, and whether a body follows."""

    head: bytes
    with_body: bool
    chunked: bool
    keep_alive: bool


def plan_response(response: Response, *, method: str, http_1_0: bool, keep_alive: bool) -> Plan:
    """Return the plan of a response: its framing and its head.

    Arguments:
        response: its headers `Content-Length`, `Transfer-Encoding` and `Connection` are ignored.
        method: the request's method; "HEAD" gets the head that GET would get.
        http_1_0: whether the client speaks HTTP/1.0, which has no chunked coding.
        keep_alive: whether the connection may be used again; the plan may still refuse it.

    Raises: ValueError: a header holds CR, LF or NUL.
    """
    status = response.status
    body = response.body
    with_body = method != "HEAD"
    chunked = False
    framing: list[str] = []
    if status in (204, 304) or status < 200:
        with_body = False
    else:
        size_bytes = response.size_bytes
        if isinstance(body, bytes) and (with_body or size_bytes is None):
            size_bytes = len(body)
        if size_bytes is not None:
            framing.append(f"Content-Length: {size_bytes}")
        elif http_1_0:
            keep_alive = False  # the body ends with the connection
        else:
            framing.append("Transfer-Encoding: chunked")
            chunked = True
    if not keep_alive:
        framing.append("Connection: close")
    elif http_1_0:
        framing.append("Connection: keep-alive")
    return Plan(_head(response, framing), with_body, chunked, keep_alive)


def _head(response: Response, framing: list[str]) -> bytes:
    headers = response.headers
    if not _OWN_FIELDS.isdisjoint(map(_NAME, headers)):
        headers = [field for field in headers if field[0] not in _OWN_FIELDS]
    lines = [_status_line(response), *map(_LINE, headers), *framing, "", ""]
    # A last check for every handler: a client's value must not add a header or a response.
    content = "".join(lines)
    if "\r" in content or "\n" in content or "\0" in content:
        raise ValueError("a response header holds a line end or NUL")
    text = "\r\n".join(lines)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8")


def _status_line(response: Response) -> str:
    if response.reason is not None:
        reason = response.reason
        if not reason.isprintable():
            reason = "".join(c if c.isprintable() else " " for c in reason)
        return f"HTTP/1.1 {response.status} {reason}"
    line = _status_lines.get(response.status)
    return f"HTTP/1.1 {response.status} Unknown" if line is None else line


class Sender:
    """The writing side of one connection.

    Arguments:
        turns: holds small answers until those of other connections are ready too.

    Attributes:
        bytes_out: how many bytes were written or kept for a later write.
        congested: whether the client reads more slowly than the server writes.
        in_kernel: whether sendfile runs, which does not notice a lost connection.
        lost: whether the connection is lost.
        started: whether bytes of the current response have been written.
    """

    __slots__ = (
        "_buffered",
        "_loop",
        "_transport",
        "_turns",
        "_waiter",
        "_waiting_bytes",
        "bytes_out",
        "congested",
        "in_kernel",
        "lost",
        "started",
    )

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, turns: RequestTurns
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._turns = turns
        self._buffered = b""
        self._waiting_bytes = 0  # in `turns`
        self._waiter: asyncio.Future[None] | None = None
        self.bytes_out = 0
        self.congested = False
        self.lost = False
        self.in_kernel = False
        self.started = False

    # The protocol's side.

    def pause(self) -> None:
        self.congested = True

    def resume(self) -> None:
        self.congested = False
        self._wake()

    def connection_lost(self) -> None:
        self.lost = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def flushed_bytes(self) -> int:
        """Return how many bytes have been handed to the kernel."""
        kept_bytes = len(self._buffered) + self._waiting_bytes
        return self.bytes_out - kept_bytes - self._transport.get_write_buffer_size()

    def write_deferred(self) -> None:
        """Write the answers that wait in `turns`, before something that must come after them."""
        if self._waiting_bytes:
            self._turns.write_deferred()

    def _write_in_turn(self, data: bytes) -> None:
        self._waiting_bytes -= len(data)
        if not self.lost:
            self._transport.write(data)

    def report(self, error: Exception) -> None:
        """Report an error that concerns the whole process, such as MemoryError."""
        self._loop.call_exception_handler({"message": "a request failed", "exception": error})

    def close(self) -> None:
        """Close the connection after the buffered bytes are written."""
        self.write_deferred()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once; only answers that wait in `turns` are still written."""
        self.write_deferred()
        self._transport.abort()

    def end(self) -> None:
        """Close the sending side, if the transport can do that (TLS cannot)."""
        self.write_deferred()
        if not self._transport.can_write_eof():
            return
        try:
            self._transport.write_eof()
        except OSError:  # the client is gone, and asyncio has not noticed yet
            self._transport.abort()

    # The response's side.

    def write_at_once(self, head: bytes, body: bytes, *, is_last: bool = True) -> bool:
        """Write a small response; return False if it is too large for that (nothing is then
        written).

        Arguments:
            is_last: whether the connection ends with it; it then waits for no other answer.
        """
        size = len(body)
        if size > _JOINED_BYTES_MAX:
            return False
        if not self.lost:
            self.started = True
            data = head + body if size else head
            self.bytes_out += len(data)
            if is_last or self._turns.is_alone or size > _WAITING_BYTES_MAX:
                self.write_now(data)
            else:
                self._waiting_bytes += len(data)
                self._turns.defer_write(self._write_in_turn, data)
        return True

    def write_now(self, data: bytes) -> None:
        """Write a few bytes, after the answers that wait in `turns`."""
        self.write_deferred()
        self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the client has read enough. Raises ConnectionResetError if it is gone."""
        while self.congested and not self.lost:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self.lost:
            raise ConnectionResetError("the client is gone")

    def buffer(self, data: bytes) -> None:
        """Keep a few bytes for the next write, to save a system call and a packet."""
        self._buffered += data
        self.bytes_out += len(data)

    def discard_buffered(self) -> None:
        """Drop the bytes kept for the next write, since their response will not be sent."""
        self.bytes_out -= len(self._buffered)
        self._buffered = b""

    def flush(self) -> None:
        """Write the bytes that were kept. Raises ConnectionResetError if the client is gone."""
        if self._buffered:
            self.write(b"")

    def write(self, data: bytes | memoryview) -> None:
        """Write a part of the response, after the bytes that were kept. Raises ConnectionResetError
        if the client is gone."""
        # A failed write closes the transport at once, but `connection_lost` is called only in the
        # next turn.
        if self.lost or self._transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self.write_deferred()
        self.started = True
        self.bytes_out += len(data)
        held, self._buffered = self._buffered, b""
        if not held:
            self._transport.write(data)
        elif len(data) <= _JOINED_BYTES_MAX:
            self._transport.write(b"".join((held, data)))
        else:
            self._transport.write(held)
            self._transport.write(data)
