"""Barriers: no party proceeds before all have arrived, then all proceed, phase after phase."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from typing import Any

import pytest

from strongroom.coordination import Client, CoordTimeout, StoreUnavailable, Unsupported
from strongroom.coordination.effects import CasOutcome, Entry, LeaseTerms, Unknown
from strongroom.coordination.errors import CorruptRecord
from strongroom.coordination.recipes.slots.barrier_core import (
    BarrierBroken,
    BarrierRecord,
    PartiesDiffer,
    decode_barrier,
    encode_barrier,
)
from strongroom.coordination.recipes.slots.slot_records import Slot
from strongroom.coordination.stores.memory import MemoryStore

KEY = "barrier/phase"


class Troubled(MemoryStore):
    """A store that loses requests and answers, and lets some writes arrive late."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)
        self._late: list[tuple[str, str | None, bytes]] = []

    def get(self, key: str, timeout_s: float) -> Entry | None:
        if self._chance.random() < 0.1:
            raise StoreUnavailable("away")
        return super().get(key, timeout_s)

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        if self._late and self._chance.random() < 0.5:
            late_key, late_expected, late_value = self._late.pop()
            super().cas(late_key, late_expected, late_value, timeout_s)
        roll = self._chance.random()
        if roll < 0.1:
            raise StoreUnavailable("away")
        if roll < 0.2:
            self._late.append((key, expected, value))
            return Unknown("late")
        outcome = super().cas(key, expected, value, timeout_s, lease, note)
        return Unknown("lost") if roll < 0.3 else outcome


def record(store: MemoryStore) -> BarrierRecord:
    entry = MemoryStore.get(store, KEY, 1.0)
    return BarrierRecord() if entry is None else decode_barrier(KEY, entry.value)


def arriving(
    store: MemoryStore, parties: int, ttl: float = 15.0, timeout: float = 30.0
) -> tuple[threading.Thread, list[Any]]:
    """A party at the barrier, and what it brings back."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(Client(store).barrier("phase", parties, ttl).wait(timeout))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def until_waiting(store: MemoryStore, count: int) -> None:
    for _ in range(4000):
        if len(record(store).slots) == count:
            return
        time.sleep(0.005)
    assert len(record(store).slots) == count


def test_nobody_goes_before_all_are_there() -> None:
    store = MemoryStore()
    parties: list[tuple[threading.Thread, list[Any]]] = []
    for number in range(4):
        until_waiting(store, number)
        assert not any(found for _, found in parties)
        parties.append(arriving(store, 5))
    until_waiting(store, 4)
    assert Client(store).barrier("phase", 5).wait(30) == 4
    for place, (thread, found) in enumerate(parties):
        thread.join(30)
        assert found == [place]


def test_one_party_waits_for_nobody() -> None:
    barrier = Client(MemoryStore()).barrier("phase", 1)
    assert [barrier.wait(0) for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(4))
def test_phase_after_phase_in_step_under_trouble(seed: int) -> None:
    store = MemoryStore() if seed == 0 else Troubled(seed)
    phases = [0] * 4
    wrong: list[str] = []

    def run(me: int) -> None:
        barrier = Client(store).barrier("phase", 4, ttl=15)
        try:
            for phase in range(5):
                phases[me] = phase
                barrier.wait(60)
                if min(phases) < phase:
                    wrong.append(f"{me} went on from {phase} before {phases}")
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=run, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert record(store).generation == 6


def test_who_gives_up_takes_its_place_along() -> None:
    store = MemoryStore()
    with pytest.raises(CoordTimeout):
        Client(store).barrier("phase", 2).wait(0.05)
    assert record(store).slots == ()
    with pytest.raises(CoordTimeout):
        Client(store).barrier("phase", 2).wait(0)
    thread, found = arriving(store, 2)
    until_waiting(store, 1)
    assert Client(store).barrier("phase", 2).wait(30) == 1
    thread.join(30)
    assert found == [0]


def put_dead(store: MemoryStore, count: int, parties: int, ttl_s: float) -> None:
    slots = tuple(Slot(f"{n:016x}-1", "party", 0, 1, ttl_s, "dead") for n in range(count))
    before = store.get(KEY, 1.0)
    value = encode_barrier(BarrierRecord(1, parties, slots), "x")
    store.cas(KEY, None if before is None else before.version, value, 1.0)


def test_the_dead_are_not_counted_by_one_who_comes_later() -> None:
    store = MemoryStore()
    put_dead(store, 2, 3, 0.3)
    thread, found = arriving(store, 3, ttl=0.6)
    time.sleep(0.1)
    assert not found
    others = [arriving(store, 3, ttl=0.6) for _ in range(2)]
    for one, _ in [(thread, found), *others]:
        one.join(30)
    assert sorted([found[0], *(what[0] for _, what in others)]) == [0, 1, 2]


def test_a_place_of_the_dead_is_dropped_while_others_wait() -> None:
    store = MemoryStore()
    put_dead(store, 1, 3, 0.2)
    first = arriving(store, 3, ttl=0.6)
    for _ in range(4000):
        if [slot.who for slot in record(store).slots].count("dead") == 0:
            break
        time.sleep(0.005)
    until_waiting(store, 1)
    rest = [arriving(store, 3), arriving(store, 3)]
    for thread, found in [first, *rest]:
        thread.join(30)
        assert type(found[0]) is int


def test_who_was_away_for_too_long_is_told() -> None:
    store = MemoryStore()
    thread, found = arriving(store, 2)
    until_waiting(store, 1)
    entry = store.get(KEY, 1.0)
    assert entry is not None
    gone_on = BarrierRecord(2, 2, (), ((1, ("a-1", "b-1")),))
    store.cas(KEY, entry.version, encode_barrier(gone_on, "x"), 1.0)
    thread.join(30)
    assert isinstance(found[0], BarrierBroken) and "generation 1" in str(found[0])


def test_all_who_wait_count_the_same() -> None:
    store = MemoryStore()
    thread, found = arriving(store, 2)
    until_waiting(store, 1)
    with pytest.raises(PartiesDiffer, match="2 parties, not for 3"):
        Client(store).barrier("phase", 3).wait(1)
    Client(store).barrier("phase", 2).wait(30)
    thread.join(30)
    assert found == [0]
    for parties in (0, 201):
        with pytest.raises(Unsupported):
            Client(store).barrier("phase", parties)


@pytest.mark.parametrize(
    "text",
    [
        b"x",
        b'{"kind":"gate"}',
        b'{"kind":"barrier","generation":"1","parties":2,"slots":[],"tripped":[]}',
        b'{"kind":"barrier","generation":1,"parties":2,"slots":[],"tripped":[7]}',
    ],
)
def test_what_is_no_barrier_is_quoted(text: bytes) -> None:
    store = MemoryStore()
    store.cas(KEY, None, text, 1.0)
    with pytest.raises(CorruptRecord):
        Client(store).barrier("phase", 2).wait(1)


def test_tasks() -> None:
    async def play() -> None:
        store = MemoryStore()
        waiting = asyncio.create_task(Client(store).aio.barrier("phase", 8).wait(30))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert record(store).slots == ()
        clients = [Client(store).aio for _ in range(8)]
        for _ in range(2):
            places = await asyncio.gather(*(c.barrier("phase", 8).wait(30) for c in clients))
            assert sorted(places) == list(range(8))

    asyncio.run(play())
