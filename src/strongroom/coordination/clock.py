"""The only module of the coordination toolkit that reads clocks and random numbers.

Lives here: the `Clocks` protocol, the machine's clocks, and a clock that tests move by hand. Must
not live here: rules about how long a hold may be relied on (clock_rules.py), or sleeping (drivers).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

_SYSTEM: Final = random.SystemRandom()


class Clocks(Protocol):
    """Two clocks that cannot be set, a wall clock for people, and random numbers."""

    def boot_s(self) -> float:
        """Return seconds since an arbitrary start, including suspended time; for holders."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds since an arbitrary start, maybe without suspended time; for observers.

        An observer whose clock counts too few seconds waits too long, which is the safe direction.
        """
        ...

    def wall_text(self) -> str:
        """Return the wall time in ISO 8601, for people to read; no rule may depend on it."""
        ...

    def random(self) -> float:
        """Return a random number in [0, 1), for jitter."""
        ...

    def nonce(self) -> str:
        """Return 16 random hexadecimal digits; in practice they never repeat."""
        ...


def _boot_clock() -> Callable[[], float]:
    """Return the clock that counts seconds, also those while the machine sleeps.

    Linux calls it CLOCK_BOOTTIME, and macOS CLOCK_MONOTONIC. On Windows, the only monotonic clock
    of Python is one.
    """
    number = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
    read: Callable[[int], float] | None = getattr(time, "clock_gettime", None)
    return time.monotonic if number is None or read is None else partial(read, number)


_boot_s: Final = _boot_clock()


class SystemClocks:
    """The machine's clocks and random source."""

    def __init__(self) -> None:
        self._second = (-1, "")  # the last whole second of wall time, and its text

    def boot_s(self) -> float:
        return _boot_s()

    def monotonic_s(self) -> float:
        return time.monotonic()

    def wall_text(self) -> str:
        second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        known, text = self._second
        if second != known:
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = second, text
        return f"{text}.{nanoseconds // 1_000_000:03}Z"

    def random(self) -> float:
        # Not the `random` module's generator: forked processes would draw the same jitter.
        return _SYSTEM.random()

    def nonce(self) -> str:
        return os.urandom(8).hex()


SeededRandom = random.Random
"""A random generator that a seed repeats, for simulations."""


class ManualClocks:
    """A clock that moves only by `advance`, with random numbers that follow from the seed.

    Arguments:
        start_s: the first reading of both clocks, in seconds.
        seed: the seed of the jitter and of the nonces.
    """

    def __init__(self, start_s: float = 1000.0, seed: int = 0) -> None:
        self.now_s = start_s
        self._rng = random.Random(seed)  # noqa: S311 - repeatable by intention

    def boot_s(self) -> float:
        return self.now_s

    def monotonic_s(self) -> float:
        return self.now_s

    def wall_text(self) -> str:
        return f"T+{self.now_s:.3f}"

    def random(self) -> float:
        return self._rng.random()

    def nonce(self) -> str:
        return f"{self._rng.getrandbits(64):016x}"

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
