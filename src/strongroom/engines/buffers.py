"""Buffers for writing past the page cache: aligned as the disk wants them, and used again.

Lives here: the pool, and how much of it each body in flight may fill. Must not live here: what is
written. Memory that is touched for the first time costs more than the copy into it, so buffers that
were given back are kept. Source: open(2), O_DIRECT: addresses, lengths and offsets are multiples of
the disk's block.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import Final

# Of a whole page of the cache as well: two bodies never have a part in one.
ALIGNMENT_BYTES: Final = max(4096, mmap.PAGESIZE)
BUFFER_BYTES: Final = 256 * 1024
# What all bodies in flight gather and write together, while each has what it needs to go on.
_POOL_BUFFERS: Final = 64
_SHARE_MAX: Final = 4


def aligned(size_bytes: int) -> int:
    """`size_bytes` rounded up to what can be written past the cache."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def new_buffer(size_bytes: int) -> mmap.mmap:
    """Aligned memory, empty until it is touched."""
    return mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


class Buffers:
    """The buffers of one store. On the event loop; their bytes belong to whoever took them."""

    def __init__(self) -> None:
        self._kept: list[mmap.mmap] = []
        self._users = 0

    def begin(self) -> None:
        """A body comes that will take buffers."""
        self._users += 1

    def end(self) -> None:
        """It is over, and has given back what it took."""
        self._users -= 1

    def share(self) -> int:
        """How many full buffers a body may have before it waits for those being written."""
        return max(1, min(_SHARE_MAX, _POOL_BUFFERS // max(1, 2 * self._users)))

    def take(self) -> mmap.mmap:
        """A buffer of BUFFER_BYTES, with whatever was in it."""
        if self._kept:
            return self._kept.pop()
        return new_buffer(BUFFER_BYTES)

    def give(self, buffers: Iterable[mmap.mmap]) -> None:
        """Give buffers back that nobody writes any more."""
        room = _POOL_BUFFERS - len(self._kept)
        self._kept.extend(list(buffers)[:room])
