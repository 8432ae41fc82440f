"""A body that lies in memory as a whole, as an opened content.

Lives here: `ContentInMemory`, for the memory engine, and for engines that read short bodies whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from strongroom.engines.base import VERIFIED_BYTES_MAX, DataDamaged
from strongroom.engines.checksum import crc64

_PIECE_BYTES: Final = 256 * 1024


class ContentInMemory:
    """A content. It needs no pin: its bytes stay in memory for its readers after it is dropped."""

    def __init__(self, data: bytes, checksum: int) -> None:
        self.data = data
        self.crc64 = checksum
        self.size_bytes = len(data)

    def damaged(self) -> ContentInMemory:
        """A copy with one bit flipped, as a faulty disk may do; the checksum stays the same."""
        data = bytearray(self.data)
        data[self.size_bytes // 2] ^= 1
        return ContentInMemory(bytes(data), self.crc64)

    async def read(self, offset: int, length: int) -> bytes:
        self._check(offset, length)
        self._compare()
        return self.data[offset : offset + length]

    async def slices(self, offset: int, length: int) -> AsyncIterator[bytes]:
        self._check(offset, length)
        if self.size_bytes <= VERIFIED_BYTES_MAX:
            self._compare()
        for start in range(offset, offset + length, _PIECE_BYTES):
            yield self.data[start : min(start + _PIECE_BYTES, offset + length)]

    async def chunks(self, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        length_bytes = self.size_bytes - offset if length is None else length
        async for piece in self.slices(offset, length_bytes):
            yield piece
        if length_bytes == self.size_bytes:
            self._compare()

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self.size_bytes:
            raise ValueError("the range lies outside the content")

    def _compare(self) -> None:
        if crc64(self.data) != self.crc64:
            raise DataDamaged(f"a content of {self.size_bytes} bytes: its checksum differs")

    def close(self) -> None: ...
