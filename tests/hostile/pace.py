"""How the work for a request grows with its size, whatever the pace of the machine.

Lives here: how it is measured, within one run and against itself. Must not live here: what the
work is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_TIMES: Final = 5
# For four times as much: 4 where the work is in proportion to the size, 16 where it is its square.
GROWTH_MAX: Final = 8.0


def growth(work: Callable[[bytes], object], made: Callable[[int], bytes], count: int) -> float:
    """How many times as long `work` takes with four times as much: the best of several runs each.

    Arguments:
        made: the request that is made of so many pieces.
        count: how many the smaller has; the square of it must still be bearable.
    """
    small, large = made(count), made(4 * count)
    spent_s = [(_spent_s(work, small), _spent_s(work, large)) for _ in range(_TIMES)]
    return min(one for _, one in spent_s) / min(one for one, _ in spent_s)


def _spent_s(work: Callable[[bytes], object], request: bytes) -> float:
    begun = time.thread_time()
    work(request)
    return time.thread_time() - begun
