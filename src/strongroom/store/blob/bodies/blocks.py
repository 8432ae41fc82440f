"""Blocks of a committed list: their stored form, and where the bytes of a range lie.

Lives here: pure values. Must not live here: where the list itself lies (listed.py), which blocks a
client may name (semantics/blob/blocks.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from strongroom.store.core.records import Codec


class ListedBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One block of a committed list: raw id, length, and where it lies. A staged block has a
    content of its own; the blocks of a copy lie one after another in a few."""

    id: bytes
    size_bytes: int
    content: int
    offset_bytes: int = 0


BLOCK_LIST: Final[Codec[tuple[ListedBlock, ...]]] = Codec(tuple[ListedBlock, ...])


class Span(msgspec.Struct, frozen=True, gc=False):
    """Consecutive bytes of one content."""

    content: int
    offset: int
    length: int

    def is_followed_by(self, other: Span) -> bool:
        """Whether the other begins where this one ends."""
        return self.content == other.content and self.offset + self.length == other.offset


def spans(blocks: Sequence[ListedBlock], offset: int, length: int) -> Iterator[Span]:
    """Where the bytes [offset, offset + length) of a list of blocks lie, one by one. Blocks that
    lie one after another in a content are one span."""
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
