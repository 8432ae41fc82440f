"""Store time that survives a restart: stamps, and the durable ceiling that no answer passes.

Lives here: when the ceiling must rise, and by how much; ids that follow from time. Must not live
here: how the ceiling is stored (ceiling.py), or the clock itself (clock.py).
"""

from __future__ import annotations

from typing import Final

from strongroom.clock import Clock, StoreTime
from strongroom.values import TICKS_PER_S

CEILING_AHEAD: Final = TICKS_PER_S // 4
_RISE_BEFORE: Final = TICKS_PER_S // 10


class DurableTime:
    """Stamps and store time under a ceiling.

    Arguments:
        clock: where time comes from.
        ceiling: the durable ceiling that the last run left.
    """

    def __init__(self, clock: Clock, ceiling: int) -> None:
        self._time = StoreTime(clock, ceiling)
        self._last_stamp = ceiling
        self._moved_to = 0
        self.ceiling = ceiling
        # What the open transaction wrote; it becomes the ceiling when that is durable.
        self._written = ceiling

    def now(self) -> int:
        """Store time, never smaller than a stamp that was given. It may be above the ceiling: then
        it must not be answered yet."""
        return max(self._time.now(), self._last_stamp)

    def stamp(self, now: int) -> int:
        """A new stamp; answered only under a ceiling (see `rise`).

        Arguments:
            now: the last answer of `now`; nobody has been told a later time since.
        """
        self._last_stamp = max(now, self._last_stamp + 1)
        return self._last_stamp

    def check_past(self, stamp: int) -> None:
        """Raise ValueError unless every later stamp is at least `stamp`."""
        if stamp > max(self._last_stamp + 1, self._time.now()):
            raise ValueError(f"{stamp} lies in the future: the store has given no such stamp yet")

    def rise(self, needed: int) -> int | None:
        """The ceiling to write in this transaction so that `needed` may be answered, or None."""
        if needed <= self._written:
            return None
        self._written = needed + CEILING_AHEAD
        return self._written

    def is_stale_soon(self, now: int) -> bool:
        """Whether the ceiling should rise before the next answer has to wait for it."""
        return now > self.ceiling - _RISE_BEFORE

    def rise_soon(self, now: int) -> int | None:
        """The ceiling to write in a transaction that is synced anyway, or None."""
        return self.rise(now + _RISE_BEFORE)

    def settle(self, durable: bool) -> None:
        """The transaction ended: what it wrote is the ceiling, or is forgotten."""
        if durable:
            self.ceiling = self._written
        self._written = self.ceiling

    def last_used(self) -> int:
        """The lowest ceiling that a clean end may leave: nothing above it was ever answered, and
        time was not moved beyond it."""
        return max(self._last_stamp, self._moved_to, min(self._time.now(), self.ceiling))

    def advance(self, seconds: float) -> None:
        """Move store time forward."""
        self._time.advance(seconds)
        self._moved_to = self._time.now()


class ContentIds:
    """The ids of contents: each is new, and about the time when it was given.

    Arguments:
        last: no id up to this one is given again.
    """

    def __init__(self, time: DurableTime, last: int) -> None:
        self._time = time
        self._last = last

    def new(self) -> int:
        """An id that was never given before, above all others."""
        self._last = max(self._time.now(), self._last + 1)
        return self._last
