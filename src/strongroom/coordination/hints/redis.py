"""Redis as a bus: PUBLISH and SUBSCRIBE.

Redis does not keep messages for a listener that is not connected. A listener that connects again
reads the store once. Source: Redis documentation, "Pub/Sub". Must not live here: sessions
(stores/redis/address.py), reconnecting (bus.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.hints.bus import ATTEMPT_S, BusHints, TopicListeners
from strongroom.coordination.hints.store_line import listen_on, translated_errors
from strongroom.coordination.stores.redis.address import (
    RedisAddress,
    address_of,
    open_session,
    store_error,
)
from strongroom.coordination.stores.redis.store import RedisNotifications
from strongroom.coordination.stores.redis.wire import RedisError


class RedisBus:
    """A bus for hints over one Redis, below one prefix.

    Arguments:
        clock: for time limits.
    """

    def __init__(self, address: RedisAddress, clock: Clocks | None = None) -> None:
        self._address, self._clock = address, clock or SystemClocks()

    @property
    def display_url(self) -> str:
        return self._address.display_url

    def publish(self, topic: str) -> None:
        until_s = self._clock.monotonic_s() + ATTEMPT_S
        with translated_errors(self._address.display_url, self._address.user):
            connection = open_session(self._address, self._clock, until_s)
            try:
                connection.call(until_s, "PUBLISH", self._channel(topic), "look")
            except RedisError as error:
                raise store_error(self._address, error) from error
            finally:
                connection.close()

    def listen(self, listeners: TopicListeners) -> None:
        with translated_errors(self._address.display_url, self._address.user):
            connection = RedisNotifications(self._address, self._clock)
            try:
                listen_on(connection, self._channel(listeners.topic), listeners)
            finally:
                connection.close()

    def _channel(self, topic: str) -> str:
        return f"{self._address.prefix}hints:{topic}"


def open_url(url: str, query: Mapping[str, str]) -> BusHints:
    """Return hints over Redis.

    Arguments:
        url: redis://[[USER]:PASSWORD@]HOST[:6379][/DATABASE], or rediss:// for TLS. A message
            reaches the listeners of all databases of the server.
        query: as of the store; see `stores.redis.address.address_of`.
    """
    return BusHints(RedisBus(address_of(url, query)))
