"""etcd as a store: one key per register, and a second key with a lease while it is held.

Lives here: `EtcdStore`. The value is under `prefix/key`, with the note in a line before it. A hold
is a second key. It is bound to an etcd lease and holds the hold's nonce, so it disappears when the
lease ends. A version is the register's revision, with an "h" while the hold key exists. So the end
of a hold is a new version. Every write is one transaction that compares both keys, since a lease
that was alive a moment ago proves nothing. A hold is prolonged by a NEW lease, never by a
keep-alive. A leader that does not know yet that it was replaced still answers keep-alives. It may
also expire the leases that it knows, but it does not know the new one. Any lease that it knows ends
after its holder's deadline. Source: etcd's documentation, "etcd API" (transactions, leases,
watches). Must not live here: HTTP (etcd/http.py), the choice of a lease (etcd/leases.py), the
stream of a watch (etcd/watch.py).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import (
    CONFLICT,
    UNCHANGED,
    Applied,
    CasOutcome,
    Entry,
    LeaseAction,
    LeaseTerms,
    Unknown,
    Watched,
)
from strongroom.coordination.errors import CorruptRecord, StoreRefused, StoreUnavailable
from strongroom.coordination.schema.records import DECODE_ERRORS
from strongroom.coordination.store import Promises
from strongroom.coordination.stores.connections.http_pool import NoResponse
from strongroom.coordination.stores.etcd.address import EtcdAddress, address_of
from strongroom.coordination.stores.etcd.http import (
    EtcdHttp,
    Json,
    LeaseNotFound,
    MemberError,
    decoded,
    encoded,
)
from strongroom.coordination.stores.etcd.leases import EtcdLeases
from strongroom.coordination.stores.etcd.watch import EtcdWatches, KnownVersion
from strongroom.coordination.stores.threaded_store import StoreBase

_HOLD: Final = b"\x00hold"  # sorts right after its register; no key contains it
_AFTER: Final = b"\x01"
_HELD: Final = "h"
_VERSION: Final = re.compile(r"([1-9][0-9]{0,18})(h?)", re.ASCII)
_REVISION_MAX: Final = 2**63 - 2
_PAGE: Final = 1000
_READ_TIMEOUT_MIN_S: Final = 2.0


class _NoLease(StoreUnavailable):
    """The lease that a key was to be bound to does not exist; nothing was applied."""


class _State(NamedTuple):
    """The parts of a version: the register's revision (0: absent), and whether a hold exists."""

    revision: int
    held: bool


_ABSENT: Final = _State(0, False)


class EtcdStore(StoreBase):
    """One cluster and one key prefix. Thread-safe."""

    def __init__(self, address: EtcdAddress) -> None:
        self._clock = SystemClocks()
        self._http = EtcdHttp(address, self._clock)
        self._watches = EtcdWatches(self._http)
        self._leases = EtcdLeases(self._http, self._clock)
        self._prefix = f"{address.prefix}/".encode()

    def get(self, key: str, timeout_s: float) -> Entry | None:
        name = self._name(key)
        found = self._http.read("/v3/kv/range", _range(name, name + _AFTER), timeout_s)
        rows = {decoded(row, "key"): row for row in found.get("kvs", [])}
        row = rows.get(name)
        if row is None:
            return None
        head, _, value = decoded(row, "value").partition(b"\n")
        try:
            note = str(json.loads(head)["note"])
        except DECODE_ERRORS as error:
            raise CorruptRecord(key, head, "a line of JSON and a value") from error
        held = name + _HOLD in rows
        version = _version(int(row["mod_revision"]), held)
        return Entry(value, version, math.inf if held else 0.0, note)

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        state = _state(expected)
        if state is None:
            return CONFLICT  # not a version of this store
        self._watches.sweep()
        name, until_s = self._name(key), self._clock.monotonic_s() + timeout_s
        put = _put_request(name, json.dumps({"note": note}).encode() + b"\n" + value)
        if lease is None:
            return self._write(name, state, "", [put], state.held, until_s)
        if lease.action not in (LeaseAction.RELEASE, LeaseAction.BREAK):
            if lease.action is LeaseAction.RENEW and not state.held:
                return CONFLICT  # expired by the store's clock
            return self._hold(name, state, put, lease, until_s)
        nonce = lease.nonce if lease.action is LeaseAction.RELEASE else ""
        return self._write(name, state, nonce, [put, _delete_request(name + _HOLD)], False, until_s)

    def _hold(
        self, name: bytes, state: _State, put: Json, lease: LeaseTerms, until_s: float
    ) -> CasOutcome:
        """Write the value and bind the hold key to a lease with no other key; see the module."""
        found_nonce = lease.previous or lease.nonce
        for fresh in (False, True):
            found = self._leases.take(lease.ttl_s, until_s, fresh)
            bound = _put_request(name + _HOLD, lease.nonce.encode(), found.id)
            try:
                outcome = self._write(name, state, found_nonce, [put, bound], True, until_s)
            except _NoLease:
                continue  # the lease was ended: the transaction was refused
            except (StoreUnavailable, StoreRefused):
                self._leases.give_back(found.id, until_s)
                raise
            if outcome is CONFLICT:
                self._leases.give_back(found.id, until_s)
            return outcome
        raise StoreUnavailable("etcd ends every lease at once")

    def _write(
        self,
        name: bytes,
        state: _State,
        nonce: str,
        changes: list[Json],
        stays_held: bool,
        until_s: float,
    ) -> CasOutcome:
        """Apply the changes if both keys match `state`, and an existing hold carries `nonce`.

        Arguments:
            name: the key of the register.
            state: the expected state.
            nonce: the expected nonce of the hold; empty: any nonce.
            changes: puts and deletes.
            stays_held: whether a hold exists afterwards.
            until_s: when to give up, by the monotonic clock.

        Raises:
            _NoLease: a lease in the changes does not exist; nothing was applied.
        """
        body = {"compare": _compares(name, state, nonce), "success": changes}
        left_s = until_s - self._clock.monotonic_s()
        if left_s <= 0:
            raise StoreUnavailable("etcd was not asked: the time is up")
        try:
            found = self._http.write("/v3/kv/txn", body, left_s)
            if not found.get("succeeded"):
                return CONFLICT
            version = _version(int(found["header"]["revision"]), stays_held)
        except LeaseNotFound as error:
            raise _NoLease(str(error)) from error
        except (NoResponse, MemberError, KeyError, ValueError) as error:
            return Unknown(str(error))
        for lease_id in _unbound_leases(found):
            self._leases.give_back(lease_id, until_s)
        return Applied(version)

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        state, name = _state(expected), self._name(key)
        if state is None:
            return CONFLICT
        until_s = self._clock.monotonic_s() + timeout_s
        deletes = [_delete_request(name), _delete_request(name + _HOLD)]
        outcome = self._write(name, state, "", deletes, False, until_s)
        return Applied(expected) if isinstance(outcome, Applied) else outcome

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        until_s = self._clock.monotonic_s() + timeout_s
        start, end = self._name(prefix), self._name(prefix) + b"\x7f"
        keys: list[str] = []
        revision = "0"
        while True:
            # All pages read the revision of the first page, so they form one snapshot.
            page = {**_range(start, end), "keys_only": True, "limit": _PAGE, "revision": revision}
            left_s = until_s - self._clock.monotonic_s()
            found = self._http.read("/v3/kv/range", page, left_s)
            names = [decoded(row, "key") for row in found.get("kvs", [])]
            keys += [
                name.removeprefix(self._prefix).decode()
                for name in names
                if name.isascii() and not name.endswith(_HOLD)
            ]
            if not found.get("more") or not names:
                return sorted(keys)
            start, revision = names[-1] + b"\x00", str(found["header"]["revision"])

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        name, state = self._name(key), _state(version) or _ABSENT
        now_s = self._clock.monotonic_s()
        until_s, known = now_s + timeout_s, (name, version)
        stream = self._watches.reuse(known)
        # A new watch reports no earlier change, so the key is read once after it has begun.
        must_read = stream is None
        # Even in a short wait, a slow member gets enough time to confirm a watch.
        open_until_s = max(until_s, now_s + _READ_TIMEOUT_MIN_S)
        stream = stream or self._watches.open(name, name + _AFTER, open_until_s)
        reusable_from: KnownVersion | None = None
        try:
            while must_read or stream.changed(state.revision, until_s):
                must_read = False
                entry = self.get(key, max(until_s - self._clock.monotonic_s(), _READ_TIMEOUT_MIN_S))
                found = None if entry is None else entry.version
                if found != version:
                    reusable_from = (name, found)
                    return entry
            reusable_from = known
            return UNCHANGED
        finally:
            self._watches.give_back(stream, reusable_from)

    def promises(self) -> Promises:
        return Promises(
            store="etcd",
            mutual_exclusion="server-clock",
            assumption="no member's clock runs faster, and no client's slower, than the bound says;"
            " a change of leader only prolongs holds",
            fencing="durable",
            watch="push",
            durable=True,
            scope="network",
            server_lease=True,
            ttl_min_s=2.0,
            whole_seconds=True,
            poll_min_s=0.05,
            poll_max_s=1.0,
            notes=(
                "the lock of a dead holder is free up to a second later than its TTL says",
                "a lease that an administrator revokes frees the lock at once; its holder learns"
                " of it by a watch (alert), a moment later",
                "restoring an older snapshot of the cluster takes fences and ids back",
            ),
        )

    def after_fork(self) -> None:
        self._http.reset()
        self._watches.reset()
        self._leases.reset()

    def close(self) -> None:
        self._watches.close()
        self._leases.close()
        self._http.close()

    def _name(self, key: str) -> bytes:
        return self._prefix + key.encode()


def _version(revision: int, held: bool) -> str:
    return f"{revision}{_HELD if held else ''}"


def _state(version: str | None) -> _State | None:
    """Return the state that a version names; None if it is not a version of this store."""
    if version is None:
        return _ABSENT
    found = _VERSION.fullmatch(version)
    if found is None or int(found[1]) > _REVISION_MAX:
        return None
    return _State(int(found[1]), bool(found[2]))


def _range(key: bytes, end: bytes) -> Json:
    return {"key": encoded(key), "range_end": encoded(end)}


def _compares(name: bytes, state: _State, nonce: str) -> list[Json]:
    hold = encoded(name + _HOLD)
    register: Json = {"key": encoded(name), "target": "MOD", "result": "EQUAL"}
    register["mod_revision"] = str(state.revision)
    if not state.held:
        return [register, {"key": hold, "target": "MOD", "result": "EQUAL", "mod_revision": "0"}]
    if not nonce:
        any_hold: Json = {"key": hold, "target": "MOD", "result": "GREATER", "mod_revision": "0"}
        return [register, any_hold]
    own_hold = {"key": hold, "target": "VALUE", "result": "EQUAL", "value": encoded(nonce)}
    return [register, own_hold]


def _put_request(key: bytes, value: bytes, lease_id: str = "0") -> Json:
    # The previous value shows which lease is not needed any more.
    put: Json = {"key": encoded(key), "value": encoded(value), "lease": lease_id}
    return {"request_put": {**put, "prev_kv": lease_id != "0"}}


def _delete_request(key: bytes) -> Json:
    return {"request_delete_range": {"key": encoded(key), "prev_kv": key.endswith(_HOLD)}}


def _unbound_leases(found: Json) -> list[str]:
    """Return the leases of the keys that the transaction replaced or deleted."""
    rows: list[Json] = []
    for response in found.get("responses", []):
        rows += response.get("response_delete_range", {}).get("prev_kvs", [])
        previous = response.get("response_put", {}).get("prev_kv")
        rows += [previous] if previous else []
    return [str(row["lease"]) for row in rows if row.get("lease", "0") != "0"]


def open_url(url: str, query: Mapping[str, str]) -> EtcdStore:
    """Return the store in a cluster; for the URL and its query see `address.address_of`."""
    return EtcdStore(address_of(url, query))
