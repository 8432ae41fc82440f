"""Structured messages: content in segments, each followed by its CRC64, and a CRC64 of all data.

    header   version u8 = 1, length of the message u64, flags u16 (1 = crc64), segments u16
    segment  number u16 (from 1), length of the data u64, data, crc64 of the data
    trailer  crc64 of all data

All integers are little-endian. Where the bytes come from and go to:
services/blob/bodies/structured.py; the checksum itself: engines/checksum.py. Source: "Structured
body format" of the Azure Storage REST reference; reference limits-and-errors.md, section 9.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.values import crc64_text

Crc64 = Callable[[bytes, int], int]
"""crc64(data, previous) -> the checksum, continued from `previous`."""

SEGMENT_BYTES: Final = 4 * 1024 * 1024
SEGMENTS_MAX: Final = 0xFFFF
_VERSION: Final = 1
_CRC64: Final = 1
_HEADER: Final = struct.Struct("<BQHH")
_SEGMENT: Final = struct.Struct("<HQ")
_CHECKSUM: Final = struct.Struct("<Q")


def segment_bytes(content_bytes: int) -> int:
    """The length of the segments in a message with this much content."""
    return max(SEGMENT_BYTES, -(-content_bytes // SEGMENTS_MAX))


def segment_count(content_bytes: int) -> int:
    """An empty content has one segment."""
    return max(1, -(-content_bytes // segment_bytes(content_bytes)))


def message_bytes(content_bytes: int) -> int:
    """The length of the message with this much content."""
    each = _SEGMENT.size + _CHECKSUM.size
    return _HEADER.size + segment_count(content_bytes) * each + content_bytes + _CHECKSUM.size


class Encoder:
    """Encodes a content of known length."""

    def __init__(self, content_bytes: int, crc64: Crc64) -> None:
        self._crc64 = crc64
        self._left = content_bytes
        self._size = segment_bytes(content_bytes)
        self._number = 0
        self._room = 0
        self._sum = self._total = 0
        count = segment_count(content_bytes)
        self._pending = _HEADER.pack(_VERSION, message_bytes(content_bytes), _CRC64, count)
        self._begin()

    def encode(self, data: bytes) -> Iterator[bytes]:
        if len(data) > self._left:
            raise ValueError("there is more content than was announced")
        offset = 0
        while offset < len(data):
            if not self._room:
                self._end()
                self._begin()
            piece = data[offset : offset + self._room]
            offset += len(piece)
            self._room -= len(piece)
            self._left -= len(piece)
            self._sum = self._crc64(piece, self._sum)
            self._total = self._crc64(piece, self._total)
            if self._pending:
                yield self._pending
                self._pending = b""
            yield piece

    def finish(self) -> bytes:
        """The bytes after the content."""
        if self._left:
            raise ValueError(f"{self._left} bytes of content are missing")
        self._end()
        return self._pending + _CHECKSUM.pack(self._total)

    def _begin(self) -> None:
        self._number += 1
        self._room = min(self._size, self._left)
        self._pending += _SEGMENT.pack(self._number, self._room)
        self._sum = 0

    def _end(self) -> None:
        self._pending += _CHECKSUM.pack(self._sum)


class Decoder:
    """Decodes a message, and verifies its checksums as they arrive.

    Arguments:
        content_bytes: the content's length as the request declares it.
        message_bytes: the message's length as the request declares it; None = not known.
        crc64: the checksum.
    """

    def __init__(self, content_bytes: int, message_bytes: int | None, crc64: Crc64) -> None:
        self._crc64 = crc64
        self._content_bytes = content_bytes
        self._message_bytes = message_bytes
        self._buffer = bytearray()
        self._wanted = _HEADER.size
        self._read: Callable[[bytes], None] = self._header
        self._segments = self._number = 0
        self._room = 0
        self._received = self._content = 0
        self._sum = self._total = 0
        self._is_whole = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """A segment's content is yielded before its checksum is verified: do not use it before
        `finish`."""
        self._received += len(data)
        view = memoryview(data)
        offset = 0
        while offset < len(view):
            if self._room:
                piece = bytes(view[offset : offset + self._room])
                offset += len(piece)
                self._take(piece)
                yield piece
                continue
            if self._is_whole:
                raise _malformed("bytes follow its trailer")
            part = view[offset : offset + self._wanted - len(self._buffer)]
            offset += len(part)
            self._buffer += part
            if len(self._buffer) == self._wanted:
                whole = bytes(self._buffer)
                self._buffer.clear()
                self._read(whole)

    def finish(self) -> None:
        """Check that the message is complete."""
        if not self._is_whole:
            raise _malformed("it ends early")
        if self._message_bytes is not None and self._received != self._message_bytes:
            raise _malformed("its header tells another length than it has")
        if self._content != self._content_bytes:
            raise _malformed(
                f"it carries {self._content} bytes, and x-ms-structured-content-length says "
                f"{self._content_bytes}"
            )

    def _take(self, piece: bytes) -> None:
        self._content += len(piece)
        self._sum = self._crc64(piece, self._sum)
        self._total = self._crc64(piece, self._total)
        self._room -= len(piece)

    def _header(self, text: bytes) -> None:
        version, length, flags, self._segments = _HEADER.unpack(text)
        if version != _VERSION:
            raise _malformed(f"its version is {version}, which must be {_VERSION}")
        if flags != _CRC64:
            raise _malformed(f"its flags are {flags}, which must be {_CRC64} (crc64)")
        if not self._segments:
            raise _malformed("it has no segment")
        if self._message_bytes is None:
            self._message_bytes = length
        if length != self._message_bytes:
            raise _malformed(
                f"its header tells a length of {length} bytes, and Content-Length "
                f"{self._message_bytes}"
            )
        each = _SEGMENT.size + _CHECKSUM.size
        overhead = _HEADER.size + self._segments * each + _CHECKSUM.size
        if length != overhead + self._content_bytes:
            raise _malformed(
                f"its length of {length} bytes does not follow from {self._segments} segments and "
                f"x-ms-structured-content-length {self._content_bytes}"
            )
        self._expect(_SEGMENT.size, self._segment)

    def _segment(self, text: bytes) -> None:
        number, length = _SEGMENT.unpack(text)
        self._number += 1
        if number != self._number:
            raise _malformed(f"segment {self._number} has the number {number}")
        if length > self._content_bytes - self._content:
            raise _malformed(f"segment {number} is longer than what is left of the content")
        self._sum, self._room = 0, length
        self._expect(_CHECKSUM.size, self._segment_sum)

    def _segment_sum(self, text: bytes) -> None:
        self._compare(text, self._sum)
        if self._number < self._segments:
            self._expect(_SEGMENT.size, self._segment)
        else:
            self._expect(_CHECKSUM.size, self._trailer)

    def _trailer(self, text: bytes) -> None:
        self._compare(text, self._total)
        self._is_whole = True

    def _compare(self, text: bytes, calculated: int) -> None:
        (sent,) = _CHECKSUM.unpack(text)
        if sent != calculated:
            extras = (
                ("UserSpecifiedCrc64", crc64_text(sent)),
                ("ServerCalculatedCrc64", crc64_text(calculated)),
            )
            raise StorageError(errors.CRC64_MISMATCH, None, extras)

    def _expect(self, size_bytes: int, read: Callable[[bytes], None]) -> None:
        self._wanted, self._read = size_bytes, read


def _malformed(reason: str) -> StorageError:
    return StorageError(errors.INVALID_INPUT, f"The structured message is malformed: {reason}.")
