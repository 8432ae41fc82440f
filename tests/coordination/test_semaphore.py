"""Semaphores: never more holders than permits, each with a fence, for any fate of writes."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from strongroom.coordination import (
    Client,
    CoordTimeout,
    LockLost,
    StoreUnavailable,
    Unsupported,
)
from strongroom.coordination.effects import Applied, Entry
from strongroom.coordination.errors import CorruptRecord
from strongroom.coordination.recipes.slots.semaphore import PermitsDiffer
from strongroom.coordination.recipes.slots.slot_records import decode_slots
from strongroom.coordination.stores.memory import MemoryStore
from tests.coordination.test_lock import FlakyStore

KEY = "semaphore/gpu"


def slots_count(store: MemoryStore) -> int:
    entry = store.get(KEY, 1.0)
    return 0 if entry is None else len(decode_slots("semaphore", KEY, entry.value).slots)


def test_as_many_as_there_are_permits() -> None:
    store = MemoryStore()
    clients = [Client(store, label=f"node{number}") for number in range(3)]
    first = clients[0].semaphore("gpu", 2).acquire()
    second = clients[1].semaphore("gpu", 2).acquire()
    assert (first.fence, second.fence) == (1, 2)
    assert clients[2].semaphore("gpu", 2).try_acquire() is None
    with pytest.raises(CoordTimeout, match="held by node0, node1"):
        clients[2].semaphore("gpu", 2, wait=0.05).acquire()
    assert first.release() and not first.release()
    third = clients[2].semaphore("gpu", 2).try_acquire()
    assert third is not None and third.fence == 3
    third.check()
    assert third.release() and second.release()
    assert slots_count(store) == 0
    with clients[0].semaphore("gpu", 2) as held:
        assert held.fence == 4


def test_waiting_ends_with_a_release() -> None:
    client = Client(MemoryStore())
    held = client.semaphore("gpu", 1).acquire()
    threading.Timer(0.1, held.release).start()
    with client.sibling().semaphore("gpu", 1, wait=20) as mine:
        assert mine.fence == 2


def test_threads_of_one_client_share_one_object() -> None:
    semaphore = Client(MemoryStore()).semaphore("gpu", 3, ttl=15, wait=20)
    inside, most, fences = [0], [0], []
    counting = threading.Lock()

    def run() -> None:
        for _ in range(10):
            with semaphore as held:
                with counting:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    fences.append(held.fence)
                time.sleep(0.002)
                held.check()
                with counting:
                    inside[0] -= 1

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 3
    assert sorted(fences) == list(range(1, 81))


def test_all_who_hold_count_the_same() -> None:
    store = MemoryStore()
    held = Client(store).semaphore("gpu", 2).acquire()
    with pytest.raises(PermitsDiffer, match=r"has 2 permits .* not 3"):
        Client(store).semaphore("gpu", 3).try_acquire()
    held.release()
    with Client(store).semaphore("gpu", 3) as held:
        assert held.fence == 2


@pytest.mark.parametrize("permits", [0, -1, 201])
def test_numbers_that_cannot_be(permits: int) -> None:
    with pytest.raises(Unsupported, match="1 to 200"):
        Client(MemoryStore()).semaphore("gpu", permits)
    with pytest.raises(Unsupported, match="lives"):
        Client(MemoryStore()).semaphore("gpu", 1, ttl=0.01)


def test_slots_are_renewed_and_those_of_the_dead_expire() -> None:
    store = FlakyStore()
    alive, dead = Client(store), Client(store)
    kept = alive.semaphore("gpu", 2, ttl=1.0).acquire()
    left = dead.semaphore("gpu", 2, ttl=1.0).acquire()
    dead.close()  # as if it had died: nothing is given back
    assert left.lost.is_set() and slots_count(store) == 2
    start_s = time.monotonic()
    with Client(store).semaphore("gpu", 2, ttl=0.3, wait=20) as taken:
        assert time.monotonic() - start_s > 1.0
        assert taken.fence == 3
        kept.check()
    with pytest.raises(LockLost, match="closed"):
        left.check()
    kept.release()


def test_a_holder_that_is_cut_off_loses_it_in_time() -> None:
    store = FlakyStore()
    held = Client(store).semaphore("gpu", 1, ttl=0.3).acquire()
    store.cut = True
    assert held.lost.wait(20)
    assert "could not be renewed" in held.reason and held.remaining() == 0
    store.cut = False
    with Client(store).semaphore("gpu", 1, ttl=0.3, wait=20) as taken:
        assert taken.fence == 2


def test_one_whose_slot_was_dropped_is_told() -> None:
    store = MemoryStore()
    held = Client(store).semaphore("gpu", 1, ttl=0.6, alert=True).acquire()
    entry = store.get(KEY, 1.0)
    assert entry is not None
    empty = b'{"kind":"semaphore","write":"x","fence":1,"limit":1,"slots":[]}'
    assert isinstance(store.cas(KEY, entry.version, empty, 1.0), Applied)
    assert held.lost.wait(20)
    assert "dropped" in held.reason
    assert not held.release()


def test_lost_answers_cost_no_permit() -> None:
    store = FlakyStore()
    client = Client(store)
    for turn in range(3):
        store.lose_answers = 1
        held = client.semaphore("gpu", 1, wait=20).acquire()
        assert held.fence == turn + 1
        store.lose_answers = 2
        assert held.release()
        assert slots_count(store) == 0


def test_giving_up_takes_back_what_an_unanswered_write_put() -> None:
    class NeverAnswers(FlakyStore):
        def get(self, key: str, timeout_s: float) -> Entry | None:
            if self.lose_answers == 1:
                self.lose_answers = 0
                raise StoreUnavailable("away")
            return super().get(key, timeout_s)

    store = NeverAnswers()
    store.lose_answers = 2
    with pytest.raises(StoreUnavailable):
        Client(store).semaphore("gpu", 1, wait=0).acquire()
    assert slots_count(store) == 0


@pytest.mark.parametrize(
    "text",
    [
        b"x",
        b"[]",
        b'{"kind":"rwlock","fence":1,"limit":0,"slots":[]}',
        b'{"kind":"semaphore","fence":-1,"limit":0,"slots":[]}',
        b'{"kind":"semaphore","fence":1,"limit":1,"slots":[{"owner":"a"}]}',
        b'{"kind":"semaphore","fence":1,"limit":1,"slots":7}',
    ],
)
def test_what_is_no_semaphore_is_quoted(text: bytes) -> None:
    store = MemoryStore()
    store.cas(KEY, None, text, 1.0)
    with pytest.raises(CorruptRecord):
        Client(store).semaphore("gpu", 1).acquire()


def test_tasks() -> None:
    async def play() -> None:
        client = Client(MemoryStore())
        semaphore = client.aio.semaphore("gpu", 2, wait=20)
        inside, most = 0, 0

        async def run() -> int:
            nonlocal inside, most
            async with semaphore as held:
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.005)
                inside -= 1
                return held.fence

        fences = await asyncio.gather(*(run() for _ in range(12)))
        assert most == 2 and sorted(fences) == list(range(1, 13))
        assert await client.aio.semaphore("gpu", 2).try_acquire() is not None

    asyncio.run(play())


def test_a_task_that_loses_its_permit_is_cancelled() -> None:
    async def play() -> None:
        store = FlakyStore()
        client = Client(store)

        async def work() -> None:
            async with client.aio.semaphore("gpu", 1, ttl=0.3):
                store.cut = True
                await asyncio.sleep(20)

        with pytest.raises(LockLost):
            await work()
        await client.aio.close()

    asyncio.run(play())


def test_a_cancelled_waiter_leaves_nothing() -> None:
    async def play() -> None:
        store = MemoryStore()
        held = await Client(store).aio.semaphore("gpu", 1).acquire()
        waiting = asyncio.create_task(Client(store).aio.semaphore("gpu", 1).acquire())
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await held.release()
        assert slots_count(store) == 0

    asyncio.run(play())
