"""Gates: every waiter proceeds, late ones at their first read; hints may be lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from strongroom.coordination.client import Client
from strongroom.coordination.effects import CasOutcome, Entry, LeaseTerms, Unknown
from strongroom.coordination.errors import CoordTimeout, CorruptRecord, StoreUnavailable
from strongroom.coordination.recipes.gate import Gate
from strongroom.coordination.store import Promises
from strongroom.coordination.stores.memory import MemoryStore


class Polled(MemoryStore):
    """A store that can only be asked."""

    def __init__(self, poll_s: float = 0.02) -> None:
        super().__init__()
        self.reads = 0
        self._poll_s = poll_s

    def promises(self) -> Promises:
        return replace(
            super().promises(), watch="poll", poll_min_s=self._poll_s, poll_max_s=self._poll_s
        )

    def get(self, key: str, timeout_s: float) -> Entry | None:
        self.reads += 1
        return super().get(key, timeout_s)


class Bus:
    """A message bus in memory that loses the given messages."""

    def __init__(self, loses: bool = False) -> None:
        self._heard: list[Callable[[], None]] = []
        self._loses = loses

    def publish(self, topic: str) -> None:
        for heard in () if self._loses else list(self._heard):
            heard()

    def subscribe(self, topic: str, heard: Callable[[], None]) -> Callable[[], None]:
        self._heard.append(heard)
        return lambda: self._heard.remove(heard)

    @property
    def listeners(self) -> int:
        return len(self._heard)


def waiting(gate: Gate, **options: Any) -> tuple[threading.Thread, list[Any]]:
    """A thread at the gate, and what it brings back."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(gate.wait(timeout=20, **options))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


@pytest.mark.parametrize("store", [MemoryStore, Polled])
def test_all_who_wait_go_and_late_ones_too(store: Callable[[], MemoryStore]) -> None:
    there = store()
    gates = [Client(there).gate("go-live") for _ in range(8)]
    waiters = [waiting(gate) for gate in gates]
    assert not any(found for _, found in waiters)
    view = Client(there, label="ann").gate("go-live").open({"version": 7})
    assert (view.generation, view.is_open, view.who) == (1, True, "ann")
    for thread, found in waiters:
        thread.join(20)
        assert found == [{"version": 7}]
    assert Client(there).gate("go-live").wait(timeout=0) == {"version": 7}


def test_opening_twice_changes_nothing() -> None:
    gate = Client(MemoryStore()).gate("g")
    first = gate.open("a")
    assert gate.open("b") == first == gate.show()


def test_a_rearmed_gate_is_closed_for_those_who_come_then() -> None:
    gate = Client(MemoryStore()).gate("g")
    assert gate.rearm().generation == 1
    gate.open()
    assert gate.rearm().generation == 2
    with pytest.raises(CoordTimeout):
        gate.wait(timeout=0)
    # A waiter for the previous generation that did not see it open is not stranded.
    assert gate.wait(timeout=0, generation=1) is None
    with pytest.raises(CoordTimeout):
        gate.wait(timeout=0.05, generation=2)
    gate.open("second")
    assert gate.wait(timeout=0) == "second"


def test_an_old_opening_does_not_release_new_waiters() -> None:
    store = MemoryStore()
    gate = Client(store).gate("g")
    gate.open()
    gate.rearm()
    thread, found = waiting(Client(store).gate("g"))
    gate.rearm()
    assert not found
    gate.open("now")
    thread.join(20)
    assert found == ["now"]


@pytest.mark.parametrize("loses", [False, True])
def test_hints_shorten_the_wait_and_may_get_lost(loses: bool) -> None:
    store, bus = Polled(poll_s=0.1 if loses else 15.0), Bus(loses)
    threads = [waiting(Client(store).gate("g", bus)) for _ in range(4)]
    for _ in range(2000):
        if bus.listeners == 4 and store.reads >= 4:
            break
        threading.Event().wait(0.005)
    Client(store).gate("g", bus).open("x")
    for thread, found in threads:
        thread.join(20)
        assert found == ["x"]
    assert bus.listeners == 0


def test_a_write_without_an_answer_counts_if_it_happened() -> None:
    class Lossy(MemoryStore):
        def cas(
            self,
            key: str,
            expected: str | None,
            value: bytes,
            timeout_s: float,
            lease: LeaseTerms | None = None,
            note: str = "",
        ) -> CasOutcome:
            super().cas(key, expected, value, timeout_s, lease, note)
            return Unknown("lost")

    gate = Client(Lossy()).gate("g")
    assert gate.open("x").payload == "x"
    assert gate.rearm().generation == 2


def test_a_store_that_is_away_is_waited_for() -> None:
    class Away(MemoryStore):
        left = 3

        def get(self, key: str, timeout_s: float) -> Entry | None:
            self.left -= 1
            if self.left >= 0:
                raise StoreUnavailable("away")
            return super().get(key, timeout_s)

    store = Away()
    thread, found = waiting(Client(store).gate("g"))
    Client(store).gate("g").open()
    thread.join(20)
    assert found == [None]


def test_what_is_no_gate_is_quoted() -> None:
    for text in (b"Set", b"[]", b'{"kind":"gate","generation":0,"open":true}', b'{"kind":"x"}'):
        store = MemoryStore()
        store.cas("gate/g", None, text, 1.0)
        for act in ("wait", "open", "rearm", "show"):
            with pytest.raises(CorruptRecord):
                getattr(Client(store).gate("g"), act)()


@pytest.mark.parametrize("hinted", [False, True])
def test_tasks_at_a_gate(hinted: bool) -> None:
    async def scenario() -> list[Any]:
        bus = Bus() if hinted else None
        gate = Client(Polled(15.0) if hinted else MemoryStore()).aio.gate("g", bus)
        tasks = [asyncio.create_task(gate.wait(timeout=20)) for _ in range(16)]
        await asyncio.sleep(0.05)
        assert (await gate.show()).is_open is False
        await gate.open([1, 2])
        found = await asyncio.gather(*tasks)
        assert (await gate.rearm()).generation == 2
        with pytest.raises(CoordTimeout):
            await gate.wait(timeout=0.01)
        return found

    assert asyncio.run(scenario()) == [[1, 2]] * 16
