"""Buffers for writes that bypass the page cache: aligned as the disk requires, and reused.

Lives here: the pool, and how many buffers each body in flight may fill. The first access to new
memory costs more than the copy into it, so returned buffers are kept. All bodies in flight share a
fixed number of large buffers. A body that finds none gets a small one. So many slow clients neither
fill memory nor stop the others. Source: open(2), O_DIRECT: addresses, lengths and offsets are
multiples of the disk's block.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import Final

from strongroom.platform.memory import new_memory

# The alignment is a multiple of the cache's page too, so that two bodies never share one.
ALIGNMENT_BYTES: Final = max(4096, mmap.PAGESIZE)
BUFFER_BYTES: Final = 256 * 1024
SMALL_BUFFER_BYTES: Final = 4 * ALIGNMENT_BYTES
# The number of large buffers that all bodies in flight may use together.
LENT_MAX: Final = 64
# The number of spare large buffers that are kept: the maximum, while no body is in flight, and per
# body in flight.
_KEPT_MAX: Final = 64
_KEPT_IDLE: Final = 12
_KEPT_PER_USER: Final = 4
_SHARE_MAX: Final = 4


def aligned(size_bytes: int) -> int:
    """Return `size_bytes` rounded up to a multiple of the alignment."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def new_buffer(size_bytes: int) -> mmap.mmap:
    """Aligned; it takes no space until it is used."""
    return new_memory(size_bytes)


class Buffers:
    """The buffers of one store. Used on the event loop; the bytes of a lent buffer belong to its
    user.

    Attributes:
        lent: how many large buffers are taken and not given back.
    """

    def __init__(self) -> None:
        self.lent = 0
        self._kept: list[mmap.mmap] = []
        self._users = 0

    def begin(self) -> None:
        self._users += 1

    def end(self) -> None:
        self._users -= 1
        del self._kept[self._kept_max() :]

    def share(self) -> int:
        """How many full buffers a body may have before it waits for those being written."""
        return max(1, min(_SHARE_MAX, _KEPT_MAX // max(1, 2 * self._users)))

    def take(self) -> mmap.mmap:
        """Return a buffer, not cleared. It has BUFFER_BYTES, or SMALL_BUFFER_BYTES if LENT_MAX
        large ones are lent or memory is short.

        Raises: OSError: there is no memory.
        """
        if self.lent >= LENT_MAX:
            return new_buffer(SMALL_BUFFER_BYTES)
        try:
            buffer = self._kept.pop() if self._kept else new_buffer(BUFFER_BYTES)
        except OSError:
            return new_buffer(SMALL_BUFFER_BYTES)
        self.lent += 1
        return buffer

    def give(self, buffers: Iterable[mmap.mmap]) -> None:
        """Buffers that nobody writes any more."""
        for buffer in buffers:
            if len(buffer) == BUFFER_BYTES:
                self.lent -= 1
                if len(self._kept) < self._kept_max():
                    self._kept.append(buffer)

    def drop(self) -> None:
        """Free the spare ones, because memory is short."""
        self._kept.clear()

    def _kept_max(self) -> int:
        return min(_KEPT_MAX, _KEPT_IDLE + _KEPT_PER_USER * self._users)
