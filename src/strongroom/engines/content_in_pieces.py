"""A long content that is read piece by piece, as an opened content.

Lives here: `ContentInPieces`, for engines that keep bodies in chunks or in files that may block.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from strongroom.engines.base import CHUNK_BYTES_MAX, VERIFIED_BYTES_MAX, DataDamaged
from strongroom.engines.checksum import crc64

_PIECE_BYTES: Final = CHUNK_BYTES_MAX


class ContentInPieces:
    """A content. See Opened.

    Arguments:
        name: of the content, in errors.
        read_piece: returns the bytes of (offset, length); fewer if some are missing.
        closed: called once, when it is closed.
    """

    def __init__(
        self,
        name: str,
        size_bytes: int,
        checksum: int,
        read_piece: Callable[[int, int], Awaitable[bytes]],
        closed: Callable[[], None],
    ) -> None:
        self._name = name
        self.size_bytes = size_bytes
        self._crc = checksum
        self._read_piece = read_piece
        self._closed: Callable[[], None] | None = closed

    async def read(self, offset: int, length: int) -> bytes:
        self._check(offset, length)
        whole = b"".join([piece async for piece in self._pieces(0, self.size_bytes)])
        self._compare(crc64(whole))
        return whole if length == len(whole) else whole[offset : offset + length]

    async def slices(self, offset: int, length: int) -> AsyncIterator[bytes]:
        self._check(offset, length)
        if self.size_bytes <= VERIFIED_BYTES_MAX:
            yield await self.read(offset, length)
            return
        checksum, left = 0, self.size_bytes
        async for piece in self._pieces(offset, length):
            if length == self.size_bytes:
                # The last piece is held back until all of them are right.
                checksum, left = crc64(piece, checksum), left - len(piece)
                if not left:
                    self._compare(checksum)
            yield piece

    async def chunks(self, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        length_bytes = self.size_bytes - offset if length is None else length
        async for piece in self.slices(offset, length_bytes):
            yield piece

    async def _pieces(self, offset: int, length: int) -> AsyncIterator[bytes]:
        """The next piece is read while its reader has the last one."""
        starts = range(offset, offset + length, _PIECE_BYTES)
        coming: asyncio.Future[bytes] | None = None
        try:
            for at in starts:
                piece = await (coming or self._piece(at, offset + length))
                coming = None
                if at != starts[-1]:
                    coming = asyncio.ensure_future(self._piece(at + _PIECE_BYTES, offset + length))
                    coming.add_done_callback(_retrieved)
                yield piece
        finally:
            if coming is not None:
                coming.cancel()

    async def _piece(self, at: int, end: int) -> bytes:
        length = min(_PIECE_BYTES, end - at)
        piece = await self._read_piece(at, length)
        if len(piece) != length:
            raise DataDamaged(f"{self._name}: bytes of it are missing")
        return piece

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self.size_bytes:
            raise ValueError("the range lies outside the content")

    def _compare(self, checksum: int) -> None:
        if checksum != self._crc:
            raise DataDamaged(f"{self._name} of {self.size_bytes} bytes: its checksum differs")

    def close(self) -> None:
        closed, self._closed = self._closed, None
        if closed is not None:
            closed()


def _retrieved(piece: asyncio.Future[bytes]) -> None:
    """The reader may have gone."""
    if not piece.cancelled():
        piece.exception()
