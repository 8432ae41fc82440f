"""The store of the simulation by itself: its notifications, its expiries, and its clock."""

from __future__ import annotations

from typing import Any

from strongroom.coordination.effects import Cas, Get, Watch
from strongroom.coordination.simulation.store import SimulatedStore

KEY = "lock/a"


def write(store: SimulatedStore, value: bytes, over: str | None = None) -> str:
    store.apply(Cas(KEY, over, value, timeout_s=1.0), 0.0)
    version = store.registers.version(KEY)
    assert version is not None
    return version


def watched(store: SimulatedStore, seen: str | None) -> list[Any]:
    told: list[Any] = []
    store.watch(Watch(KEY, seen, timeout_s=1.0), lambda: 0.0, told.append)
    return told


def test_who_watches_is_told_at_once_or_by_the_next_write() -> None:
    store = SimulatedStore(server_lease=False, rate=1.0, watch=True)
    early = watched(store, None)
    assert early == []
    version = write(store, b"1")
    late, waits = watched(store, None), watched(store, version)
    assert [entry.value for entry in (*early, *late)] == [b"1", b"1"]
    assert waits == []


def test_who_watches_a_store_that_goes_away_is_forgotten_but_no_register_is() -> None:
    store = SimulatedStore(server_lease=False, rate=1.0, watch=True)
    version = write(store, b"1")
    waits = watched(store, version)
    store.go_down(until_s=5.0)
    assert [store.is_down(now_s) for now_s in (4.9, 5.0)] == [True, False]
    write(store, b"2", version)
    assert waits == []
    assert store.apply(Get(KEY, timeout_s=1.0), 5.0).value == b"2"


def test_its_clock_has_a_rate_and_can_be_set_back() -> None:
    store = SimulatedStore(server_lease=True, rate=1.25, watch=True)
    assert store.clock_s(100.0) == 125.0
    store.set_back(25.0)
    assert store.clock_s(100.0) == 100.0
