"""The only reader of wall time and randomness, and store time: monotonic, slewed, never backwards.

Lives here: the `Clock` protocol, the system's clock, a manual clock, and `StoreTime`, which turns a
clock into store time. Must not live here: persistence of the ceiling (engines/), or any rule about
leases. Nothing else in the package calls `time.*`, `datetime.now`, `uuid4` or `os.urandom`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from strongroom.values import TICKS_PER_S, UNIX_EPOCH_TICKS

_LAST_GROUP_MASK: Final = (1 << 48) - 1  # of a GUID
_SLEW_DIVISOR: Final = 1000  # at most 0.1 % faster or slower than the boot clock


class Clock(Protocol):
    """Wall time, a monotonic clock, and randomness."""

    def wall_ticks(self) -> int:
        """Return wall time, in ticks (see values.py). It may step in either direction."""
        ...

    def boot_ticks(self) -> int:
        """Return ticks since an arbitrary start, including suspended time. They never step."""
        ...

    def random_bytes(self, count: int) -> bytes:
        """Return `count` unpredictable bytes."""
        ...


class SystemClock:
    """The machine's clocks and random source."""

    def wall_ticks(self) -> int:
        return time.time_ns() // 100 + UNIX_EPOCH_TICKS

    def boot_ticks(self) -> int:
        return _boot_ns() // 100

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)


elapsed_s: Final[Callable[[], float]] = time.perf_counter
"""Seconds since an arbitrary start, to measure short work with. No rule depends on it."""


def _boot_clock() -> Callable[[], int]:
    """Return the clock that counts nanoseconds, also those while the machine sleeps.

    Linux calls it CLOCK_BOOTTIME, and macOS CLOCK_MONOTONIC. On Windows, the only monotonic clock
    of Python is one.
    """
    number = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
    read: Callable[[int], int] | None = getattr(time, "clock_gettime_ns", None)
    return time.monotonic_ns if number is None or read is None else partial(read, number)


_boot_ns: Final = _boot_clock()


class ManualClock:
    """A clock that stands still until it is advanced, for tests and simulation.

    Arguments:
        wall_ticks: the start of wall time.
        seed: determines the random bytes.
    """

    def __init__(self, wall_ticks: int = 638_000_000_000_000_000, seed: int = 0) -> None:
        self._wall = wall_ticks
        self._boot = 0
        self._random_state = seed

    def wall_ticks(self) -> int:
        return self._wall

    def boot_ticks(self) -> int:
        return self._boot

    def random_bytes(self, count: int) -> bytes:
        out = bytearray()
        while len(out) < count:
            # A 64-bit linear congruential generator: repeatable, and nothing here needs secrecy.
            self._random_state = (
                self._random_state * 6364136223846793005 + 1442695040888963407
            ) % (1 << 64)
            out += (self._random_state >> 32).to_bytes(4, "big")
        return bytes(out[:count])

    def advance(self, seconds: float) -> None:
        """Advance both clocks by `seconds`."""
        ticks = round(seconds * TICKS_PER_S)
        self._wall += ticks
        self._boot += ticks

    def step_wall(self, seconds: float) -> None:
        """Step wall time by `seconds` (either way), as an administrator or NTP would."""
        self._wall += round(seconds * TICKS_PER_S)


class SkewedClock:
    """A clock whose wall time is off by a constant, like another machine's; for tests and
    simulation.

    Arguments:
        clock: the clock to follow.
        ahead_s: how many seconds wall time is ahead of that clock.
    """

    def __init__(self, clock: Clock, ahead_s: float) -> None:
        self._clock = clock
        self._ahead = round(ahead_s * TICKS_PER_S)

    def wall_ticks(self) -> int:
        return self._clock.wall_ticks() + self._ahead

    def boot_ticks(self) -> int:
        return self._clock.boot_ticks()

    def random_bytes(self, count: int) -> bytes:
        return self._clock.random_bytes(count)


def guid(clock: Clock) -> str:
    """Return a random version 4 GUID as lower-case text with hyphens."""
    text = clock.random_bytes(16).hex()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


class RequestIds:
    """Unique GUIDs for requests. The first one is random and the others count up, which is cheap.

    Arguments:
        clock: the source of randomness.
    """

    def __init__(self, clock: Clock) -> None:
        self._prefix, _, last = guid(clock).rpartition("-")
        self._next = int(last, 16)

    def __call__(self) -> str:
        """Return the next GUID."""
        self._next = (self._next + 1) & _LAST_GROUP_MASK
        return f"{self._prefix}-{self._next:012x}"


class StoreTime:
    """Store time: starts at max(wall, floor), runs with the boot clock, slews towards wall time.

    A step of the wall clock therefore neither expires a lease nor prolongs it. `advance` moves
    store time forward (test clock); nothing moves it back.

    Arguments:
        clock: the source of time.
        floor_ticks: the lowest time that is ever returned (the persisted ceiling of the last run).
        behind_ticks: how far behind wall time it starts.
    """

    def __init__(self, clock: Clock, floor_ticks: int = 0, behind_ticks: int = 0) -> None:
        self._clock = clock
        self._boot = clock.boot_ticks()
        self._now = max(clock.wall_ticks() - behind_ticks, floor_ticks)
        self._shift = 0

    def now(self) -> int:
        """Return store time in ticks; never less than an earlier result."""
        boot = self._clock.boot_ticks()
        elapsed = max(0, boot - self._boot)
        if elapsed:
            self._boot = boot
            limit = elapsed // _SLEW_DIVISOR
            behind = self._clock.wall_ticks() - (self._now + elapsed)
            self._now += elapsed + max(-limit, min(limit, behind))
        return self._now + self._shift

    def advance(self, seconds: float) -> None:
        """Move store time forward by `seconds` (>= 0).

        The wall time that signatures are checked with does not change.
        """
        if seconds < 0:
            raise ValueError("store time cannot be moved backwards")
        self._shift += round(seconds * TICKS_PER_S)
