"""The state that all recipes of one client share: clock, rules, identity, names in use.

Lives here: state in memory that belongs to a client and does no IO. It is thread-safe.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from strongroom.coordination.clock import Clocks
from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.effects import Entry
from strongroom.coordination.errors import Unsupported
from strongroom.coordination.schema.records import LockRecord
from strongroom.coordination.session.lines import Lines
from strongroom.coordination.session.outage import Outage
from strongroom.coordination.store import Promises

_SIGHTINGS_MAX: Final = 4096
_RECENT_MAX: Final = 1024


class Sightings:
    """How long this client has seen the same state at each place.

    The memory lasts as long as the client. So even a caller that only tries now and then sees an
    expired hold as expired.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[Hashable, float]] = OrderedDict()
        self._lock = threading.Lock()

    def since_s(self, subject: str, observed_state: Hashable, received_s: float) -> float:
        """Return the time since which `observed_state` has been seen at `subject` without a change.

        Arguments:
            subject: a key, or a key and a slot.
            observed_state: it must differ between any two writes of the observed holder.
            received_s: `rules.observer_start_s` of this read, by the monotonic clock.
        """
        with self._lock:
            known = self._seen.get(subject)
            if known is not None and known[0] == observed_state:
                return known[1]
            self._seen[subject] = (observed_state, received_s)
            self._seen.move_to_end(subject)
            if len(self._seen) > _SIGHTINGS_MAX:
                self._seen.popitem(last=False)
            return received_s

    def forget(self, subject: str) -> None:
        with self._lock:
            self._seen.pop(subject, None)


class RecipeContext:
    """The state that one client's recipes share, apart from the store.

    Arguments:
        clock: see clock.py.
        rules: see clock_rules.py.
        promises: the guarantees of the store.
        label: the name of this participant, for people.
        warn: called with a warning for the user; see `Outage`. By default warnings are dropped.
    """

    def __init__(
        self,
        clock: Clocks,
        rules: ClockRules,
        promises: Promises,
        label: str,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.clock, self.rules, self.promises, self.label = clock, rules, promises, label
        self._warn = warn
        self.round_trip_s = 0.001  # of the last successful write; used only for pacing
        self.lines = Lines(clock)
        self.reset()

    def reset(self) -> None:
        """Become a new participant after a fork: a new identity without holds."""
        self.lines.abandon("this process was forked while it waited: ask again")
        self.lines = Lines(self.clock)
        self.identity = self.clock.nonce()
        self.sightings = Sightings()
        self.outage = Outage(self.clock, self.promises.store, self._warn)
        self._numbers = itertools.count(1)
        self._recent: dict[str, tuple[Entry, LockRecord]] = {}
        self._in_use: dict[str, str] = {}
        self._dropped: set[str] = set()

    def nonce(self) -> str:
        """Names one hold or attempt, and is never used again."""
        return f"{self.identity}-{next(self._numbers)}"

    def claim(self, key: str, nonce: str) -> None:
        """Note that this client has a slot (`key#slot`), or tries to take it."""
        self._in_use[key] = nonce

    def unclaim(self, key: str, nonce: str) -> None:
        """Undo the `claim` of this key by `nonce`. A claim by another nonce stays in force."""
        if self._in_use.get(key) == nonce:
            self._in_use.pop(key, None)

    def note_dropped(self, nonce: str) -> None:
        """Note that a write of this client drops the slot of its own hold, which has ended.

        Note it before the write is sent. The release of that hold may see its effect at once.
        """
        if len(self._dropped) >= _RECENT_MAX:
            self._dropped.clear()  # most of them were lost, and nobody asks for those
        self._dropped.add(nonce)

    def pop_dropped(self, nonce: str) -> bool:
        """Return whether this client has dropped the slot of that hold itself, and forget it."""
        was_dropped = nonce in self._dropped
        self._dropped.discard(nonce)
        return was_dropped

    def is_own(self, nonce: str) -> bool:
        """Return whether `nonce` is a hold or attempt of this client, ended or not."""
        return nonce.startswith(f"{self.identity}-")

    def holds(self, key: str, nonce: str) -> bool:
        """Return whether `nonce` is a hold or attempt of this client that has not ended.

        Arguments:
            key: of a lock, or of a slot (`key#slot`).
            nonce: of a hold or attempt of any client.
        """
        return self._in_use.get(key) == nonce or self.lines.is_current(key, nonce)

    def cache_entry(self, key: str, entry: Entry, record: LockRecord) -> None:
        """Cache the entry that this client wrote last, a hint that saves the next recipe a read."""
        if len(self._recent) >= _RECENT_MAX:
            self._recent.clear()
        self._recent[key] = entry, record

    def pop_cached_entry(self, key: str) -> tuple[Entry, LockRecord] | None:
        """Remove a key's entry from the cache, and return it; None if none is cached."""
        return self._recent.pop(key, None)

    def check_ttl(self, ttl_s: float) -> None:
        """Raise Unsupported, which names the bounds, for a TTL that the store cannot keep."""
        p = self.promises
        in_bounds = p.ttl_min_s <= ttl_s <= p.ttl_max_s
        if in_bounds and not (p.whole_seconds and ttl_s != int(ttl_s)):
            return
        unit = "whole seconds from" if p.whole_seconds else "seconds from"
        note = f"; {p.ttl_note}" if p.ttl_note else ""
        raise Unsupported(
            f"{p.store} takes TTLs of {unit} {p.ttl_min_s:g} to {p.ttl_max_s:g}, not"
            f" {ttl_s:g} s{note}"
        )

    def check_fair(self) -> None:
        """Raise Unsupported for a fair queue where only the holder may write."""
        if not self.promises.fair_queue:
            raise Unsupported(f"{self.promises.store} cannot keep a fair queue")
