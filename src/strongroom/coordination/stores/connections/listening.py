"""One connection that receives change notifications for all waiters of a process.

Lives here: `Switchboard`, whose thread owns the connection (an `Ear`) while there are waiters, and
a little longer; `watch_key`, which waits. If notifications are unavailable, waiters poll: a
notification only shortens a wait. Must not live here: any protocol.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from strongroom.coordination.clock import Clocks
from strongroom.coordination.effects import UNCHANGED, Entry, Watched
from strongroom.coordination.errors import StoreUnavailable

log = logging.getLogger("strongroom.coordination")
ATTEMPT_S: Final = 5.0
"""How long connecting and subscribing may take."""
_LINGER_S: Final = 5.0  # a waiter in a loop soon comes back
_LOOK_MIN_S: Final = 1.0
_BLIND_MIN_S: Final = 0.05
_BLIND_MAX_S: Final = 1.0


class Ear(Protocol):
    """A connection that receives change notifications. Only one thread at a time may use it."""

    def fileno(self) -> int:
        """Return the descriptor to poll for notifications."""
        ...

    def add(self, topic: str) -> None:
        """Subscribe to a topic. Once this returns, no notification of it is missed.

        Raises:
            CoordinationError, OSError: the connection receives no notifications any more.
        """
        ...

    def drop(self, topic: str) -> None:
        """Unsubscribe from a topic. Raises: as `add`."""
        ...

    def heard(self) -> list[str]:
        """Return the topics with new notifications; does not wait. Raises: as `add`."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Ticket:
    """One waiter's registration with a switchboard, for a thread."""

    def __init__(self) -> None:
        self._settled, self._rung = threading.Event(), threading.Event()
        self._hears = False

    def hears(self, timeout_s: float) -> bool:
        """Wait until the subscription succeeds or fails; return whether it succeeded."""
        self._settled.wait(timeout_s)
        return self._hears

    def settle(self, hears: bool) -> None:
        """Set whether the waiter will be notified of changes from now on."""
        self._hears = hears
        self._settled.set()

    def ring(self) -> None:
        """Notify the waiter that the entry has changed, or may have changed."""
        self._rung.set()

    def wait(self, seconds: float) -> bool:
        """Wait for a notification, and clear it; return whether there was one."""
        rang = self._rung.wait(max(0.0, seconds))
        self._rung.clear()
        return rang


class _Topic:
    def __init__(self) -> None:
        self.tickets: set[Ticket] = set()
        self.added = False
        self.idle_since_s = 0.0

    def is_idle(self, before_s: float) -> bool:
        return not self.tickets and self.idle_since_s <= before_s


class Switchboard:
    """Distributes change notifications to waiters. Thread-safe.

    Arguments:
        open_ear: opens the connection on the switchboard's own thread. Raises CoordinationError.
        clock: measures how long a topic has had no waiter.
    """

    def __init__(self, open_ear: Callable[[], Ear], clock: Clocks) -> None:
        self._open_ear, self._clock = open_ear, clock
        self._lock = threading.Lock()
        self._topics: dict[str, _Topic] = {}
        self._wake: socket.socket | None = None  # the socket of the running thread

    @contextmanager
    def ticket(self, topic: str, ticket: Ticket) -> Iterator[None]:
        """Notify `ticket` of changes on `topic`, for the length of a `with` block."""
        with self._lock:
            place = self._topics.setdefault(topic, _Topic())
            place.tickets.add(ticket)
            if place.added:
                ticket.settle(True)
            elif self._wake is not None:
                _wake(self._wake)
            else:
                self._start()
        try:
            yield
        finally:
            with self._lock:
                place.tickets.discard(ticket)
                place.idle_since_s = self._clock.monotonic_s()

    def close(self) -> None:
        """Stop the thread and close its connection; present waiters poll from now on."""
        with self._lock:
            self._hang_up()

    def _start(self) -> None:
        self._wake, waker = socket.socketpair()
        self._wake.setblocking(False)
        threading.Thread(
            target=self._serve, args=(self._wake, waker), name="coordination-listen", daemon=True
        ).start()

    def _serve(self, wake: socket.socket, waker: socket.socket) -> None:
        ear: Ear | None = None
        try:
            ear = self._open_ear()
            self._talk(ear, wake, waker)
        except Exception as error:
            # The next waiter starts the next attempt.
            log.info("changes are not told (%s): those who wait read", error)
            with self._lock:
                if self._wake is wake:
                    self._hang_up()
        finally:
            waker.close()
            if ear is not None:
                ear.close()

    def _hang_up(self) -> None:
        """Discard all topics, and end the thread; its waiters poll. The caller holds the lock."""
        topics, self._topics = self._topics, {}
        wake, self._wake = self._wake, None
        if wake is not None:
            wake.close()
        for topic in topics.values():
            for ticket in topic.tickets:
                ticket.settle(False)
                ticket.ring()

    def _talk(self, ear: Ear, wake: socket.socket, waker: socket.socket) -> None:
        poll = select.poll()
        poll.register(waker, select.POLLIN)
        poll.register(ear.fileno(), select.POLLIN)
        while self._tidy(ear, wake):
            # A notification may have arrived during the subscription.
            for topic in ear.heard():
                self._ring(topic)
            # It also wakes periodically, because a waiter that leaves does not wake it.
            for fd, _ in poll.poll(_LINGER_S * 1000):
                if fd == waker.fileno():
                    waker.recv(4096)

    def _ring(self, topic: str) -> None:
        with self._lock:
            place = self._topics.get(topic)
            tickets = list(place.tickets) if place is not None else []
        for ticket in tickets:
            ticket.ring()

    def _tidy(self, ear: Ear, wake: socket.socket) -> bool:
        """Match the subscriptions to the waiters; return False if the thread is to end."""
        before_s = self._clock.monotonic_s() - _LINGER_S
        with self._lock:
            if self._wake is not wake:
                return False
            idle = [name for name, place in self._topics.items() if place.is_idle(before_s)]
            for name in idle:
                del self._topics[name]
            if not self._topics:
                self._hang_up()
                return False
            missing = {name: place for name, place in self._topics.items() if not place.added}
        for name in idle:
            ear.drop(name)
        for name, place in missing.items():
            ear.add(name)
            with self._lock:
                place.added = True
                tickets = list(place.tickets)
            for ticket in tickets:
                ticket.settle(True)
        return True


def _wake(wake: socket.socket) -> None:
    try:
        wake.send(b"!")
    except BlockingIOError:
        pass  # the full buffer wakes the thread anyway


class Vigil:
    """The state of one wait between its reads; the same for threads and for tasks.

    Arguments:
        clock: measures time, and provides the jitter for polling.
        version: the version that the waiter knows.
        timeout_s: the length of the wait.

    Attributes:
        outcome: the result of the wait, once it is over; see `Store.watch`.
    """

    def __init__(self, clock: Clocks, version: str | None, timeout_s: float) -> None:
        self.outcome: Watched = UNCHANGED
        self._clock, self._version = clock, version
        self._until_s = clock.monotonic_s() + timeout_s
        self._pause_s, self._was_held = _BLIND_MIN_S, False

    def judge(self, entry: Entry | None, hears: bool) -> float | None:
        """Judge a read: return how many seconds to wait for the next one; None ends the wait.

        Arguments:
            entry: the entry that was read. The read must begin after the subscription, because
                earlier changes are not notified.
            hears: whether the waiter is notified of changes.
        """
        held_s = (entry.expires_in_s or 0.0) if entry is not None else 0.0
        changed = (None if entry is None else entry.version) != self._version
        if changed or (self._was_held and held_s <= 0):
            self.outcome = entry
            return None
        self._was_held = held_s > 0
        left_s = self._until_s - self._clock.monotonic_s()
        if left_s <= 0:
            return None
        if self._was_held:
            left_s = min(left_s, held_s)  # the store sends no notification when a hold expires
        if not hears:
            spread_s = self._clock.random() * self._pause_s * 3
            self._pause_s = min(_BLIND_MAX_S, _BLIND_MIN_S + spread_s)
            left_s = min(left_s, self._pause_s)
        return left_s

    def ends_quietly(self, rang: bool, hears: bool) -> bool:
        """Return whether the wait is over without another read.

        That is so after the time limit, if no notification came and any change would have sent one.
        """
        return hears and not rang and self._clock.monotonic_s() >= self._until_s


def watch_key(
    clock: Clocks,
    ticket: Ticket,
    look: Callable[[], Entry | None],
    version: str | None,
    timeout_s: float,
) -> Watched:
    """Wait until an entry's version differs from `version`, or its hold ends; see `Store.watch`.

    Arguments:
        clock: see `Vigil`.
        ticket: a ticket of the entry's topic.
        look: reads the entry.
        version, timeout_s: see `Vigil`.

    Raises:
        StoreUnavailable, StoreRefused: from `look`.
    """
    vigil = Vigil(clock, version, timeout_s)
    hears = ticket.hears(min(timeout_s, ATTEMPT_S))
    while (wait_s := vigil.judge(look(), hears)) is not None:
        rang = ticket.wait(wait_s)
        hears = hears and ticket.hears(0)
        if vigil.ends_quietly(rang, hears):
            break
    return vigil.outcome


def look_timeout_s(timeout_s: float) -> float:
    """Return the time limit of one read within a wait of `timeout_s`."""
    return max(_LOOK_MIN_S, min(timeout_s, ATTEMPT_S))


def unavailable(error: OSError) -> StoreUnavailable:
    """Return the exception for a read over a broken connection."""
    return StoreUnavailable(str(error) or type(error).__name__)
