"""The contract between drivers and stores: a store's operations, and its promises.

Lives here: the protocols (sync and asyncio), `Promises`. Must not live here: any store (stores/),
their defaults (threaded_store.py), any recipe. The one conformance suite under tests/coordination
runs over every store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

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
            never believe at once while clock rates differ by less than the client's bound. With the
            second, the store's clock also ends a dead holder's hold. With the third there is
            usually one holder, but nobody may rely on it.
        assumption: the assumption in a sentence for people.
        fencing: "durable": the fence never goes back. "best-effort": a failover may lose it.
        watch: "push" or "long-poll": waiting costs next to nothing. "poll": waiters read.
        durable: an acknowledged write survives the death of the store's process and machine.
        scope: who can take part: one process, one host, or whoever reaches the network.
        server_lease: the store ends holds by its own clock (it is sent `LeaseTerms`).
        fair_queue: others than the holder may write to a held key (needed for `fair=True`).
        ttl_min_s, ttl_max_s: the TTLs that it takes.
        whole_seconds: TTLs must be whole seconds.
        ttl_note: how to get another TTL, a sentence without its full stop; empty if there is none.
        poll_min_s, poll_max_s: how often a waiter reads, where it must.
        notes: whatever else a user must know, a sentence each.
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
    """A linearizable register per key, driven from threads. Every method may be called from any.

    Keys are those of names.py (`kind/escaped`), at most 255 ASCII characters. Values are bytes of
    at most 64 KiB. Notes are at most 128 visible ASCII characters. A store must give up a request
    after `timeout_s` (watches: after about `timeout_s`). It must not retry writes by itself. It
    must answer `Unknown` for a write whose fate it does not know.
    """

    def get(self, key: str, timeout_s: float) -> Entry | None:
        """Read; sees every write that was answered before.

        Raises:
            StoreUnavailable: no answer; never None for that.
            StoreRefused: it will not get better.
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

        Every success gives a version that this key has never had. Where `promises().server_lease`,
        `lease` says what the write means for the hold. TAKE is a Conflict while a hold of another
        nonce is alive, even if the version fits; one's own TAKE may be repeated. TAKE_OVER compares
        the version alone (see `LeaseTerms`). KEEP may leave value and version as they are, and then
        answers the old version. It may do so if the store can only prolong cheaply, and if
        `Entry.expires_in_s` of a hold is always infinite. GIVE and BREAK write the value and end
        the hold.

        Raises:
            StoreUnavailable: certainly not applied.
            StoreRefused: certainly not applied, and it will not get better.
        """
        ...

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        """Delete if the version is `expected`; `Applied` repeats it. Never used for fences."""
        ...

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        """Return every key that begins so, sorted."""
        ...

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        """Wait until the key's version differs from `version`; see `effects.Watch`.

        Only called where `promises().watch` is not "poll". Must look at the present version AFTER
        it has subscribed, or a change in between is slept through.
        """
        ...

    def promises(self) -> Promises:
        """Return what this store promises; does no IO."""
        ...

    def aio(self) -> AsyncStore:
        """Return the asyncio face over the same data; `close` of either closes its own."""
        ...

    def after_fork(self) -> None:
        """In a forked child: forget inherited connections without a word on them."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class AsyncStore(Protocol):
    """The same contract for an event loop. A cancelled call may leave its write in flight."""

    async def get(self, key: str, timeout_s: float) -> Entry | None:
        """See `Store.get`."""
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
        """See `Store.cas`."""
        ...

    async def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        """See `Store.delete`."""
        ...

    async def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        """See `Store.list_keys`."""
        ...

    async def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        """See `Store.watch`."""
        ...

    def promises(self) -> Promises:
        """See `Store.promises`."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
