"""Registers: compare-and-swap with versions and TTLs; and the book's locks over them."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from strongroom.coordination import (
    ABSENT,
    Client,
    LockLost,
    OutcomeUnknown,
    SimpleLock,
    StoreUnavailable,
)
from strongroom.coordination.effects import CasOutcome, Entry, LeaseTerms
from strongroom.coordination.stores.memory import MemoryStore
from tests.coordination.test_lock import FlakyStore


@pytest.fixture
def store() -> FlakyStore:
    return FlakyStore()


@pytest.fixture
def client(store: FlakyStore) -> Client:
    return Client(store)


def test_swap(client: Client) -> None:
    register = client.register("r")
    assert register.get() is None
    assert register.compare_and_swap("new", "old") == (False, None)
    first = register.compare_and_swap("a", ABSENT)
    assert first.swapped and register.get() == ("a", first.version)
    assert register.compare_and_swap("b", ABSENT) == (False, first.version)
    assert register.compare_and_swap("b", "x") == (False, first.version)
    second = register.compare_and_swap({"any": [1, None]}, "a", first.version)
    assert second.swapped and second.version != first.version
    assert register.compare_and_swap("c", {"any": [1, None]}, first.version) == (
        False,
        second.version,
    )
    assert register.compare_and_swap(None, {"any": [1, None]}).swapped
    assert register.compare_and_swap("c", ABSENT).swapped is False, "null is a value"
    assert register.compare_and_swap("c", None).swapped


def test_the_same_value_is_another_version(client: Client) -> None:
    register = client.register("r")
    first = register.put("x")
    second = register.compare_and_swap("x", "x")
    assert second.swapped and second.version != first.version
    assert not register.compare_and_swap("y", "x", first.version).swapped


def test_the_last_writer_wins(client: Client) -> None:
    register = client.register("r")
    register.put("a")
    assert client.sibling().register("r").put("b").swapped
    value = register.get()
    assert value is not None and value.value == "b"


def test_a_ttl_ends(client: Client) -> None:
    register, other = client.register("r"), client.sibling().register("r")
    swap = register.compare_and_swap("mine", ABSENT, ttl=1.0)
    assert not other.compare_and_swap("yours", ABSENT).swapped
    changed, now = other.wait_for_change(swap.version, 20)
    assert (changed, now) == (True, None)
    assert other.get() is None
    assert not other.compare_and_swap("yours", "mine").swapped
    assert other.compare_and_swap("yours", ABSENT).swapped


def test_waiting_for_a_change(client: Client) -> None:
    register = client.register("r")
    assert register.wait_for_change(None, 0.05) == (False, None)
    threading.Timer(0.1, client.sibling().register("r").put, ("x",)).start()
    changed, now = register.wait_for_change(None, 20)
    assert changed and now is not None and now.value == "x"
    assert register.wait_for_change(now.version, 0.05) == (False, now)
    assert register.wait_for_change("an old one", 20) == (True, now)


def test_a_lost_answer_is_no_lost_write(client: Client, store: FlakyStore) -> None:
    register = client.register("r")
    store.lose_answers = 1
    swap = register.compare_and_swap("a", ABSENT)
    assert swap.swapped and register.get() == ("a", swap.version)
    store.lose_answers = 1
    assert register.compare_and_swap("b", "a", swap.version).swapped
    value = register.get()
    assert value is not None and value.value == "b"


class Meddling(FlakyStore):
    """Another client writes right after a write with a lost answer, `count` times."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        meddle = self.lose_answers > 0
        outcome = super().cas(key, expected, value, timeout_s, lease, note)
        if meddle:
            self.lose_answers = 0
            for number in range(self.count):
                Client(self).register("r").put(f"meddled {number}")
        return outcome


def test_a_lost_answer_is_found_under_later_writes() -> None:
    store = Meddling(count=5)
    register = Client(store).register("r")
    store.lose_answers = 1
    assert register.compare_and_swap("a", ABSENT) == (True, None)
    value = register.get()
    assert value is not None and value.value == "meddled 4"


def test_what_cannot_be_known_is_said() -> None:
    store = Meddling(count=20)
    register = Client(store).register("r")
    store.lose_answers = 1
    with pytest.raises(OutcomeUnknown):
        register.compare_and_swap("a", ABSENT)


def test_an_error_is_no_absence(client: Client, store: FlakyStore) -> None:
    register = client.register("r")
    store.cut = True
    with pytest.raises(StoreUnavailable):
        register.compare_and_swap("a", ABSENT)
    with pytest.raises(StoreUnavailable):
        register.get()
    store.cut = False
    assert register.get() is None


def test_counting_from_many_threads(store: FlakyStore) -> None:
    def count(_: int) -> None:
        register = Client(store).register("n")
        for _ in range(20):
            while True:
                seen = register.get()
                expected = ABSENT if seen is None else seen.value
                if register.compare_and_swap((seen.value if seen else 0) + 1, expected).swapped:
                    break

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    value = Client(store).register("n").get()
    assert value is not None and value.value == 160


def test_asyncio() -> None:
    async def play() -> None:
        register = Client(MemoryStore()).aio.register("r")
        swap = await register.compare_and_swap("a", ABSENT)
        assert await register.get() == ("a", swap.version)
        waiting = asyncio.create_task(register.wait_for_change(swap.version))
        await asyncio.sleep(0.02)
        await register.put("b")
        changed, now = await waiting
        assert changed and now is not None and now.value == "b"

    asyncio.run(play())


# The book's lock


def test_the_books_lock_excludes(client: Client) -> None:
    one = SimpleLock(client.register("my-lock"))
    other = SimpleLock(client.sibling().register("my-lock"))
    assert one.simple_lock() and not other.simple_lock()
    assert not other.lock(timeout=0.05)
    threading.Timer(0.1, one.unlock).start()
    assert other.lock(timeout=20)
    value = client.register("my-lock").get()
    assert value is not None and value.value == "1"


def test_a_failed_try_does_not_unlock_the_holder(client: Client) -> None:
    one = SimpleLock(client.register("my-lock"))
    other = SimpleLock(client.sibling().register("my-lock"))
    assert one.simple_lock() and not other.simple_lock()
    with pytest.raises(LockLost):
        other.unlock()
    assert not other.simple_lock()
    one.unlock()


def test_a_renewal_keeps_its_version(client: Client) -> None:
    lock = SimpleLock(client.register("my-lock"))
    assert lock.simple_lock()
    lock.renew()
    lock.renew()
    lock.unlock()
    assert lock.simple_lock()


def test_the_slow_holder_does_not_unlock_the_next_one(client: Client) -> None:
    slow = SimpleLock(client.register("my-lock"), ttl=0.2)
    heir = SimpleLock(client.sibling().register("my-lock"), ttl=30)
    assert slow.simple_lock()
    assert heir.lock(timeout=20)
    with pytest.raises(LockLost):
        slow.unlock()
    with pytest.raises(LockLost):
        slow.renew()
    assert not SimpleLock(client.sibling().register("my-lock")).simple_lock()


def test_an_error_creates_nothing(client: Client, store: FlakyStore) -> None:
    lock = SimpleLock(client.register("my-lock"))
    store.cut = True
    with pytest.raises(StoreUnavailable):
        lock.simple_lock()
    store.cut = False
    time.sleep(0)
    entry: Entry | None = store.get("register/my-lock", 1.0)
    assert entry is None
