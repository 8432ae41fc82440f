"""Store time that survives a restart: stamps, and the durable ceiling that no answered time
exceeds.

Lives here: when the ceiling must rise, and by how much; ids derived from time. Must not live here:
how the ceiling is stored (ceiling.py), or the clock itself (clock.py).
"""

from __future__ import annotations

from typing import Final

from strongroom.clock import Clock, StoreTime
from strongroom.values import TICKS_PER_S

CEILING_LEAD_TICKS: Final = TICKS_PER_S // 4
_RISE_MARGIN_TICKS: Final = TICKS_PER_S // 10


class DurableTime:
    """Stamps and store time under a ceiling.

    Arguments:
        clock: the source of time.
        ceiling: the durable ceiling that the last run left.
    """

    def __init__(self, clock: Clock, ceiling: int) -> None:
        self._time = StoreTime(clock, ceiling)
        self._last_stamp = ceiling
        self._moved_to = 0
        self.ceiling = ceiling
        # The ceiling in the open transaction; it applies once that is durable.
        self._written = ceiling

    def now(self) -> int:
        """Never smaller than a stamp that was given. It may exceed the ceiling: then it must not be
        answered yet."""
        return max(self._time.now(), self._last_stamp)

    def stamp(self, now: int) -> int:
        """Return a new stamp. It may be answered only under a ceiling (see `rise`).

        Arguments:
            now: the last result of `now`; no later time has been answered since.
        """
        self._last_stamp = max(now, self._last_stamp + 1)
        return self._last_stamp

    def check_past(self, stamp: int) -> None:
        """Raise ValueError unless every later stamp is at least `stamp`."""
        if stamp > max(self._last_stamp + 1, self._time.now()):
            raise ValueError(f"{stamp} lies in the future: the store has given no such stamp yet")

    def rise(self, needed: int) -> int | None:
        """Return the ceiling to write in this transaction so that `needed` may be answered; None if
        it need not rise."""
        if needed <= self._written:
            return None
        self._written = needed + CEILING_LEAD_TICKS
        return self._written

    def is_stale_soon(self, now: int) -> bool:
        """Return whether the ceiling should rise now, so that no later answer has to wait for
        it."""
        return now > self.ceiling - _RISE_MARGIN_TICKS

    def rise_soon(self, now: int) -> int | None:
        """Return the ceiling to write in a transaction that is synced anyway; None if it need not
        rise."""
        return self.rise(now + _RISE_MARGIN_TICKS)

    def end_transaction(self, durable: bool) -> None:
        """End the transaction: adopt the ceiling that it wrote if it is durable, else discard
        that."""
        if durable:
            self.ceiling = self._written
        self._written = self.ceiling

    def last_used(self) -> int:
        """Return the lowest ceiling that a clean stop may leave. No time above it was ever
        answered, and time was not moved beyond it."""
        return max(self._last_stamp, self._moved_to, min(self._time.now(), self.ceiling))

    def advance(self, seconds: float) -> None:
        self._time.advance(seconds)
        self._moved_to = self._time.now()


class ContentIds:
    """The ids of contents. Each is new, and close to the time when it was given.

    Arguments:
        last: no id up to this one is given again.
    """

    def __init__(self, time: DurableTime, last: int) -> None:
        self._time = time
        self._last = last

    def new(self) -> int:
        """Greater than all others."""
        self._last = max(self._time.now(), self._last + 1)
        return self._last
