"""How much work a request makes, whatever the pace of the machine: in units of a fixed loop.

Lives here: the unit. Must not live here: how much is too much.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
_ROUNDS: Final = 1_000_000


def _yardstick_s() -> float:
    begun = time.process_time()
    total = 0
    for number in range(_ROUNDS):
        total += number
    return time.process_time() - begun


def measured(work: Callable[[], T]) -> tuple[T, float]:
    """What `work` returns, and the processor time of this process meanwhile, in units of a loop of
    a million additions (some 50 ms)."""
    before_s = _yardstick_s()
    begun = time.process_time()
    result = work()
    spent_s = time.process_time() - begun
    return result, spent_s / max(before_s, _yardstick_s())
