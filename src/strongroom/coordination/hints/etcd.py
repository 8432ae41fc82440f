"""etcd as a bus: one key per topic, which is written at each message and watched by listeners.

The cluster keeps no more than the last message of each topic, an empty key. Must not live here:
reconnecting (bus.py), the stream of a watch (stores/etcd/watch.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.hints.bus import (
    ATTEMPT_S,
    BusHints,
    BusRefused,
    BusUnavailable,
    TopicListeners,
)
from strongroom.coordination.session.forking import register_for_forks
from strongroom.coordination.stores.connections.http_pool import NoResponse
from strongroom.coordination.stores.etcd.address import EtcdAddress, address_of
from strongroom.coordination.stores.etcd.http import EtcdHttp, LeaseNotFound, MemberError, encoded
from strongroom.coordination.stores.etcd.watch import EtcdWatches

# A member that is cut off from the others sends nothing, nor does a connection that is cut
# silently. So the watch begins anew after this time.
_RENEW_S: Final = 60.0


class EtcdBus:
    """A bus for hints over an etcd cluster.

    Arguments:
        address: of the cluster; topics are keys below `PREFIX/hints/`.
    """

    def __init__(self, address: EtcdAddress) -> None:
        self._clock = SystemClocks()
        self._address = address
        self._http = EtcdHttp(address, self._clock)
        register_for_forks(self)

    @property
    def display_url(self) -> str:
        return f"etcd://{','.join(m.partition('://')[2] for m in self._address.members)}"

    def publish(self, topic: str) -> None:
        try:
            # A message may be sent twice, so the request may be repeated at any member.
            self._http.read("/v3/kv/put", {"key": encoded(self._key(topic))}, ATTEMPT_S)
        except StoreUnavailable as error:
            raise BusUnavailable(f"{self.display_url} does not answer ({error})") from None
        except StoreRefused as error:
            raise BusRefused(f"{self.display_url} refuses: {error}") from None
        finally:
            self._http.close()  # no connection is open without listeners

    def listen(self, listeners: TopicListeners) -> None:
        watches = EtcdWatches(self._http)
        listeners.on_close(watches.close)
        try:
            while not listeners.closed:
                self._listen(listeners, watches)
        except (StoreUnavailable, NoResponse, MemberError, LeaseNotFound) as error:
            if not listeners.closed:
                raise BusUnavailable(f"{self.display_url} does not answer ({error})") from None
        except StoreRefused as error:
            raise BusRefused(f"{self.display_url} refuses: {error}") from None
        finally:
            listeners.on_close(None)

    def _listen(self, listeners: TopicListeners, watches: EtcdWatches) -> None:
        key = self._key(listeners.topic)
        began_s = self._clock.monotonic_s()
        watch = watches.open(key, key + b"\x00", began_s + ATTEMPT_S)
        try:
            listeners.subscribed()
            while not listeners.closed and watch.changed(0, began_s + _RENEW_S):
                listeners.message_received()
        finally:
            watches.give_back(watch, None)

    def after_fork(self) -> None:
        """Drop the connections in a forked child: they are the parent's."""
        self._http.reset()

    def _key(self, topic: str) -> bytes:
        return f"{self._address.prefix}/hints/{topic}".encode()


def open_url(url: str, query: Mapping[str, str]) -> BusHints:
    """Return hints over etcd.

    Arguments:
        url, query: as of the store; see `stores.etcd.address.address_of`.
    """
    return BusHints(EtcdBus(address_of(url, query)))
