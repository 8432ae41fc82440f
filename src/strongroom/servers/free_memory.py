"""Returns free memory of this process to the system.

Lives here: when to do it, and the two calls of the C library. The C library keeps freed memory for
later use, even after a burst of uploads, and other programs cannot use it. If the library has no
such call (musl, macOS), nothing happens. Source: malloc_trim(3), mallopt(3), proc(5) on statm.
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
from collections.abc import Callable
from typing import Final

from strongroom.limits import MIB
from strongroom.platform.memory import c_library

_INTERVAL_S: Final = 10.0
# A smaller growth is not worth the call: returned memory costs time when it is used again.
_GROWTH_BYTES: Final = 8 * MIB
_RESIDENT_FIELD: Final = 1
_ARENA_MAX_OPTION: Final = -8  # M_ARENA_MAX of malloc.h
_ARENAS: Final = 2


def _trim_call() -> Callable[[int], object] | None:
    trim = getattr(c_library(), "malloc_trim", None)
    if trim is not None:
        trim.argtypes = [ctypes.c_size_t]
    return trim


_trim: Final = _trim_call()


def limit_arenas() -> None:
    """Have all threads share a few malloc arenas. Call it before any other thread starts.

    By default the C library gives each thread an arena of its own. An arena reserves 64 MiB of
    address space, and one thread cannot use memory that is free in another's arena.
    """
    set_option = getattr(c_library(), "mallopt", None)
    if set_option is not None:
        set_option(_ARENA_MAX_OPTION, _ARENAS)


def trim_heap() -> None:
    """Return all free memory to the system. Takes milliseconds if there is much of it."""
    if _trim is not None:
        _trim(0)


def resident_bytes() -> int:
    """The resident size of this process; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[_RESIDENT_FIELD]) * mmap.PAGESIZE
    except (OSError, ValueError):
        return 0


class MemoryReturn:
    """Every ten seconds, returns memory if the resident size is well above its minimum so far."""

    def __init__(
        self, resident: Callable[[], int] = resident_bytes, trim: Callable[[], None] = trim_heap
    ) -> None:
        self._resident = resident
        self._trim = trim
        self._least_bytes = resident()

    def check(self) -> None:
        """Compare the resident size with its minimum so far; from 8 MiB of growth on, return free
        memory."""
        now_bytes = self._resident()
        self._least_bytes = min(self._least_bytes, now_bytes)
        if now_bytes > self._least_bytes + _GROWTH_BYTES:
            self._trim()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL_S)
            self.check()
