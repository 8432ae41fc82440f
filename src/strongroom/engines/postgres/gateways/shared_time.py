"""Store time of one gateway, with what tests have moved it by at any gateway.

Lives here: `SharedTime`. Must not live here: the clock behind it (clock.py).
"""

from __future__ import annotations

from strongroom.clock import Clock, StoreTime
from strongroom.engines.watchers import Watchers
from strongroom.values import TICKS_PER_S


class SharedTime:
    """Store time. When it is moved, all waiters are woken.

    Arguments:
        floor_ticks: the lowest time that is ever returned.
        shift: by how many ticks it was moved before.
        behind: by how many ticks it begins behind the clock.
    """

    def __init__(
        self, clock: Clock, floor_ticks: int, shift: int, watchers: Watchers, behind: int = 0
    ) -> None:
        self._time = StoreTime(clock, floor_ticks - shift, behind)
        self._time.advance(shift / TICKS_PER_S)
        self._shift = shift
        self._watchers = watchers

    def now(self) -> int:
        return self._time.now()

    def advance(self, seconds: float) -> int:
        """Move it forward; return by how many ticks. Raises ValueError for less than none."""
        ticks = round(seconds * TICKS_PER_S)
        self._time.advance(seconds)
        self._shift += ticks
        self._watchers.wake_all()
        return ticks

    def learn(self, shift: int) -> None:
        """Take note of how far it was moved in all, as the store has it."""
        if shift > self._shift:
            self.advance((shift - self._shift) / TICKS_PER_S)
