"""The part that all message buses share: listening in the background, and reconnecting.

Lives here: `BusHints`, which turns two blocking calls of a bus (`publish`, `listen`) into `Hints`.
Each topic has a thread while it has listeners. A connection that ends is made again. Every listener
is then called, since a message may have been missed. Trouble is logged once when it begins and once
when it ends.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, Protocol

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.errors import CoordinationError
from strongroom.coordination.session.forking import register_for_forks

log = logging.getLogger("strongroom.coordination")

ATTEMPT_S: Final = 5.0
"""How long a bus may take to answer one request."""
HEARTBEAT_S: Final = 10
"""How often a listening connection is asked for a sign of life."""
_PAUSE_FIRST_S: Final = 0.05
_PAUSE_MAX_S: Final = 2.0
_STABLE_S: Final = 5.0
# A refusal is permanent, as a rule. Frequent retries would only look like an attack.
_PAUSE_REFUSED_S: Final = 15.0


class BusUnavailable(CoordinationError):
    """The bus did not answer, or the connection ended; a later try may succeed."""


class BusRefused(CoordinationError):
    """The bus refuses: user, password, token, permissions. The message contains no secret."""


class TopicListeners:
    """The listeners of one topic. A bus reports to it; it calls the listeners."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._is_failing = self._is_subscribed = False
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._listeners: dict[object, tuple[Callable[[], None], Callable[[], None]]] = {}
        self._wake: Callable[[], None] | None = None

    @property
    def closed(self) -> bool:
        """Whether all listeners are gone, so that `listen` must return."""
        return self._closed.is_set()

    def add(self, heard: Callable[[], None], listening: Callable[[], None]) -> object:
        """Add a listener; return the token that removes it.

        Arguments:
            heard: is called at each message.
            listening: is called when the bus delivers messages from now on.
        """
        token = object()
        with self._lock:
            self._listeners[token] = (heard, listening)
        return token

    @property
    def is_subscribed(self) -> bool:
        """Whether the bus delivers messages, as far as is known."""
        with self._lock:
            return self._is_subscribed

    def remove(self, token: object) -> bool:
        """Remove a listener; return whether it was there and was the last one."""
        with self._lock:
            was_there = self._listeners.pop(token, None) is not None
            return was_there and not self._listeners

    def subscribed(self) -> None:
        """Report that the bus delivers from now on; listeners then read the store once."""
        if self._is_failing:
            self._is_failing = False
            log.info("listening for %r again", self.topic)
        with self._lock:
            self._is_subscribed = True
            listeners = list(self._listeners.values())
        for _, listening in listeners:
            self._call(listening)

    def delivery_failed(self, error: CoordinationError) -> None:
        """Report that the bus delivers nothing for now; log that once."""
        with self._lock:
            self._is_subscribed = False
        if not self._is_failing and not self.closed:
            self._is_failing = True
            log.warning("%s; those who wait for %r poll meanwhile", error, self.topic)

    def message_received(self) -> None:
        with self._lock:
            listeners = list(self._listeners.values())
        for heard, _ in listeners:
            self._call(heard)

    def _call(self, listener: Callable[[], None]) -> None:
        try:
            listener()
        except Exception:
            log.exception("a listener of %r failed", self.topic)

    def on_close(self, wake: Callable[[], None] | None) -> None:
        """Have `wake` called from another thread at `close`, or now if it was called."""
        with self._lock:
            self._wake = wake
        if wake is not None and self.closed:
            wake()

    def close(self) -> None:
        """Makes `Bus.listen` return."""
        self._closed.set()
        with self._lock:
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def pause(self, seconds: float) -> None:
        """Wait for so many seconds, or until `close` is called."""
        self._closed.wait(seconds)


class Bus(Protocol):
    """A message bus with its credentials, used by blocking calls."""

    @property
    def display_url(self) -> str:
        """The address of the bus, for people: no user, no secret."""
        ...

    def publish(self, topic: str) -> None:
        """Send a message; return when the bus has accepted it.

        Raises:
            BusUnavailable, BusRefused: within about `ATTEMPT_S`.
        """
        ...

    def listen(self, listeners: TopicListeners) -> None:
        """Connect, subscribe to `listeners.topic`, and report until it is closed.

        It calls `listeners.subscribed()` once the bus has confirmed, and
        `listeners.message_received()` at each message.

        Raises:
            BusUnavailable: the bus did not answer, or a working connection ended.
            BusRefused: another try does not help.
        """
        ...


class BusHints:
    """Hints over a bus, for any thread. No connection is open without listeners.

    Arguments:
        bus: see `Bus`.
        clock: gives the jitter; for tests.
    """

    def __init__(self, bus: Bus, clock: Clocks | None = None) -> None:
        self._bus = bus
        self._clock = clock or SystemClocks()
        self.after_fork()
        register_for_forks(self)

    def publish(self, topic: str) -> None:
        try:
            self._publish(topic)
        except (BusUnavailable, BusRefused) as error:
            log.warning("%s; those who wait learn of it when they look next", error)

    def check(self) -> None:
        """Send one message to the bus, as `publish` does, and raise the error that prevents it.

        Raises:
            BusUnavailable, BusRefused: it cannot be used now; the message says why.
        """
        self._publish("check/bus")

    def _publish(self, topic: str) -> None:
        try:
            self._bus.publish(topic)
        except (BusUnavailable, BusRefused):
            raise
        except Exception as error:
            raise self._unexpected(error) from None

    def _unexpected(self, error: Exception) -> BusUnavailable:
        # An unexpected error of a library. Its text may quote its arguments, so it is left out.
        return BusUnavailable(f"{self._bus.display_url}: {type(error).__name__}")

    def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
        """It returns at once and connects in the background."""
        return self.listen(topic, heard, heard)

    def listen(
        self, topic: str, heard: Callable[[], None], listening: Callable[[], None]
    ) -> Callable[[], None]:
        with self._lock:
            known = self._topics.get(topic)
            listeners = TopicListeners(topic) if known is None else known
            token = listeners.add(heard, listening)
            if known is None:
                self._start(listeners)
        if known is not None and listeners.is_subscribed:
            listening()
        topics = self._topics
        return lambda: self._stop(topics, listeners, token)

    def _start(self, listeners: TopicListeners) -> None:
        """Begin to listen. Raises: RuntimeError: the system starts no more threads."""
        threading.Thread(
            target=self._listen_until_closed,
            args=(listeners,),
            name="coordination-hints",
            daemon=True,
        ).start()
        self._topics[listeners.topic] = listeners

    def _stop(
        self, topics: dict[str, TopicListeners], listeners: TopicListeners, token: object
    ) -> None:
        with self._lock:
            if not listeners.remove(token):
                return
            if topics.get(listeners.topic) is listeners:
                del topics[listeners.topic]
        listeners.close()

    def _listen_until_closed(self, listeners: TopicListeners) -> None:
        pause_s = _PAUSE_FIRST_S
        while not listeners.closed:
            began_s = self._clock.monotonic_s()
            try:
                self._bus.listen(listeners)
                problem: CoordinationError = BusUnavailable(f"{self._bus.display_url} ended it")
            except (BusUnavailable, BusRefused) as error:
                problem = error
            except Exception as error:
                problem = self._unexpected(error)
            listeners.delivery_failed(problem)
            if self._clock.monotonic_s() - began_s > _STABLE_S:
                pause_s = _PAUSE_FIRST_S
            was_refused = isinstance(problem, BusRefused)
            listeners.pause(
                _PAUSE_REFUSED_S if was_refused else pause_s * (0.5 + self._clock.random() / 2)
            )
            pause_s = min(_PAUSE_MAX_S, pause_s * 2)

    def after_fork(self) -> None:
        """Begin without listeners in a forked child: the listening threads are the parent's."""
        self._lock = threading.Lock()
        self._topics: dict[str, TopicListeners] = {}
