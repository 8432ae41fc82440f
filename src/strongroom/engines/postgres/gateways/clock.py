"""A gateway's clock, which follows that of the database.

Lives here: `DatabaseClock`. Each heartbeat measures how far the database's clock is from this
machine's. `StoreTime` then slews towards the result, so time neither jumps nor falls. Must not live
here: when a gateway is late (membership.py).
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from strongroom.clock import Clock
from strongroom.values import TICKS_PER_S

DOUBT_MAX_S: Final = 0.1
_KEPT: Final = 60
_DRIFT_DIVISOR: Final = 2000
"""Two clocks part by 0.05 % at most, as long as nobody sets one."""


class _Measured(msgspec.Struct, frozen=True):
    """One measurement, in ticks.

    Attributes:
        at: when it was made, by the machine's boot clock.
        offset: the database's wall time less that clock.
        half: half the time of the round trip: the offset is wrong by no more.
    """

    at: int
    offset: int
    half: int

    def doubt(self, now: int) -> int:
        """How far the offset may be wrong now."""
        return self.half + (now - self.at) // _DRIFT_DIVISOR

    def may_be(self, other: _Measured) -> bool:
        """Whether one clock can have given both."""
        return abs(self.offset - other.offset) <= self.doubt(other.at) + other.half


class DatabaseClock:
    """Wall time is that of the database; everything else is the machine's.

    Arguments:
        clock: the machine's.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._measured: deque[_Measured] = deque(maxlen=_KEPT)
        self._best: _Measured | None = None

    @property
    def ahead_s(self) -> float:
        """How far this machine's wall time is ahead of the database's, in seconds."""
        ahead = self._clock.wall_ticks() - self.wall_ticks()
        return ahead / TICKS_PER_S

    @property
    def doubt_s(self) -> float:
        """By how many seconds its wall time may differ from the database's."""
        if self._best is None:
            return 0.0
        return self._best.doubt(self._clock.boot_ticks()) / TICKS_PER_S

    def learn(self, sent: int, received: int, database: int) -> None:
        """Take note of a measurement. If the database's clock was set, or another server was
        promoted, earlier ones are forgotten.

        Arguments:
            sent: `boot_ticks` before the database was asked.
            received: `boot_ticks` when its answer came.
            database: its wall time, in ticks, somewhere in between.
        """
        half = (received - sent) // 2
        later = _Measured(received, database - sent - half, half)
        if not all(one.may_be(later) for one in self._measured):
            self._measured.clear()
        self._measured.append(later)
        self._best = min(self._measured, key=lambda one: one.doubt(received))

    def wall_ticks(self) -> int:
        if self._best is None:
            return self._clock.wall_ticks()
        return self._clock.boot_ticks() + self._best.offset

    def boot_ticks(self) -> int:
        return self._clock.boot_ticks()

    def random_bytes(self, count: int) -> bytes:
        return self._clock.random_bytes(count)
