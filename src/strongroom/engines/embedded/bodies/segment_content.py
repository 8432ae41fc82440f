"""A pinned content in a segment, and its bytes: verified, or as a slice of the file.

Lives here: reading a content and comparing its checksum. Must not live here: when a segment may be
deleted (unlinking.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import BinaryIO

from strongroom.engines.base import CHUNK_BYTES_MAX, VERIFIED_BYTES_MAX, DataDamaged
from strongroom.engines.checksum import crc64
from strongroom.engines.embedded.bodies.segment import Segment
from strongroom.engines.embedded.records.sqlite import Location
from strongroom.platform.files import pread
from strongroom.values import FileSlice


class SegmentContent:
    """A content that stays readable until it is closed.

    Arguments:
        unpin: releases the pin on the segment.
        reader: the segment's file.
    """

    def __init__(
        self,
        unpin: Callable[[Segment], None],
        segment: Segment,
        reader: BinaryIO,
        location: Location,
    ) -> None:
        self.size_bytes = location.length
        self._unpin = unpin
        self._segment: Segment | None = segment
        self._reader = reader
        self._location = location

    @property
    def location(self) -> Location:
        """Known as long as the content is open."""
        return self._location

    async def read(self, offset: int, length: int) -> bytes:
        self._check(offset, length)
        data = self._pread(0, self.size_bytes)
        self._compare(len(data), crc64(data))
        return data if length == len(data) else data[offset : offset + length]

    async def slices(self, offset: int, length: int) -> AsyncIterator[FileSlice | bytes]:
        self._check(offset, length)
        if not length:
            return
        if self.size_bytes <= VERIFIED_BYTES_MAX:
            yield await self.read(offset, length)
        else:
            yield FileSlice(self._reader, self._location.offset + offset, length)

    async def chunks(self, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        length_bytes = self.size_bytes - offset if length is None else length
        self._check(offset, length_bytes)
        is_whole = length_bytes == self.size_bytes
        if not is_whole and self.size_bytes <= VERIFIED_BYTES_MAX:
            yield await self.read(offset, length_bytes)
            return
        done_bytes = checksum = 0
        while done_bytes < length_bytes:
            data = self._pread(offset + done_bytes, min(CHUNK_BYTES_MAX, length_bytes - done_bytes))
            if not data:
                break
            if is_whole:
                checksum = crc64(data, checksum)
            done_bytes += len(data)
            yield data
        if is_whole:
            self._compare(done_bytes, checksum)
        elif done_bytes != length_bytes:
            raise DataDamaged(f"{self._name()}: the file ends before its bytes do")

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self.size_bytes:
            raise ValueError("the range lies outside the content")

    def _pread(self, offset: int, length: int) -> bytes:
        try:
            return pread(self._reader.fileno(), length, self._location.offset + offset)
        except OSError as error:
            raise DataDamaged(f"{self._name()} cannot be read: {error}") from error

    def _compare(self, read_bytes: int, checksum: int) -> None:
        if read_bytes != self.size_bytes:
            raise DataDamaged(f"{self._name()}: the file ends after {read_bytes} of its bytes")
        if checksum != self._location.crc64:
            raise DataDamaged(f"{self._name()}: its checksum differs")

    def _name(self) -> str:
        segment, offset, length, _ = self._location
        return f"the content of {length} bytes at {offset} of segment {segment:016x}"

    def close(self) -> None:
        if self._segment is not None:
            segment, self._segment = self._segment, None
            self._unpin(segment)
