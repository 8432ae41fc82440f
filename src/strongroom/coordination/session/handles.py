"""The state of a hold: valid until a deadline, and lost at most once and for ever.

Lives here: `Hold`, the state of one hold, which its owner, the renewal and the deadline watch
share. `HeldBase` is the part of the handle that is the same for threads and asyncio.
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
    """How one recipe renews and releases its holds."""

    def renew(self, hold: Hold) -> Steps[bool]:
        """Try once to renew: call `hold.extend` or `hold.lose`; return whether it was renewed.

        It must not raise if the store is unreachable. A Conflict is no proof of a loss: it must
        first read the record, and see there that another hold owns the key.
        """
        ...

    def release(self, hold: Hold) -> Steps[bool]:
        """Release a hold that has ended locally. Return whether the store still had it."""
        ...

    def watch_for_loss(self, hold: Hold) -> Steps[None]:
        """Watch the record until the hold ends; call `hold.lose` once the store shows a loss."""
        ...


class LossEvent(threading.Event):
    """An event that counts as true once it is set, so that `if held.lost:` means what it says."""

    def __bool__(self) -> bool:
        return self.is_set()


class Hold:
    """One hold: its owner, its fence, and the deadline until which it is valid.

    Arguments:
        clock: the boot clock measures the deadline.
        key, name: the key and the name that are held.
        nonce: the unique name of this hold.
        fence: its fencing token.
        ttl_s: the TTL that it was acquired with.
        deadline_s: the deadline by the boot clock, from `rules.holder_deadline_s`.
        keeper: renews and releases it.
        margin_s: the hold ends this many seconds before its deadline.
    """

    __slots__ = (
        "_callbacks", "_event", "_lock", "clock", "deadline_s", "fence", "keeper", "key",
        "last_error", "margin_s", "name", "nonce", "on_end", "reason", "renewed_count", "state",
        "ttl_s",
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
        margin_s: float = 0.0,
    ) -> None:
        self.clock, self.key, self.name, self.nonce = clock, key, name, nonce
        self.fence, self.ttl_s, self.deadline_s = fence, ttl_s, deadline_s
        self.keeper, self.margin_s = keeper, margin_s
        self.state, self.reason, self.last_error, self.renewed_count = HELD, "", "", 0
        self.on_end: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self._event: LossEvent | None = None
        self._callbacks: list[Callable[[str], Any]] = []

    @property
    def active(self) -> bool:
        """Neither released nor lost. Its deadline may have passed (`remaining_s`)."""
        return self.state == HELD

    def remaining_s(self) -> float:
        """Return the seconds during which no other participant can hold it; 0 once it has ended."""
        if self.state != HELD:
            return 0.0
        return max(0.0, self.deadline_s - self.margin_s - self.clock.boot_s())

    def check(self) -> None:
        """Raise LockLost if the hold was lost, has expired or was released."""
        if self.state == HELD:
            if self.remaining_s() > 0:
                return
            self.lose(self.expiry_reason())
        raise LockLost(self.name, self.reason or "it was released")

    def extend(self, deadline_s: float) -> None:
        """No effect if the hold has ended."""
        if self.state == HELD and self.remaining_s() <= 0:
            self.lose(self.expiry_reason())
        with self._lock:
            if self.state == HELD:
                self.deadline_s = max(self.deadline_s, deadline_s)
                self.renewed_count += 1
                self.last_error = ""

    def expiry_reason(self) -> str:
        """In words for people."""
        why = f": {self.last_error}" if self.last_error else ""
        return f"it could not be renewed within its {self.ttl_s:g} s{why}"

    def lose(self, reason: str) -> bool:
        """Mark the hold lost, and run its callbacks. Return whether this call ended it."""
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
        """End the hold locally, before the release is sent. Return whether it was still valid."""
        with self._lock:
            if self.state != HELD:
                return False
            if self.deadline_s - self.margin_s > self.clock.boot_s():
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
    def lost(self) -> LossEvent:
        """Set once the hold is known to be lost."""
        with self._lock:
            if self._event is None:
                self._event = LossEvent()
                if self.state == LOST:
                    self._event.set()
            return self._event

    def on_lost(self, callback: Callable[[str], Any]) -> None:
        """Call `callback(reason)` once when the hold is lost; at once if it is lost already.

        The thread that detects the loss calls it, which may be the thread that watches all
        deadlines. So the callback must return at once. `run_on_own_thread` wraps a user's callback.
        """
        with self._lock:
            if self.state == HELD:
                self._callbacks.append(callback)
                return
            reason = self.reason if self.state == LOST else None
        if reason is not None:
            _call(callback, reason)

    def after_fork(self) -> None:
        """Mark the hold lost in a forked child: the parent keeps holding, this process does not."""
        self._lock = threading.Lock()
        self._event = None
        self._callbacks = []
        if self.state == HELD:
            self.state, self.reason = LOST, "this process was forked; its parent holds"


def run_on_own_thread(callback: Callable[[str], Any]) -> Callable[[str], None]:
    """Return a function that runs the callback on its own thread.

    A slow callback then delays no other hold's loss.
    """

    def start(reason: str) -> None:
        thread = threading.Thread(
            target=_call, args=(callback, reason), name="coordination-on-lost", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down and starts no more threads
            _call(callback, reason)

    return start


def _call(callback: Callable[[str], Any], reason: str) -> None:
    try:
        callback(reason)
    except Exception:
        log.exception("a callback for a lost hold failed")


class HeldBase:
    """The handle of a hold: the part that is the same for threads and asyncio. It may be shared."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    @property
    def name(self) -> str:
        """The name that is held."""
        return self._hold.name

    @property
    def fence(self) -> int:
        """The fencing token, which increases with every holder of this name."""
        return self._hold.fence

    @property
    def nonce(self) -> str:
        """The unique name of this hold in the store's record."""
        return self._hold.nonce

    @property
    def deadline_s(self) -> float:
        """Until when this hold is valid, by the boot clock (CLOCK_BOOTTIME where available)."""
        return self._hold.deadline_s - self._hold.margin_s

    @property
    def lost(self) -> LossEvent:
        """The event that is set once the hold is known to be lost; it is never cleared.

        It counts as true once it is set: `if held.lost: ...`.
        """
        return self._hold.lost

    @property
    def reason(self) -> str:
        """Why the hold was lost; empty if it was not."""
        return self._hold.reason

    @property
    def guard(self) -> Guards:
        """Passes the fence to a resource that refuses older fences; see guards/."""
        # Imported on demand: most holds use no guard, and a guard needs its store's client.
        from strongroom.coordination.guards import Guards

        return Guards(self)

    def remaining(self) -> float:
        """Return the seconds that certainly remain, counted from the last successful request."""
        return self._hold.remaining_s()

    def check(self) -> None:
        """Raise unless the hold is valid now.

        Raises:
            LockLost: it is not valid, and never will be again.
        """
        self._hold.check()

    def on_lost(self, callback: Callable[[str], Any]) -> None:
        """Call `callback(reason)` once, on its own thread, when this hold is lost."""
        self._hold.on_lost(run_on_own_thread(callback))

    def __repr__(self) -> str:
        left = f"{self.remaining():.1f} s left" if self._hold.active else self._hold.state
        return f"<{type(self).__name__} {self.name!r} fence {self.fence}, {left}>"
