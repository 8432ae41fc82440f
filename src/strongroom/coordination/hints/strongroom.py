"""A Strongroom as a bus: one blob per topic, written at each message, long-polled by listeners.

It is for a gate whose record is in a store that can only be polled, if a Strongroom is available
too. A gate whose record is in a Strongroom needs no bus: its waiters watch the record. The secret
is the account's key, as for the store. Must not live here: requests (stores/), reconnecting
(bus.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.effects import UNCHANGED, Applied, Unknown
from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.hints.bus import (
    ATTEMPT_S,
    BusHints,
    BusRefused,
    BusUnavailable,
    TopicListeners,
)
from strongroom.coordination.store import Store

_TRIES: Final = 5
# The length of one watch. A listener that is no longer needed ends after it.
_WATCH_S: Final = 10.0


class WatchedStore:
    """A bus over any store that can be watched: one key per topic, written at each message.

    Arguments:
        store: its `promises().watch` is not "poll".
        display_url: the store's address, for people.
        clock: gives the nonces that make each message different.
    """

    def __init__(self, store: Store, display_url: str, clock: Clocks | None = None) -> None:
        self._store, self._display_url = store, display_url
        self._clock = clock or SystemClocks()

    @property
    def display_url(self) -> str:
        return self._display_url

    def publish(self, topic: str) -> None:
        key = _key(topic)
        try:
            for _ in range(_TRIES):
                entry = self._store.get(key, ATTEMPT_S)
                expected = None if entry is None else entry.version
                message = self._clock.nonce().encode()
                outcome = self._store.cas(key, expected, message, ATTEMPT_S)
                if isinstance(outcome, Applied):
                    return
                if isinstance(outcome, Unknown):
                    raise BusUnavailable(
                        f"{self._display_url} did not say whether it took the message"
                    )
        except StoreRefused as error:
            raise BusRefused(f"{self._display_url} refuses: {error}") from error
        except StoreUnavailable as error:
            raise BusUnavailable(f"{self._display_url} does not answer: {error}") from error
        # Other clients have published meanwhile, and their messages wake the same listeners.

    def listen(self, listeners: TopicListeners) -> None:
        """Notices within `_WATCH_S` that the listeners are gone."""
        if self._store.promises().watch == "poll":
            raise BusRefused(
                f"{self._display_url} refuses: it is no Strongroom, and cannot be watched"
            )
        key = _key(listeners.topic)
        try:
            entry = self._store.get(key, ATTEMPT_S)
            listeners.subscribed()
            while not listeners.closed:
                version = None if entry is None else entry.version
                outcome = self._store.watch(key, version, _WATCH_S)
                if outcome is UNCHANGED:
                    continue
                if (None if outcome is None else outcome.version) != version:
                    listeners.message_received()
                entry = outcome
        except StoreRefused as error:
            raise BusRefused(f"{self._display_url} refuses: {error}") from error
        except StoreUnavailable as error:
            raise BusUnavailable(f"{self._display_url} does not answer: {error}") from error


def _key(topic: str) -> str:
    # A kind has no dot in it, so that two topics never share a key.
    return f"hint/{topic.replace('/', '.', 1)}"


def open_url(url: str, query: Mapping[str, str]) -> BusHints:
    """Return hints over a Strongroom.

    Arguments:
        url: azure://ACCOUNT/CONTAINER, as for `connect`
        query: as for `connect`.

    Raises:
        Unsupported: the URL cannot be understood, or names a service that can only be polled.
    """
    from strongroom.coordination.stores.azure.store import open_url as open_store

    store = open_store(url, {**query, "mode": "etag"})
    parts = urlsplit(url)
    return BusHints(WatchedStore(store, f"azure://{parts.hostname or ''}{parts.path}"))
