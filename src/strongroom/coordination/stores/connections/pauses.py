"""Pauses between reads, for stores whose watch has to fall back to reading.

Lives here: decorrelated jitter, and the sleep itself. Must not live here: what is read.
"""

from __future__ import annotations

import time

from strongroom.coordination.clock import Clocks


class Pauses:
    """Sleeps between two bounds, never in step with others.

    Arguments:
        clock: gives chance.
        min_s, max_s: the bounds.
    """

    def __init__(self, clock: Clocks, min_s: float, max_s: float) -> None:
        self._clock, self._min_s, self._max_s = clock, min_s, max_s

    def next_s(self, before_s: float) -> float:
        """Return how long to sleep after a sleep of `before_s` (0: the first)."""
        spread = max(0.0, max(before_s, self._min_s) * 3 - self._min_s)
        return min(self._max_s, self._min_s + self._clock.random() * spread)

    def sleep(self, seconds: float) -> None:
        """Sleep on this thread."""
        time.sleep(seconds)
