"""Inspecting semaphores, read-write locks and barriers from outside, and breaking them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from strongroom import coordination
from strongroom.coordination import Client, CoordTimeout, LockLost, connect
from strongroom.coordination.clock import ManualClocks
from strongroom.coordination.clock_rules import ClockRules
from strongroom.coordination.drivers.threads import run_steps
from strongroom.coordination.effects import UNCHANGED, Cas, Effect, Get, Sleep, Steps, Watch
from strongroom.coordination.recipes.locks import rwlock
from strongroom.coordination.recipes.slots.barrier_core import Arrival, decode_barrier
from strongroom.coordination.recipes.slots.inspect_slots import break_slots_steps
from strongroom.coordination.recipes.slots.slot_records import Slot, decode_slots
from strongroom.coordination.recipes.slots.slots_core import SlotAcquisition, SlotRequest
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.stores.memory import MemoryStore
from strongroom.coordination.stores.registers import Registers


@pytest.fixture
def client() -> Iterator[Client]:
    with connect("memory://", label="ann") as client:
        yield client


def test_what_never_was_is_none(client: Client) -> None:
    assert client.semaphore("s", 2).show() is None
    assert client.rwlock("l").show() is None
    assert client.barrier("b", 2).show() is None
    assert client.driver.run(break_slots_steps(client.context, "semaphore", "s")) is None


def test_holders_are_seen_in_the_order_of_their_coming(client: Client) -> None:
    permits = client.semaphore("s", 3, 20)
    with permits, client.sibling("bob").semaphore("s", 3, 10):
        view = permits.show()
    assert view is not None
    seen = [(one.who, one.role, one.fence, one.ttl_s, one.writes) for one in view.holders]
    assert seen == [("ann", "hold", 1, 20, 1), ("bob", "hold", 2, 10, 1)]
    assert (view.name, view.fence, view.limit, view.waiting) == ("s", 2, 3, ())
    assert all(one.ttl_s <= one.left_s <= one.ttl_s * 1.2 for one in view.holders)
    after = permits.show()
    assert after is not None and not after.holders and after.fence == 2


def test_writers_who_wait_are_seen(client: Client) -> None:
    lock, other = client.rwlock("l"), client.sibling("bob").rwlock("l", wait=30)
    with lock.read():
        waiting = threading.Thread(target=lambda: other.write().acquire().release())
        waiting.start()
        while not (view := lock.show()) or not view.waiting:
            pass
        assert [one.who for one in view.waiting] == ["bob"]
        assert [one.role for one in view.holders] == ["read"]
    waiting.join()


def test_a_break_ends_all_holds_at_once_and_raises_the_fence(client: Client) -> None:
    held = [client.semaphore("s", 2, alert=True).acquire() for _ in range(2)]
    broken = client.driver.run(break_slots_steps(client.context, "semaphore", "s"))
    assert broken is not None and len(broken.holders) == 2
    for one in held:
        assert one.lost.wait(60)
        with pytest.raises(LockLost):
            one.check()
    with client.semaphore("s", 1) as next_one:
        assert next_one.fence == 4
    assert client.driver.run(break_slots_steps(client.context, "semaphore", "s")) is None


def test_who_has_arrived_is_seen(client: Client) -> None:
    barrier = client.barrier("b", 2)
    threads = [threading.Thread(target=client.barrier("b", 2).wait) for _ in range(2)]
    threads[0].start()
    while not (view := barrier.show()) or not view.arrived:
        pass
    assert (view.generation, view.parties, view.arrived[0].who) == (1, 2, "ann")
    threads[1].start()
    for thread in threads:
        thread.join()
    after = barrier.show()
    assert after is not None and (after.generation, after.arrived) == (2, ())


def test_the_same_is_seen_with_asyncio() -> None:
    async def look() -> None:
        with connect("memory://", label="ann") as client:
            async with client.aio.semaphore("s", 2), client.aio.rwlock("l").read():
                permits = await client.aio.semaphore("s", 2).show()
                sides = await client.aio.rwlock("l").show()
            assert permits is not None and len(permits.holders) == 1
            assert sides is not None and sides.holders[0].role == "read"
            assert await client.aio.barrier("b", 2).show() is None
            await client.aio.close()

    asyncio.run(look())


def test_how_a_lock_ended_is_seen(client: Client) -> None:
    def end() -> str:
        view = client.show("a")
        assert view is not None
        return view.end

    held = client.lock("a").acquire()
    assert end() == ""
    held.release()
    assert end() == "released"
    client.lock("a").acquire()
    client.break_lock("a")
    assert end().startswith("broken by ann at 2")


def test_when_it_was_renewed_is_seen_where_the_stores_clock_tells() -> None:
    with connect("memory://?lease=server") as client, client.lock("a", ttl=1.5):
        seen: list[float] = []
        while not seen or seen[-1] >= max(seen):
            view = client.show("a")
            assert view is not None and view.renewed_s is not None
            seen.append(view.renewed_s)
        assert 0 <= seen[-1] < max(seen) <= 1.5
    with connect("memory://") as client, client.lock("a"):
        view = client.show("a")
        assert view is not None and view.renewed_s is None


class Recorder:
    """A store in virtual time that keeps every value written to it; its watches see no change."""

    def __init__(self) -> None:
        self.clock, self.registers = ManualClocks(), Registers()
        self.written: list[bytes] = []

    def context(self) -> RecipeContext:
        return RecipeContext(self.clock, ClockRules(), MemoryStore().promises(), "ann")

    def run(self, steps: Steps[Any]) -> Any:
        return run_steps(steps, self._outcome)

    def _outcome(self, effect: Effect) -> Any:
        if isinstance(effect, Sleep):
            return self.clock.advance(effect.seconds)
        if isinstance(effect, Watch):
            self.clock.advance(effect.timeout_s)
            return UNCHANGED
        assert isinstance(effect, Get | Cas)
        self.clock.advance(0.001)
        now_s = self.clock.boot_s()
        if isinstance(effect, Get):
            return self.registers.get(effect.key, now_s)
        self.written.append(effect.value)
        return self.registers.cas(effect.key, effect.expected, effect.value, None, "", now_s)


def assert_renewed_since_one_time(slots: list[Slot]) -> None:
    """Assert that these are several writes of one slot, and that all show the same time."""
    assert len(slots) > 3
    assert [slot.seq for slot in slots] == list(range(1, len(slots) + 1))
    assert len({slot.since for slot in slots}) == 1


def test_a_party_that_renews_its_slot_keeps_the_time_of_its_arrival() -> None:
    store = Recorder()
    with pytest.raises(CoordTimeout):
        store.run(Arrival(store.context(), "barrier/b", "b", 2, 15.0).steps(60.0))
    records = [decode_barrier("barrier/b", value) for value in store.written]
    assert_renewed_since_one_time([slot for record in records for slot in record.slots])


def test_a_writer_that_renews_its_intent_keeps_the_time_of_its_first_wait() -> None:
    store = Recorder()
    reading = SlotRequest(
        rwlock.KIND, "rwlock/a", "a", rwlock.READ, rwlock.ReadRule(), 600.0, 0.0
    )  # fmt: skip
    writing = SlotRequest(
        rwlock.KIND, "rwlock/a", "a", rwlock.WRITE, rwlock.WriteRule(), 15.0, 60.0,
        rwlock.WANTS_WRITE,
    )  # fmt: skip
    assert store.run(SlotAcquisition(store.context(), reading).steps())
    store.run(SlotAcquisition(store.context(), writing).steps())
    records = [decode_slots(rwlock.KIND, "rwlock/a", value) for value in store.written]
    slots = [slot for record in records for slot in record.slots]
    assert_renewed_since_one_time([slot for slot in slots if slot.role == rwlock.WANTS_WRITE])


def test_every_public_name_is_there() -> None:
    for name in coordination.__all__:
        assert getattr(coordination, name) is not None
    errors = {"PermitsDiffer", "PartiesDiffer", "BarrierBroken", "IdsUnavailable", "FencedOut"}
    assert errors <= set(coordination.__all__)
