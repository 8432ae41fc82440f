"""A store that does not answer those who wait: told once, however long it lasts.

Lives here: `Outage`, one per client. Must not live here: where it is told (the client gives that),
what is done about an outage (recipes/waiting.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from strongroom.coordination.clock import Clock

_TOLD_AFTER_S: Final = (
    1.0  # a lost answer, or a connection that was idle for too long, is no outage
)


class Outage:
    """Whether the store is away, as far as the client's callers can tell. Safe for threads.

    Arguments:
        clock: for how long it has been away.
        store: its name, for people.
        tell: is given a sentence when the store has been away for a second or more, once until
            `answered` is called.
    """

    def __init__(self, clock: Clock, store: str, tell: Callable[[str], None]) -> None:
        self._clock, self._store, self._tell = clock, store, tell
        self._lock = threading.Lock()
        self._since_s: float | None = None
        self._told = False

    @property
    def lasts(self) -> bool:
        """Whether the last request that anybody waited for had no answer."""
        return self._since_s is not None

    def failed(self, error: Exception) -> None:
        """Note that a request of somebody who goes on waiting had no answer."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            if self._since_s is None:
                self._since_s = now_s
            if self._told or now_s - self._since_s < _TOLD_AFTER_S:
                return
            self._told = True
        self._tell(f"the store does not answer, and is waited for: {self._store}: {error}")

    def answered(self) -> None:
        """Note that the store answers; the next outage will be told again."""
        with self._lock:
            self._since_s, self._told = None, False
