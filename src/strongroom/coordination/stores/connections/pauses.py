"""Pauses between reads, for stores whose watch falls back to polling.

Lives here: decorrelated jitter, and the sleep itself.
"""

from __future__ import annotations

import time

from strongroom.coordination.clock import Clocks


class Pauses:
    """Random pauses between two bounds, so that many waiters do not poll in step.

    Arguments:
        clock: provides the random numbers.
        min_s, max_s: the bounds in seconds.
    """

    def __init__(self, clock: Clocks, min_s: float, max_s: float) -> None:
        self._clock, self._min_s, self._max_s = clock, min_s, max_s

    def next_s(self, before_s: float) -> float:
        """The length of the pause after one of `before_s` (0: the first pause)."""
        spread = max(0.0, max(before_s, self._min_s) * 3 - self._min_s)
        return min(self._max_s, self._min_s + self._clock.random() * spread)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
