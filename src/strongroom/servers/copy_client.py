"""Copy sources on other HTTP(S) servers: one GET, streamed, from an address that was checked.

Lives here: which addresses may be asked, the request, and the reading of the answer. Must not live
here: what is done with the bytes (services/copy_transfer.py). Source: "Copy Blob", sources outside
the storage account; RFC 9110, RFC 9112.

A name is resolved once and the connection goes to the address that was checked, so a name that
changes its address meanwhile leads nowhere else. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Final
from urllib.parse import SplitResult

import httptools

from strongroom import errors, limits
from strongroom.errors import StorageError
from strongroom.semantics import names
from strongroom.semantics.conditions import Conditions
from strongroom.servers.copy_addresses import may_ask
from strongroom.services.copy_sources import OpenSource, SourceBroken, cannot_read, check_url
from strongroom.values import ContentProperties, Metadata, rfc1123
from strongroom.wire import headers as wire

BYTES_MAX: Final = limits.BLOCK_SIZES_BY_VERSION[0][2]
_READ_BYTES: Final = 256 * 1024
_VALUE_CHARS_MAX: Final = 1024
_DEFAULT_TYPE: Final = "application/octet-stream"
_CODE: Final = re.compile(r"[A-Za-z0-9]{1,64}")


class CopyClient:
    """Opens copy sources on other servers.

    Arguments:
        hosts: HOST or HOST:PORT that may be asked though their address is private.
        connect_timeout_s: for the connection, TLS included.
        idle_timeout_s: for the head of the answer, and for each further piece of its body.
    """

    def __init__(
        self, hosts: Iterable[str] = (), connect_timeout_s: float = 10, idle_timeout_s: float = 30
    ) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._connect_timeout_s = connect_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._tls: ssl.SSLContext | None = None

    async def open(self, url: str, conditions: Conditions) -> OpenSource:
        """Ask for a source; returns when the head of the answer is there.

        Raises: StorageError CannotVerifyCopySource (403: an address that is not asked, a redirect,
            no permission; 404: anything else), SourceConditionNotMet, RequestBodyTooLarge.
        """
        parts = check_url(url)
        if conditions.if_tags is not None:
            # Only blobs of this server have tags that could be looked at.
            raise StorageError(errors.SOURCE_CONDITION_NOT_MET)
        exchange = await self._connect(parts)
        try:
            exchange.ask(parts, conditions)
            await exchange.read_head()
            return _source(exchange)
        except SourceBroken as broken:
            exchange.close()
            raise cannot_read(errors.CANNOT_VERIFY_COPY_SOURCE, str(broken)) from None
        except BaseException:
            exchange.close()
            raise

    async def _connect(self, parts: SplitResult) -> _Exchange:
        host, port = parts.hostname or "", parts.port
        if port is None:
            port = 443 if parts.scheme == "https" else 80
        tls = self._context() if parts.scheme == "https" else None
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                address = await self._address(host, port)
                reader, writer = await asyncio.open_connection(
                    address, port, ssl=tls, server_hostname=host if tls else None
                )
        except (OSError, UnicodeError) as error:
            # TimeoutError and ssl.SSLError are among them.
            text = f"The copy source cannot be reached: {str(error) or 'it takes too long'}."
            raise cannot_read(errors.CANNOT_VERIFY_COPY_SOURCE, text) from None
        return _Exchange(reader, writer, self._idle_timeout_s)

    async def _address(self, host: str, port: int) -> str:
        """An address of the host that may be asked. Raises: StorageError, OSError."""
        listed = host in self._hosts or f"{host}:{port}" in self._hosts
        loop = asyncio.get_running_loop()
        for *_, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            # An interface's number follows an IPv6 address of this network only: none is asked.
            if may_ask(str(address[0]), listed):
                return str(address[0])
        text = "This server does not copy from this address."
        raise cannot_read(errors.COPY_SOURCE_FORBIDDEN, text)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


class _Exchange:
    """One request and its answer; the parser calls the `on_` methods."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle_timeout_s: float
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._idle_timeout_s = idle_timeout_s
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._has_head = False
        self._is_complete = False
        self.status = 0
        self.fields: list[tuple[str, str]] = []

    def ask(self, parts: SplitResult, conditions: Conditions) -> None:
        """Send the request; the connection is for this one only."""
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [
            f"GET {target} HTTP/1.1",
            f"Host: {parts.netloc}",
            "User-Agent: strongroom",
            "Accept: */*",
            "Accept-Encoding: identity",
            "Connection: close",
            *_condition_lines(conditions),
        ]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))

    async def read_head(self) -> None:
        """Wait for the status and the header fields. Raises SourceBroken."""
        size_bytes = 0
        while not self._has_head:
            if size_bytes > limits.REQUEST_HEAD_BYTES_MAX:
                raise SourceBroken("The head of the copy source's answer is too long.")
            size_bytes += await self._read(16 * 1024)

    async def body(self) -> AsyncIterator[bytes]:
        """The body, once. Raises SourceBroken."""
        size_bytes = 0
        while True:
            pieces, self._pieces = self._pieces, []
            for piece in pieces:
                size_bytes += len(piece)
                if size_bytes > BYTES_MAX:
                    raise SourceBroken(f"The copy source is longer than {BYTES_MAX} bytes.")
                yield piece
            if self._is_complete:
                return
            await self._read(_READ_BYTES)

    def close(self) -> None:
        """Give the connection up. Idempotent."""
        self._writer.transport.abort()

    async def _read(self, size_bytes: int) -> int:
        try:
            async with asyncio.timeout(self._idle_timeout_s):
                data = await self._reader.read(size_bytes)
        except TimeoutError:
            raise SourceBroken("The copy source sends too slowly.") from None
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
        self.fields.append((name.decode("latin-1"), value.decode("latin-1").strip()))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status < 200:
            self.fields.clear()
        else:
            self._has_head = True

    def on_body(self, data: bytes) -> None:
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


def _source(exchange: _Exchange) -> OpenSource:
    """The source of an answer. Raises StorageError for one that is no source."""
    fields = {name.lower(): value for name, value in exchange.fields}
    _check_status(exchange.status, fields)
    length = fields.get("content-length")
    size_bytes = int(length) if length is not None and _is_length(length) else None
    if size_bytes is None and fields.get("transfer-encoding", "").lower() != "chunked":
        text = "The copy source does not say how long it is."
        raise cannot_read(errors.CANNOT_VERIFY_COPY_SOURCE, text, exchange.status)
    if size_bytes is not None and size_bytes > BYTES_MAX:
        limit = (("MaxLimit", str(BYTES_MAX)),)
        raise StorageError(errors.REQUEST_BODY_TOO_LARGE, None, limit)
    return OpenSource(
        size_bytes,
        exchange.body(),
        exchange.close,
        _properties(fields),
        _metadata(exchange.fields),
        fields.get("etag"),
    )


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _check_status(status: int, fields: dict[str, str]) -> None:
    if status == 200:
        return
    if status in (304, 412):
        raise StorageError(errors.SOURCE_CONDITION_NOT_MET)
    row = errors.CANNOT_VERIFY_COPY_SOURCE
    text = f"The copy source answered with status {status}."
    if status in (401, 403):
        row = errors.COPY_SOURCE_FORBIDDEN
    elif 300 <= status < 400:
        row, text = errors.COPY_SOURCE_FORBIDDEN, "Redirects of copy sources are not followed."
    code = fields.get("x-ms-error-code", "")
    raise cannot_read(row, text, status, code if _CODE.fullmatch(code) else "")


def _properties(fields: dict[str, str]) -> ContentProperties:
    """The standard headers as the blob's properties; what could not be sent again is left out."""

    def text(name: str) -> str | None:
        value = fields.get(name, "")
        usable = 0 < len(value) <= _VALUE_CHARS_MAX and all(" " <= char <= "~" for char in value)
        return value if usable else None

    return ContentProperties(
        text("content-type") or _DEFAULT_TYPE,
        text("content-encoding"),
        text("content-language"),
        _md5(text("content-md5")),
        text("cache-control"),
        text("content-disposition"),
    )


def _md5(value: str | None) -> bytes | None:
    try:
        return None if value is None else wire.md5(value)
    except StorageError:
        return None


def _metadata(fields: Iterable[tuple[str, str]]) -> Metadata:
    try:
        return names.check_metadata(wire.metadata(fields))
    except StorageError:
        # Of a server with other rules for names; the content is what was asked for.
        return ()
