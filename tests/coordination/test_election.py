"""Elections: one client leads, all others can watch the leader, and a dead leader is replaced."""

from __future__ import annotations

import asyncio
import threading

import pytest

from strongroom.coordination import (
    AlreadyHeld,
    Client,
    CoordTimeout,
    LeaderView,
    LockLost,
)
from strongroom.coordination.stores.memory import MemoryStore
from tests.coordination.test_lock import FlakyStore


@pytest.fixture
def store() -> FlakyStore:
    return FlakyStore()


def test_one_leads_and_says_what_it_likes(store: FlakyStore) -> None:
    one, other = Client(store, label="one"), Client(store, label="two")
    assert other.election("e").leader() == LeaderView(None, False, "", 0, "")
    election = one.election("e", value={"url": "http://one"})
    with election.lead() as term:
        view = other.election("e").leader()
        assert (view.leader, view.leading, view.who) == ({"url": "http://one"}, True, "one")
        assert (view.fence, view.nonce) == (term.fence, term.nonce)
        assert other.election("e").try_campaign() is None
        assert one.election("e").leader().leading
        assert election.proclaim(term, "moved")
        assert other.election("e").leader().leader == "moved"
    assert not other.election("e").leader().leading
    assert other.election("e").leader().fence == 1


def test_campaign_and_resign(store: FlakyStore) -> None:
    one, other = Client(store).election("e"), Client(store).election("e", wait=20)
    first = one.campaign()
    with pytest.raises(AlreadyHeld):
        one.campaign()
    threading.Timer(0.1, one.resign).start()
    second = other.campaign()
    assert (first.fence, second.fence) == (1, 2)
    with pytest.raises(LockLost):
        one.proclaim(first, "too late")
    assert other.resign() and not other.resign()


def test_an_election_is_no_lock(store: FlakyStore) -> None:
    client = Client(store)
    with client.lock("e"), client.election("e").lead():
        pass


def test_observers_see_every_change(store: FlakyStore) -> None:
    seen: list[tuple[bool, object]] = []
    ready, done = threading.Event(), threading.Event()

    def observe() -> None:
        for view in Client(store).election("e").observe(timeout=20):
            seen.append((view.leading, view.leader))
            ready.set()
            if len(seen) == 5:
                break
        done.set()

    thread = threading.Thread(target=observe, daemon=True)
    thread.start()
    assert ready.wait(20)

    def until(count: int) -> None:
        for _ in range(2000):
            if len(seen) >= count:
                return
            done.wait(0.01)
        raise AssertionError(seen)

    election = Client(store).election("e", value=1)
    with election.lead() as term:
        until(2)
        election.proclaim(term, 2)
        until(3)
    until(4)
    with Client(store).election("e", value=3).lead():
        assert done.wait(20)
    assert seen == [(False, None), (True, 1), (True, 2), (False, None), (True, 3)]


@pytest.mark.parametrize("server_lease", [False, True])
def test_a_dead_leader_is_reported_and_replaced(server_lease: bool) -> None:
    store = MemoryStore(server_lease=server_lease)
    dead = Client(store).election("e", value="dead", ttl=0.3)
    dead.campaign()
    watch = Client(store).election("e").observe(timeout=20)
    assert next(watch).leader == "dead"
    dead._driver._closed = True  # no renewal from now on
    dead._driver._renewal_sleep.wake()
    assert not next(watch).leading
    heir = Client(store).election("e", value="heir", ttl=0.3, wait=20).campaign()
    assert heir.fence == 2
    assert next(watch).leader == "heir"


def test_a_living_leader_stays(store: FlakyStore) -> None:
    with Client(store).election("e", value="x", ttl=1.0).lead():
        watch = Client(store).election("e").observe(timeout=1.6)
        assert [view.leader for view in watch] == ["x"]


def test_observing_outlasts_an_outage(store: FlakyStore) -> None:
    observer = Client(store).election("e")
    store.cut = True
    threading.Timer(0.2, setattr, (store, "cut", False)).start()
    assert not next(observer.observe(timeout=20)).leading
    with pytest.raises(CoordTimeout):
        observer.wait_for_leader(timeout=0.1)
    with Client(store).election("e", value=1).lead():
        assert observer.wait_for_leader(timeout=20).leader == 1


def test_asyncio() -> None:
    async def play() -> None:
        store = FlakyStore()
        one = Client(store, label="one").aio.election("e", value=1)
        other = Client(store).aio.election("e", value=2, wait=20)
        seen = []

        async def observe() -> None:
            async for view in Client(store).aio.election("e").observe():
                seen.append(view.leader)
                if view.leader == 2:
                    return

        watching = asyncio.create_task(observe())
        async with one.lead() as term:
            assert (await other.leader()).who == "one"
            assert await other.try_campaign() is None
            assert await one.proclaim(term, 10)
            candidate = asyncio.create_task(other.campaign())
            await asyncio.sleep(0.05)
        assert (await candidate).fence == 2
        await asyncio.wait_for(watching, 20)
        assert seen[-2:] == [None, 2] or seen[-2:] == [10, 2]
        assert await other.resign()
        assert not (await one.leader()).leading

    asyncio.run(play())
