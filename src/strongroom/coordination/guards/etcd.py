"""Keys in etcd that refuse writes with an old fence: etcd as the resource.

    guard = EtcdGuard(held, "etcd://host:2379/strongroom")
    guard.claim()
    guard.write("app/config", data)

One key per lock, `PREFIX/fences/NAME`, keeps the highest fence that was seen. Every write is one
transaction that compares this key and sets it together with the data. No other write comes between:
once a later holder has claimed or written anything, an older one can write nothing. The transaction
also compares the revision of the data that was read. So a request that was given up cannot be
applied after a later one. Source: etcd's documentation, "etcd API" (transactions).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple, Self

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.errors import CorruptRecord, StoreUnavailable, Unsupported
from strongroom.coordination.guards.fencing import Fenced, FencedOut
from strongroom.coordination.options.url_options import query_of
from strongroom.coordination.schema.names import escape
from strongroom.coordination.stores.connections.http_pool import NoResponse
from strongroom.coordination.stores.etcd.address import address_of
from strongroom.coordination.stores.etcd.http import (
    EtcdHttp,
    Json,
    LeaseNotFound,
    MemberError,
    decoded,
    encoded,
)

_TRIES: Final = 20
_DIGITS: Final = 20
_FENCE_MAX: Final = 2**63 - 1
# The fence in a fixed number of digits, which sort as numbers do, and the last write's nonce.
_FENCE_VALUE: Final = re.compile(rb"(\d{20}) ([0-9a-f]+)")


class GuardedKey(NamedTuple):
    """A key as it was read.

    Attributes:
        value: of the key.
        revision: of its last write.
        fence: the highest that this lock's guards have seen; 0 if there was none.
    """

    value: bytes
    revision: int
    fence: int


class _State(NamedTuple):
    value: bytes | None
    revision: int
    fence: int
    write: str


class EtcdGuard:
    """The guard of one cluster's keys, for one hold. Any thread may use it.

    Arguments:
        held: a handle, or a `Token`.
        url: etcd://HOST:2379/PREFIX, as for `connect`; all holders must name the same PREFIX.
        timeout_s: for one request.
        clock: for tests.

    Raises:
        Unsupported: the URL cannot be understood, or the fence is out of bounds.
    """

    def __init__(
        self, held: Fenced, url: str, *, timeout_s: float = 10.0, clock: Clocks | None = None
    ) -> None:
        if not 0 < held.fence < _FENCE_MAX:
            raise Unsupported(f"fence {held.fence} of {held.name!r}: it must lie in 1..2**63-2")
        self._held, self._timeout_s = held, timeout_s
        self._clock = clock or SystemClocks()
        address = address_of(url, query_of(url))
        self._http = EtcdHttp(address, self._clock)
        self._prefix = f"{address.prefix}/"
        self._fence_key = f"{self._prefix}fences/{escape(held.name)}"

    def read(self, key: str) -> GuardedKey | None:
        """Return a key; None if it is absent. The hold is not checked.

        Raises:
            StoreUnavailable, StoreRefused: the cluster did not answer, or refused.
            CorruptRecord: the value of the fence's key is not a fence.
        """
        state = self._read_state(key)
        if state.value is None:
            return None
        return GuardedKey(state.value, state.revision, state.fence)

    def claim(self) -> None:
        """Make the guarded keys refuse every earlier holder from now on.

        Raises:
            LockLost: the hold is known to be over.
            FencedOut: a later holder has claimed the keys.
            StoreUnavailable: it is not known whether the keys were claimed.
            StoreRefused: the cluster refuses.
            CorruptRecord: the value of the fence's key is not a fence.
        """
        self._write("", lambda _: [])

    def write(self, key: str, value: bytes) -> int:
        """Put a key; return the revision of that write.

        Arguments:
            key: any text, but not below the URL's prefix, where the locks are.
            value: at most about 1 MB, as etcd is set up.

        Raises: as `claim`; Unsupported for a key of the locks.
        """
        put = {"request_put": {"key": encoded(self._checked(key)), "value": encoded(value)}}
        return self._write(key, lambda _: [put])

    def delete(self, key: str) -> bool:
        """Delete a key; return whether it was there.

        Raises: as `write`.
        """
        deletes = {"request_delete_range": {"key": encoded(self._checked(key))}}
        exists = False

        def changes(state: _State) -> list[Json]:
            nonlocal exists
            exists = exists or state.value is not None
            return [deletes]

        self._write(key, changes)
        return exists

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _checked(self, key: str) -> str:
        if not key or key.startswith(self._prefix):
            raise Unsupported(f"{key!r} is no key for data: below {self._prefix} lie the locks")
        return key

    def _write(self, key: str, changes: Callable[[_State], list[Json]]) -> int:
        nonce, sent_at = self._clock.nonce(), None
        fence_value = {
            "key": encoded(self._fence_key),
            "value": encoded(f"{self._digits(0)} {nonce}"),
        }
        for _ in range(_TRIES):
            self._held.check()
            state = self._read_state(key)
            if sent_at is not None and state.write == nonce:
                return state.revision  # the write was applied, and its answer was lost
            if state.fence > self._held.fence:
                raise FencedOut(self._held.name, self._held.fence, state.fence, "etcd")
            if sent_at not in (None, state.revision):
                # The key was written by this request, or by another thread with the same fence.
                break
            body = {
                "compare": self._compares(key, state),
                "success": [{"request_put": fence_value}, *changes(state)],
            }
            try:
                found = self._http.write("/v3/kv/txn", body, self._timeout_s)
            except (NoResponse, MemberError, LeaseNotFound):
                # A request that is still on its way compares the same revision. So it is applied
                # once at most.
                sent_at = state.revision
                continue
            if found.get("succeeded"):
                return int(found["header"]["revision"])
        raise StoreUnavailable(f"it is not known whether {key or 'the fence'!r} was written")

    def _compares(self, key: str, state: _State) -> list[Json]:
        fence_key = {"key": encoded(self._fence_key)}
        if state.fence:
            # True up to this very fence, even if it was written meanwhile. Greater fences begin
            # with greater digits.
            end = encoded(self._digits(1))
            fence: Json = {**fence_key, "target": "VALUE", "result": "LESS", "value": end}
        else:
            fence = {**fence_key, "target": "MOD", "result": "EQUAL", "mod_revision": "0"}
        if not key:
            return [fence]
        data = {"key": encoded(key), "target": "MOD", "result": "EQUAL"}
        return [fence, {**data, "mod_revision": str(state.revision)}]

    def _digits(self, more: int) -> str:
        return f"{self._held.fence + more:0{_DIGITS}}"

    def _read_state(self, key: str) -> _State:
        """Return the fence and the data, read in one transaction."""
        names = [self._fence_key, key] if key else [self._fence_key]
        reads = [{"request_range": {"key": encoded(name)}} for name in names]
        found = self._http.read("/v3/kv/txn", {"success": reads}, self._timeout_s)
        responses = [response.get("response_range", {}) for response in found.get("responses", [])]
        if len(responses) != len(names):
            raise StoreUnavailable("etcd answered something else than it was asked")
        rows = [(response.get("kvs") or [None])[0] for response in responses]
        fence, write = 0, ""
        if rows[0] is not None:
            text = decoded(rows[0], "value")
            fence_value = _FENCE_VALUE.fullmatch(text)
            if fence_value is None:
                raise CorruptRecord(self._fence_key, text, "a fence in 20 digits, and a nonce")
            fence, write = int(fence_value[1]), fence_value[2].decode()
        row = rows[1] if key else None
        if row is None:
            return _State(None, 0, fence, write)
        return _State(decoded(row, "value"), int(row["mod_revision"]), fence, write)
