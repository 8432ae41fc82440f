"""The etcd leases that one client binds its holds to: granted, reused while young, revoked.

Lives here: `EtcdLeases`. A lease is granted for one second more than the hold needs. It may be
reused for half a second after its request was sent, since its spare second covers that. So a client
that acquires locks often requests few leases. No lease is ever renewed. Must not live here: the
keys that are bound to leases (etcd/store.py).
"""

from __future__ import annotations

import math
import threading
from typing import Final, NamedTuple

from strongroom.coordination.clock import Clocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.stores.connections.http_pool import NoResponse
from strongroom.coordination.stores.etcd.http import EtcdHttp, LeaseNotFound, MemberError

_SPARE_S: Final = 1
# Less than _SPARE_S * (1 - e) / (1 + e), for clock errors e of up to a third.
_REUSABLE_S: Final = 0.5
_IDLE_MAX: Final = 32
# An idle lease with a long TTL would stay in the cluster for that long if its client died.
_IDLE_TTL_MAX_S: Final = 60
_CLOSE_S: Final = 1.0


class EtcdLease(NamedTuple):
    """A lease that this client requested.

    Attributes:
        id: the lease's id in etcd.
        ttl_s: the longest hold that the lease can guard.
        sent_s: when it was requested, by the boot clock.
    """

    id: str
    ttl_s: float
    sent_s: float


class EtcdLeases:
    """The leases of one client. Thread-safe.

    Arguments:
        clock: measures the age of leases (boot clock) and time limits.
    """

    def __init__(self, http: EtcdHttp, clock: Clocks) -> None:
        self._http, self._clock = http, clock
        self.reset()

    def reset(self) -> None:
        """In a forked child, the inherited leases belong to the parent."""
        self._lock = threading.Lock()
        self._recent: dict[str, EtcdLease] = {}
        self._idle: list[EtcdLease] = []

    def take(self, ttl_s: float, until_s: float, fresh: bool = False) -> EtcdLease:
        """Return a lease with no key bound to it that lives for at least `ttl_s` from now.

        Arguments:
            ttl_s: the required lifetime.
            until_s: when to give up, by the monotonic clock.
            fresh: request a new lease instead of reusing one.

        Raises:
            StoreUnavailable, StoreRefused: no lease was granted, or its response was lost.
        """
        now_s = self._clock.boot_s()
        with self._lock:
            expired = [lease for lease in self._idle if not _is_reusable(lease, now_s)]
            self._idle = [lease for lease in self._idle if _is_reusable(lease, now_s)]
            reusable = [lease for lease in self._idle if lease.ttl_s == ttl_s and not fresh]
            if reusable:
                self._idle.remove(reusable[-1])
        if expired:
            self.end(expired[0].id, until_s)
        return reusable[-1] if reusable else self._grant(ttl_s, until_s)

    def _grant(self, ttl_s: float, until_s: float) -> EtcdLease:
        sent_s, left_s = self._clock.boot_s(), until_s - self._clock.monotonic_s()
        terms = {"TTL": math.ceil(ttl_s) + _SPARE_S}
        try:
            found = self._http.write("/v3/lease/grant", terms, left_s)
            lease = EtcdLease(str(found["ID"]), ttl_s, sent_s)
        except (NoResponse, MemberError, LeaseNotFound, KeyError) as error:
            raise StoreUnavailable(str(error)) from error
        with self._lock:
            for known in [one for one in self._recent.values() if not _is_reusable(one, sent_s)]:
                del self._recent[known.id]
            self._recent[lease.id] = lease
        return lease

    def give_back(self, lease_id: str, until_s: float) -> None:
        """Note that no key is bound to the lease any more: keep it if it is young, else revoke it.

        Arguments:
            lease_id: a lease of this client, or of another.
            until_s: when to give up, by the monotonic clock.
        """
        with self._lock:
            lease = self._recent.get(lease_id)
            is_reusable = lease is not None and _is_reusable(lease, self._clock.boot_s())
            is_reusable = is_reusable and len(self._idle) < _IDLE_MAX
            if lease is not None and is_reusable and lease.ttl_s <= _IDLE_TTL_MAX_S:
                self._idle.append(lease)
                return
            self._recent.pop(lease_id, None)
        self.end(lease_id, until_s)

    def end(self, lease_id: str, until_s: float) -> None:
        """Revoke a lease that no key is bound to. If that fails, the lease expires by itself."""
        left_s = until_s - self._clock.monotonic_s()
        try:
            self._http.write("/v3/lease/revoke", {"ID": lease_id}, left_s)
        except (NoResponse, MemberError, LeaseNotFound, StoreUnavailable, StoreRefused):
            return

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        until_s = self._clock.monotonic_s() + _CLOSE_S
        for lease in idle:
            self.end(lease.id, until_s)


def _is_reusable(lease: EtcdLease, now_s: float) -> bool:
    return now_s - lease.sent_s <= _REUSABLE_S
