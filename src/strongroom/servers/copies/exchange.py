"""One request to a copy source and the answer to it, streamed.

Lives here: the text of the request, the reading of HTTP/1.1 within limits. Must not live here: the
choice of the server (copies/client.py). Source: RFC 9110, RFC 9112; "Get Blob" for sources that are
blobs.

The other side is not trusted. The head, the framing between the pieces of a body, and every wait
are limited. Everything after the first answer is ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final
from urllib.parse import SplitResult

import httptools

from strongroom import limits
from strongroom.semantics.core.conditions import Conditions
from strongroom.services.core.copies.sources import SourceBroken, SourceRequest
from strongroom.values import ByteRange, rfc1123

BYTES_MAX: Final = limits.BLOCK_SIZES_BY_VERSION[0][2]
# Requests to other blob services name the version whose sizes are the limit here.
_VERSION: Final = limits.BLOCK_SIZES_BY_VERSION[0][0]
_HEAD_READ_BYTES: Final = 16 * 1024
_READ_BYTES: Final = 256 * 1024


class CopyExchange:
    """One request and its answer; the parser calls the `on_` methods.

    Arguments:
        head_timeout_s: the limit for the whole head of the answer.
        stall_timeout_s: the limit for each further piece of the body.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        head_timeout_s: float,
        stall_timeout_s: float,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._head_timeout_s = head_timeout_s
        self._stall_timeout_s = stall_timeout_s
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._has_head = False
        self._is_complete = False
        self.status = 0
        self.reason = ""
        self.fields: list[tuple[str, str]] = []

    def send_request(self, parts: SplitResult, wanted: SourceRequest) -> None:
        """Send the request. The connection is used for this request only."""
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [
            f"GET {target} HTTP/1.1",
            f"Host: {parts.netloc}",
            "User-Agent: strongroom",
            "Accept: */*",
            "Accept-Encoding: identity",
            f"x-ms-version: {_VERSION}",
            "Connection: close",
            *_condition_lines(wanted.conditions),
            *_range_lines(wanted.range),
        ]
        if wanted.authorization is not None:
            lines.append(f"Authorization: {wanted.authorization}")
            # A file service refuses a bearer token without this header.
            lines.append("x-ms-file-request-intent: backup")
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))

    async def read_head(self) -> None:
        """Wait for the status and the header fields. Raises SourceBroken."""
        size_bytes = 0
        try:
            # One limit for the whole head, since a head that comes byte by byte never stalls.
            async with asyncio.timeout(self._head_timeout_s):
                while not self._has_head:
                    if size_bytes > limits.REQUEST_HEAD_BYTES_MAX:
                        raise SourceBroken("The head of the copy source's answer is too long.")
                    size_bytes += await self._read(_HEAD_READ_BYTES)
        except TimeoutError:
            raise SourceBroken("The copy source does not answer in time.") from None

    async def body(self) -> AsyncGenerator[bytes]:
        """Yield the pieces of the body; it can be read once. Raises SourceBroken."""
        size_bytes = between_bytes = 0
        while True:
            pieces, self._pieces = self._pieces, []
            for piece in pieces:
                size_bytes += len(piece)
                if size_bytes > BYTES_MAX:
                    raise SourceBroken(f"The copy source is longer than {BYTES_MAX} bytes.")
                yield piece
            if self._is_complete:
                return
            between_bytes = 0 if pieces else between_bytes
            if between_bytes > limits.REQUEST_HEAD_BYTES_MAX:
                raise SourceBroken("The copy source's answer has too much beside its content.")
            between_bytes += await self._read_more()

    def close(self) -> None:
        """Abort the connection. Idempotent."""
        self._writer.transport.abort()

    async def _read_more(self) -> int:
        try:
            async with asyncio.timeout(self._stall_timeout_s):
                return await self._read(_READ_BYTES)
        except TimeoutError:
            raise SourceBroken("The copy source sends too slowly.") from None

    async def _read(self, size_bytes: int) -> int:
        try:
            data = await self._reader.read(size_bytes)
        except TimeoutError:
            raise  # our own limit or that of the connection: too slow in both cases
        except OSError as error:
            raise SourceBroken(f"The connection to the copy source broke: {error}.") from None
        if not data:
            raise SourceBroken("The copy source ended early.")
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not self._is_complete:
                raise SourceBroken("The copy source's answer is not HTTP.") from None
        return len(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        # Later fields are trailers, or belong to another answer.
        if not self._has_head:
            self.fields.append((name.decode("latin-1"), value.decode("latin-1").strip()))

    def on_status(self, text: bytes) -> None:
        """Collect a part of the reason phrase, in which a storage service names its refusal."""
        if not self._has_head:
            self.reason += text.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._has_head:
            return
        self.status = self._parser.get_status_code()
        if self.status < 200:
            self.fields.clear()
            self.reason = ""
        else:
            self._has_head = True

    def on_body(self, data: bytes) -> None:
        if not self._is_complete:
            self._pieces.append(data)

    def on_message_complete(self) -> None:
        self._is_complete = self._has_head


def _condition_lines(conditions: Conditions) -> list[str]:
    lines = []
    if conditions.if_match is not None:
        lines.append(f"If-Match: {', '.join(conditions.if_match)}")
    if conditions.if_none_match is not None:
        lines.append(f"If-None-Match: {', '.join(conditions.if_none_match)}")
    if conditions.if_modified_since is not None:
        lines.append(f"If-Modified-Since: {rfc1123(conditions.if_modified_since)}")
    if conditions.if_unmodified_since is not None:
        lines.append(f"If-Unmodified-Since: {rfc1123(conditions.if_unmodified_since)}")
    return lines


def _range_lines(part: ByteRange | None) -> list[str]:
    if part is None:
        return []
    return [f"Range: bytes={part.first}-{'' if part.last is None else part.last}"]
