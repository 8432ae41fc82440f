"""A gateway's clock, which follows that of the database.

Lives here: `DatabaseClock`. Each heartbeat measures how far the database's clock is from this
machine's. `StoreTime` then slews towards the result, so time neither jumps nor falls. Must not live
here: when a gateway is late (membership.py).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from strongroom.clock import Clock
from strongroom.values import TICKS_PER_S

_KEPT: Final = 8


class DatabaseClock:
    """Wall time is that of the database; everything else is the machine's.

    Arguments:
        clock: the machine's.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # The last measurements: half the time of the round trip, and the offset.
        self._measured: deque[tuple[int, int]] = deque(maxlen=_KEPT)

    @property
    def ahead_s(self) -> float:
        """How far this machine's wall time is ahead of the database's, in seconds."""
        ahead = self._clock.wall_ticks() - self.wall_ticks()
        return ahead / TICKS_PER_S

    def learn(self, sent: int, received: int, database: int) -> None:
        """Take note of a measurement.

        Arguments:
            sent: `boot_ticks` before the database was asked.
            received: `boot_ticks` when its answer came.
            database: its wall time, in ticks, somewhere in between.
        """
        half = (received - sent) // 2
        self._measured.append((half, database - sent - half))

    def wall_ticks(self) -> int:
        if not self._measured:
            return self._clock.wall_ticks()
        # The shortest round trip leaves the least doubt.
        return self._clock.boot_ticks() + min(self._measured)[1]

    def boot_ticks(self) -> int:
        return self._clock.boot_ticks()

    def random_bytes(self, count: int) -> bytes:
        return self._clock.random_bytes(count)
