"""Request bodies: framing by length or by chunks, and the reader that a handler uses.

Lives here: which bytes belong to a body, buffering with back-pressure. Must not live here:
sockets (the connection hands bytes in and is asked to pause), checks of content. The chunk
grammar is strict: CRLF only, hexadecimal digits only. Source: RFC 9112 sections 6.3 and 7.1.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Collection
from typing import Final, Protocol

from strongroom.errors.core import INVALID_INPUT, StorageError, body_too_large
from strongroom.limits import KIB
from strongroom.servers.http.buffers import BodyBuffers, Share
from strongroom.servers.http.documents import DocumentBudget
from strongroom.slices import SliceTurns

_SIZE_LINE: Final = re.compile(
    rb"([0-9A-Fa-f]{1,15})((?:;[\t\x21-\x7e\x80-\xff][\t\x20-\x7e\x80-\xff]*)?)\r\n"
)
_TRAILER_LINE: Final = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*)?\r\n")
_LINE_BYTES_MAX: Final = 4096
_TRAILER_BYTES_MAX: Final = 16 * 1024
# How many lines one call decodes, in about a millisecond. Without this limit, one read full of tiny
# chunks would delay all other requests.
LINES_IN_A_ROW: Final = 1000
# The memory of a piece besides its bytes. Without it, a body sent byte by byte could fill the
# memory and stay below the limit.
_PIECE_OVERHEAD_BYTES: Final = 48
# Joining more takes some tenths of a millisecond; the longest document takes several milliseconds.
_JOINED_AT_ONCE_BYTES: Final = 256 * KIB


class ChunkDecoder:
    """Decodes a chunked body that arrives in any pieces. Extensions and trailers are dropped."""

    __slots__ = ("_held", "_left", "_trailer_bytes", "_trailers", "done")

    def __init__(self) -> None:
        self._held = b""  # an incomplete line, or the start of the CRLF after a chunk
        self._left = -1  # data bytes left of this chunk; 0: its CRLF is due; -1: a size line is due
        self._trailers = False
        self._trailer_bytes = 0
        self.done = False

    def feed(self, data: bytes, start: int = 0) -> tuple[list[bytes], int]:
        """Decode the next bytes of the body, from position `start` of `data`.

        Returns: the pieces of the body in `data`, and the position in `data` after the consumed
            bytes. Unless `done`, that is the end of `data`, or the limit of one call.
        Raises: StorageError INVALID_INPUT: the coding is broken.
        """
        shift = 0  # offset from positions in the decoded bytes to those in the caller's `data`
        if self._held:
            shift = start - len(self._held)
            data = self._held + data[start:]
            self._held = b""
            start = 0
        pieces: list[bytes] = []
        position = start
        lines = 0
        while position < len(data) and lines < LINES_IN_A_ROW and not self.done:
            if self._left > 0:
                piece = data[position : position + self._left]
                pieces.append(piece)
                self._left -= len(piece)
                position += len(piece)
                continue
            lines += 1
            advanced = self._line(data, position)
            if advanced == position:
                self._held = data[position:]
                return pieces, len(data) + shift
            position = advanced
        return pieces, position + shift

    def _line(self, data: bytes, position: int) -> int:
        """Process the line at `position`. Return its end, or `position` if the line is
        incomplete."""
        if self._left == 0:
            if data[position : position + 2] == b"\r\n":
                self._left = -1
                return position + 2
            if data[position:] == b"\r":
                return position
            raise _broken("a chunk is not followed by CRLF")
        end = data.find(b"\n", position, position + _LINE_BYTES_MAX)
        if end < 0:
            if len(data) - position >= _LINE_BYTES_MAX:
                raise _broken("a line is too long")
            return position
        if self._trailers:
            self._trailer(data, position, end + 1)
        else:
            self._size_line(data, position, end + 1)
        return end + 1

    def _size_line(self, data: bytes, start: int, end: int) -> None:
        match = _SIZE_LINE.fullmatch(data, start, end)
        if match is None:
            raise _broken("a chunk size is malformed")
        size = int(match[1], 16)
        if size:
            self._left = size
        else:
            self._trailers = True

    def _trailer(self, data: bytes, start: int, end: int) -> None:
        if not _TRAILER_LINE.fullmatch(data, start, end):
            raise _broken("a trailer is malformed")
        self._trailer_bytes += end - start
        if self._trailer_bytes > _TRAILER_BYTES_MAX:
            raise _broken("the trailers are too long")
        self.done = end - start == 2


def _broken(what: str) -> StorageError:
    return StorageError(INVALID_INPUT, f"The chunked request body cannot be read: {what}.")


class EmptyBody:
    __slots__ = ()

    size_bytes: int | None = 0
    received_bytes = 0
    is_held_back = False
    left_bytes: int | None = 0
    waiting = False

    def fail(self, error: StorageError) -> None:
        """Do nothing, since the body is complete."""

    def discard(self) -> None:
        """Do nothing, since no more bytes will come."""

    def release(self) -> None:
        """Do nothing, since nothing is buffered."""

    def __aiter__(self) -> EmptyBody:
        return self

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration

    async def read_all(self, max_bytes: int) -> bytes:
        return b""


class WholeBody(EmptyBody):
    """A body that arrived completely with its head (a `BodyReader`)."""

    __slots__ = ("_data", "received_bytes", "size_bytes")

    def __init__(self, data: bytes) -> None:
        self._data: bytes | None = data
        self.size_bytes = self.received_bytes = len(data)

    def release(self) -> None:
        """Drop the body, since no reader is left."""
        self._data = None

    async def __anext__(self) -> bytes:
        data, self._data = self._data, None
        if data is None:
            raise StopAsyncIteration
        return data

    async def read_all(self, max_bytes: int) -> bytes:
        if self.received_bytes > max_bytes:
            raise body_too_large(max_bytes)
        data, self._data = self._data, None
        return data or b""


class BodyFeed(Protocol):
    """What a body calls on the connection that it comes from."""

    @property
    def is_held_back(self) -> bool:
        """Whether the client holds the body back until the server asks for it."""
        ...

    def body_wanted(self) -> None:
        """Note that the handler waits for bytes."""
        ...

    def pause_body(self) -> None:
        """Stop reading, since too much is buffered."""
        ...

    def resume_body(self) -> None:
        """Continue reading, since there is room again."""
        ...


class IncomingBody:
    """A body that is still arriving: the connection fills it, the handler reads it once (a
    `BodyReader`).

    Arguments:
        size_bytes: Content-Length, or None if the body is chunked.
        source: the connection.
        share: how many bytes of the body may be buffered.
        documents: counts the bodies that are read whole; None = they are not limited.
        buffers: counts the bodies; `end` is called when the handler ends.
        slices: the slices in which large bodies are joined; None = they are joined at once.
    """

    __slots__ = (
        "_buffered",
        "_buffers",
        "_chunks",
        "_decoder",
        "_discarding",
        "_documents",
        "_error",
        "_left",
        "_share",
        "_slices",
        "_source",
        "_waiter",
        "ended",
        "is_paused",
        "received_bytes",
        "size_bytes",
    )

    def __init__(
        self,
        size_bytes: int | None,
        source: BodyFeed,
        share: Share,
        documents: DocumentBudget | None = None,
        buffers: BodyBuffers | None = None,
        *,
        slices: SliceTurns | None = None,
    ) -> None:
        self.size_bytes = size_bytes
        self._documents = documents
        self._buffers = buffers
        self._share = share
        self._slices = slices
        self.ended = False
        self.received_bytes = 0
        self._source = source
        self._decoder = ChunkDecoder() if size_bytes is None else None
        self._left = size_bytes or 0
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self.is_paused = False
        self._discarding = False
        self._error: StorageError | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_held_back(self) -> bool:
        return self._source.is_held_back

    # The connection's side.

    @property
    def waiting(self) -> bool:
        """Whether the handler waits for bytes now."""
        return self._waiter is not None

    @property
    def left_bytes(self) -> int | None:
        """Return how many bytes are still to arrive; None if that is unknown.

        It is unknown for a chunked or broken body. The bytes that follow a broken body have no
        meaning.
        """
        if self._error is not None:
            return None
        return self._left if self._decoder is None or self.ended else None

    def receive(self, data: bytes, start: int = 0) -> int:
        """Consume bytes of the connection, from position `start` of `data`.

        Returns: the position after the consumed bytes. Unless `ended`, that is the end of `data`,
            or the limit of one call.
        """
        if self._error is not None:
            return len(data)  # bytes after an error must not become a request
        if self._decoder is not None:
            return self._receive_chunked(self._decoder, data, start)
        size = min(len(data) - start, self._left)
        self._left -= size
        self.ended = self._left == 0
        self._add(data if size == len(data) else data[start : start + size])
        return start + size

    def _receive_chunked(self, decoder: ChunkDecoder, data: bytes, start: int) -> int:
        try:
            pieces, position = decoder.feed(data, start)
        except StorageError as error:
            self.fail(error)
            return len(data)
        self.ended = decoder.done
        if pieces:  # joined: many tiny chunks must not become many objects
            self._add(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if self.ended:
            self._wake()
        return position

    def _add(self, chunk: bytes) -> None:
        self.received_bytes += len(chunk)
        if self._discarding:
            return
        self._chunks.append(chunk)
        self._buffered += len(chunk)
        self._wake()
        held_bytes = self._buffered + _PIECE_OVERHEAD_BYTES * len(self._chunks)
        if held_bytes > self._share.high_bytes and not (self.is_paused or self.ended):
            self.is_paused = True
            self._source.pause_body()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: StorageError) -> None:
        """End the body with `error`, which the reader gets after the bytes that have arrived."""
        if not self.ended and self._error is None:
            self._error = error
            self._wake()

    def discard(self) -> None:
        """Drop the buffered bytes and all later ones, since the handler reads no more."""
        self._discarding = True
        self._chunks.clear()
        self._buffered = 0
        self._resume()

    def release(self) -> None:
        """Drop all buffered bytes, read or not, since the handler has ended."""
        self._chunks.clear()
        self._buffered = 0
        if self._documents is not None:
            self._documents.release(self)
        buffers, self._buffers = self._buffers, None
        if buffers is not None:
            buffers.end()
        if self._error is not None:
            # The traceback's frames refer to this body. That cycle would keep the whole request in
            # memory.
            self._error.with_traceback(None)

    def _resume(self) -> None:
        if self.is_paused:
            self.is_paused = False
            self._source.resume_body()

    # The handler's side.

    def __aiter__(self) -> IncomingBody:
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self.ended:
                raise StopAsyncIteration
            if self._error is not None:
                raise self._error
            await self._wait()
        chunk = self._chunks.popleft()
        self._buffered -= len(chunk)
        if self.is_paused and self._buffered < self._share.low_bytes:
            self._resume()
        return chunk

    async def _wait(self) -> None:
        self._source.body_wanted()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def read_all(self, max_bytes: int) -> bytes:
        if self.size_bytes is not None and self.size_bytes > max_bytes:
            raise body_too_large(max_bytes)
        if self.ended and self._buffered <= max_bytes:
            size_bytes, arrived = self._buffered, self._chunks.copy()
            self.discard()
            return await self._joined(arrived, size_bytes)
        parts = list[bytes]()
        total = 0
        async for chunk in self:
            total += len(chunk)
            if total > max_bytes:
                raise body_too_large(max_bytes)
            if self._documents is not None:
                self._documents.reserve(self, len(chunk))
            parts.append(chunk)
        return await self._joined(parts, total)

    async def _joined(self, parts: Collection[bytes], size_bytes: int) -> bytes:
        """Join the pieces of the body. Many bodies may end in the same turn of the loop, so each
        large one is joined in a slice of its own."""
        if len(parts) == 1:
            return next(iter(parts))
        if self._slices is not None and size_bytes > _JOINED_AT_ONCE_BYTES:
            await self._slices.pause()
        return b"".join(parts)
