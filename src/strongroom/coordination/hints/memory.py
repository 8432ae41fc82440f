"""Hints within one process, and hints that lose messages: for tests, and to try out losses.

Lives here: `MemoryHints`, and `Losing`, which drops a share of the messages of any hints.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.errors import Unsupported
from strongroom.coordination.hints import Hints, Multicast
from strongroom.coordination.options.url_options import ANY, UrlOptions, check_options

_OPTIONS: Final = UrlOptions({"lose": ANY})
_named: dict[str, MemoryHints] = {}
_naming = threading.Lock()


class MemoryHints:
    """Hints that call every listener in the publisher's thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[object, tuple[str, Callable[[], None]]] = {}

    def publish(self, topic: str) -> None:
        with self._lock:
            found = [heard for wanted, heard in self._listeners.values() if wanted == topic]
        for heard in found:
            heard()

    def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
        token = object()
        with self._lock:
            self._listeners[token] = (topic, heard)

        def stop() -> None:
            with self._lock:
                self._listeners.pop(token, None)

        return stop

    def listen(
        self, topic: str, heard: Callable[[], None], listening: Callable[[], None]
    ) -> Callable[[], None]:
        stop = self.subscribe(topic, heard)
        listening()
        return stop

    @property
    def listeners_count(self) -> int:
        with self._lock:
            return len(self._listeners)


class Losing:
    """Hints that drop a share of the messages, for each listener independently.

    Arguments:
        hints: the hints that carry the messages.
        share: of messages that are lost, 0 to 1.
        clock: gives the random numbers.
    """

    def __init__(self, hints: Hints, share: float, clock: Clocks | None = None) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"a share lies between 0 and 1, not at {share:g}")
        self._hints, self._share = hints, share
        self._clock = clock or SystemClocks()

    def publish(self, topic: str) -> None:
        self._hints.publish(topic)

    def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
        return self._hints.subscribe(topic, self._dropping(heard))

    def listen(
        self, topic: str, heard: Callable[[], None], listening: Callable[[], None]
    ) -> Callable[[], None]:
        """The call of `listening` is never lost. Raises: Unsupported."""
        if not isinstance(self._hints, Multicast):
            raise Unsupported("these hints cannot tell a message from the beginning of listening")
        return self._hints.listen(topic, self._dropping(heard), listening)

    def _dropping(self, heard: Callable[[], None]) -> Callable[[], None]:
        def heard_unless_lost() -> None:
            if self._clock.random() >= self._share:
                heard()

        return heard_unless_lost


def open_url(url: str, query: Mapping[str, str]) -> Multicast:
    """Return the hints of that name in this process; memory:// without a name is always new.

    Arguments:
        url: memory://NAME
        query: `lose=0.1` loses a tenth of the messages.
    """
    check_options(url, query, _OPTIONS)
    name = urlsplit(url).netloc
    with _naming:
        found = _named.setdefault(name, MemoryHints()) if name else MemoryHints()
    if "lose" not in query:
        return found
    try:
        return Losing(found, float(query["lose"]))
    except ValueError as error:
        raise Unsupported(f"lose={query['lose']} is no share between 0 and 1") from error
