"""Copy sources on other HTTP(S) servers: one GET, streamed, from an address that was checked.

Lives here: the connection, and the interpretation of an answer. Must not live here: which addresses
are allowed (copies/addresses.py), the reading of HTTP (copies/exchange.py), the use of the bytes
(services/blob/copies/transfer.py). Source: "Copy Blob", sources outside the storage account.

A name is resolved once, each of its addresses is checked, and the connection uses one of them. A
name whose address changes in the meantime is therefore harmless (DNS rebinding). Redirects are not
followed. Credentials in the URL are sent in the request only, and never appear in a log or a
message.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Final
from urllib.parse import SplitResult

from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import conditions as conditional
from strongroom.semantics.core import names
from strongroom.servers.copies.addresses import SourceHosts, normalized_host
from strongroom.servers.copies.exchange import BYTES_MAX, CopyExchange
from strongroom.services.core.copies.parts import cut_range, length_of_answer
from strongroom.services.core.copies.sources import (
    HEADER,
    OpenSource,
    SourceBroken,
    SourceRequest,
    cannot_read,
    check_url,
    not_allowed,
    range_beyond_end,
    url_without_credentials,
)
from strongroom.times import parse_rfc1123
from strongroom.values import ContentProperties, Metadata
from strongroom.wire.core import headers as wire

# How many addresses of a host are tried; each attempt gets an equal share of the time.
_ATTEMPTS_MAX: Final = 3
_VALUE_CHARS_MAX: Final = 1024
_DEFAULT_TYPE: Final = "application/octet-stream"
_CODE: Final = re.compile(r"[A-Za-z0-9]{1,64}")
_PARTIAL: Final = 206

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""resolve(host, port) -> its addresses, as text. Raises: OSError, UnicodeError."""


async def resolve_by_system(host: str, port: int) -> list[str]:
    """Return the addresses of a host, in the order that the system prefers. Raises as Resolve."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in addresses))


class CopyClient:
    """Opens copy sources on other servers: the RemoteReader of services/core/copies/sources.py.

    Arguments:
        hosts: the hosts that are allowed as sources.
        tls: the context of https sources; None = the system's authorities, names verified.
        resolve: returns the addresses of a name.
        connect_timeout_s: the limit for name resolution and connection, TLS included.
        head_timeout_s: the limit for the whole head of the answer.
        stall_timeout_s: the limit for each further piece of the body.
    """

    def __init__(
        self,
        hosts: SourceHosts,
        *,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = resolve_by_system,
        connect_timeout_s: float = 10,
        head_timeout_s: float = 30,
        stall_timeout_s: float = 60,
    ) -> None:
        self._hosts = hosts
        self._tls = tls
        self._resolve = resolve
        self._connect_timeout_s = connect_timeout_s
        self._head_timeout_s = head_timeout_s
        self._stall_timeout_s = stall_timeout_s

    async def open(self, url: str, wanted: SourceRequest) -> OpenSource:
        """Request a source, and return it when the head of the answer has arrived.

        Raises: StorageError CannotVerifyCopySource, InvalidRange, RequestBodyTooLarge, and the
            error of a condition of `wanted` that is not met. InvalidHeaderValue for a token that
            would be sent unencrypted. CannotVerifyCopySource is 403 for a host that is not allowed,
            a redirect or a lack of permission. Otherwise it is 404.
        """
        parts = check_url(url)
        if wanted.conditions.if_tags is not None:
            # Tags can be read of this server's blobs only.
            raise wanted.condition_error(is_unmodified=False)
        if wanted.authorization is not None and parts.scheme != "https":
            text = "The copy source gets a bearer token only if its URL begins with https."
            raise errors.invalid_header(HEADER, url_without_credentials(url), text)
        exchange = await self._connect(parts)
        try:
            exchange.send_request(parts, wanted)
            await exchange.read_head()
            return _source(exchange, wanted)
        except SourceBroken as broken:
            exchange.close()
            raise cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, str(broken)) from None
        except BaseException:
            exchange.close()
            raise

    async def _connect(self, parts: SplitResult) -> CopyExchange:
        host, port = parts.hostname or "", parts.port
        if port is None:
            port = 443 if parts.scheme == "https" else 80
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                addresses = await self._checked_addresses(host, port)
                tls = self._context() if parts.scheme == "https" else None
                reader, writer = await self._connect_any(addresses, host, port, tls)
        except (OSError, UnicodeError) as error:
            # TimeoutError and ssl.SSLError are among them.
            text = f"The copy source cannot be reached: {str(error) or 'it takes too long'}."
            raise cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, text) from None
        return CopyExchange(reader, writer, self._head_timeout_s, self._stall_timeout_s)

    async def _checked_addresses(self, host: str, port: int) -> list[str]:
        """The addresses of the host, all of which are allowed."""
        addresses: list[str] = []
        if self._hosts.may_resolve(host, port):
            addresses = await self._resolve(host, port)
        # One forbidden address is enough to refuse: such a name is a mistake or an attack.
        if addresses and all(self._hosts.allows_address(host, port, one) for one in addresses):
            return addresses
        text = "This server does not copy from this host."
        raise cannot_read(copy_errors.COPY_SOURCE_FORBIDDEN, text)

    async def _connect_any(
        self, addresses: list[str], host: str, port: int, tls: ssl.SSLContext | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To the first address that accepts one. Raises OSError, the last one's."""
        name = normalized_host(host) if tls else None
        tried = addresses[:_ATTEMPTS_MAX]
        refusal = OSError()
        for address in tried:
            try:
                async with asyncio.timeout(self._connect_timeout_s / len(tried)):
                    return await asyncio.open_connection(
                        address, port, ssl=tls, server_hostname=name
                    )
            except OSError as error:
                refusal = error
        raise refusal

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


def _source(exchange: CopyExchange, request: SourceRequest) -> OpenSource:
    fields = {name.lower(): value for name, value in exchange.fields}
    _check_status(exchange.status, exchange.reason, fields, request)
    _check_conditions(request, fields)
    length = fields.get("content-length")
    size_bytes = int(length) if length is not None and _is_length(length) else None
    if size_bytes is None and fields.get("transfer-encoding", "").lower() != "chunked":
        text = "The copy source does not say how long it is."
        raise cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, text, exchange.status)
    chunks = exchange.body()
    if request.range is not None and exchange.status == _PARTIAL:
        size_bytes = length_of_answer(request.range, fields.get("content-range", ""), size_bytes)
    elif request.range is not None:
        # A server without support for ranges answers with the whole content.
        size_bytes, chunks = cut_range(chunks, size_bytes, request.range)
    if size_bytes is not None and size_bytes > BYTES_MAX:
        raise errors.body_too_large(BYTES_MAX)
    return OpenSource(
        size_bytes,
        chunks,
        exchange.close,
        _properties(fields),
        # Only answers of a blob service carry metadata in such fields.
        _metadata(exchange.fields) if "x-ms-blob-type" in fields else (),
        _text(fields, "etag"),
    )


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _check_status(status: int, reason: str, fields: dict[str, str], request: SourceRequest) -> None:
    """Refuse an answer without content, with the source's message if it is a storage service."""
    if status == 200 or (status == _PARTIAL and request.range is not None):
        return
    if status in (304, 412):
        raise request.condition_error(is_unmodified=status == 304)
    if status == errors.INVALID_RANGE.status and request.range is not None:
        raise range_beyond_end()
    row = copy_errors.CANNOT_VERIFY_COPY_SOURCE
    text = f"The copy source answered with status {status}."
    if status in (401, 403):
        row = not_allowed(status)
    elif 300 <= status < 400:
        row, text = copy_errors.COPY_SOURCE_FORBIDDEN, "Redirects of copy sources are not followed."
    code = fields.get("x-ms-error-code", "")
    if _CODE.fullmatch(code) is None:
        raise cannot_read(row, text, status)
    raise cannot_read(row, _printable(reason) or text, status, code)


def _check_conditions(request: SourceRequest, fields: dict[str, str]) -> None:
    """Check the conditions of `request` again, since a simple server may ignore them."""
    conditions = request.conditions
    etag = fields.get("etag", "")
    modified = parse_rfc1123(fields.get("last-modified", ""))
    since, until = conditions.if_modified_since, conditions.if_unmodified_since
    met = True
    # A date beside an ETag is ignored (RFC 9110, 13.2.2).
    if conditions.if_match is not None:
        met = conditions.if_match == conditional.ANY or etag in conditions.if_match
    elif until is not None and modified is not None:
        met = modified <= until
    if not met:
        raise request.condition_error(is_unmodified=False)
    if conditions.if_none_match is not None:
        alike = (conditional.ANY[0], etag, etag.removeprefix("W/"))
        met = not any(one in alike for one in conditions.if_none_match)
    elif since is not None and modified is not None:
        met = modified > since
    if not met:
        raise request.condition_error(is_unmodified=True)


def _text(fields: dict[str, str], name: str) -> str | None:
    """Return a field's value if it can be sent again as a header; None otherwise."""
    return _printable(fields.get(name, ""))


def _printable(value: str) -> str | None:
    usable = 0 < len(value) <= _VALUE_CHARS_MAX and all(" " <= char <= "~" for char in value)
    return value if usable else None


def _properties(fields: dict[str, str]) -> ContentProperties:
    md5_text = _text(fields, "content-md5")
    md5, other_md5 = (None, None) if md5_text is None else wire.unchecked_md5(md5_text)
    return ContentProperties(
        _text(fields, "content-type") or _DEFAULT_TYPE,
        _text(fields, "content-encoding"),
        _text(fields, "content-language"),
        md5,
        _text(fields, "cache-control"),
        _text(fields, "content-disposition"),
        other_md5,
    )


def _metadata(fields: Iterable[tuple[str, str]]) -> Metadata:
    try:
        return names.check_metadata(wire.metadata(fields))
    except StorageError:
        # The source has other rules for names. Its metadata is dropped, and the content is copied.
        return ()
