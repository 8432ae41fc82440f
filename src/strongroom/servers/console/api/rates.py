"""How many requests a viewer may send to the read API: buckets of tokens (RFC 2697's idea).

The number of buckets is bounded: the one that was used longest ago makes room, and is full by then.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

RATE_PER_S: Final = 50.0
BURST: Final = 200.0
_BUCKETS_MAX: Final = 1000


class RateLimit:
    """One bucket for each name.

    Arguments:
        rate_per_s: how fast a bucket fills.
        burst: how many requests a full one permits.
    """

    def __init__(self, rate_per_s: float = RATE_PER_S, burst: float = BURST) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, as of

    def permits(self, name: str, now_s: float) -> bool:
        """Take one token of a bucket; return whether it had one."""
        tokens, as_of_s = self._buckets.pop(name, (self._burst, now_s))
        tokens = min(self._burst, tokens + (now_s - as_of_s) * self._rate_per_s)
        is_permitted = tokens >= 1.0
        self._buckets[name] = (tokens - 1.0 if is_permitted else tokens, now_s)
        if len(self._buckets) > _BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return is_permitted
