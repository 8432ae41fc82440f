"""Memory that is free inside this process goes back to the system.

Lives here: when, and the two calls. Must not live here: who uses memory. The C library keeps what
was freed for later, also what a crowd of uploads needed once; other programs on the machine lack
it then. Where the library has no such call (musl, macOS), nothing happens. Source: malloc_trim(3),
mallopt(3), proc(5) on statm.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from typing import Final

from strongroom.limits import MIB

_INTERVAL_S: Final = 10.0
# Less is not worth the call: what is given back costs time when it is used again.
_GROWTH_BYTES: Final = 8 * MIB
_RESIDENT_FIELD: Final = 1
_ARENA_MAX_OPTION: Final = -8  # M_ARENA_MAX of malloc.h
_ARENAS: Final = 2


def _trim_call() -> Callable[[int], object] | None:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    trim.argtypes = [ctypes.c_size_t]
    return trim


_trim: Final = _trim_call()


def limit_arenas() -> None:
    """Have all threads share few pools of free memory. Before any other thread begins.

    The C library gives each thread one of its own: 64 MiB of addresses, and what one thread has
    freed another does not use.
    """
    try:
        ctypes.CDLL(None).mallopt(_ARENA_MAX_OPTION, _ARENAS)
    except (OSError, AttributeError):
        return


def give_back() -> None:
    """Give back what is free now. Takes milliseconds where there is much."""
    if _trim is not None:
        _trim(0)


def resident_bytes() -> int:
    """How much memory this process has; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[_RESIDENT_FIELD]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


class MemoryReturn:
    """Gives memory back every few seconds while there is more than there was at the least.

    Arguments:
        resident: see `resident_bytes`.
        trim: see `give_back`.
    """

    def __init__(
        self, resident: Callable[[], int] = resident_bytes, trim: Callable[[], None] = give_back
    ) -> None:
        self._resident = resident
        self._trim = trim
        self._least_bytes = resident()

    def look(self) -> None:
        """Give back what is free, if there is more memory than there was at the least."""
        now_bytes = self._resident()
        self._least_bytes = min(self._least_bytes, now_bytes)
        if now_bytes > self._least_bytes + _GROWTH_BYTES:
            self._trim()

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL_S)
            self.look()
