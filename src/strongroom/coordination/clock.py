"""The only reader of clocks and chance in the coordination toolkit.

Lives here: the `Clocks` protocol, the machine's clock, a clock moved by hand. Must not live here:
any rule about who may believe what for how long (clock_rules.py), or sleeping (the drivers).
"""

from __future__ import annotations

import os
import random
import time
from typing import Final, Protocol

_SYSTEM: Final = random.SystemRandom()


class Clocks(Protocol):
    """Two clocks that nobody can set, a wall clock for people, and chance."""

    def boot_s(self) -> float:
        """Seconds since an arbitrary start, suspended time included: what a holder counts with."""
        ...

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start, maybe without suspended time: what observers use.

        An observer that counts too little waits too long, which is the safe side.
        """
        ...

    def wall_text(self) -> str:
        """Wall time in ISO 8601, for people to read; no rule may depend on it."""
        ...

    def random(self) -> float:
        """A number in [0, 1), for jitter."""
        ...

    def nonce(self) -> str:
        """16 hexadecimal digits that nobody has had before."""
        ...


_BOOTTIME: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClocks:
    """The machine's clocks and random source."""

    def __init__(self) -> None:
        self._second = (-1, "")  # one of wall time, and how it is written

    def boot_s(self) -> float:
        if _BOOTTIME is None:
            return time.monotonic()
        return time.clock_gettime(_BOOTTIME)

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
        # Not the module's own generator: processes that were forked would draw the same jitter.
        return _SYSTEM.random()

    def nonce(self) -> str:
        return os.urandom(8).hex()


Chance = random.Random
"""A repeatable source of chance, for simulations."""


class ManualClocks:
    """A clock that stands still until it is moved, and whose chance is a function of the seed.

    Arguments:
        start_s: where both clocks begin.
        seed: of the jitter and the nonces.
    """

    def __init__(self, start_s: float = 1000.0, seed: int = 0) -> None:
        self.now_s = start_s
        self._chance = random.Random(seed)  # noqa: S311 - repeatable by intention

    def boot_s(self) -> float:
        return self.now_s

    def monotonic_s(self) -> float:
        return self.now_s

    def wall_text(self) -> str:
        return f"T+{self.now_s:.3f}"

    def random(self) -> float:
        return self._chance.random()

    def nonce(self) -> str:
        return f"{self._chance.getrandbits(64):016x}"

    def advance(self, seconds: float) -> None:
        """Let both clocks pass `seconds`."""
        self.now_s += seconds
