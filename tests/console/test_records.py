"""What the coordination view shows of each kind of record, and who may see it."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import TypeVar

import msgspec
import pytest

from strongroom.console.coordination_view import ChangeAwaited, Wanted, until_changed
from strongroom.console.known_records import KnownRecords
from strongroom.console.record_pages import PageOf
from strongroom.coordination import Lock
from strongroom.servers.console.api.coordination import Coordination, ShownHold
from strongroom.testing import InProcessServer
from tests.console.world import World

T = TypeVar("T")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with InProcessServer.start() as server:
        world = World(server)
        yield world
        world.view.close()


def test_every_kind_is_shown_with_its_holders(world: World) -> None:
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(world.client("kinds", "ann:1"))
        stack.enter_context(client.lock("invoices", ttl=20, value={"a": 1}))
        stack.enter_context(client.election("leader", value=5).lead())
        stack.enter_context(client.semaphore("gpu", 3))
        stack.enter_context(client.rwlock("config").read())
        stack.enter_context(client.members("workers").join({"zone": "b"}))
        client.ids("orders", batch=10).next_id()
        client.gate("go").open({"version": 7})
        (part,) = [one for one in world.seen().containers if one.container == "kinds"]
    records = part.records
    held = {(one.kind, one.name): one for one in records.held}
    assert set(held) == {
        ("lock", "invoices"),
        ("election", "leader"),
        ("semaphore", "gpu"),
        ("rwlock", "config"),
    }
    assert all([one.who for one in thing.holders] == ["ann:1"] for thing in held.values())
    lock = held["lock", "invoices"]
    assert (lock.value, lock.fence, lock.holders[0].ttl_s) == ('{"a": 1}', "1", 20)
    assert 15 < lock.holders[0].left_s < 25 and lock.state
    assert held["semaphore", "gpu"].limit == 3
    (gate,) = records.gates
    assert (gate.name, gate.is_open, gate.payload) == ("go", True, '{"version": 7}')
    assert [one.next_id for one in records.ids] == ["11"]
    assert [one.data for one in records.groups[0].members] == ['{"zone": "b"}']


def test_a_gate_that_nobody_opened_is_listed_with_its_waiters(world: World) -> None:
    clients = [world.client("gates", f"host:{number}") for number in range(3)]
    threads = [threading.Thread(target=one.gate("go/<b>").wait, args=(20,)) for one in clients]
    for thread in threads:
        thread.start()
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        gates = [gate for part in world.seen().containers for gate in part.records.gates]
        found = [gate for gate in gates if gate.name == "go/<b>"]
        if found and found[0].waiting_count == 3:
            break
        time.sleep(0.02)
    assert {one.who for one in found[0].waiting} == {"host:0", "host:1", "host:2"}
    assert not found[0].is_open and all(one.since for one in found[0].waiting)
    clients[0].gate("go/<b>").open()
    for thread in threads:
        thread.join(20)
    (part,) = [one for one in world.seen().containers if one.container == "gates"]
    assert part.records.gates[0].is_open and part.records.gates[0].waiting == ()
    for one in clients:
        one.close()


def test_who_waits_for_a_lock_is_shown_in_order(world: World) -> None:
    clients = [world.client("waits", f"host:{number}") for number in range(3)]
    first, second, third = clients
    with first.lock("a", ttl=30), second.lock("b", ttl=30):
        fair = second.lock("a", 30, 20, fair=True)
        plain = third.lock("a", 30, 20)
        threads = [threading.Thread(target=_take, args=(one,)) for one in (fair, plain)]
        for thread in threads:
            thread.start()
        waiting = _until(lambda: _lock(world, "waits", "a").waiting, 2)
        assert [(one.who, one.is_queued) for one in waiting] == [
            ("host:1", True),
            ("host:2", False),
        ]
        assert _lock(world, "waits", "b").waiting == ()
    for thread in threads:
        thread.join(20)
    for one in clients:
        one.close()


def test_records_that_others_wrote_are_shown_as_text_or_as_unreadable(world: World) -> None:
    with world.client("hostile") as client:
        store, markup = client.store, "<script>alert(1)</script>\ud800"
        store.cas("lock/odd", None, b"no json", 5.0)
        store.cas("gate/odd", None, b"[]", 5.0)
        store.cas("semaphore/odd", None, b'{"kind":"semaphore"}', 5.0)
        store.cas("lock/..%2F", None, b"no name of the toolkit", 5.0)
        store.cas("lock/deep", None, b"[" * 60_000, 5.0)
        gate = {"kind": "gate", "generation": 1, "open": True, "payload": "x" * 50_000}
        gate |= {"who": markup * 100, "since": markup}
        store.cas("gate/long", None, json.dumps(gate).encode(), 5.0)
        with client.lock("fine"):
            (part,) = [one for one in world.seen().containers if one.container == "hostile"]
    records = part.records
    assert sorted(one.key for one in records.unreadable) == [
        "gate/odd",
        "lock/deep",
        "lock/odd",
        "semaphore/odd",
    ]
    assert [one.name for one in records.held] == ["fine"]
    (shown,) = records.gates
    assert len(shown.who) <= 256 and shown.who.startswith("<script>") and "?" in shown.since
    assert len(shown.payload) <= 4096
    assert len(msgspec.json.encode(part)) < 20_000


def test_a_thousand_records_come_in_pages(world: World) -> None:
    with world.client("many") as client:
        for number in range(1000):
            client.store.cas(f"ids/n{number:04}", None, b"7", 5.0)
    names, after, pages = [], "", 0
    while True:
        (part,) = world.seen(wanted=Wanted("many", PageOf(after, 300))).containers
        assert len(part.records.ids) <= 300
        names += [one.name for one in part.records.ids]
        pages, after = pages + 1, part.records.next_after
        if not after:
            break
    assert names == [f"n{number:04}" for number in range(1000)] and pages == 4


def test_a_record_is_read_again_only_when_it_has_changed(world: World) -> None:
    with world.client("again") as client:
        client.gate("a").open()
        client.gate("b").open()
        known = KnownRecords(client.store)
        assert known.list_keys("gate/", 5.0) == ["gate/a", "gate/b"]
        first = [known.get(f"gate/{name}", 5.0) for name in "ab"]
        client.gate("a").rearm()
        assert known.get("gate/a", 5.0) is first[0]
        known.list_keys("gate/", 5.0)
        assert known.get("gate/b", 5.0) is first[1]
        changed = known.get("gate/a", 5.0)
        assert changed is not None and changed != first[0]


def test_a_change_ends_the_wait_and_a_countdown_does_not(world: World) -> None:
    with world.client("changes") as client, client.lock("a", ttl=60):
        wanted, access = Wanted("changes", PageOf()), world.access()

        def seen_after(change: str, wait_s: float) -> Coordination:
            def read() -> Coroutine[object, object, Coordination]:
                return world.view.containers(access, wanted)

            return world.run(until_changed(read, ChangeAwaited(change, wait_s)))

        first = seen_after("", 20)
        assert seen_after(first.change, 1).change == first.change
        opened = threading.Timer(0.5, client.gate("go").open)
        opened.start()
        after = seen_after(first.change, 20)
        assert after.change != first.change
        assert [one.name for one in after.containers[0].records.gates] == ["go"]


def _take(lock: Lock) -> None:
    with lock:
        pass


def _lock(world: World, container: str, name: str) -> ShownHold:
    (part,) = world.seen(wanted=Wanted(container, PageOf())).containers
    (lock,) = [one for one in part.records.held if one.name == name]
    return lock


def _until(look: Callable[[], tuple[T, ...]], count: int) -> tuple[T, ...]:
    deadline_s = time.monotonic() + 20
    while len(found := look()) < count and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return found
