"""How long the commits of an engine took, as a histogram.

Lives here: `CommitTimes`. Must not live here: its form as a metric (servers/telemetry.py).
"""

from __future__ import annotations

import bisect
import math
from itertools import accumulate
from typing import Final

_BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class CommitTimes:
    """How long commits took, with their syncs. One thread at a time notes; others may read.

    Attributes:
        decisions: how many decisions these commits made durable; counted on the event loop.
    """

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS_S) + 1)
        self.sum_s = 0.0
        self.decisions = 0

    def note(self, took_s: float) -> None:
        self._counts[bisect.bisect_left(_BOUNDS_S, took_s)] += 1
        self.sum_s += took_s

    def by_bound(self) -> tuple[tuple[float, int], ...]:
        return tuple(zip((*_BOUNDS_S, math.inf), accumulate(self._counts), strict=True))
