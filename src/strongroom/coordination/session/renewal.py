"""A client's timetables of due holds, and the two background tasks that work through them.

Lives here: the heap, and the renewal and deadline tasks as steps. A driver runs each task once per
client: on a thread, as an asyncio task, or in virtual time. The deadline task does no IO, so a hung
renewal cannot delay it.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from typing import Final

from strongroom.coordination.clock import Clocks
from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import SleepUntil, Steps
from strongroom.coordination.errors import CoordinationError
from strongroom.coordination.session.handles import Hold, log

_ENDED_MAX: Final = 64


class Timetable:
    """A heap of holds, ordered by the time at which each is due. Thread-safe.

    Arguments:
        clock: the boot clock decides which holds are due.
        wake: called after an addition that is due before all others.
    """

    def __init__(self, clock: Clocks, wake: Callable[[], None]) -> None:
        self._clock, self._wake = clock, wake
        self._heap: list[tuple[float, int, Hold]] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._ended_count = 0

    def add(self, when_s: float, hold: Hold) -> None:
        """Make `hold` due at `when_s` (boot clock)."""
        with self._lock:
            item = (when_s, next(self._numbers), hold)
            heapq.heappush(self._heap, item)
            first = self._heap[0] is item
        if first:
            self._wake()

    def note_ended(self) -> None:
        """Note that one hold has ended. Once half of all entries have ended, they are removed."""
        with self._lock:
            self._ended_count += 1
            if self._ended_count > _ENDED_MAX and self._ended_count * 2 > len(self._heap):
                self._heap = [item for item in self._heap if item[2].active]
                heapq.heapify(self._heap)
                self._ended_count = 0

    def pop_due(self) -> Hold | None:
        """One that is due and still active; None if there is none."""
        now_s = self._clock.boot_s()
        with self._lock:
            # An ended hold stays until it is due, or until it is swept. If it were removed at once,
            # the next hold would become the first. The task would then be woken for every single
            # hold.
            while self._heap and self._heap[0][0] <= now_s:
                hold = heapq.heappop(self._heap)[2]
                if hold.active:
                    return hold
            return None

    def next_s(self) -> float | None:
        """When the first hold is due (boot clock); None if the heap is empty."""
        with self._lock:
            return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._heap)

    def inherited(self) -> list[Hold]:
        """Return every hold of the parent, in a forked child.

        It takes no lock: a lock that another thread held at the fork is never released in the
        child.
        """
        return [item[2] for item in self._heap]

    def holds(self) -> list[Hold]:
        """Ended ones included."""
        with self._lock:
            return [item[2] for item in self._heap]


def renewals(table: Timetable, rules: ClockRules) -> Steps[None]:
    """Renew each hold when it is due, for ever.

    A failed renewal is retried soon, as long as the hold is active.
    """
    while True:
        hold = yield from _next(table)
        try:
            renewed = yield from hold.keeper.renew(hold)
        except CoordinationError as error:
            renewed, hold.last_error = False, str(error)
        except Exception as error:
            renewed, hold.last_error = False, repr(error)
            log.exception("renewing %r failed", hold.name)
        if hold.active:
            wait = rules.renew_after_s if renewed else rules.retry_after_s
            clock = hold.clock
            table.add(clock.boot_s() + wait(hold.ttl_s, clock.random()), hold)


def deadlines(table: Timetable) -> Steps[None]:
    """Declare each hold lost when its deadline has passed, for ever."""
    while True:
        hold = yield from _next(table)
        if hold.remaining_s() <= 0:
            hold.lose(hold.expiry_reason())
        else:
            table.add(hold.deadline_s - hold.margin_s, hold)


def _next(table: Timetable) -> Steps[Hold]:
    while True:
        hold = table.pop_due()
        if hold is not None:
            return hold
        yield SleepUntil(table.next_s())
