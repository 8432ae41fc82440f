"""Inspecting gates, ids and members from outside, and acts on what was seen only."""

from __future__ import annotations

import pytest

from strongroom.coordination import Client, CorruptRecord
from strongroom.coordination.clock import ManualClocks
from strongroom.coordination.errors import ChangedSince
from strongroom.coordination.recipes.gate_core import open_steps, rearm_steps
from strongroom.coordination.recipes.ids.id_ranges import next_id_steps
from strongroom.coordination.recipes.inspect_members import groups_of, show_members_steps
from strongroom.coordination.recipes.locks.inspect_locks import break_steps
from strongroom.coordination.recipes.slots.inspect_slots import break_slots_steps
from strongroom.coordination.stores.memory import MemoryStore


def test_only_the_hold_that_was_seen_is_broken() -> None:
    client = Client(MemoryStore(), label="holder")
    admin = client.sibling("admin")
    with client.lock("a") as first:
        seen = first.nonce
    with client.lock("a") as second:
        with pytest.raises(ChangedSince, match="look again"):
            admin.driver.run(break_steps(admin.context, "lock", "a", seen))
        view = admin.show("a")
        assert view is not None and view.held and view.nonce == second.nonce
        broken = admin.driver.run(break_steps(admin.context, "lock", "a", second.nonce))
        assert broken is not None and broken.nonce == second.nonce
    with pytest.raises(ChangedSince):
        admin.driver.run(break_steps(admin.context, "lock", "a", second.nonce))


def test_only_permits_up_to_the_fence_that_was_seen_are_broken() -> None:
    client = Client(MemoryStore())
    admin = client.sibling("admin")
    with client.semaphore("s", 3):
        seen = client.semaphore("s", 3).show()
        with client.sibling("later").semaphore("s", 3):
            assert seen is not None
            steps = break_slots_steps(admin.context, "semaphore", "s", seen.fence)
            with pytest.raises(ChangedSince):
                admin.driver.run(steps)
            now = admin.semaphore("s", 3).show()
            assert now is not None and len(now.holders) == 2
            steps = break_slots_steps(admin.context, "semaphore", "s", now.fence)
            assert admin.driver.run(steps) is not None


def test_only_the_generation_that_was_seen_is_opened_or_rearmed() -> None:
    client = Client(MemoryStore())
    key = "gate/go"
    assert client.driver.run(open_steps(client.context, key, 7, 1)).is_open
    with pytest.raises(ChangedSince, match="'go'"):
        client.driver.run(rearm_steps(client.context, key, 2))
    assert client.driver.run(rearm_steps(client.context, key, 1)).generation == 2
    with pytest.raises(ChangedSince):
        client.driver.run(open_steps(client.context, key, None, 1))
    view = client.gate("go").show()
    assert not view.is_open and view.generation == 2


def test_the_next_id_is_read_without_reserving_one() -> None:
    store = MemoryStore()
    client = Client(store)
    assert client.driver.run(next_id_steps("orders")) is None
    assert client.ids("orders", batch=10).next_id() == 1
    assert client.driver.run(next_id_steps("orders")) == 11
    assert client.driver.run(next_id_steps("orders")) == 11
    store.cas("ids/odd", None, b"no number", 1.0)
    with pytest.raises(CorruptRecord):
        client.driver.run(next_id_steps("odd"))


def test_dead_members_are_not_shown_and_their_records_stay() -> None:
    clock = ManualClocks()
    store = MemoryStore(clock=clock)
    member = Client(store, label="one", clock=clock)
    member.members("workers", ttl=10).join({"zone": "b"})
    viewer = Client(store, label="viewer", clock=clock)
    keys = store.list_keys("members/", 1.0)
    (seen,) = viewer.driver.run(show_members_steps(viewer.context, keys))
    assert (seen.who, seen.data, seen.ttl_s) == ("one", {"zone": "b"}, 10)
    assert 9 < seen.left_s < 13
    clock.advance(30)
    assert viewer.driver.run(show_members_steps(viewer.context, keys)) == ()
    assert store.list_keys("members/", 1.0) == keys


def test_the_groups_of_keys() -> None:
    client = Client(MemoryStore())
    names = ["a", "a.b", "a/b", "ä", ".a", "a.0123456789abcdef-1", "<b>&"]
    for name in names:
        client.members(name).join(None)
    keys = client.store.list_keys("members/", 1.0)
    found = groups_of([*keys, "members/odd", "members/%zz.0123456789abcdef-1", "members/.x"])
    assert sorted(found) == sorted(names)
    assert sorted(key for own in found.values() for key in own) == keys
