"""The leases of etcd that one client binds its holds to: granted, used once more, ended.

Lives here: `EtcdLeases`. A lease is granted for a second more than is wanted. For half a second
after its request was sent it is as good as a new one, since a holder's belief ends earlier. So a
client that takes a lock often asks for few leases. No lease is ever prolonged. Must not live here:
what is bound to them (etcd/store.py).
"""

from __future__ import annotations

import math
import threading
from typing import Final, NamedTuple

from strongroom.coordination.clock import Clocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.stores.connections.http_pool import NoAnswer
from strongroom.coordination.stores.etcd.http import EtcdHttp, Failed, Missing

_SPARE_S: Final = 1
# Less than _SPARE_S * (1 - e) / (1 + e) for clocks that go wrong by a share e of up to a third.
_YOUNG_S: Final = 0.5
_IDLE_MAX: Final = 32
# One of a long TTL would be left in the cluster for as long if its client died.
_IDLE_TTL_MAX_S: Final = 60
_CLOSE_S: Final = 1.0


class EtcdLease(NamedTuple):
    """A lease of ours.

    Attributes:
        id: etcd's.
        ttl_s: for how long a hold on it may be believed.
        sent_s: when it was asked for, by the boot clock.
    """

    id: str
    ttl_s: float
    sent_s: float


class EtcdLeases:
    """The leases of one client. Any thread may use it.

    Arguments:
        http: the cluster.
        clock: of ages (boot clock) and time limits.
    """

    def __init__(self, http: EtcdHttp, clock: Clocks) -> None:
        self._http, self._clock = http, clock
        self.forget()

    def forget(self) -> None:
        """In a forked child: what is there is the parent's."""
        self._lock = threading.Lock()
        self._recent: dict[str, EtcdLease] = {}
        self._idle: list[EtcdLease] = []

    def take(self, ttl_s: float, until_s: float, fresh: bool = False) -> EtcdLease:
        """Return a lease that nothing is bound to, and that lives for `ttl_s` from now at least.

        Arguments:
            ttl_s: for how long.
            until_s: when to give up, by the monotonic clock.
            fresh: ask for a new one.

        Raises:
            StoreUnavailable, StoreRefused: there is none; one that nobody knows of ends by itself.
        """
        now_s = self._clock.boot_s()
        with self._lock:
            old = [lease for lease in self._idle if not _young(lease, now_s)]
            self._idle = [lease for lease in self._idle if _young(lease, now_s)]
            fit = [lease for lease in self._idle if lease.ttl_s == ttl_s and not fresh]
            if fit:
                self._idle.remove(fit[-1])
        if old:
            self.end(old[0].id, until_s)
        return fit[-1] if fit else self._grant(ttl_s, until_s)

    def _grant(self, ttl_s: float, until_s: float) -> EtcdLease:
        sent_s, left_s = self._clock.boot_s(), until_s - self._clock.monotonic_s()
        wanted = {"TTL": math.ceil(ttl_s) + _SPARE_S}
        try:
            found = self._http.write("/v3/lease/grant", wanted, left_s)
            lease = EtcdLease(str(found["ID"]), ttl_s, sent_s)
        except (NoAnswer, Failed, Missing, KeyError) as error:
            raise StoreUnavailable(str(error)) from error
        with self._lock:
            for known in [one for one in self._recent.values() if not _young(one, sent_s)]:
                del self._recent[known.id]
            self._recent[lease.id] = lease
        return lease

    def give_back(self, lease_id: str, until_s: float) -> None:
        """Note that nothing is bound to it any more: it is used again if it is young, or ended.

        Arguments:
            lease_id: anybody's.
            until_s: when to give up, by the monotonic clock.
        """
        with self._lock:
            lease = self._recent.get(lease_id)
            good = lease is not None and _young(lease, self._clock.boot_s())
            good = good and len(self._idle) < _IDLE_MAX
            if lease is not None and good and lease.ttl_s <= _IDLE_TTL_MAX_S:
                self._idle.append(lease)
                return
            self._recent.pop(lease_id, None)
        self.end(lease_id, until_s)

    def end(self, lease_id: str, until_s: float) -> None:
        """Revoke one to which nothing is bound, if there is time; else it ends by itself."""
        left_s = until_s - self._clock.monotonic_s()
        try:
            self._http.write("/v3/lease/revoke", {"ID": lease_id}, left_s)
        except (NoAnswer, Failed, Missing, StoreUnavailable, StoreRefused):
            return

    def close(self) -> None:
        """End what is not used."""
        with self._lock:
            idle, self._idle = self._idle, []
        until_s = self._clock.monotonic_s() + _CLOSE_S
        for lease in idle:
            self.end(lease.id, until_s)


def _young(lease: EtcdLease, now_s: float) -> bool:
    return now_s - lease.sent_s <= _YOUNG_S
