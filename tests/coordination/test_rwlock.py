"""Read-write locks: readers together, a writer alone, and no writer starves."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from strongroom.coordination import AlreadyHeld, Client, CoordTimeout
from strongroom.coordination.recipes.locks.rwlock import (
    READ,
    WANTS_WRITE,
    WRITE,
    ReadRule,
    WriteRule,
)
from strongroom.coordination.recipes.slots.slot_records import Slot, SlotRecord, decode_slots
from strongroom.coordination.stores.memory import MemoryStore
from tests.coordination.test_lock import FlakyStore

KEY = "rwlock/cfg"


def roles(store: MemoryStore) -> list[str]:
    entry = store.get(KEY, 1.0)
    return [] if entry is None else [s.role for s in decode_slots("rwlock", KEY, entry.value).slots]


def until_roles(store: MemoryStore, wanted: list[str]) -> None:
    for _ in range(4000):
        if roles(store) == wanted:
            return
        time.sleep(0.005)
    assert roles(store) == wanted


R, W, I = READ, WRITE, WANTS_WRITE  # noqa: E741 - one letter each, for the table


@pytest.mark.parametrize(
    ("slots", "me", "reader_waits_for", "writer_waits_for"),
    [
        ("", None, "", ""),
        ("R", None, "", "0"),
        ("RR", None, "", "01"),
        ("W", None, "0", "0"),
        ("I", None, "0", "0"),
        ("RI", None, "1", "01"),
        ("I", 0, "", ""),
        ("RI", 1, "", "0"),
        ("II", 0, "1", ""),
        ("II", 1, "0", "0"),
        ("IR", 0, "", "1"),
        ("IWI", 0, "12", "1"),
    ],
)
def test_who_waits_for_whom(
    slots: str, me: int | None, reader_waits_for: str, writer_waits_for: str
) -> None:
    names = {"R": R, "W": W, "I": I}
    record = SlotRecord(
        fence=7, slots=tuple(Slot(str(at), names[one], 7, 1, 15.0) for at, one in enumerate(slots))
    )
    who = "me" if me is None else str(me)
    assert "".join(s.owner for s in ReadRule().blocking_slots(record, who)) == reader_waits_for
    assert "".join(s.owner for s in WriteRule().blocking_slots(record, who)) == writer_waits_for
    assert (ReadRule().fence(record), WriteRule().fence(record)) == (7, 8)


def test_readers_together_and_writers_alone() -> None:
    store = MemoryStore()
    one, two, three = (Client(store, label=name) for name in ("one", "two", "three"))
    with one.rwlock("cfg").write() as writing:
        assert writing.fence == 1
        assert two.rwlock("cfg").read().try_acquire() is None
        assert two.rwlock("cfg").write().try_acquire() is None
    with one.rwlock("cfg").read() as first, two.rwlock("cfg").read() as second:
        assert first.fence == second.fence == 1
        with pytest.raises(CoordTimeout, match="held by one, two"):
            three.rwlock("cfg", wait=0.05).write().acquire()
    assert roles(store) == []
    with three.rwlock("cfg").write() as writing:
        assert writing.fence == 2
    with three.rwlock("cfg").read() as reading:
        assert reading.fence == 2


def test_a_writer_who_waits_stops_new_readers() -> None:
    store = MemoryStore()
    reading = Client(store).rwlock("cfg").read().acquire()
    fences: list[int] = []

    def write() -> None:
        with Client(store).rwlock("cfg", wait=20).write() as writing:
            fences.append(writing.fence)

    thread = threading.Thread(target=write)
    thread.start()
    until_roles(store, [READ, WANTS_WRITE])
    assert Client(store).rwlock("cfg").read().try_acquire() is None
    assert not fences
    reading.release()
    thread.join(20)
    assert fences == [1]
    assert Client(store).rwlock("cfg").read().try_acquire() is not None


def test_an_intent_is_renewed_while_it_waits_and_gone_after_it_gave_up() -> None:
    store = MemoryStore()
    reading = Client(store).rwlock("cfg", ttl=15).read().acquire()
    with pytest.raises(CoordTimeout):
        Client(store).rwlock("cfg", ttl=0.3, wait=0.5).write().acquire()
    entry = store.get(KEY, 1.0)
    assert entry is not None and int(entry.version) >= 4  # read, intent, renewed, taken back
    assert roles(store) == [READ]
    assert Client(store).rwlock("cfg").read().try_acquire() is not None
    reading.release()


def test_the_intent_of_a_dead_writer_expires() -> None:
    store = FlakyStore()
    reading = Client(store).rwlock("cfg", ttl=15).read().acquire()

    async def die_waiting() -> None:
        waiting = asyncio.ensure_future(Client(store).aio.rwlock("cfg", ttl=0.3).write().acquire())
        await asyncio.to_thread(until_roles, store, [READ, WANTS_WRITE])
        store.cut = True  # so that it cannot take its intent back
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        store.cut = False

    asyncio.run(die_waiting())
    assert roles(store) == [READ, WANTS_WRITE]
    assert Client(store).rwlock("cfg").read().try_acquire() is None
    with Client(store).rwlock("cfg", wait=20).read():
        assert roles(store) == [READ, READ]
    reading.release()


def test_who_would_wait_for_itself_is_told_at_once() -> None:
    client = Client(MemoryStore())
    lock = client.rwlock("cfg")
    with lock.read(), lock.read(), pytest.raises(AlreadyHeld):
        lock.write().acquire()
    with lock.write():
        for side in (lock.read(), lock.write()):
            with pytest.raises(AlreadyHeld):
                side.acquire()
            assert side.try_acquire() is None
    with lock.write():
        pass


def test_a_dead_writer_is_outwaited() -> None:
    store = MemoryStore()
    dead = Client(store)
    left = dead.rwlock("cfg", ttl=0.3).write().acquire()
    dead.close()
    with Client(store).rwlock("cfg", ttl=0.3, wait=20).read() as reading:
        assert reading.fence == left.fence == 1
    assert left.lost.is_set()


def test_lost_answers() -> None:
    store = FlakyStore()
    for turn in range(3):
        store.lose_answers = 1
        with Client(store).rwlock("cfg", wait=20).write() as writing:
            assert writing.fence == turn + 1
            store.lose_answers = 1
        assert roles(store) == []


def test_tasks() -> None:
    async def play() -> None:
        client = Client(MemoryStore())
        lock = client.aio.rwlock("cfg", wait=20)
        async with lock.read(), lock.read() as reading:
            assert reading.fence == 0
        others = [Client(client.store).aio.rwlock("cfg", wait=20) for _ in range(6)]
        value = [0]

        async def count(number: int) -> None:
            for _ in range(4):
                async with others[number].write():
                    seen = value[0]
                    await asyncio.sleep(0.001)
                    value[0] = seen + 1
                async with others[number].read():
                    seen = value[0]
                    await asyncio.sleep(0.001)
                    assert value[0] == seen

        await asyncio.gather(*(count(number) for number in range(6)))
        assert value == [24]

    asyncio.run(play())
