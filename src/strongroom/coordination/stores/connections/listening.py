"""One connection that receives change notifications for all waiters of a process.

Lives here: `NotificationHub`, whose thread owns the connection (a `NotificationConnection`) while
there are waiters, and a little longer; `watch_key`, which waits. If notifications are unavailable,
waiters poll: a notification only shortens a wait.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from strongroom.coordination.clock import Clocks
from strongroom.coordination.effects import UNCHANGED, Entry, Watched
from strongroom.coordination.errors import StoreUnavailable
from strongroom.platform.sockets import POLLIN, new_poll

log = logging.getLogger("strongroom.coordination")
ATTEMPT_S: Final = 5.0
"""The time limit of connecting and subscribing."""
_LINGER_S: Final = 5.0  # a waiter in a loop soon comes back
_READ_TIMEOUT_MIN_S: Final = 1.0
_POLL_MIN_S: Final = 0.05
_POLL_MAX_S: Final = 1.0


class NotificationConnection(Protocol):
    """A connection that receives change notifications. Only one thread at a time may use it."""

    def fileno(self) -> int:
        """The descriptor to poll for notifications."""
        ...

    def subscribe(self, topic: str) -> None:
        """Subscribe to a topic. Once this returns, no notification of it is missed.

        Raises:
            CoordinationError, OSError: the connection receives no notifications any more.
        """
        ...

    def unsubscribe(self, topic: str) -> None:
        """Raises: as `subscribe`."""
        ...

    def received(self) -> list[str]:
        """The topics with new notifications; does not wait. Raises: as `subscribe`."""
        ...

    def close(self) -> None: ...


class Subscriber:
    """One waiter's registration with a hub, for a thread."""

    def __init__(self) -> None:
        self._decided, self._notified = threading.Event(), threading.Event()
        self._is_subscribed = False

    def is_subscribed(self, timeout_s: float) -> bool:
        """Wait until the subscription succeeds or fails."""
        self._decided.wait(timeout_s)
        return self._is_subscribed

    def set_subscribed(self, subscribed: bool) -> None:
        self._is_subscribed = subscribed
        self._decided.set()

    def notify(self) -> None:
        self._notified.set()

    def wait(self, seconds: float) -> bool:
        """Clear the notification, if there was one, and return whether there was."""
        notified = self._notified.wait(max(0.0, seconds))
        self._notified.clear()
        return notified


class _Subscription:
    def __init__(self) -> None:
        self.subscribers: set[Subscriber] = set()
        self.is_confirmed = False
        self.idle_since_s = 0.0

    def is_idle(self, before_s: float) -> bool:
        return not self.subscribers and self.idle_since_s <= before_s


class NotificationHub:
    """Distributes change notifications to waiters. Thread-safe.

    Arguments:
        connect: opens the connection on the hub's own thread. Raises CoordinationError.
        clock: measures how long a topic has had no waiter.
    """

    def __init__(self, connect: Callable[[], NotificationConnection], clock: Clocks) -> None:
        self._connect, self._clock = connect, clock
        self._lock = threading.Lock()
        self._subscriptions: dict[str, _Subscription] = {}
        self._wake: socket.socket | None = None  # the socket of the running thread

    @contextmanager
    def registered(self, topic: str, subscriber: Subscriber) -> Iterator[None]:
        """For the length of a `with` block."""
        with self._lock:
            subscription = self._subscriptions.setdefault(topic, _Subscription())
            subscription.subscribers.add(subscriber)
            if subscription.is_confirmed:
                subscriber.set_subscribed(True)
            elif self._wake is not None:
                _wake(self._wake)
            else:
                self._start()
        try:
            yield
        finally:
            with self._lock:
                subscription.subscribers.discard(subscriber)
                subscription.idle_since_s = self._clock.monotonic_s()

    def close(self) -> None:
        """Present waiters poll from now on."""
        with self._lock:
            self._stop()

    def _start(self) -> None:
        self._wake, waker = socket.socketpair()
        self._wake.setblocking(False)
        thread = threading.Thread(
            target=self._serve, args=(self._wake, waker), name="coordination-listen", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # the system starts no more threads
            log.info("no change notifications (%s): waiters poll", error)
            waker.close()
            self._stop()

    def _serve(self, wake: socket.socket, waker: socket.socket) -> None:
        connection: NotificationConnection | None = None
        try:
            connection = self._connect()
            self._receive(connection, wake, waker)
        except Exception as error:
            # The next waiter starts the next attempt.
            log.info("no change notifications (%s): waiters poll", error)
            with self._lock:
                if self._wake is wake:
                    self._stop()
        finally:
            waker.close()
            if connection is not None:
                connection.close()

    def _stop(self) -> None:
        """Discard all topics, and end the thread; its waiters poll. The caller holds the lock."""
        topics, self._subscriptions = self._subscriptions, {}
        wake, self._wake = self._wake, None
        if wake is not None:
            wake.close()
        for topic in topics.values():
            for subscriber in topic.subscribers:
                subscriber.set_subscribed(False)
                subscriber.notify()

    def _receive(
        self, connection: NotificationConnection, wake: socket.socket, waker: socket.socket
    ) -> None:
        poll = new_poll()
        poll.register(waker, POLLIN)
        poll.register(connection.fileno(), POLLIN)
        while self._update_topics(connection, wake):
            # A notification may have arrived during the subscription.
            for topic in connection.received():
                self._notify(topic)
            # It also wakes periodically, because a waiter that leaves does not wake it.
            for fd, _ in poll.poll(_LINGER_S * 1000):
                if fd == waker.fileno():
                    waker.recv(4096)

    def _notify(self, topic: str) -> None:
        with self._lock:
            subscription = self._subscriptions.get(topic)
            subscribers = list(subscription.subscribers) if subscription is not None else []
        for subscriber in subscribers:
            subscriber.notify()

    def _update_topics(self, connection: NotificationConnection, wake: socket.socket) -> bool:
        """Match the subscriptions to the waiters; return False if the thread is to end."""
        before_s = self._clock.monotonic_s() - _LINGER_S
        with self._lock:
            if self._wake is not wake:
                return False
            idle = [
                name
                for name, subscription in self._subscriptions.items()
                if subscription.is_idle(before_s)
            ]
            for name in idle:
                del self._subscriptions[name]
            if not self._subscriptions:
                self._stop()
                return False
            missing = {
                name: subscription
                for name, subscription in self._subscriptions.items()
                if not subscription.is_confirmed
            }
        for name in idle:
            connection.unsubscribe(name)
        for name, subscription in missing.items():
            connection.subscribe(name)
            with self._lock:
                subscription.is_confirmed = True
                subscribers = list(subscription.subscribers)
            for subscriber in subscribers:
                subscriber.set_subscribed(True)
        return True


def _wake(wake: socket.socket) -> None:
    try:
        wake.send(b"!")
    except BlockingIOError:
        pass  # the full buffer wakes the thread anyway


class WatchState:
    """The state of one wait between its reads; the same for threads and for tasks.

    Arguments:
        clock: measures time, and provides the jitter for polling.
        version: the version that the waiter knows.
        timeout_s: the length of the wait.

    Attributes:
        result: what `Store.watch` returns, once the wait is over.
    """

    def __init__(self, clock: Clocks, version: str | None, timeout_s: float) -> None:
        self.result: Watched = UNCHANGED
        self._clock, self._version = clock, version
        self._until_s = clock.monotonic_s() + timeout_s
        self._pause_s, self._was_held = _POLL_MIN_S, False

    def next_wait_s(self, entry: Entry | None, subscribed: bool) -> float | None:
        """Judge a read: return how many seconds to wait for the next one; None ends the wait.

        Arguments:
            entry: the entry that was read. The read must begin after the subscription, because
                earlier changes are not notified.
            subscribed: whether the waiter is notified of changes.
        """
        held_s = (entry.expires_in_s or 0.0) if entry is not None else 0.0
        changed = (None if entry is None else entry.version) != self._version
        if changed or (self._was_held and held_s <= 0):
            self.result = entry
            return None
        self._was_held = held_s > 0
        left_s = self._until_s - self._clock.monotonic_s()
        if left_s <= 0:
            return None
        if self._was_held:
            left_s = min(left_s, held_s)  # the store sends no notification when a hold expires
        if not subscribed:
            spread_s = self._clock.random() * self._pause_s * 3
            self._pause_s = min(_POLL_MAX_S, _POLL_MIN_S + spread_s)
            left_s = min(left_s, self._pause_s)
        return left_s

    def is_over(self, notified: bool, subscribed: bool) -> bool:
        """Return whether the wait is over without another read.

        That is so after the time limit, if no notification came and any change would have sent one.
        """
        return subscribed and not notified and self._clock.monotonic_s() >= self._until_s


def watch_key(
    clock: Clocks,
    subscriber: Subscriber,
    read: Callable[[], Entry | None],
    version: str | None,
    timeout_s: float,
) -> Watched:
    """Wait until an entry's version differs from `version`, or its hold ends; see `Store.watch`.

    Arguments:
        clock: see `WatchState`.
        subscriber: the subscriber of the entry's topic.
        read: reads the entry.
        version, timeout_s: see `WatchState`.
    """
    state = WatchState(clock, version, timeout_s)
    subscribed = subscriber.is_subscribed(min(timeout_s, ATTEMPT_S))
    while (wait_s := state.next_wait_s(read(), subscribed)) is not None:
        notified = subscriber.wait(wait_s)
        subscribed = subscribed and subscriber.is_subscribed(0)
        if state.is_over(notified, subscribed):
            break
    return state.result


def read_timeout_s(timeout_s: float) -> float:
    """Return the time limit of one read within a wait of `timeout_s`."""
    return max(_READ_TIMEOUT_MIN_S, min(timeout_s, ATTEMPT_S))


def unavailable(error: OSError) -> StoreUnavailable:
    """Return the exception for a read over a broken connection."""
    return StoreUnavailable(str(error) or type(error).__name__)
