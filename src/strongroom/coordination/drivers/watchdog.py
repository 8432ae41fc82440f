"""A thread that declares expired holds lost, even while the event loop is blocked.

Lives here: the thread that an asyncio driver starts for holds with `on_lost="abort"`. Such a hold
must end in time even if the event loop hangs. Must not live here: rules about deadlines
(renewal.py), what happens at a loss (recipes/holding.py).
"""

from __future__ import annotations

import threading

from strongroom.coordination.clock import Clocks
from strongroom.coordination.drivers.threads import WakeableSleep
from strongroom.coordination.effects import SleepUntil
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.session.renewal import Timetable, deadlines


class Watchdog:
    """Watches deadlines on its own daemon thread, which starts with the first hold.

    Arguments:
        clock: the boot clock decides which deadlines have passed.
    """

    def __init__(self, clock: Clocks) -> None:
        self._clock, self._sleep = clock, WakeableSleep()
        self._table = Timetable(clock, self._sleep.wake)
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, hold: Hold) -> None:
        """Not thread-safe: always call it from the same thread."""
        self._table.add(hold.deadline_s - hold.margin_s, hold)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._serve, name="coordination-watchdog", daemon=True
            )
            self._thread.start()

    def note_ended(self) -> None:
        if self._thread is not None:
            self._table.note_ended()

    def close(self) -> None:
        """Does not wait for the thread."""
        self._closed = True
        self._sleep.wake()

    def _serve(self) -> None:
        steps = deadlines(self._table)
        while not self._closed:
            effect = steps.send(None)
            assert isinstance(effect, SleepUntil)
            self._sleep.wait(effect.until_s, self._clock.boot_s)
