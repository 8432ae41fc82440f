"""The blocks of a committed list: their stored form, and where the bytes of a range are stored.

Lives here: pure values.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from strongroom.slices import Steps
from strongroom.store.core.records import Codec


class ListedBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One block of a committed list: raw id, length, and location. A staged block has a content of
    its own; the blocks of a copy follow one another in a few contents."""

    id: bytes
    size_bytes: int
    content: int
    offset_bytes: int = 0


_BLOCKS: Final[Codec[tuple[ListedBlock, ...]]] = Codec(tuple[ListedBlock, ...])
# To decode, to locate or to encode this many blocks takes some tenths of a millisecond.
_SEGMENT_BLOCKS: Final = 500


class BlockSegment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Consecutive blocks of a list, encoded; with their number and their total length."""

    count: int
    size_bytes: int
    encoded: bytes

    def blocks(self) -> tuple[ListedBlock, ...]:
        return _BLOCKS.decode(self.encoded)


_SEGMENTS: Final[Codec[tuple[BlockSegment, ...]]] = Codec(tuple[BlockSegment, ...], version=2)


class StoredBlockList(msgspec.Struct, frozen=True):
    """The stored form of a committed list, in segments. So a reader of a range decodes only the
    segments that it needs, and other work can run between the segments of a long list."""

    segments: tuple[BlockSegment, ...] = ()

    @property
    def count(self) -> int:
        return sum(segment.count for segment in self.segments)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @classmethod
    def decode(cls, data: bytes) -> StoredBlockList:
        if not _BLOCKS.wrote(data):
            return cls(_SEGMENTS.decode(data))
        # The form that earlier versions stored: one segment, without its numbers.
        blocks = _BLOCKS.decode(data)
        size_bytes = sum(block.size_bytes for block in blocks)
        return cls((BlockSegment(len(blocks), size_bytes, data),))

    def encode(self) -> bytes:
        return _SEGMENTS.encode(self.segments)

    def contents(self) -> Steps[frozenset[int]]:
        ids = set[int]()
        for segment in self.segments:
            ids.update(block.content for block in segment.blocks())
            yield
        return frozenset(ids)

    def locate(self, offset: int, length: int) -> Steps[deque[Span]]:
        """The spans of the bytes [offset, offset + length)."""
        located = deque[Span]()
        start, end = 0, offset + length
        for segment in self.segments:
            stop = start + segment.size_bytes
            if offset < stop and start < end:
                first = max(offset, start)
                for span in spans(segment.blocks(), first - start, min(stop, end) - first):
                    if located and located[-1].is_followed_by(span):
                        last = located.pop()
                        span = Span(last.content, last.offset, last.length + span.length)
                    located.append(span)
                yield
            start = stop
        return located


class ListWriter:
    """Builds a list. A segment is encoded as soon as it is full, so that the list is never in
    memory as a whole."""

    def __init__(self) -> None:
        self._segments: list[BlockSegment] = []
        self._blocks: list[ListedBlock] = []

    def add(self, blocks: Iterable[ListedBlock]) -> Steps[None]:
        """With a pause after each segment."""
        for block in blocks:
            self._blocks.append(block)
            if len(self._blocks) == _SEGMENT_BLOCKS:
                self._end_segment()
                yield

    def _end_segment(self) -> None:
        size_bytes = sum(block.size_bytes for block in self._blocks)
        encoded = _BLOCKS.encode(tuple(self._blocks))
        self._segments.append(BlockSegment(len(self._blocks), size_bytes, encoded))
        self._blocks.clear()

    def end(self) -> StoredBlockList:
        """No more blocks may be added after this call."""
        if self._blocks:
            self._end_segment()
        return StoredBlockList(tuple(self._segments))


NO_BLOCKS: Final = StoredBlockList()


class Span(msgspec.Struct, frozen=True, gc=False):
    """Consecutive bytes of one content."""

    content: int
    offset: int
    length: int

    def is_followed_by(self, other: Span) -> bool:
        return self.content == other.content and self.offset + self.length == other.offset


def spans(blocks: Sequence[ListedBlock], offset: int, length: int) -> Iterator[Span]:
    """Yield the spans of the bytes [offset, offset + length) of a list of blocks. Blocks that
    follow one another in a content are one span."""
    last: Span | None = None
    end = offset + length
    start = 0
    for block in blocks:
        stop = start + block.size_bytes
        if stop > offset and block.size_bytes:
            first = max(offset, start)
            span = Span(block.content, block.offset_bytes + first - start, min(stop, end) - first)
            if last is not None and last.is_followed_by(span):
                span = Span(last.content, last.offset, last.length + span.length)
            elif last is not None:
                yield last
            last = span
        start = stop
        if start >= end:
            break
    if last is not None:
        yield last
