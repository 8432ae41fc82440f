"""Azure Blob Storage in lease mode: the service's own clock ends a hold.

Lives here: the requests for ACQUIRE, HAND_OVER, RENEW, RELEASE and BREAK, and how a waiter learns
that a lease has ended.

The lease id is derived from the hold's nonce, so an ACQUIRE whose response was lost may be
repeated. A lease alone gives no fencing token, because it does not change the ETag. So the record
with the next fence is written under the lease, on the condition of the version that was read. Only
then is the lock held. A blob that does not exist cannot be leased. A placeholder is created first,
which readers treat as absent. RELEASE ends the lease before it writes the tombstone, so a waiter
that the tombstone wakes finds the lease free. A holder that dies in between leaves no lease behind.
The lease id is in the blob's metadata, since other clients may add to the record of a running hold
(fair queues). A waiter names the lease that it waits for, because the end of a lease does not
change the ETag.

Every write marks in the blob's metadata that it was made in lease mode. A record without that mark
was written in ETag mode, and no lease shows whether its holder is alive. For such a record this
store reports no expiry. A waiting client then measures it by its own clock (clock_rules.py).

Source: Microsoft Learn, "Lease Blob".
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple, Self

from strongroom.coordination.clock import Clocks
from strongroom.coordination.effects import (
    CONFLICT,
    UNCHANGED,
    Applied,
    CasOutcome,
    Conflict,
    Entry,
    LeaseAction,
    LeaseTerms,
    Unknown,
    Watched,
)
from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.store import Promises
from strongroom.coordination.stores.azure.account import AzureAddress
from strongroom.coordination.stores.azure.etag import HELD_STATES, NOTE, AzureStore, condition
from strongroom.coordination.stores.connections.http_pool import HttpResponse, Transport

_PLACEHOLDER: Final = "placeholder"
_PLACEHOLDER_HEADER: Final = f"x-ms-meta-{_PLACEHOLDER}"
_LEASE_HEADER: Final = "x-ms-meta-lease"
_MODE_HEADER: Final = "x-ms-meta-mode"
_TOMBSTONE_S: Final = 1
_CACHED_MAX: Final = 4096
_SEQUENCE: Final = re.compile(rb'"seq":-?\d+')


def lease_id(nonce: str) -> str:
    """Return the lease id of a hold: a GUID derived from its nonce."""
    digits = hashlib.sha256(nonce.encode()).hexdigest()[:32]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class _CachedEntry(NamedTuple):
    """The entry that this store last read or wrote under a key."""

    version: str
    lease_id: str
    digest: bytes  # of the value without its sequence number
    in_lease_mode: bool = True  # the hold, if any, was acquired in lease mode


class _Write(NamedTuple):
    key: str
    expected: str | None
    value: bytes
    note: str
    until_s: float


class AzureLeaseStore(AzureStore):
    """Blobs in one container, each hold a lease of 15 to 60 whole seconds; see `AzureStore`."""

    def __init__(
        self,
        address: AzureAddress,
        long_polls: bool | None = None,
        durable: bool = True,
        clock: Clocks | None = None,
        transport: Transport | None = None,
    ) -> None:
        super().__init__(address, long_polls, durable, clock, transport)
        self._cached: OrderedDict[str, _CachedEntry] = OrderedDict()
        self._unconfirmed: dict[str, _CachedEntry] = {}  # leases that may be ours, without a record
        self._cache_lock = threading.Lock()

    def labelled(self, label: str) -> Self:
        """What this store has read and leased is known to it alone."""
        named = super().labelled(label)
        named._cached, named._unconfirmed = OrderedDict(), {}
        named._cache_lock = threading.Lock()
        return named

    # Reading

    def _entry(self, key: str, response: HttpResponse) -> Entry | None:
        entry = super()._entry(key, response)
        if entry is None or _PLACEHOLDER_HEADER in response.headers:
            return None
        held, in_lease_mode = response.header(_LEASE_HEADER), _is_in_lease_mode(response)
        self._cache(key, _CachedEntry(entry.version, held, _digest(entry.value), in_lease_mode))
        return entry

    def _expires_in_s(self, response: HttpResponse) -> float | None:
        if response.header("x-ms-lease-state") in HELD_STATES:
            return math.inf
        return 0.0 if _is_in_lease_mode(response) else None

    def _is_listed(self, blob: str) -> bool:
        return f"<{_PLACEHOLDER}>" not in blob.lower()

    def _read_once(self, key: str, version: str | None, wait_s: int) -> Watched:
        held = self._lease_of(key, version)
        if wait_s < 1 or not held:
            return super()._read_once(key, version, wait_s)
        response = self._waiting_read(key, version, wait_s, {"x-ms-lease-id": held})
        if response.status != 412:
            return self._entry_if_changed(key, version, response)
        # That lease has ended. A tombstone follows a release, but not an expiry.
        outcome = super()._read_once(key, version, _TOMBSTONE_S)
        if outcome is not UNCHANGED:
            return outcome
        return self._entry(key, self._read(key, {}, wait_s))

    def _lease_of(self, key: str, version: str | None) -> str:
        with self._cache_lock:
            cached = self._cached.get(key)
        return cached.lease_id if cached is not None and cached.version == version else ""

    def _is_unchanged(self, write: _Write) -> bool:
        with self._cache_lock:
            cached = self._cached.get(write.key)
        same = cached is not None and cached.version == write.expected
        return same and cached is not None and cached.digest == _digest(write.value)

    def _keeps_etag_mode(self, write: _Write) -> bool:
        """Return whether a plain write goes to a record of ETag mode, which must keep that mode.

        A record that is no longer cached counts as one of ETag mode. At worst others then wait
        longer; there is never a second holder.
        """
        if write.expected is None:
            return False
        with self._cache_lock:
            cached = self._cached.get(write.key)
        return cached is None or cached.version != write.expected or not cached.in_lease_mode

    def _cache(self, key: str, cached: _CachedEntry) -> None:
        with self._cache_lock:
            self._cached[key] = cached
            self._cached.move_to_end(key)
            if len(self._cached) > _CACHED_MAX:
                self._cached.popitem(last=False)

    # Writing

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        write = _Write(key, expected, value, note, self._clock.monotonic_s() + timeout_s)
        if lease is None:
            return self._write_keeping_hold(write)
        if lease.action in (LeaseAction.ACQUIRE, LeaseAction.TAKE_OVER):
            return self._acquire(write, lease)
        if lease.action is LeaseAction.HAND_OVER:
            return self._hand_over(write, lease)
        if lease.action is LeaseAction.RENEW:
            return self._renew(write, lease)
        return (
            self._release(write, lease)
            if lease.action is LeaseAction.RELEASE
            else self._break(write)
        )

    def _write_keeping_hold(self, write: _Write) -> CasOutcome:
        """Write without changing the hold, if there is one."""
        self._release_unconfirmed(write)
        held = self._lease_of(write.key, write.expected)
        if held:
            outcome = self._store(write, write.expected, held)
            if not isinstance(outcome, Conflict):
                return outcome
            # The lease may have ended in the meantime; the condition on the version stays.
        outcome = self._store(write, write.expected, "", not self._keeps_etag_mode(write))
        if isinstance(outcome, Conflict) and write.expected is None:
            response = self._read(write.key, {}, self._left_s(write))
            if _PLACEHOLDER_HEADER in response.headers:
                return self._store(write, response.etag, "")
        return outcome

    def _acquire(self, write: _Write, lease: LeaseTerms) -> CasOutcome:
        version = write.expected or self._placeholder(write)
        if version is None:
            return CONFLICT
        own_lease_id = lease_id(lease.nonce)
        terms = {
            "x-ms-proposed-lease-id": own_lease_id,
            "x-ms-lease-duration": str(int(lease.ttl_s)),
            "if-match": version,
        }
        acquired = self._lease(write, "acquire", terms)
        if isinstance(acquired, Unknown):
            self._unconfirmed[write.key] = _CachedEntry(version, own_lease_id, b"")
        if not isinstance(acquired, HttpResponse):
            return acquired
        try:
            outcome = self._store(write, version, own_lease_id)
        except (StoreUnavailable, StoreRefused) as error:
            outcome = Unknown(f"leased, but not written: {error}")
        if isinstance(outcome, Unknown):
            self._unconfirmed[write.key] = _CachedEntry(version, own_lease_id, b"")
        else:
            self._unconfirmed.pop(write.key, None)
        if isinstance(outcome, Conflict):
            self._release_lease(write, own_lease_id, version)
        return outcome

    def _hand_over(self, write: _Write, lease: LeaseTerms) -> CasOutcome:
        """Give the lease the next hold's id, then acquire it again under that id.

        A change of the id does not prolong a lease, but an ACQUIRE by the id that it has does. No
        other client can acquire it in between. If the id was changed before, or the lease has
        ended, the ACQUIRE tells whether the next hold may have it.
        """
        own_lease_id = lease_id(lease.nonce)
        terms = {
            "x-ms-lease-id": lease_id(lease.previous),
            "x-ms-proposed-lease-id": own_lease_id,
            **condition(write.expected),
        }
        changed = self._lease(write, "change", terms)
        if isinstance(changed, Conflict):
            return self._acquire(write, lease)
        if write.expected is not None:
            self._unconfirmed[write.key] = _CachedEntry(write.expected, own_lease_id, b"")
        return changed if isinstance(changed, Unknown) else self._acquire(write, lease)

    def _release_unconfirmed(self, write: _Write) -> None:
        """Release a lease that an unanswered ACQUIRE may have acquired without being repeated."""
        unconfirmed = self._unconfirmed.get(write.key)
        if unconfirmed is not None and unconfirmed.version == write.expected:
            self._unconfirmed.pop(write.key, None)
            self._release_lease(write, unconfirmed.lease_id, unconfirmed.version)

    def _release_lease(self, write: _Write, own_lease_id: str, version: str) -> None:
        # Conditional on that version: an ACQUIRE that was repeated and written since then stays.
        try:
            self._lease(write, "release", {"x-ms-lease-id": own_lease_id, "if-match": version})
        except (StoreUnavailable, StoreRefused):
            pass  # the lease expires by itself

    def _renew(self, write: _Write, lease: LeaseTerms) -> CasOutcome:
        own_lease_id = lease_id(lease.nonce)
        terms = {"x-ms-lease-id": own_lease_id, **condition(write.expected)}
        renewed = self._lease(write, "renew", terms)
        if not isinstance(renewed, HttpResponse):
            return renewed
        if write.expected is not None and self._is_unchanged(write):
            return Applied(write.expected)  # a write would wake every waiter
        return self._store(write, write.expected, own_lease_id)

    def _release(self, write: _Write, lease: LeaseTerms) -> CasOutcome:
        self._release_unconfirmed(write)
        own_lease_id = lease_id(lease.nonce)
        ended = self._lease(write, "release", {"x-ms-lease-id": own_lease_id})
        if isinstance(ended, Unknown):
            return ended
        outcome = self._store(write, write.expected, "")  # after a conflict: it had ended
        if isinstance(outcome, Conflict) and isinstance(ended, HttpResponse) and write.expected:
            response = self._read(write.key, {}, self._left_s(write))
            leased = response.header("x-ms-lease-state") in HELD_STATES
            if response.status == 200 and (
                leased or response.header(_LEASE_HEADER) != own_lease_id
            ):
                # The next holder has overwritten the record before the tombstone.
                return Applied(write.expected)
        return outcome

    def _break(self, write: _Write) -> CasOutcome:
        # Only the hold that was read is broken: the condition names its version.
        terms = {"x-ms-lease-break-period": "0", **condition(write.expected)}
        ended = self._lease(write, "break", terms)
        if isinstance(ended, Unknown):
            return ended
        try:
            return self._store(write, write.expected, "")  # after a conflict: there was no lease
        except StoreUnavailable as error:
            return Unknown(f"broken, but not written: {error}")

    def _placeholder(self, write: _Write) -> str | None:
        """Return the version of the placeholder under a key, or None if something else is there.

        Raises:
            StoreUnavailable: the value was certainly not written.
        """
        created = self._put(
            write.key, {"if-none-match": "*", _PLACEHOLDER_HEADER: "1"}, b"", self._left_s(write)
        )
        if isinstance(created, Applied):
            return created.version
        response = self._read(write.key, {}, self._left_s(write))
        return response.etag if _PLACEHOLDER_HEADER in response.headers else None

    def _lease(
        self, write: _Write, action: str, terms: Mapping[str, str]
    ) -> HttpResponse | CasOutcome:
        headers = {"x-ms-lease-action": action, **terms}
        path = self._path(write.key)
        return self._change("PUT", path, {"comp": "lease"}, headers, self._left_s(write))

    def _store(
        self, write: _Write, version: str | None, held: str, in_lease_mode: bool = True
    ) -> CasOutcome:
        headers = condition(version)
        if in_lease_mode:
            headers[_MODE_HEADER] = "lease"
        if write.note:
            headers[NOTE] = write.note
        if held:
            headers |= {"x-ms-lease-id": held, _LEASE_HEADER: held}
        outcome = self._put(write.key, headers, write.value, self._left_s(write))
        if isinstance(outcome, Applied):
            digest = _digest(write.value)
            self._cache(write.key, _CachedEntry(outcome.version, held, digest, in_lease_mode))
        return outcome

    def _left_s(self, write: _Write) -> float:
        return max(0.001, write.until_s - self._clock.monotonic_s())

    # Promises, forking

    def promises(self) -> Promises:
        return replace(
            super().promises(),
            store=f"Azure Blob Storage, lease mode, container {self._container!r}",
            mutual_exclusion="server-clock",
            server_lease=True,
            ttl_min_s=15.0,
            ttl_max_s=60.0,
            whole_seconds=True,
            ttl_note="mode=etag takes any TTL from 1 s",
            notes=(
                "a hold that was taken in the other mode (etag, lease) is honoured until it ends:"
                " open the container in the same mode everywhere",
            ),
        )

    def after_fork(self) -> None:
        super().after_fork()
        self._cache_lock = threading.Lock()
        self._unconfirmed = {}


def _is_in_lease_mode(response: HttpResponse) -> bool:
    return (
        _MODE_HEADER in response.headers or _LEASE_HEADER in response.headers
    )  # earlier releases: only the lease


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(_SEQUENCE.sub(b"", value, count=1)).digest()
