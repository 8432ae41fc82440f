"""The contract of every store: one suite, which each store's own test module runs.

A test module makes a fresh store per case and calls `CASES[name](store)`. Keys carry a random part,
so that a shared server needs no cleaning. The cases test the order of events only, no durations.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import (
    UNCHANGED,
    Applied,
    CasOutcome,
    Conflict,
    Entry,
    LeaseAction,
    LeaseTerms,
)
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.store import Store

TIMEOUT_S = 5.0
_clock = SystemClocks()
_numbers = itertools.count(1)


def fresh_key(kind: str = "lock", name: str = "conformance") -> str:
    return key_of(kind, f"{name}-{_clock.nonce()}")


def applied(outcome: CasOutcome) -> str:
    assert isinstance(outcome, Applied), outcome
    return outcome.version


def entry_of(store: Store, key: str) -> Entry:
    entry = store.get(key, TIMEOUT_S)
    assert entry is not None
    return entry


def absent_is_none(store: Store) -> None:
    assert store.get(fresh_key(), TIMEOUT_S) is None


def create_only_once(store: Store) -> None:
    key = fresh_key()
    version = applied(store.cas(key, None, b"one", TIMEOUT_S))
    assert isinstance(store.cas(key, None, b"two", TIMEOUT_S), Conflict)
    entry = entry_of(store, key)
    assert (entry.value, entry.version) == (b"one", version)


def update_needs_the_version(store: Store) -> None:
    key = fresh_key()
    first = applied(store.cas(key, None, b"one", TIMEOUT_S))
    second = applied(store.cas(key, first, b"two", TIMEOUT_S))
    assert isinstance(store.cas(key, first, b"three", TIMEOUT_S), Conflict)
    entry = entry_of(store, key)
    assert (entry.value, entry.version) == (b"two", second)


def update_of_the_absent_conflicts(store: Store) -> None:
    key = fresh_key()
    version = applied(store.cas(fresh_key(), None, b"other", TIMEOUT_S))
    assert isinstance(store.cas(key, version, b"one", TIMEOUT_S), Conflict)
    assert store.get(key, TIMEOUT_S) is None


def versions_never_repeat(store: Store) -> None:
    key = fresh_key()
    version = applied(store.cas(key, None, b"same", TIMEOUT_S))
    seen = {version}
    for _ in range(10):
        version = applied(store.cas(key, version, b"same", TIMEOUT_S))
        assert version not in seen
        seen.add(version)
    applied(store.delete(key, version, TIMEOUT_S))
    assert applied(store.cas(key, None, b"same", TIMEOUT_S)) not in seen


def delete_needs_the_version(store: Store) -> None:
    key = fresh_key()
    first = applied(store.cas(key, None, b"one", TIMEOUT_S))
    second = applied(store.cas(key, first, b"two", TIMEOUT_S))
    assert isinstance(store.delete(key, first, TIMEOUT_S), Conflict)
    applied(store.delete(key, second, TIMEOUT_S))
    assert store.get(key, TIMEOUT_S) is None
    assert isinstance(store.delete(key, second, TIMEOUT_S), Conflict)


def notes_are_kept(store: Store) -> None:
    key = fresh_key("ids")
    version = applied(store.cas(key, None, b"1", TIMEOUT_S, None, "nonce-1"))
    assert entry_of(store, key).note == "nonce-1"
    applied(store.cas(key, version, b"1001", TIMEOUT_S, None, "nonce-2"))
    assert entry_of(store, key)[:1] + entry_of(store, key)[3:] == (b"1001", "nonce-2")


def any_bytes(store: Store) -> None:
    key = fresh_key()
    value = bytes(range(256)) * 100
    version = applied(store.cas(key, None, value, TIMEOUT_S))
    assert entry_of(store, key).value == value
    applied(store.cas(key, version, b"", TIMEOUT_S))
    assert entry_of(store, key).value == b""


def odd_names(store: Store) -> None:
    unique = _clock.nonce()
    names = (f"a/b {unique}", f"ä€😀{unique}", f".{unique}", f"{unique}%2F", f"{unique}?x=1&y#z")
    keys = [key_of("lock", name) for name in names]
    for key in keys:
        applied(store.cas(key, None, key.encode(), TIMEOUT_S))
    assert [entry_of(store, key).value for key in keys] == [key.encode() for key in keys]


def listing_by_prefix(store: Store) -> None:
    unique = _clock.nonce()
    keys = [key_of("lock", f"{unique}-{number:02}") for number in range(12)]
    for key in keys:
        applied(store.cas(key, None, b"x", TIMEOUT_S))
    applied(store.cas(key_of("gate", f"{unique}-00"), None, b"x", TIMEOUT_S))
    assert store.list_keys(f"lock/{unique}-", TIMEOUT_S) == keys
    assert store.list_keys(f"lock/{unique}-1", TIMEOUT_S) == keys[10:]


def one_of_many_wins(store: Store) -> None:
    key = fresh_key()
    version: str | None = None
    with ThreadPoolExecutor(32) as pool:
        for lap in range(5):
            barrier = threading.Barrier(32)

            def race(
                number: int,
                expected: str | None = version,
                lap: int = lap,
                barrier: threading.Barrier = barrier,
            ) -> CasOutcome:
                barrier.wait()
                return store.cas(key, expected, f"{lap}-{number}".encode(), 30.0)

            outcomes = list(pool.map(race, range(32)))
            winners = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Applied)]
            assert len(winners) == 1, outcomes
            entry = entry_of(store, key)
            assert entry.value == f"{lap}-{winners[0]}".encode()
            version = entry.version


def watch_sees_changes(store: Store) -> None:
    if store.promises().watch == "poll":
        return
    key = fresh_key()
    assert store.watch(key, None, 0.2) in (UNCHANGED, None)
    for expected_value in (b"one", b"two"):
        known = store.get(key, TIMEOUT_S)
        version = known.version if known else None
        timer = threading.Timer(0.2, store.cas, (key, version, expected_value, TIMEOUT_S))
        timer.start()
        seen = _watch_until_changed(store, key, version)
        timer.join()
        assert seen is not None and seen.value == expected_value
    assert seen is not None
    stale = store.watch(key, "0-no-such-version", 5.0)
    assert isinstance(stale, Entry) and stale.value == b"two"


def _watch_until_changed(store: Store, key: str, version: str | None) -> Entry | None:
    for _ in range(50):
        seen = store.watch(key, version, 5.0)
        if isinstance(seen, Entry) and seen.version != version:
            return seen
    return None


def _terms(action: LeaseAction, nonce: str, ttl_s: float | None = None) -> LeaseTerms:
    return LeaseTerms(action, ttl_s or 15.0, nonce)


def _hold_nonce() -> str:
    return f"{_clock.nonce()}-{next(_numbers)}"


def lease_excludes_others(store: Store) -> None:
    if not store.promises().server_lease:
        return
    key, mine, other = fresh_key(), _hold_nonce(), _hold_nonce()
    version = applied(store.cas(key, None, b"mine", TIMEOUT_S, _terms(LeaseAction.ACQUIRE, mine)))
    left_s = entry_of(store, key).expires_in_s
    assert left_s is not None and left_s > 0
    outcome = store.cas(key, version, b"other", TIMEOUT_S, _terms(LeaseAction.ACQUIRE, other))
    assert isinstance(outcome, Conflict)
    version = applied(store.cas(key, version, b"kept", TIMEOUT_S, _terms(LeaseAction.RENEW, mine)))
    outcome = store.cas(key, version, b"other", TIMEOUT_S, _terms(LeaseAction.RENEW, other))
    assert isinstance(outcome, Conflict)
    version = entry_of(store, key).version
    version = applied(
        store.cas(key, version, b"given", TIMEOUT_S, _terms(LeaseAction.RELEASE, mine))
    )
    entry = entry_of(store, key)
    assert (entry.value, entry.version) == (b"given", version)
    assert entry.expires_in_s is not None and entry.expires_in_s <= 0
    outcome = store.cas(key, version, b"again", TIMEOUT_S, _terms(LeaseAction.RENEW, mine))
    assert isinstance(outcome, Conflict)
    applied(store.cas(key, version, b"other", TIMEOUT_S, _terms(LeaseAction.ACQUIRE, other)))


def lease_can_be_broken(store: Store) -> None:
    if not store.promises().server_lease:
        return
    key, mine, other = fresh_key(), _hold_nonce(), _hold_nonce()
    version = applied(store.cas(key, None, b"mine", TIMEOUT_S, _terms(LeaseAction.ACQUIRE, mine)))
    breaking = _terms(LeaseAction.BREAK, _hold_nonce())
    version = applied(store.cas(key, version, b"broken", TIMEOUT_S, breaking))
    outcome = store.cas(key, version, b"kept", TIMEOUT_S, _terms(LeaseAction.RENEW, mine))
    assert isinstance(outcome, Conflict)
    applied(store.cas(key, version, b"other", TIMEOUT_S, _terms(LeaseAction.ACQUIRE, other)))


def a_hold_is_taken_over_where_its_end_can_be_wrong(store: Store) -> None:
    if not store.promises().server_lease:
        return
    key, mine, other = fresh_key(), _hold_nonce(), _hold_nonce()
    old = applied(store.cas(key, None, b"mine", TIMEOUT_S, _terms(LeaseAction.ACQUIRE, mine)))
    version = applied(store.cas(key, old, b"kept", TIMEOUT_S, _terms(LeaseAction.RENEW, mine)))
    over = _terms(LeaseAction.TAKE_OVER, other)
    if math.isfinite(entry_of(store, key).expires_in_s or 0.0):
        assert version != old, "a renewal is a version of its own"
        assert isinstance(store.cas(key, old, b"late", TIMEOUT_S, over), Conflict)
        version = applied(store.cas(key, version, b"other", TIMEOUT_S, over))
        mine, other = other, mine
    outcome = store.cas(key, version, b"no", TIMEOUT_S, _terms(LeaseAction.ACQUIRE, other))
    assert isinstance(outcome, Conflict)
    version = entry_of(store, key).version
    applied(store.cas(key, version, b"kept", TIMEOUT_S, _terms(LeaseAction.RENEW, mine)))
    fresh = fresh_key()
    applied(store.cas(fresh, None, b"mine", TIMEOUT_S, over))
    assert (entry_of(store, fresh).expires_in_s or 0.0) > 0


def a_hold_is_handed_over_by_one_write(store: Store) -> None:
    if not store.promises().server_lease:
        return
    key, mine, heir = fresh_key(), _hold_nonce(), _hold_nonce()
    old = applied(store.cas(key, None, b"mine", TIMEOUT_S, _terms(LeaseAction.ACQUIRE, mine)))
    over = LeaseTerms(LeaseAction.HAND_OVER, 15.0, heir, mine)
    version = applied(store.cas(key, old, b"heir", TIMEOUT_S, over))
    assert version != old
    assert (entry_of(store, key).expires_in_s or 0.0) > 0
    assert isinstance(store.cas(key, old, b"late", TIMEOUT_S, over), Conflict)
    outcome = store.cas(key, version, b"no", TIMEOUT_S, _terms(LeaseAction.RENEW, mine))
    assert isinstance(outcome, Conflict)
    version = entry_of(store, key).version
    outcome = store.cas(key, version, b"no", TIMEOUT_S, _terms(LeaseAction.ACQUIRE, _hold_nonce()))
    assert isinstance(outcome, Conflict)
    version = entry_of(store, key).version
    version = applied(store.cas(key, version, b"kept", TIMEOUT_S, _terms(LeaseAction.RENEW, heir)))
    version = applied(
        store.cas(key, version, b"given", TIMEOUT_S, _terms(LeaseAction.RELEASE, heir))
    )
    # The hold that is to end has ended already: whoever is next may have it.
    third = LeaseTerms(LeaseAction.HAND_OVER, 15.0, _hold_nonce(), heir)
    applied(store.cas(key, version, b"third", TIMEOUT_S, third))


CASES: dict[str, Callable[[Store], None]] = {
    case.__name__: case
    for case in (
        absent_is_none,
        create_only_once,
        update_needs_the_version,
        update_of_the_absent_conflicts,
        versions_never_repeat,
        delete_needs_the_version,
        notes_are_kept,
        any_bytes,
        odd_names,
        listing_by_prefix,
        one_of_many_wins,
        watch_sees_changes,
        lease_excludes_others,
        lease_can_be_broken,
        a_hold_is_taken_over_where_its_end_can_be_wrong,
        a_hold_is_handed_over_by_one_write,
    )
}
