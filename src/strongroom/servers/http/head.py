"""Request heads: parses bytes, in any pieces, into one strictly checked `Head`.

Lives here: parsing and refusing. The grammar is llhttp's in its strict mode. The parser gets the
head only, so bytes after the head are not interpreted early. This module also refuses heads that
llhttp accepts, but that two recipients could read differently. Source: RFC 9112 sections 2 to 6 and
11.2 (request smuggling).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NoReturn

import httptools
import msgspec

from strongroom.errors.core import (
    INVALID_HTTP_VERB,
    INVALID_INPUT,
    NOT_IMPLEMENTED,
    REQUEST_HEADER_FIELDS_TOO_LARGE,
    REQUEST_URI_TOO_LONG,
    REQUEST_URL_FAILED_TO_PARSE,
    UNSUPPORTED_HTTP_VERB,
    StorageError,
)
from strongroom.servers.http.settings import HEAD_KEPT_BYTES, HttpSettings
from strongroom.wire.core.http import Headers, authority_of_absolute

_END: Final = b"\r\n\r\n"
_LINE_ENDS: Final = b"\r\n"
_KNOWN_FORM: Final = re.compile(rb"[A-Za-z]{1,32} [/*h]")
# The bytes that no target may contain: controls, the space, and the mark of a fragment.
_NEVER_IN_TARGET: Final = bytes((*range(0x21), 0x7F)) + b"#"
_LENGTH: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


class Head(msgspec.Struct):
    """A request head that is safe to act on.

    `size_bytes` is the body's length: 0 if none was announced, None if the body is chunked.
    `keep_alive` is the wish of the client's HTTP version and Connection field. `sent` is the head
    as it was sent, without the empty line at its end, cut at HEAD_KEPT_BYTES.
    """

    method: str
    target: str
    headers: Headers
    http_1_0: bool
    keep_alive: bool
    size_bytes: int | None
    expects_continue: bool
    sent: bytes = b""


class HeadParser:
    """Parses the heads of one connection, one after the other."""

    __slots__ = (
        "_fields",
        "_keep_alive",
        "_method",
        "_parser",
        "_refusal",
        "_sent",
        "_settings",
        "_size",
        "_tail",
        "_target",
        "_version",
        "head",
        "started",
    )

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._parser: httptools.HttpRequestParser | None = None
        self.head: Head | None = None
        self._restart()

    def _restart(self) -> None:
        self.started = False
        self._fields: list[bytes] = []  # names and values in turn
        self._target = b""
        self._sent = b""
        self._tail = b""
        self._size = 0
        self._method: bytes | None = None
        self._version = ""
        self._keep_alive = False
        self._refusal: StorageError | None = None

    @property
    def is_head(self) -> bool:
        """Whether the incomplete request is a HEAD request: its refusal then has no body either."""
        method = self._method
        if method is None and self.started and self._parser is not None:
            method = self._parser.get_method()
        return method == b"HEAD"

    def close(self) -> None:
        """Drop the parser, which refers back to this object."""
        self._parser = None

    def feed(self, data: bytes, start: int = 0) -> int:
        """Parse bytes of a head, from position `start` of `data`, which is below its length.

        Returns: the position in `data` after the head if it is complete (`head` is then set); -1 if
            more bytes are needed. `started` says whether a head has begun.
        Raises: StorageError: the head is malformed, ambiguous or above a limit.
        """
        if not self.started:
            # RFC 9112, 2.2: empty lines before a request line are ignored.
            while data[start] in _LINE_ENDS:
                start += 1
                if start == len(data):
                    return -1
            self.started = True
        end = self._find_end(data, start)
        stop = len(data) if end < 0 else end
        piece = data[start:stop]
        self._parse(piece)
        self._size += stop - start
        if self._size > self._settings.head_bytes_max:
            raise StorageError(REQUEST_HEADER_FIELDS_TOO_LARGE)
        if end < 0 or self._sent:
            # A bound on the sum also bounds the copies for a head that comes in many pieces.
            piece = self._sent = (self._sent + piece[:HEAD_KEPT_BYTES])[:HEAD_KEPT_BYTES]
        if end < 0:
            self._tail = (self._tail + data[max(start, len(data) - 3) :])[-3:]
            if self._method is not None:
                raise _malformed("The request head does not end with an empty line.")
            return -1
        # A copy: the piece may be the whole buffer of a read, which must be free for the next one.
        self.head = self._checked(piece[: min(self._size - len(_END), HEAD_KEPT_BYTES)])
        self._restart()
        return end

    def _find_end(self, data: bytes, start: int) -> int:
        tail = self._tail
        if tail:
            position = (tail + data[start : start + 3]).find(_END)
            if position >= 0:
                return start + position + 4 - len(tail)
        position = data.find(_END, start)
        return position + 4 if position >= 0 else -1

    def _parse(self, data: bytes) -> None:
        parser = self._parser
        if parser is None:
            parser = self._parser = httptools.HttpRequestParser(self)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # `Upgrade` may be ignored (RFC 9110, 7.8); this parser would now skip the body, so it
            # is dropped.
            self._parser = None
        except httptools.HttpParserInvalidMethodError:
            self._parser = None
            if _KNOWN_FORM.match(data):
                raise StorageError(INVALID_HTTP_VERB) from None
            raise _malformed("The request line is malformed.") from None
        except httptools.HttpParserInvalidURLError as error:
            raise StorageError(REQUEST_URL_FAILED_TO_PARSE, f"{error}.") from None
        except httptools.HttpParserError as error:
            raise self._refusal or _malformed(f"{error}.") from None

    # Called by llhttp.

    def on_url(self, url: bytes) -> None:
        """Collect a piece of the request target."""
        self._target = self._target + url if self._target else url
        if len(self._target) > self._settings.target_bytes_max:
            self._refuse(StorageError(REQUEST_URI_TOO_LONG))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += (name, value)

    def on_headers_complete(self) -> None:
        """Keep the facts of the head that llhttp forgets after the empty line."""
        if len(self._fields) > 2 * self._settings.headers_max:
            self._refuse(StorageError(REQUEST_HEADER_FIELDS_TOO_LARGE))
        parser = self._parser
        if parser is not None:
            self._method = parser.get_method()
            self._version = parser.get_http_version()
            self._keep_alive = parser.should_keep_alive()

    def _refuse(self, error: StorageError) -> NoReturn:
        # llhttp swallows what a callback raises, so the refusal is kept for `_parse`.
        self._refusal = error
        raise error

    def _checked(self, sent: bytes) -> Head:
        if self._method is None:
            raise _malformed("The request head is incomplete.")
        method = self._method.decode("latin-1")
        if method == "CONNECT":
            raise StorageError(UNSUPPORTED_HTTP_VERB)
        target = _target_text(self._target)
        headers = Headers(_with_authority(_field_texts(self._fields), target))
        http_1_0 = self._version == "1.0"
        if not http_1_0 and self._version != "1.1":
            raise _malformed("Only HTTP/1.0 and HTTP/1.1 are spoken here.")
        if "host" in headers.repeats or not (http_1_0 or "host" in headers):
            raise _malformed("A request needs exactly one Host header.")
        size_bytes = _body_size(headers, http_1_0)
        if size_bytes != 0 or method == "HEAD":
            # The parser would wait for a body, which it never gets. After HEAD it would keep that
            # method for the next request.
            self._parser = None
        expects = headers.get("expect")
        return Head(
            method,
            target,
            headers,
            http_1_0,
            self._keep_alive,
            size_bytes,
            expects is not None and not http_1_0 and expects.lower() == "100-continue",
            sent,
        )


def _with_authority(fields: list[tuple[str, str]], target: str) -> list[tuple[str, str]]:
    """Return the fields with the host of an absolute target in place of the Host header's.

    Source: RFC 9112, 3.2.2: a server ignores the Host header then.
    """
    authority = authority_of_absolute(target)
    if not authority:
        return fields
    return [(name, authority if name.lower() == "host" else value) for name, value in fields]


def _target_text(target: bytes) -> str:
    if len(target.translate(None, _NEVER_IN_TARGET)) < len(target):
        raise StorageError(REQUEST_URL_FAILED_TO_PARSE)
    return target.decode("latin-1")


def _field_texts(fields: Sequence[bytes]) -> list[tuple[str, str]]:
    """Return the (name, value) pairs of a head's fields, from their bytes in turn.

    They are decoded together, since each call costs more than its few bytes. None of them holds a
    line end: llhttp ends a field there.
    """
    if not fields:
        return []
    texts = b"\n".join(fields).decode("latin-1").split("\n")
    return [(name, value.strip(" \t")) for name, value in zip(texts[::2], texts[1::2], strict=True)]


def _body_size(headers: Headers, http_1_0: bool) -> int | None:
    """The announced length; None if the body is chunked. An ambiguous length is refused."""
    length = headers.get("content-length")
    coding = headers.get("transfer-encoding")
    if coding is not None:
        if length is not None or http_1_0 or "transfer-encoding" in headers.repeats:
            raise _malformed("Transfer-Encoding cannot be combined with another framing.")
        if coding.lower() != "chunked":
            raise StorageError(NOT_IMPLEMENTED, "The only Transfer-Encoding is chunked.")
        return None
    if length is None:
        return 0
    if "content-length" in headers.repeats or not _LENGTH.fullmatch(length):
        raise _malformed("Content-Length must be one decimal number.")
    return int(length)


def _malformed(message: str) -> StorageError:
    return StorageError(INVALID_INPUT, message)
