"""The contract between drivers and stores: a store's operations and its promises.

Lives here: the protocols (sync and asyncio), `Promises`. Must not live here: any store (stores/),
their defaults (stores/threaded_store.py), any recipe. One conformance suite under
tests/coordination runs against every store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol, runtime_checkable

from strongroom.coordination.effects import CasOutcome, Entry, LeaseTerms, Watched

SET_BACK: Final = (
    "a server's clock that is set back does no harm: a hold that was taken before is over, unless"
    " it is renewed, one TTL after a waiting client first sees it, by that client's clock"
)
"""A note for stores whose clock is a wall clock."""


@dataclass(frozen=True, slots=True)
class Promises:
    """The guarantees of a lock on this store, and the assumption behind each.

    Attributes:
        store: the store in words, like "Azure Blob Storage, lease mode".
        mutual_exclusion: "clock-rate", "server-clock" or "efficiency". With the first, two holders
            are never valid at once while clock rates differ by less than the client's bound. With
            the second, the store's clock also ends a dead holder's hold. With the third there is
            usually one holder, but nobody may rely on it.
        assumption: the assumption in a sentence for people.
        fencing: "durable": the fence never decreases. "best-effort": a failover may lose it.
        watch: "push" or "long-poll": waiting costs almost nothing. "poll": waiters read repeatedly.
        durable: an acknowledged write survives the death of the store's process and machine.
        scope: who can take part: one process, one host, or every client on the network.
        server_lease: the store ends holds by its own clock, and is sent `LeaseTerms`.
        fair_queue: clients other than the holder may write to a held key (needed for `fair=True`).
        ttl_min_s, ttl_max_s: the bounds of the TTLs that the store accepts.
        whole_seconds: TTLs must be whole seconds.
        ttl_note: how to get another TTL, a sentence without its full stop; empty if there is no
            way.
        poll_min_s, poll_max_s: the bounds of the polling interval of a waiter.
        notes: further facts that a user must know, a sentence each.
    """

    store: str
    mutual_exclusion: Literal["clock-rate", "server-clock", "efficiency"]
    assumption: str
    fencing: Literal["durable", "best-effort"]
    watch: Literal["push", "long-poll", "poll"]
    durable: bool
    scope: Literal["process", "host", "network"]
    server_lease: bool = False
    fair_queue: bool = True
    ttl_min_s: float = 0.1
    ttl_max_s: float = 86400.0
    whole_seconds: bool = False
    ttl_note: str = ""
    poll_min_s: float = 0.25
    poll_max_s: float = 2.0
    notes: tuple[str, ...] = ()


class Store(Protocol):
    """A linearizable register per key, for threads. Any thread may call any method.

    Keys are those of names.py (`kind/escaped`), at most 255 ASCII characters. Values are bytes of
    at most 64 KiB. Notes are at most 128 visible ASCII characters. A store must give up a request
    after `timeout_s` (a watch: after about `timeout_s`). It must not retry writes by itself. It
    must return `Unknown` for a write that may or may not have been applied.
    """

    def get(self, key: str, timeout_s: float) -> Entry | None:
        """Return the entry; None if the key does not exist. Every acknowledged write is visible.

        Raises:
            StoreUnavailable: the store did not answer; None never stands for that.
            StoreRefused: the store refused, and a retry will not help.
        """
        ...

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        """Write if the key's version is `expected` (None: if the key does not exist).

        Every success returns a version that this key has never had. Where
        `promises().server_lease`, `lease` says what the write does to the hold. ACQUIRE is a
        Conflict while a hold of another nonce is alive, even if the version matches. An ACQUIRE may
        be repeated with the same nonce. TAKE_OVER compares only the version (see `LeaseTerms`).
        HAND_OVER is an ACQUIRE for which the hold of the nonce `previous` counts as ended.
        RENEW may leave value and version as they are, and then returns the old version. It may do
        so only if prolonging is all that the store can do cheaply, and `Entry.expires_in_s` of a
        hold is always infinite. RELEASE and BREAK write the value and end the hold.

        Raises:
            StoreUnavailable: the write was certainly not applied.
            StoreRefused: the write was certainly not applied, and a retry will not help.
        """
        ...

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        """Delete if the version is `expected`, which `Applied` repeats. Never used for fences."""
        ...

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        """Return every key that begins with `prefix`, sorted."""
        ...

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        """Wait until the key's version differs from `version`; see `effects.Watch`.

        It is called only where `promises().watch` is not "poll". An implementation must read the
        present version AFTER it has subscribed. Otherwise it misses a change in between.
        """
        ...

    def promises(self) -> Promises:
        """Return what this store guarantees; does no IO."""
        ...

    def aio(self) -> AsyncStore:
        """Return an asyncio interface to the same data; each of the two is closed separately."""
        ...

    def after_fork(self) -> None:
        """Drop inherited connections in a forked child, without sending anything on them."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


@runtime_checkable
class LabelsWaits(Protocol):
    """A store that can tell its server who waits: the server then shows the waiters to people."""

    def labelled(self, label: str) -> Store:
        """Return the same store, with the same connections, for a participant of this label."""
        ...


@runtime_checkable
class ListsStates(Protocol):
    """A store whose listings show which records have changed."""

    def list_states(
        self, prefix: str, timeout_s: float, keys_max: int | None = None
    ) -> dict[str, str]:
        """Return the keys that begin with `prefix`, each with a text that names its state.

        While a key's text stays the same, so does what `get` returns.
        """
        ...


class AsyncStore(Protocol):
    """The same contract for an event loop. The write of a cancelled call may still be in flight."""

    async def get(self, key: str, timeout_s: float) -> Entry | None:
        """Return the entry; see `Store.get`."""
        ...

    async def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        """Write if the version matches; see `Store.cas`."""
        ...

    async def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        """Delete if the version matches; see `Store.delete`."""
        ...

    async def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        """Return the keys with a prefix; see `Store.list_keys`."""
        ...

    async def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        """Wait for another version; see `Store.watch`."""
        ...

    def promises(self) -> Promises:
        """Return what this store guarantees; see `Store.promises`."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
