"""Detects that the store does not answer while callers wait, and warns once per outage.

Lives here: `Outage`, one per client. Must not live here: where the warning goes (the client passes
a function), or how callers wait during an outage (recipes/waiting.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from strongroom.coordination.clock import Clocks

_WARN_AFTER_S: Final = (
    1.0  # one lost answer, or a connection closed while it was idle, is no outage
)


class Outage:
    """The state of the current outage, as observed by waiting callers. Thread-safe.

    Arguments:
        clock: measures how long the outage has lasted.
        store: the store's name, for people.
        warn: called with a warning once the outage has lasted a second. It is called again only in
            a later outage, after `note_answer`.
    """

    def __init__(self, clock: Clocks, store: str, warn: Callable[[str], None]) -> None:
        self._clock, self._store, self._warn = clock, store, warn
        self._lock = threading.Lock()
        self._since_s: float | None = None
        self._warned = False

    @property
    def is_ongoing(self) -> bool:
        """Whether the last request of a waiting caller got no response."""
        return self._since_s is not None

    def note_failure(self, error: Exception) -> None:
        """Note that a request got no response, and that its caller retries."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            if self._since_s is None:
                self._since_s = now_s
            if self._warned or now_s - self._since_s < _WARN_AFTER_S:
                return
            self._warned = True
        self._warn(f"the store does not answer; retrying: {self._store}: {error}")

    def note_answer(self) -> None:
        """Note that the store responded: the outage is over, and the next one is reported again."""
        with self._lock:
            self._since_s, self._warned = None, False
