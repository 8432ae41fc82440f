"""One request to another gateway, and the answer to it: both as streams.

Lives here: the text of the request, the reading of the answer within limits. Must not live here:
which gateway it is (forwarder.py), how it was connected (peers.py). Source: RFC 9112; RFC 9110
section 7.6.1 (fields that are for one connection only).

The framing is made anew on each side, so no byte of a client's body can be read as a request. A
body that has not arrived yet is sent only when the other gateway asks for it, by `100 Continue`. So
the client is asked for it then too, and a body that was not asked for can still go elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Final

import httptools

from strongroom import limits
from strongroom.servers.forwarding.proofs import HEADER
from strongroom.servers.forwarding.stream_room import Places
from strongroom.wire.core.http import BodyReader, Request

_READ_BYTES: Final = 256 * 1024
_HEAD_READ_BYTES: Final = 64 * 1024
# Of one connection. The length is sent again as it came, since a signature may cover it.
_LOCAL: Final = frozenset(
    (
        *("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("upgrade", "expect", HEADER),
    )
)
_FRAMING: Final = frozenset((*_LOCAL, "content-length"))
_HEAD: Final = "HEAD"
_BODILESS: Final = (204, 304)


class PeerLost(Exception):
    """The other gateway ended the connection, or spoke no HTTP; the text says which."""


class PeerStream:
    """A connection to another gateway.

    Attributes:
        uses: how many requests were sent on it before.
        idle_since: when it was given back, by the event loop's clock.
        has_no_client: whether the client of the present request has gone.
        places: of the present request, in the room of the gateway.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.uses = 0
        self.idle_since = 0.0
        self.has_no_client = False
        self.places: Places = ()

    @property
    def is_open(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())

    def abort(self) -> None:
        """Idempotent."""
        self.writer.transport.abort()

    def leave(self, uses: int) -> None:
        """Send what was written, and no more: the client of request number `uses` has gone. The
        other gateway notices, as if the client had left it."""
        if uses == self.uses:
            self.has_no_client = True
            self.writer.close()


class PeerExchange:
    """One request and its answer; the parser calls the `on_` methods.

    Attributes:
        stream: the connection.
        status, reason, fields: of the answer, once its head is there.
        is_complete: whether the answer has arrived whole.
        is_consumed: whether bytes of the body were taken from the client, and given away.
        has_begun: whether a byte of an answer has arrived.
    """

    def __init__(self, stream: PeerStream, request: Request) -> None:
        self.stream = stream
        self._request = request
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._has_head = self._may_send = False
        self._keep_alive = True
        self.status = 0
        self.reason = ""
        self.fields: list[tuple[str, str]] = []
        self.is_complete = self.is_consumed = self.has_begun = False

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow on the connection."""
        return self.is_complete and self._keep_alive and self.stream.is_open

    async def begin(self, proof: str, whole: bytes | None) -> None:
        """Send the request, and return when the head of the answer has arrived.

        Arguments:
            proof: the value of the hop's header.
            whole: the request's body; None = it is still to be read from the request.

        Raises: PeerLost; StorageError of a body that the client does not send whole.
        """
        body = self._request.body
        has_body = whole is None and body.size_bytes != 0
        head = _head(self._request, proof, expects=has_body)
        self.stream.writer.write(head + whole if whole else head)
        if not has_body:
            await self._until(lambda: self._has_head)
            return
        await self._until(lambda: self._has_head or self._may_send)
        if not self._has_head:
            self.is_consumed = True
            await self._send_and_read(body)

    async def body(self) -> AsyncGenerator[bytes]:
        """Yield the pieces of the answer's body; it can be read once. Raises: PeerLost."""
        while True:
            pieces, self._pieces = self._pieces, []
            for piece in pieces:
                yield piece
            if self.is_complete:
                return
            await self._read(_READ_BYTES)

    def whole_body(self) -> bytes:
        """The body of an answer that is complete."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    def end(self) -> None:
        """Drop the parser, which refers back to this object."""
        self._parser = None

    async def _send_and_read(self, body: BodyReader) -> None:
        """Send the body until the answer comes, which may be before the body's end."""
        sending = asyncio.ensure_future(self._send(body))
        reading = asyncio.ensure_future(self._until(lambda: self._has_head))
        try:
            await asyncio.wait((sending, reading), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                # An error of the client's ends the request. If the other gateway is gone, it may
                # have answered before that.
                with contextlib.suppress(PeerLost):
                    sending.result()
            await reading
        finally:
            self._keep_alive = self._keep_alive and sending.done()
            for task in (sending, reading):
                task.cancel()
            await asyncio.gather(sending, reading, return_exceptions=True)

    async def _send(self, body: BodyReader) -> None:
        writer, is_chunked = self.stream.writer, body.size_bytes is None
        async for piece in body:
            if piece and is_chunked:
                writer.writelines((b"%x\r\n" % len(piece), piece, b"\r\n"))
            else:
                writer.write(piece)
            try:
                await writer.drain()
            except OSError as error:
                raise PeerLost(str(error)) from None
        if is_chunked:
            writer.write(b"0\r\n\r\n")

    async def _until(self, is_there: Callable[[], bool]) -> None:
        size_bytes = 0
        while not is_there():
            if size_bytes > 2 * limits.REQUEST_HEAD_BYTES_MAX:
                raise PeerLost("the head of its answer is too long")
            size_bytes += await self._read(_HEAD_READ_BYTES)

    async def _read(self, size_bytes: int) -> int:
        try:
            data = await self.stream.reader.read(size_bytes)
        except OSError as error:
            raise PeerLost(str(error)) from None
        if not data:
            raise PeerLost("it closed the connection")
        self.has_begun = True
        if self.is_complete:
            raise PeerLost("it sent more than an answer")
        assert self._parser is not None, "the exchange has ended"
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            raise PeerLost("its answer is not HTTP") from None
        return len(data)

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self.fields.append((name.decode("latin-1"), value.decode("latin-1").strip(" \t")))

    def on_status(self, text: bytes) -> None:
        if not self._has_head:
            self.reason += text.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._has_head:
            return
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            self._may_send |= status == 100
            self.fields.clear()
            self.reason = ""
            return
        self.status, self._has_head = status, True
        self._keep_alive = self._parser.should_keep_alive()
        # The parser does not know the request's method.
        self.is_complete = self._request.method == _HEAD or status in _BODILESS

    def on_body(self, data: bytes) -> None:
        if not self.is_complete:
            self._pieces.append(data)

    def on_message_complete(self) -> None:
        self.is_complete = self._has_head


def answered_fields(exchange: PeerExchange) -> tuple[list[tuple[str, str]], int | None]:
    """Return the fields of an answer that are for the client, and its length; None = unknown."""
    fields = [one for one in exchange.fields if one[0].lower() not in _FRAMING]
    length = next((v for name, v in exchange.fields if name.lower() == "content-length"), None)
    return fields, None if length is None else int(length)


def _head(request: Request, proof: str, *, expects: bool) -> bytes:
    headers = request.headers
    lines = [f"{request.method} {request.target} HTTP/1.1"]
    lines += [f"{name}: {text}" for name, text in headers.fields if name.lower() not in _LOCAL]
    if "host" not in headers:
        lines.append("Host: -")
    if request.body.size_bytes is None:
        lines.append("Transfer-Encoding: chunked")
    if expects:
        lines.append("Expect: 100-continue")
    lines.append(f"{HEADER}: {proof}")
    return "\r\n".join((*lines, "", "")).encode("latin-1")
