"""The lines of one client: its threads and tasks that hold a key, or wait for it, in order.

    turn: may ask the store     queue: wait inside the client     holding: have it

Lives here: `Lines`, state in memory without IO. A caller that waits inside sends no request. It is
woken by a `Signal` when its turn has come, or when its place was dropped. When a hold ends, the
place behind it gets the entry that the hold wrote last (`HandedOver`). That is no hold: the caller
holds the key only once its own write over exactly that entry was applied. A hold that was lost
hands nothing over. Must not live here: effects, the write of a hand-over (recipes/).
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from strongroom.coordination.clock import Clocks
from strongroom.coordination.effects import Entry
from strongroom.coordination.errors import AlreadyHeld
from strongroom.coordination.schema.names import name_of
from strongroom.coordination.session.places import (
    HandedOver,
    LineCaller,
    LinePlace,
    PlaceState,
    Signal,
)

HAND_OVERS_MAX: Final = 8
"""So many hand-overs in a row, then other clients get a chance, where the store shows no waiter."""


class _Line:
    __slots__ = (
        "handed_count", "holding", "is_parked", "queue", "shared", "streak_began_s", "streak_s",
        "turn",
    )  # fmt: skip

    def __init__(self, shared: bool) -> None:
        self.shared = shared
        self.turn: LinePlace | None = None
        self.is_parked = False
        self.queue: deque[LinePlace] = deque()
        self.holding: dict[str, LinePlace] = {}
        self.handed_count = 0
        self.streak_began_s = 0.0
        self.streak_s = 0.0

    @property
    def is_empty(self) -> bool:
        return self.turn is None and not self.queue and not self.holding

    def pop_heir(self) -> LinePlace | None:
        """Remove and return the place to which a hold that ends is handed."""
        if self.shared:
            heir = self.turn
            if heir is None or (heir.has_asked and not self.is_parked):
                return None
            self.turn = None
            return heir
        return self.queue.popleft() if self.queue and self.turn is None else None

    def drop(self, place: LinePlace) -> None:
        with contextlib.suppress(ValueError):
            self.queue.remove(place)

    def places(self) -> list[LinePlace]:
        turn = [] if self.turn is None else [self.turn]
        return [*turn, *self.queue, *self.holding.values()]


class Lines:
    """The lines of one client, by key. Thread-safe.

    Arguments:
        clock: measures how long a client has handed a key on.
    """

    def __init__(self, clock: Clocks) -> None:
        self._clock = clock
        self._lines: dict[str, _Line] = {}
        # Reentrant: a collected generator of a waiting caller leaves its line at any moment.
        self._lock = threading.RLock()

    def join(self, place: LinePlace, *, shared: bool = False, beside: bool = False) -> None:
        """Put a place at the end of its line; it gets the turn at once if nobody is before it.

        Arguments:
            place: a new one.
            shared: whether several places may hold the key at once (slots).
            beside: let it ask the store although others wait; it must not wait there.

        Raises:
            AlreadyHeld: the key is not shared, and the same caller has a place already.
        """
        with self._lock:
            line = self._lines.get(place.key)
            if line is None:
                line = self._lines[place.key] = _Line(shared)
            elif not shared and any(place.caller.is_same(one.caller) for one in line.places()):
                raise AlreadyHeld(name_of(place.key))
            if beside:
                place.state = PlaceState.BESIDE
                return
            if line.is_empty:
                place.state, line.turn = PlaceState.TURN, place
                place.streak_s, line.streak_s = line.streak_s, 0.0
                return
            line.queue.append(place)
            self._advance(line)
            if not place.may_ask:
                place.signal = Signal()

    def __len__(self) -> int:
        return len(self._lines)

    def is_blocked(self, key: str) -> bool:
        """Return whether a caller of this client is known to wait for the key."""
        line = self._lines.get(key)
        turn = None if line is None else line.turn  # read once: another thread may change it
        return turn is not None and turn.blocked

    def has_hold_of(self, key: str, caller: LineCaller) -> bool:
        """Return whether the same caller holds the key."""
        with self._lock:
            line = self._lines.get(key)
            holding = [] if line is None else list(line.holding.values())
        return any(caller.is_same(place.caller) for place in holding)

    def is_current(self, key: str, nonce: str) -> bool:
        """Return whether this client's hold or attempt `nonce` is at the store, or holds the key.

        A hold of this client for which this is False has ended, whatever the store still shows.
        """
        line = self._lines.get(key)
        if line is None:
            return False
        turn = line.turn  # read once: another thread may change it
        return nonce in line.holding or (turn is not None and turn.nonce == nonce)

    def begin(self, place: LinePlace) -> None:
        """Note that the caller, whose turn it is, looks at the store from now on."""
        with self._lock:
            place.has_asked = True

    def note_hold(self, place: LinePlace, entry: Callable[[], Entry | None] = lambda: None) -> None:
        """Note that the caller holds the key now. A shared key's next place gets the turn.

        Arguments:
            place: of the caller.
            entry: returns the record as it was written, which saves the next place a read.
        """
        with self._lock:
            line = self._lines.get(place.key)
            if line is None:
                line = self._lines[place.key] = _Line(shared=True)
            if place.handed is None:
                line.handed_count, line.streak_began_s = 0, self._clock.monotonic_s()
            place.handed, place.blocked, place.state = None, False, PlaceState.HOLDING
            line.holding[place.nonce] = place
            if line.turn is place:
                line.turn = None
            if line.queue:
                self._advance(line, seen=entry())

    def park(self, place: LinePlace, holders: tuple[str, ...]) -> bool:
        """Let the place that has the turn wait for the end of one of these holds.

        Arguments:
            place: has the turn; its signal is new from now on.
            holders: the nonces of the holds.

        Returns:
            False if one of them has ended already, or if the place does not have the turn.
        """
        with self._lock:
            line = self._lines.get(place.key)
            if line is None or line.turn is not place:
                return False
            if not all(nonce in line.holding for nonce in holders):
                return False
            place.signal, line.is_parked = Signal(), True
            return True

    def unpark(self, place: LinePlace) -> None:
        """Note that the place does not wait for the end of a hold any more."""
        with self._lock:
            line = self._lines.get(place.key)
            if line is not None and line.turn is place:
                line.is_parked = False

    def hand_over(self, place: LinePlace, entry: Callable[[], Entry], ttl_s: float | None) -> bool:
        """Hand over what a hold has left in the store to the next in line.

        Arguments:
            place: of the hold. It was valid until now; it has just been ended.
            entry: returns the hold's record; called only if somebody waits.
            ttl_s: how long this client may keep the key in a row; None if the store shows who waits
                elsewhere, and nobody does.

        Returns:
            whether somebody has it. If not, the caller must end the hold in the store, and then
            call `leave`.
        """
        with self._lock:
            line = self._lines.get(place.key)
            if line is None or line.holding.pop(place.nonce, None) is None:
                return False
            if not line.queue and line.turn is None:
                return False
            if not self._may_hand_over(line, ttl_s):
                line.streak_s = self._clock.monotonic_s() - line.streak_began_s
                return False
            while (heir := line.pop_heir()) is not None:
                heir.handed, heir.has_asked = HandedOver(place.nonce, entry()), True
                heir.state, line.turn, line.is_parked = PlaceState.TURN, heir, False
                if heir.wake():
                    line.handed_count += 1
                    place.state = PlaceState.OVER
                    return True
                heir.state, line.turn = PlaceState.OVER, None
            return False

    def _may_hand_over(self, line: _Line, ttl_s: float | None) -> bool:
        if ttl_s is None:
            return True
        streak_s = self._clock.monotonic_s() - line.streak_began_s
        return line.handed_count < HAND_OVERS_MAX and streak_s < ttl_s

    def give_up(self, place: LinePlace) -> bool:
        """Drop a place that waits for its turn; return False if it has the turn already."""
        with self._lock:
            if place.state is PlaceState.QUEUED:
                self.leave(place)
            return place.state is PlaceState.OVER

    def leave(self, place: LinePlace) -> None:
        """Drop a place: its caller gave up, or its hold is over. The next in line gets the turn.

        What was handed to the place, and is not ended in the store yet, goes to the next as well.
        """
        with self._lock:
            was_holding, place.state = place.state is PlaceState.HOLDING, PlaceState.OVER
            line = self._lines.get(place.key)
            if line is None:
                return
            line.holding.pop(place.nonce, None)
            if line.turn is place:
                line.turn, line.is_parked = None, False
            if line.queue:
                line.drop(place)
                self._advance(line, place.handed)
            place.handed = None
            if was_holding and line.is_parked and line.turn is not None:
                line.turn.streak_s, line.streak_s = line.streak_s, 0.0
                if not line.turn.wake():
                    self.leave(line.turn)
            if line.is_empty and self._lines.get(place.key) is line:
                del self._lines[place.key]

    def _advance(
        self, line: _Line, handed: HandedOver | None = None, seen: Entry | None = None
    ) -> None:
        """Give the turn to the first in the queue, if nobody has it."""
        while line.queue and line.turn is None and (line.shared or not line.holding):
            place = line.turn = line.queue.popleft()
            place.streak_s, line.streak_s = line.streak_s, 0.0
            place.state, place.handed, place.seen = PlaceState.TURN, handed, seen
            if not place.wake():
                place.state, line.turn = PlaceState.OVER, None

    def drop_all(self, driver: object, reason: str) -> None:
        """Drop the waiting places of a driver that was closed; their callers get `ClientClosed`."""
        with self._lock:
            for line in list(self._lines.values()):
                parked = [line.turn] if line.is_parked and line.turn is not None else []
                dropped = [p for p in (*line.queue, *parked) if p.caller.driver is driver]
                line.queue = deque(p for p in line.queue if p not in dropped)
                for place in dropped:
                    place.dropped = reason
                    self.leave(place)
                    place.wake()

    def abandon(self, reason: str) -> None:
        """Drop every place, in a forked child.

        It takes no lock: a lock that another thread held at the fork is never released in the
        child.
        """
        lines, self._lines = self._lines, {}
        for line in lines.values():
            for place in line.places():
                place.dropped, place.state = reason, PlaceState.OVER
