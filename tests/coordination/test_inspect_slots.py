"""Inspecting semaphores, read-write locks and barriers from outside, and breaking them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from strongroom import coordination
from strongroom.coordination import Client, LockLost, connect
from strongroom.coordination.recipes.slots.inspect_slots import break_slots_steps


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


def test_every_public_name_is_there() -> None:
    for name in coordination.__all__:
        assert getattr(coordination, name) is not None
    errors = {"PermitsDiffer", "PartiesDiffer", "BarrierBroken", "IdsUnavailable", "FencedOut"}
    assert errors <= set(coordination.__all__)
