"""An HTTP response without an end, read line by line over one connection.

Lives here: the request, and splitting chunks into lines. A read that times out loses no data; the
next one continues. Source: RFC 9112, section 7.1 (chunked). Must not live here: what a line means
(etcd/watch.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from strongroom.coordination.stores.connections.http_connection import (
    BODY_BYTES_MAX,
    BadResponse,
    HttpConnection,
)

_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r]")
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked *(\r\n|$)", re.IGNORECASE)
_SIZE_DIGITS_MAX: Final = 16


class LineStream(HttpConnection):
    """A connection that streams lines; call `begin` first.

    It connects when it is created. One thread at a time may use it; any thread may call
    `interrupt`.
    """

    def begin(
        self, host_field: str, target: str, headers: Mapping[str, str], body: bytes, until_s: float
    ) -> None:
        """Send a POST request and read the response's headers.

        Raises:
            OSError, BadResponse: there was no response, or it is not chunked HTTP/1.x.
        """
        self._lines = bytearray()
        self._searched_bytes = 0
        fields = {"Host": host_field, **headers, "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._send(f"POST {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body, until_s)
        response = self._read_until(b"\r\n\r\n", until_s)
        status = _STATUS.match(response)
        if status is None:
            raise BadResponse(f"{response[:40]!r} is no HTTP")
        if not _CHUNKED.search(response):
            raise BadResponse(f"status {status[1].decode()}, and nothing that goes on")

    def line(self, until_s: float) -> bytes | None:
        """Return the next line without its newline; None after a timeout; empty at the end.

        Raises:
            OSError, BadResponse: the connection broke, or a line is too long.
        """
        while (at := self._lines.find(b"\n", self._searched_bytes)) < 0:
            self._searched_bytes = len(self._lines)
            if self._searched_bytes > BODY_BYTES_MAX:
                raise BadResponse(f"a line of more than {BODY_BYTES_MAX} bytes")
            try:
                piece = self._chunk(until_s)
            except TimeoutError:
                return None
            if not piece:
                return b""
            self._lines += piece
        found = bytes(self._lines[:at])
        del self._lines[: at + 1]
        self._searched_bytes = 0
        return found

    def _chunk(self, until_s: float) -> bytes:
        """It stays in the buffer until it has arrived completely."""
        while True:
            at = self._buffer.find(b"\r\n")
            if at >= 0:
                size_bytes = _size(bytes(self._buffer[:at]))
                end = at + 2 + size_bytes
                if len(self._buffer) >= end + 2:
                    found = bytes(self._buffer[at + 2 : end])
                    del self._buffer[: end + 2]
                    return found
            elif len(self._buffer) > _SIZE_DIGITS_MAX:
                raise BadResponse("a chunk does not say its length")
            if not self._fill(until_s):
                raise BadResponse("the connection was closed")


def _size(text: bytes) -> int:
    try:
        size_bytes = int(text.partition(b";")[0], 16)
    except ValueError:
        size_bytes = -1
    if not 0 <= size_bytes <= BODY_BYTES_MAX:
        raise BadResponse(f"{text[:40]!r} is no length of a chunk")
    return size_bytes
