"""SQLite's write-ahead log as bytes: its header, its frames, and their checksums.

Lives here: the layout of a log, and which changes explain a wrong checksum. Must not live here: the
checksum's arithmetic (wal_sums.py), and what damage means (log/check.py). Source: "WAL-mode File
Format" of SQLite's documentation, section "The WAL File Format".

    header   magic, version, page size, checkpoint number, salt-1, salt-2, checksum-1, checksum-2
    frame    page number, size after the commit, salt-1, salt-2, checksum-1, checksum-2; the page

All numbers have four bytes, big-endian. The last bit of the magic number gives the byte order in
which the checksum reads its words. A frame's checksum covers its first eight bytes and its page. It
starts from the checksum of the frame before, so the frames form a chain. Only the last frame of a
commit has a size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, Final, Literal, NamedTuple

import msgspec

from strongroom.engines.embedded.log.wal_sums import WORD_BYTES, WORD_MASK, Order, Sum, wal_checksum

HEADER_BYTES: Final = 32
FRAME_HEAD_BYTES: Final = 24
_HEADER: Final = struct.Struct(">8I")
_FRAME_HEAD: Final = struct.Struct(">II8sII")
_CHECKED_HEADER_BYTES: Final = 24
_CHECKED_HEAD_BYTES: Final = 8
_SIZE_WORD: Final = 1
_MAGIC: Final = 0x377F0682
_PAGE_BYTES_MIN, _PAGE_BYTES_MAX = 512, 65536
_READ_BYTES: Final = 1024 * 1024


class LogHeader(NamedTuple):
    """A header with a correct checksum."""

    order: Order
    page_bytes: int
    salts: bytes
    sum: Sum


class Frame(msgspec.Struct, frozen=True):
    """A frame as read from the file. `number` counts from 1; `commit_pages` is the size of the
    database after the commit that the frame ends, in pages, or 0."""

    number: int
    page_number: int
    commit_pages: int
    salts: bytes
    sum: Sum
    data: bytes

    @property
    def offset(self) -> int:
        return HEADER_BYTES + (self.number - 1) * len(self.data)


def parse_header(data: bytes) -> LogHeader | None:
    """Parse a log's first bytes. Return None where SQLite would take the log for empty."""
    if len(data) < HEADER_BYTES:
        return None
    magic, _, page_bytes, _, _, _, first, second = _HEADER.unpack_from(data)
    if magic & ~1 != _MAGIC or page_bytes & (page_bytes - 1):
        return None
    if not _PAGE_BYTES_MIN <= page_bytes <= _PAGE_BYTES_MAX:
        return None
    order: Order = ">" if magic & 1 else "<"
    if wal_checksum(order, (0, 0), data[:_CHECKED_HEADER_BYTES]) != (first, second):
        return None
    return LogHeader(order, page_bytes, data[16:24], (first, second))


def stored_sum(header: bytes) -> Sum:
    """Return the checksum stored in a header, whether it is correct or not."""
    *_, first, second = _HEADER.unpack_from(header)
    return first, second


def parse_frame(number: int, data: bytes) -> Frame:
    """Parse the bytes of the frame `number`."""
    page_number, commit_pages, salts, first, second = _FRAME_HEAD.unpack_from(data)
    return Frame(number, page_number, commit_pages, salts, (first, second), data)


def frames(file: BinaryIO, page_bytes: int) -> Iterator[Frame]:
    """Yield all complete frames of a log, in order. Reads about a MiB at a time."""
    size_bytes = FRAME_HEAD_BYTES + page_bytes
    file.seek(HEADER_BYTES)
    number = 0
    while block := file.read(max(1, _READ_BYTES // size_bytes) * size_bytes):
        for start in range(0, len(block) - size_bytes + 1, size_bytes):
            number += 1
            yield parse_frame(number, block[start : start + size_bytes])


def frame_sum(order: Order, seed: Sum, data: bytes) -> Sum:
    """Return the correct checksum of a frame with these bytes; `seed` is that of the frame
    before."""
    head = wal_checksum(order, seed, data[:_CHECKED_HEAD_BYTES])
    return wal_checksum(order, head, data[FRAME_HEAD_BYTES:])


class PriorFrames(NamedTuple):
    """The possible originals of a changed frame. `commit_pages`: the possible sizes in the original
    frame; `sums`: its possible checksums."""

    commit_pages: tuple[int, ...]
    sums: tuple[Sum, ...]


def original_frame(order: Order, seed: Sum, frame: Frame) -> PriorFrames | None:
    """Return the original frame, if at most its salts and one other bit have changed; else None.

    About one torn frame in 2^46 is mistaken for a changed one: the checksum has 64 bits, and some
    100,000 single-bit changes are possible. Which bit has changed is often ambiguous, since changes
    of the upper bits of many words have the same effect on the checksum.

    Arguments:
        seed: the checksum of the frame before, known to be right.
    """
    right = frame_sum(order, seed, frame.data)
    if right == frame.sum:
        return PriorFrames((frame.commit_pages,), (frame.sum,))
    words = dict(_changed_words(order, right, frame))
    is_sum = _is_one_bit(right, frame.sum)
    if not (words or is_sum):
        return None
    size_change = words.pop(_SIZE_WORD, None)
    pages: tuple[int, ...] = ()
    if size_change is not None:
        pages = (frame.commit_pages ^ size_change,)
    if words or is_sum:
        pages = (frame.commit_pages, *pages)
    sums = (right,) * is_sum
    if words or size_change is not None:
        sums = (frame.sum, *sums)
    return PriorFrames(pages, sums)


def _is_one_bit(one: Sum, other: Sum) -> bool:
    return sum((a ^ b).bit_count() for a, b in zip(one, other, strict=True)) == 1


def _changed_words(order: Order, right: Sum, frame: Frame) -> Iterator[tuple[int, int]]:
    """Yield the words in which one changed bit would explain the frame's checksum, each with the
    mask of that bit (big-endian). The frame's page number is word 0, its size is word 1.

    A word's weight in the checksum is a pair of neighbouring Fibonacci numbers (wal_sums.py). At
    least one of the two is odd, so it has an inverse modulo 2^32.
    """
    data = frame.data[:_CHECKED_HEAD_BYTES] + frame.data[FRAME_HEAD_BYTES:]
    in_order: Literal["little", "big"] = "little" if order == "<" else "big"
    lacks = [(theirs - ours) & WORD_MASK for ours, theirs in zip(right, frame.sum, strict=True)]
    first, second = 0, 1
    for at in range(len(data) - WORD_BYTES, -1, -WORD_BYTES):
        if second & 1:
            error = lacks[1] * pow(second, -1, 1 << 32) & WORD_MASK
            is_explained = error * first & WORD_MASK == lacks[0]
        else:
            error = lacks[0] * pow(first, -1, 1 << 32) & WORD_MASK
            is_explained = error * second & WORD_MASK == lacks[1]
        if is_explained:
            word = data[at : at + WORD_BYTES]
            value = int.from_bytes(word, in_order)
            written = ((value + error) & WORD_MASK).to_bytes(WORD_BYTES, in_order)
            change = int.from_bytes(word, "big") ^ int.from_bytes(written, "big")
            if change.bit_count() == 1:
                yield at // WORD_BYTES, change
        first, second = second, (first + second) & WORD_MASK
