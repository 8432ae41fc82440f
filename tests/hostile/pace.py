"""The growth of a request's work with its size, independent of the machine's speed.

Lives here: the measurement, relative to itself within one run. Must not live here: the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_TIMES: Final = 5
# For four times the size, linear work takes 4 times as long and quadratic work 16 times.
GROWTH_MAX: Final = 8.0


def growth(work: Callable[[bytes], object], made: Callable[[int], bytes], count: int) -> float:
    """Return how many times as long `work` takes with four times the size; the best of several
    runs.

    Arguments:
        made: returns a request of so many pieces.
        count: the pieces of the smaller request; quadratic work on it must still be possible.
    """
    small, large = made(count), made(4 * count)
    spent_s = [(_spent_s(work, small), _spent_s(work, large)) for _ in range(_TIMES)]
    return min(one for _, one in spent_s) / min(one for one, _ in spent_s)


def _spent_s(work: Callable[[bytes], object], request: bytes) -> float:
    begun = time.thread_time()
    work(request)
    return time.thread_time() - begun
