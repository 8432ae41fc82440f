"""One caller's place in a line of its client, and the signal that wakes it.

Lives here: `LinePlace` and its parts. Must not live here: the order of places (lines.py), waiting.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from strongroom.coordination.effects import Entry


class LineCaller(NamedTuple):
    """Who asks for a hold.

    Attributes:
        owners: the Thread or Task object, held weakly; both if a task calls a function that blocks
            its thread; none in a simulation. An id would not do: it is given again once a thread or
            task has ended. A context variable would not do either: a new task inherits it.
        driver: what runs the caller's steps; None in a simulation.
    """

    owners: tuple[weakref.ref[object], ...] = ()
    driver: object = None

    def is_same(self, other: LineCaller) -> bool:
        """Return whether both are one Thread or Task object that still exists."""
        own = [owner() for owner in self.owners]
        others = [owner() for owner in other.owners]
        return any(one is not None and any(one is two for two in others) for one in own)


ANYBODY: Final = LineCaller()
"""A caller that is the same as no other."""


class HandedOver(NamedTuple):
    """What a hold that has ended hands over.

    Attributes:
        nonce: of that hold, which the store still shows.
        entry: the hold's record, as this client wrote or read it last.
    """

    nonce: str
    entry: Entry


class Signal:
    """Is set once, by any thread, and then calls back."""

    __slots__ = ("_callback", "_is_set", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._callback: Callable[[], None] | None = None

    def call_when_set(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the signal is set; at once if it is set already."""
        with self._lock:
            if not self._is_set:
                self._callback = callback
                return
        callback()

    def set(self) -> bool:
        """Set the signal; return False if whoever waits for it cannot be woken any more."""
        with self._lock:
            self._is_set = True
            callback, self._callback = self._callback, None
        try:
            if callback is not None:
                callback()
        except RuntimeError:  # the event loop of the waiting task is closed
            return False
        return True


class PlaceState(Enum):
    """Where a place stands."""

    QUEUED = "queued"
    TURN = "turn"
    BESIDE = "beside"  # asks the store although another place has the turn
    HOLDING = "holding"
    OVER = "over"


class LinePlace:
    """One caller's place in a line.

    Attributes:
        nonce: of the attempt, and of the hold that it becomes.
        handed: what the hold before handed over; None if the store must be asked.
        seen: the record as this client wrote it last, when the turn came; None if it is not known.
        streak_s: how long this client had handed the key on before it gave it back; 0 if this place
            need not let others go first.
        dropped: why the place was dropped, in words; empty if it was not.
        blocked: whether the caller has found that it must wait.
        has_asked: whether the caller, whose turn it is, has begun to look at the store.
        signal: set once the caller has the turn, or once the place was dropped; None while nobody
            need wait.
        state: `Lines` changes it.
    """

    __slots__ = (
        "blocked", "caller", "dropped", "handed", "has_asked", "key", "nonce", "seen", "signal",
        "state", "streak_s",
    )  # fmt: skip

    def __init__(self, key: str, nonce: str, caller: LineCaller) -> None:
        self.key, self.nonce, self.caller = key, nonce, caller
        self.handed: HandedOver | None = None
        self.streak_s = 0.0
        self.dropped = ""
        self.blocked = self.has_asked = False
        self.seen: Entry | None = None
        self.signal: Signal | None = None
        self.state = PlaceState.QUEUED

    def wake(self) -> bool:
        """Set the signal; return False if the caller cannot be woken any more."""
        return self.signal is None or self.signal.set()

    @property
    def may_ask(self) -> bool:
        """Whether the caller may ask the store now."""
        return self.state in (PlaceState.TURN, PlaceState.BESIDE)
