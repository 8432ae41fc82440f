"""Responses that are sent in pieces, with back-pressure: long bodies, iterators, files.

Lives here: chunks, files sent by the kernel or read in a thread. Must not live here: heads and
small responses (http/send.py). Source: RFC 9112 section 7.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from typing import Final

from strongroom.limits import KIB, MIB
from strongroom.platform.files import pread
from strongroom.servers.http.send import BodyMismatch, Plan, Sender
from strongroom.slices import SliceTurns
from strongroom.values import FileSlice
from strongroom.wire.core.http import Response

_WRITE_BYTES: Final = 256 * KIB
_INLINE_FILE_BYTES_MAX: Final = 64 * KIB
# A slow reader is checked once per piece, so it must read a piece within a stall timeout.
_SENDFILE_BYTES: Final = MIB
_READ_BYTES: Final = MIB
# Tiny pieces in memory never wait for IO. Without a pause they would delay other requests.
_PIECES_IN_A_ROW: Final = 32


class BodySender:
    """Sends responses of one connection whose bodies are long, iterators or files.

    Arguments:
        slices: the slices in which the kernel copies files.
        tls: whether the transport encrypts (this process must then read the files itself).
    """

    __slots__ = ("_loop", "_sender", "_slices", "_tls", "_transport")

    def __init__(
        self,
        sender: Sender,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        slices: SliceTurns,
        *,
        tls: bool,
    ) -> None:
        self._sender = sender
        self._transport = transport
        self._loop = loop
        self._slices = slices
        self._tls = tls

    async def send(self, plan: Plan, response: Response) -> None:
        """Write a response of any kind.

        Raises: ConnectionError, OSError: the client is gone. BodyMismatch: the body does not have
        the announced length. Every exception of the body's iterator.
        """
        sender = self._sender
        sender.buffer(plan.head)
        if plan.with_body:
            if isinstance(response.body, bytes):
                await self._send_bytes(response.body)
            else:
                await self._send_pieces(response.body, response.size_bytes, plan.chunked)
        sender.flush()
        await sender.drain()

    async def _send_bytes(self, data: bytes) -> None:
        sender = self._sender
        if len(data) <= _WRITE_BYTES:
            sender.write(data)
            await sender.drain()
            return
        view = memoryview(data)
        for start in range(0, len(data), _WRITE_BYTES):
            sender.write(view[start : start + _WRITE_BYTES])
            await sender.drain()
            # Other connections need a turn even if the client reads as fast as the server writes.
            await asyncio.sleep(0)

    async def _send_pieces(
        self, pieces: AsyncIterable[bytes | FileSlice], size_bytes: int | None, chunked: bool
    ) -> None:
        try:
            await self._send_each(pieces, size_bytes, chunked)
        finally:
            # An abandoned generator must release its resources now, not when it is collected.
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()

    async def _send_each(
        self, pieces: AsyncIterable[bytes | FileSlice], size_bytes: int | None, chunked: bool
    ) -> None:
        sender = self._sender
        sent = count = 0
        async for piece in pieces:
            count += 1
            if count % _PIECES_IN_A_ROW == 0:
                await asyncio.sleep(0)
            length = piece.length if isinstance(piece, FileSlice) else len(piece)
            if length == 0:
                continue  # an empty chunk would end the body
            sent += length
            if size_bytes is not None and sent > size_bytes:
                raise BodyMismatch(f"the body has more than {size_bytes} bytes")
            if chunked:
                sender.buffer(b"%x\r\n" % length)
            if isinstance(piece, FileSlice):
                await self._send_file(piece)
            else:
                await self._send_bytes(piece)
            if chunked:
                sender.buffer(b"\r\n")
        if size_bytes is not None and sent != size_bytes:
            raise BodyMismatch(f"the body has {sent} of {size_bytes} bytes")
        if chunked:
            sender.buffer(b"0\r\n\r\n")

    async def _send_file(self, piece: FileSlice) -> None:
        sender = self._sender
        if piece.length <= _INLINE_FILE_BYTES_MAX:
            data = pread(piece.file.fileno(), piece.length, piece.offset)
            if len(data) != piece.length:
                raise BodyMismatch("the file is shorter than its slice")
            sender.write(data)
            await sender.drain()
        elif self._tls or not await self._sent_by_kernel(piece):
            await self._send_through_thread(piece)

    async def _sent_by_kernel(self, piece: FileSlice) -> bool:
        """Send a file by sendfile; return False if that is impossible for it (nothing is then
        sent)."""
        sender = self._sender
        sender.flush()
        offset, end = piece.offset, piece.offset + piece.length
        while offset < end:
            await sender.drain()
            # The kernel copies a piece at once, in a millisecond, if the socket has room for it.
            await self._slices.pause()
            count = min(_SENDFILE_BYTES, end - offset)
            sender.in_kernel = True
            try:
                sent = await self._loop.sendfile(
                    self._transport, piece.file, offset, count, fallback=False
                )
            except RuntimeError as error:
                if isinstance(error, asyncio.SendfileNotAvailableError) and offset == piece.offset:
                    return False
                # asyncio raises these errors if the client or the transport is gone.
                raise ConnectionResetError("the client is gone") from error
            finally:
                sender.in_kernel = False
            if sent != count:
                raise BodyMismatch("the file is shorter than its slice")
            sender.bytes_out += sent
            offset += sent
        return True

    async def _send_through_thread(self, piece: FileSlice) -> None:
        sender = self._sender
        offset, end = piece.offset, piece.offset + piece.length
        file_number = piece.file.fileno()
        while offset < end:
            count = min(_READ_BYTES, end - offset)
            data = await self._loop.run_in_executor(None, pread, file_number, count, offset)
            if not data:
                raise BodyMismatch("the file is shorter than its slice")
            sender.write(data)
            await sender.drain()
            offset += len(data)
