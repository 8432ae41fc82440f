"""The recipes over a real store with watches: trials that run on each such store.

Lives here: the trials, over the store's URL. Must not live here: servers, behaviour of a single
store.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from strongroom import coordination as coord
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import UNCHANGED, Conflict, Entry, LeaseAction, LeaseTerms
from tests.coordination.conformance import TIMEOUT_S, applied, entry_of, fresh_key

PATIENCE_S = 30.0
_clock = SystemClocks()


def fresh_name() -> str:
    return f"trial-{_clock.nonce()}"


def until(true: Callable[[], bool], complaint: str) -> None:
    """Wait until a condition is true, or fail."""
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s, complaint
        time.sleep(0.005)


def eight_take_turns(url: str, fair: bool = False) -> None:
    name, fences, inside = fresh_name(), list[int](), list[int]()

    def work(number: int) -> None:
        with coord.connect(url, label=str(number)) as client:
            for _ in range(3):
                with client.lock(name, ttl=10, wait=PATIENCE_S, fair=fair) as held:
                    inside.append(number)
                    assert inside == [number]
                    fences.append(held.fence)
                    inside.remove(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(fences) == 24 and fences == sorted(set(fences))


def eight_take_turns_in_order(url: str) -> None:
    eight_take_turns(url, fair=True)


def a_queue_is_served_in_order(url: str) -> None:
    name, order = fresh_name(), list[int]()
    with coord.connect(url) as first:
        held = first.lock(name, ttl=10).acquire()

        def work(number: int) -> None:
            with first.sibling().lock(name, ttl=10, wait=PATIENCE_S, fair=True):
                order.append(number)

        threads = []
        for number in range(5):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            until(lambda: _waiting(first, name) == len(threads), "it does not queue up")
        held.release()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert order == list(range(5))


def _waiting(client: coord.Client, name: str) -> int:
    view = client.show(name)
    return 0 if view is None else len(view.waiting)


def ids_are_never_given_twice(url: str) -> None:
    name = fresh_name()

    def work(_: int) -> list[int]:
        with coord.connect(url) as client:
            ids = client.ids(name, batch=7)
            return [next(ids) for _ in range(50)]

    with ThreadPoolExecutor(8) as pool:
        found = [number for numbers in pool.map(work, range(8)) for number in numbers]
    assert len(set(found)) == 400


def an_election_has_one_leader_and_observers(url: str) -> None:
    name, seen = fresh_name(), list[str | None]()
    with coord.connect(url, label="one") as one, coord.connect(url, label="two") as two:

        def observe() -> None:
            for view in two.election(name).observe():
                seen.append(None if view.leader is None else view.leader["at"])
                if seen[-1] == "second":
                    return

        observer = threading.Thread(target=observe)
        observer.start()
        with one.election(name, {"at": "first"}, ttl=10).lead() as leads:
            until(lambda: "first" in seen, "the leader is not seen")
            rival = two.election(name, {"at": "second"}, ttl=10, wait=PATIENCE_S)
            with ThreadPoolExecutor(1) as pool:
                campaign = pool.submit(rival.campaign)
                assert not campaign.done()
                leads.release()
                second = campaign.result(PATIENCE_S)
        observer.join(PATIENCE_S)
        assert not observer.is_alive() and second.fence > leads.fence
        second.release()


def a_gate_lets_all_through(url: str) -> None:
    name, found = fresh_name(), list[object]()

    def wait() -> None:
        with coord.connect(url) as client:
            found.append(client.gate(name).wait(timeout=PATIENCE_S))

    threads = [threading.Thread(target=wait) for _ in range(10)]
    for thread in threads[:9]:
        thread.start()
    with coord.connect(url) as client:
        client.gate(name).open({"go": 1})
        client.gate(name).open({"go": 2})
        threads[9].start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert found == [{"go": 1}] * 10
        client.gate(name).rearm()
        assert not client.gate(name).show().is_open


def a_register_counts(url: str) -> None:
    name = fresh_name()

    def work(_: int) -> None:
        with coord.connect(url) as client:
            register, done = client.register(name), 0
            while done < 10:
                now = register.get()
                if now is None:
                    done += register.compare_and_swap(1, coord.ABSENT).swapped
                else:
                    done += register.compare_and_swap(now[0] + 1, now[0], now[1]).swapped

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    with coord.connect(url) as client:
        final = client.register(name).get()
        assert final is not None and final[0] == 60


def a_semaphore_admits_so_many(url: str) -> None:
    name, inside, most = fresh_name(), list[int](), list[int]()

    def work(number: int) -> None:
        with coord.connect(url) as client, client.semaphore(name, 3, ttl=10, wait=PATIENCE_S):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.02)
            inside.remove(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert max(most) <= 3 and len(most) == 8


def a_barrier_waits_for_all(url: str) -> None:
    name = fresh_name()

    def work(_: int) -> None:
        with coord.connect(url) as client:
            client.barrier(name, 4).wait(timeout=PATIENCE_S)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def an_end_by_the_servers_clock_wakes_and_frees(url: str) -> None:
    """The holder's client is closed without a release, so only the expiry frees the lock.

    A busy machine may take a second to connect. So the lock lasts longer, and each attempt too.
    """
    name = fresh_name()
    dead = coord.connect(url)
    lost = dead.lock(name, ttl=5).acquire()
    dead.close()
    with coord.connect(url) as client:
        assert client.lock(name, ttl=15).try_acquire() is None
        with client.lock(name, ttl=15, wait=PATIENCE_S) as held:
            assert held.fence == lost.fence + 1


def a_late_renewal_is_refused(url: str) -> None:
    store = coord.open_store(url)
    key = fresh_key()
    version = applied(
        store.cas(key, None, b"x", TIMEOUT_S, LeaseTerms(LeaseAction.ACQUIRE, 0.2, "me-1"))
    )
    until(lambda: (entry_of(store, key).expires_in_s or 0) <= 0, "it does not end")
    late = store.cas(key, version, b"late", TIMEOUT_S, LeaseTerms(LeaseAction.RENEW, 15.0, "me-1"))
    assert isinstance(late, Conflict)
    version = applied(
        store.cas(key, version, b"y", TIMEOUT_S, LeaseTerms(LeaseAction.ACQUIRE, 9, "you-1"))
    )
    give = store.cas(
        key, version, b"late", TIMEOUT_S, LeaseTerms(LeaseAction.RELEASE, 15.0, "me-1")
    )
    assert isinstance(give, Conflict)
    store.close()


def a_plain_write_leaves_the_hold(url: str) -> None:
    store = coord.open_store(url)
    key = fresh_key()
    version = applied(
        store.cas(key, None, b"x", TIMEOUT_S, LeaseTerms(LeaseAction.ACQUIRE, 15.0, "me-1"))
    )
    version = applied(store.cas(key, version, b"x, and a queue", TIMEOUT_S))
    entry = entry_of(store, key)
    assert entry.version == version and entry.expires_in_s is not None and entry.expires_in_s > 10
    taken = store.cas(key, version, b"y", TIMEOUT_S, LeaseTerms(LeaseAction.ACQUIRE, 15.0, "you-1"))
    assert isinstance(taken, Conflict)
    applied(store.cas(key, version, b"z", TIMEOUT_S, LeaseTerms(LeaseAction.RENEW, 15.0, "me-1")))
    store.close()


def what_is_no_version_conflicts(url: str) -> None:
    store = coord.open_store(url)
    absent, key = fresh_key(), fresh_key()
    applied(store.cas(key, None, b"x", TIMEOUT_S))
    for version in ("0", "1x", "-1", "9" * 19, "9" * 40, "", "\u0661", "1hh", "' OR 1=1"):
        for name in (absent, key):
            assert isinstance(store.cas(name, version, b"y", TIMEOUT_S), Conflict)
            assert isinstance(store.delete(name, version, TIMEOUT_S), Conflict)
    assert store.get(absent, TIMEOUT_S) is None and entry_of(store, key).value == b"x"
    store.close()


def watchers_wake_at_once(url: str) -> None:
    """Many watchers of several keys run in one process; each is notified of its own key only."""
    store = coord.open_store(url)
    keys = [fresh_key() for _ in range(4)]
    versions = {key: applied(store.cas(key, None, b"one", TIMEOUT_S)) for key in keys}
    woken: list[tuple[str, bytes]] = []

    def watch(key: str) -> None:
        seen = store.watch(key, versions[key], 30.0)
        woken.append((key, seen.value if isinstance(seen, Entry) else repr(seen).encode()))

    threads = [threading.Thread(target=watch, args=(key,)) for key in keys for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    assert not woken
    applied(store.cas(keys[0], versions[keys[0]], b"two", TIMEOUT_S))
    until(lambda: len(woken) == 4, "not everybody wakes")
    assert woken == [(keys[0], b"two")] * 4
    for key in keys[1:]:
        applied(store.delete(key, versions[key], TIMEOUT_S))
    until(lambda: len(woken) == 16, "not everybody learns of the deletion")
    assert sorted(woken[4:]) == sorted((key, b"None") for key in keys[1:] for _ in range(4))
    assert store.watch(keys[0], entry_of(store, keys[0]).version, 0.2) is UNCHANGED
    store.close()


def hundreds_of_tasks_wait_and_keep_no_renewal_from_being_sent(url: str) -> None:
    name = fresh_name()

    async def play() -> list[object]:
        with coord.connect(url) as client, coord.connect(url) as other:
            gate = client.aio.gate(name)
            waiting = [asyncio.create_task(gate.wait(timeout=PATIENCE_S)) for _ in range(300)]
            async with client.aio.lock(name, ttl=4) as held:
                await asyncio.sleep(5)  # enough time for some renewals, while the others wait
                held.check()
            gone = waiting.pop()
            gone.cancel()
            assert threading.active_count() < before + 50, "a thread for each waiter"
            await other.aio.gate(name).open("go")
            return list(await asyncio.gather(*waiting))

    before = threading.active_count()
    assert asyncio.run(play()) == ["go"] * 299


def tasks_take_turns(url: str) -> None:
    name = fresh_name()

    async def play() -> list[int]:
        with coord.connect(url) as client:

            async def take() -> int:
                async with client.sibling().aio.lock(name, ttl=10, wait=PATIENCE_S) as held:
                    return held.fence

            return await asyncio.gather(*(take() for _ in range(8)))

    assert sorted(asyncio.run(play())) == list(range(1, 9))


def members_come_and_go(url: str) -> None:
    name = fresh_name()
    with coord.connect(url) as one, coord.connect(url) as two, coord.connect(url) as sight:
        with one.members(name).join({"n": 1}):
            second = two.members(name).join({"n": 2})
            found = [member.data["n"] for member in sight.members(name).list()]
            assert sorted(found) == [1, 2]
            second.release()
        assert not sight.members(name).list()


TRIALS: dict[str, Callable[[str], None]] = {
    trial.__name__: trial
    for trial in (
        eight_take_turns,
        eight_take_turns_in_order,
        a_queue_is_served_in_order,
        ids_are_never_given_twice,
        an_election_has_one_leader_and_observers,
        a_gate_lets_all_through,
        a_register_counts,
        a_semaphore_admits_so_many,
        a_barrier_waits_for_all,
        members_come_and_go,
        tasks_take_turns,
        hundreds_of_tasks_wait_and_keep_no_renewal_from_being_sent,
        an_end_by_the_servers_clock_wakes_and_frees,
        a_late_renewal_is_refused,
        a_plain_write_leaves_the_hold,
        what_is_no_version_conflicts,
        watchers_wake_at_once,
    )
}
