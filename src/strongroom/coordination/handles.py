"""The state of a hold: a belief with an end, lost at most once and for ever.

Lives here: `Hold`, the state of one hold, which its owner, the renewal and the deadline watch
share. `HeldBase` is the part of the handle that is the same for threads and asyncio. Must not live
here: IO, or how a hold is prolonged (each recipe's `Keeper`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from strongroom.coordination.clock import Clocks
from strongroom.coordination.effects import Steps
from strongroom.coordination.errors import LockLost

if TYPE_CHECKING:
    from strongroom.coordination.guards import Guards

log = logging.getLogger("strongroom.coordination")

HELD, RELEASED, LOST = "held", "released", "lost"


class Keeper(Protocol):
    """How one recipe keeps and gives what it holds."""

    def keep(self, hold: Hold) -> Steps[bool]:
        """Try once to prolong: call `hold.extend` or `hold.lose`; return whether it was prolonged.

        Must not raise for an unreachable store, and must not take a Conflict for a loss before
        it has read that another one holds.
        """
        ...

    def give(self, hold: Hold) -> Steps[bool]:
        """Give back; the hold believes nothing any more. Return whether it was still ours."""
        ...

    def alert(self, hold: Hold) -> Steps[None]:
        """Watch what is held until it is over, and call `hold.lose` as soon as the store tells."""
        ...


class Hold:
    """One hold: who, since which fence, believed until when.

    Arguments:
        clock: counts the deadline (boot clock).
        key, name: what is held.
        nonce: names this hold.
        fence: its fencing token.
        ttl_s: the TTL it was taken with.
        deadline_s: by the boot clock, from `rules.holder_deadline_s`.
        keeper: prolongs and gives back.
        early_s: the belief ends so long before the deadline.
    """

    __slots__ = (
        "_callbacks", "_event", "_lock", "clock", "deadline_s", "early_s", "fence", "keeper", "key",
        "name", "nonce", "on_end", "reason", "renewed_count", "state", "trouble", "ttl_s",
    )  # fmt: skip

    def __init__(
        self,
        clock: Clocks,
        key: str,
        name: str,
        nonce: str,
        fence: int,
        ttl_s: float,
        deadline_s: float,
        keeper: Keeper,
        early_s: float = 0.0,
    ) -> None:
        self.clock, self.key, self.name, self.nonce = clock, key, name, nonce
        self.fence, self.ttl_s, self.deadline_s = fence, ttl_s, deadline_s
        self.keeper, self.early_s = keeper, early_s
        self.state, self.reason, self.trouble, self.renewed_count = HELD, "", "", 0
        self.on_end: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self._event: threading.Event | None = None
        self._callbacks: list[Callable[[str], Any]] = []

    @property
    def active(self) -> bool:
        """Neither released nor lost (the deadline may have passed unnoticed: see `remaining`)."""
        return self.state == HELD

    def remaining_s(self) -> float:
        """Return for how many seconds nobody else can believe; 0 when it is over."""
        if self.state != HELD:
            return 0.0
        return max(0.0, self.deadline_s - self.early_s - self.clock.boot_s())

    def check(self) -> None:
        """Raise unless this is held right now.

        Raises:
            LockLost: lost, expired or released.
        """
        if self.state == HELD:
            if self.remaining_s() > 0:
                return
            self.lose(self.expiry_reason())
        raise LockLost(self.name, self.reason or "it was released")

    def extend(self, deadline_s: float) -> None:
        """Believe until `deadline_s`, unless it is over already: what is lost stays lost."""
        if self.state == HELD and self.remaining_s() <= 0:
            self.lose(self.expiry_reason())
        with self._lock:
            if self.state == HELD:
                self.deadline_s = max(self.deadline_s, deadline_s)
                self.renewed_count += 1
                self.trouble = ""

    def expiry_reason(self) -> str:
        """Return in words why the time ran out."""
        why = f": {self.trouble}" if self.trouble else ""
        return f"it could not be renewed within its {self.ttl_s:g} s{why}"

    def lose(self, reason: str) -> bool:
        """Believe no more; tell everyone once. Return whether this call ended it."""
        with self._lock:
            if self.state != HELD:
                return False
            self.state, self.reason = LOST, reason
            callbacks, self._callbacks = self._callbacks, []
            event = self._event
        self._ended()
        if event is not None:
            event.set()
        for callback in callbacks:
            _call(callback, reason)
        return True

    def end(self) -> bool:
        """Stop believing before the release is sent. Return whether it was still held."""
        with self._lock:
            if self.state != HELD:
                return False
            if self.deadline_s - self.early_s > self.clock.boot_s():
                self.state = RELEASED
                self._callbacks = []
        if self.state == HELD:
            self.lose(self.expiry_reason())
            return False
        self._ended()
        return True

    def _ended(self) -> None:
        if self.on_end is not None:
            self.on_end()

    @property
    def lost(self) -> threading.Event:
        """Set as soon as the loss is known."""
        with self._lock:
            if self._event is None:
                self._event = threading.Event()
                if self.state == LOST:
                    self._event.set()
            return self._event

    def on_lost(self, callback: Callable[[str], Any]) -> None:
        """Call `callback(reason)` once when it is lost, now if it is already.

        It is called by whoever finds out, the watch over all deadlines among them: it must return
        at once. What a user gives goes through `apart`.
        """
        with self._lock:
            if self.state == HELD:
                self._callbacks.append(callback)
                return
            reason = self.reason if self.state == LOST else None
        if reason is not None:
            _call(callback, reason)

    def after_fork(self) -> None:
        """In a forked child: the parent holds, this process does not."""
        self._lock = threading.Lock()
        self._event = None
        self._callbacks = []
        if self.state == HELD:
            self.state, self.reason = LOST, "this process was forked; its parent holds"


def apart(callback: Callable[[str], Any]) -> Callable[[str], None]:
    """Return the callback on a thread of its own: one that takes long delays nobody else's loss."""

    def start(reason: str) -> None:
        thread = threading.Thread(
            target=_call, args=(callback, reason), name="coordination-on-lost", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending: there are no new threads any more
            _call(callback, reason)

    return start


def _call(callback: Callable[[str], Any], reason: str) -> None:
    try:
        callback(reason)
    except Exception:
        log.exception("a callback for a lost hold failed")


class HeldBase:
    """The handle of a hold: what is the same for threads and asyncio. May be passed around."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    @property
    def name(self) -> str:
        """The name that is held."""
        return self._hold.name

    @property
    def fence(self) -> int:
        """The fencing token: rises with every holder of this name, for ever."""
        return self._hold.fence

    @property
    def nonce(self) -> str:
        """Names this hold in the store's record."""
        return self._hold.nonce

    @property
    def deadline_s(self) -> float:
        """Until when this is believed, by the boot clock (CLOCK_BOOTTIME where there is one)."""
        return self._hold.deadline_s - self._hold.early_s

    @property
    def lost(self) -> threading.Event:
        """Set as soon as the loss is known; never cleared."""
        return self._hold.lost

    @property
    def reason(self) -> str:
        """Why it was lost; empty if it was not."""
        return self._hold.reason

    @property
    def guard(self) -> Guards:
        """Carries the fence to a resource that refuses an older one; see guards/."""
        # Imported when asked for: most holds guard nothing, and a guard needs its store's client.
        from strongroom.coordination.guards import Guards

        return Guards(self)

    def remaining(self) -> float:
        """Return the seconds that are certainly left, counted from the last good request."""
        return self._hold.remaining_s()

    def check(self) -> None:
        """Raise unless this is held right now.

        Raises:
            LockLost: it is not; it never will be again.
        """
        self._hold.check()

    def on_lost(self, callback: Callable[[str], Any]) -> None:
        """Call `callback(reason)` once, on a thread of its own, when this is lost."""
        self._hold.on_lost(apart(callback))

    def __repr__(self) -> str:
        left = f"{self.remaining():.1f} s left" if self._hold.active else self._hold.state
        return f"<{type(self).__name__} {self.name!r} fence {self.fence}, {left}>"
