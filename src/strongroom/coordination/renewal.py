"""One timetable per client: which hold is due when; and the two endless tasks that follow it.

Lives here: the heap, and the renewal and deadline tasks as steps. A driver runs each task once per
client: on a thread, as an asyncio task, or in virtual time. The deadline task does no IO, so that a
hung renewal delays no alarm. Must not live here: how anything is renewed (each `Keeper`).
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from typing import Final

from strongroom.coordination.clock import Clocks
from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Park, Steps
from strongroom.coordination.errors import CoordinationError
from strongroom.coordination.handles import Hold, log

_DEAD_MAX: Final = 64


class Timetable:
    """A heap of holds by the time at which they are due; safe for threads.

    Arguments:
        clock: says what is due (boot clock).
        wake: called after something earlier than everything else was added.
    """

    def __init__(self, clock: Clocks, wake: Callable[[], None]) -> None:
        self._clock, self._wake = clock, wake
        self._heap: list[tuple[float, int, Hold]] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._dead = 0

    def add(self, when_s: float, hold: Hold) -> None:
        """Make `hold` due at `when_s` (boot clock)."""
        with self._lock:
            item = (when_s, next(self._numbers), hold)
            heapq.heappush(self._heap, item)
            first = self._heap[0] is item
        if first:
            self._wake()

    def ended(self) -> None:
        """Note that one of the holds is over; once half of them are, they are swept out."""
        with self._lock:
            self._dead += 1
            if self._dead > _DEAD_MAX and self._dead * 2 > len(self._heap):
                self._heap = [item for item in self._heap if item[2].active]
                heapq.heapify(self._heap)
                self._dead = 0

    def take_due(self) -> Hold | None:
        """Return and remove one that is due and not over."""
        now_s = self._clock.boot_s()
        with self._lock:
            # What is over stays until it is due, or is swept: taken out at once, it would make the
            # next hold the first one, whose task would be woken for every hold that there is.
            while self._heap and self._heap[0][0] <= now_s:
                hold = heapq.heappop(self._heap)[2]
                if hold.active:
                    return hold
            return None

    def next_s(self) -> float | None:
        """Return when the next one is due; None if there is none."""
        with self._lock:
            return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._heap)

    def inherited(self) -> list[Hold]:
        """Return everything in it, in a forked child, where nobody would release the lock."""
        return [item[2] for item in self._heap]

    def holds(self) -> list[Hold]:
        """Return everything in it."""
        with self._lock:
            return [item[2] for item in self._heap]


def renewals(table: Timetable, rules: ClockRules) -> Steps[None]:
    """Renew for ever whatever is due. One that fails is tried again soon; its deadline decides."""
    while True:
        hold = yield from _next(table)
        try:
            renewed = yield from hold.keeper.keep(hold)
        except CoordinationError as error:
            renewed, hold.trouble = False, str(error)
        except Exception as error:
            renewed, hold.trouble = False, repr(error)
            log.exception("renewing %r failed", hold.name)
        if hold.active:
            wait = rules.renew_after_s if renewed else rules.retry_after_s
            clock = hold.clock
            table.add(clock.boot_s() + wait(hold.ttl_s, clock.random()), hold)


def deadlines(table: Timetable) -> Steps[None]:
    """Declare lost for ever whatever was not renewed in time."""
    while True:
        hold = yield from _next(table)
        if hold.remaining_s() <= 0:
            hold.lose(hold.expiry_reason())
        else:
            table.add(hold.deadline_s - hold.early_s, hold)


def _next(table: Timetable) -> Steps[Hold]:
    while True:
        hold = table.take_due()
        if hold is not None:
            return hold
        yield Park(table.next_s())
