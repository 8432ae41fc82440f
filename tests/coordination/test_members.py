"""Membership: the members and their data. Dead members leave, live ones stay, whatever is lost."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from strongroom.coordination import Client, LockLost, StoreUnavailable
from strongroom.coordination.effects import Applied
from strongroom.coordination.errors import BadName, CorruptRecord, Unsupported
from strongroom.coordination.recipes.members_core import Member, decode_member, encode_member
from strongroom.coordination.stores.memory import MemoryStore
from tests.coordination.test_barrier import Troubled
from tests.coordination.test_lock import FlakyStore


def datas(client: Client, group: str = "workers", ttl: float = 15.0) -> list[object]:
    return sorted((m.data for m in client.members(group, ttl).list()), key=str)


def keys(store: MemoryStore) -> list[str]:
    return MemoryStore.list_keys(store, "members/", 1.0)


def test_who_is_there() -> None:
    store = MemoryStore()
    one, two = Client(store, label="one"), Client(store, label="two")
    with one.members("workers").join({"url": "a"}) as mine:
        other = two.members("workers").join({"url": "b"})
        found = two.members("workers").list()
        assert {(m.who, m.data["url"]) for m in found} == {("one", "a"), ("two", "b")}
        assert {m.nonce for m in found} == {mine.nonce, other.nonce}
        assert all(m.since and m.ttl_s == 15.0 for m in found)
        assert mine.fence == 0 and 14 < mine.remaining() <= 15
        assert other.leave() and not other.leave()
        assert datas(two) == [{"url": "a"}]
    assert keys(store) == []


def test_groups_do_not_meet() -> None:
    client = Client(MemoryStore())
    for group in ("a", "a.b", "a/b", "ä", "a.0123456789abcdef-1"):
        client.members(group).join(group)
    for group in ("a", "a.b", "a/b", "ä", "a.0123456789abcdef-1"):
        assert datas(client, group) == [group]
    assert datas(client, "A") == []
    with pytest.raises(BadName):
        client.members("")
    with pytest.raises(Unsupported):
        client.members("a", ttl=0.01)


def test_one_client_may_be_several_members() -> None:
    client = Client(MemoryStore())
    held = [client.members("workers").join(number) for number in range(3)]
    assert datas(client) == [0, 1, 2]
    held[1].leave()
    assert datas(client.sibling()) == [0, 2]


def test_the_dead_are_removed_and_the_living_stay() -> None:
    store = MemoryStore()
    alive, dead, observer = Client(store), Client(store), Client(store)
    kept = alive.members("workers", ttl=1.0).join("alive")
    left = dead.members("workers", ttl=1.0).join("dead")
    assert datas(observer) == ["alive", "dead"]
    dead.close()
    assert left.lost.is_set()
    start_s = time.monotonic()
    while datas(observer) != ["alive"]:
        assert time.monotonic() - start_s < 20
        time.sleep(0.01)
    assert len(keys(store)) == 1
    kept.check()
    assert kept.leave()


def test_a_member_that_is_cut_off_knows() -> None:
    store = FlakyStore()
    held = Client(store).members("workers", ttl=0.3).join()
    store.cut = True
    assert held.lost.wait(20)
    with pytest.raises(LockLost, match="could not be renewed"):
        held.check()


def test_a_member_that_was_removed_knows() -> None:
    store = MemoryStore()
    held = Client(store).members("workers", ttl=0.6, alert=True).join()
    entry = store.get(keys(store)[0], 1.0)
    assert entry is not None
    assert isinstance(store.delete(keys(store)[0], entry.version, 1.0), Applied)
    assert held.lost.wait(20)
    assert "removed" in held.reason
    assert keys(store) == []


def test_data_may_change() -> None:
    store = FlakyStore()
    client = Client(store)
    held = client.members("workers").join(1)
    assert held.update({"load": 0.5})
    assert datas(client.sibling()) == [{"load": 0.5}]
    store.lose_answers = 1
    assert held.update(3) and datas(client.sibling()) == [3]
    held.leave()
    with pytest.raises(LockLost):
        held.update(4)
    assert keys(store) == []


def test_changes_are_watched() -> None:
    store = MemoryStore()
    client = Client(store)
    first = client.members("workers").join("a")
    changes = client.sibling().members("workers").watch(timeout=20, every=0.01)
    seen = next(changes)
    assert (seen.what, seen.member.data) == ("joined", "a")
    second = client.members("workers", ttl=1.0).join("b")
    assert (next(changes).member.data) == "b"
    second.update("c")
    seen = next(changes)
    assert (seen.what, seen.member.data) == ("changed", "c")
    first.leave()
    seen = next(changes)
    assert (seen.what, seen.member.data) == ("left", "a")
    assert list(client.members("nobody").watch(timeout=0.05, every=0.01)) == []


def test_watching_reads_known_members_seldom() -> None:
    store = FlakyStore()
    client = Client(store)
    for number in range(20):
        client.members("workers").join(number)
    store.reads_count = 0
    changes = client.sibling().members("workers").watch(timeout=0.2, every=0.005)
    assert len(list(changes)) == 20
    assert store.reads_count == 20


@pytest.mark.parametrize("seed", range(6))
def test_joining_and_leaving_under_trouble(seed: int) -> None:
    store, chance = Troubled(seed), random.Random(seed)
    observer = Client(store)
    held = []
    for number in range(12):
        client = Client(store)
        client.context.clock.random = lambda: 0.0  # type: ignore[method-assign]  # a double
        try:
            held.append((number, client.members("workers", ttl=15).join(number)))
        except StoreUnavailable:
            continue
        if chance.random() < 0.3:
            held.pop()[1].leave()
    assert held
    for _ in range(1000):
        try:
            found = {m.data for m in observer.members("workers").list()}
            break
        except StoreUnavailable:
            continue
    assert found >= {number for number, one in held if one.remaining() > 0}


def test_what_is_no_member_hides_nobody() -> None:
    store = MemoryStore()
    client = Client(store)
    client.members("workers").join("a")
    store.cas("members/workers.0123456789abcdef-1", None, b"junk", 1.0)
    assert datas(client) == ["a"]
    member = Member("0123456789abcdef-1", None, "", "", 1, 15.0)
    assert decode_member("k", encode_member(member)) == member
    for text in (b"1", b'{"kind":"member"}', encode_member(member).replace(b"15.0", b"-1")):
        with pytest.raises(CorruptRecord):
            decode_member("k", text)


def test_tasks() -> None:
    async def play() -> None:
        store = FlakyStore()
        client = Client(store).aio
        async with await client.members("workers").join("a") as mine:
            assert [m.data for m in await client.members("workers").list()] == ["a"]
            assert await mine.update("b")
            async for change in client.members("workers").watch(timeout=5, every=0.01):
                assert (change.what, change.member.data) == ("joined", "b")
                break
        assert await client.members("workers").list() == ()
        held = await client.members("workers", ttl=0.3).join()
        store.cut = True
        assert "renewed" in await held.wait_lost()
        await client.close()

    asyncio.run(play())


@pytest.mark.parametrize("data", ["x" * 70_000, {1, 2}, float("nan")])
def test_data_that_cannot_be_told_costs_no_membership(data: object) -> None:
    client = Client(MemoryStore())
    members = client.members("g", ttl=1.0)
    mine = members.join("before")
    with pytest.raises((Unsupported, TypeError, ValueError)):
        mine.update(data)
    with pytest.raises((Unsupported, TypeError, ValueError)):
        members.join(data)
    assert not mine.lost.wait(1.6)
    assert [member.data for member in members.list()] == ["before"]
    mine.leave()
