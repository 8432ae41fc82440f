"""Ids: never a duplicate, for any fate of writes and answers; the published defects by name."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from strongroom.coordination.client import Client
from strongroom.coordination.effects import (
    Applied,
    CasOutcome,
    Entry,
    LeaseTerms,
    Unknown,
)
from strongroom.coordination.errors import CorruptRecord, StoreUnavailable
from strongroom.coordination.recipes.ids.id_ranges import ID_MAX, IdsExhausted, IdsUnavailable
from strongroom.coordination.recipes.ids.ids import AioIds, Ids, IdsOptions
from strongroom.coordination.stores.memory import MemoryStore

KEY = "ids/orders"
Trouble = Callable[[str], str]
"""trouble("get" | "cas") -> "" | "down" (nothing done) | "lost" (done, no answer) | "late"."""


class Troubled(MemoryStore):
    """A store that fails on order."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self.trouble = trouble
        self.late: list[tuple[str, str | None, bytes, str]] = []
        self.writes = 0

    def get(self, key: str, timeout_s: float) -> Entry | None:
        if self.trouble("get"):
            raise StoreUnavailable("down")
        return super().get(key, timeout_s)

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        self.writes += 1
        while self.late and random.random() < 0.5:
            late_key, late_expected, late_value, late_note = self.late.pop()
            super().cas(late_key, late_expected, late_value, timeout_s, None, late_note)
        kind = self.trouble("cas")
        if kind == "down":
            raise StoreUnavailable("down")
        if kind == "late":
            self.late.append((key, expected, value, note))
            return Unknown("late")
        outcome = super().cas(key, expected, value, timeout_s, lease, note)
        return Unknown("lost") if kind == "lost" else outcome


def ids(store: MemoryStore, **options: int) -> Ids:
    # Keywords of a table.
    made = IdsOptions(**{"batch": 10, "max_retries": 50, **options})  # type: ignore[arg-type]
    return Ids(Client(store).driver, "orders", made)


def put(store: MemoryStore, text: bytes) -> None:
    entry = store.get(KEY, 1.0)
    expected = None if entry is None else entry.version
    assert isinstance(store.cas(KEY, expected, text, 1.0), Applied)


def test_ids_rise_from_the_first_and_the_store_is_readable() -> None:
    store = MemoryStore()
    source = ids(store)
    assert [source.next_id() for _ in range(3)] == [1, 2, 3]
    entry = store.get(KEY, 1.0)
    assert entry is not None and entry.value == b"11"
    assert source.take(10) == [4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert next(source) == 14
    assert ids(store).next_id() == 21


def test_a_person_may_write_the_next_id() -> None:
    store = MemoryStore()
    put(store, b" 5000\n")
    assert ids(store).take(2) == [5000, 5001]


def test_the_store_is_written_once_a_range() -> None:
    store = Troubled(lambda _: "")
    source = ids(store, batch=100)
    for _ in range(1000):
        source.next_id()
    assert store.writes == 10
    assert len(set(source.take(250))) == 250
    assert store.writes == 11


def test_a_range_that_was_not_reserved_is_never_handed_out() -> None:
    """The published listing changes its local range before the write has succeeded."""
    is_down = [True]

    def trouble(what: str) -> str:
        return "down" if what == "cas" and is_down[0] else ""

    store = Troubled(trouble)
    source = ids(store, max_retries=2)
    for _ in range(3):
        with pytest.raises(IdsUnavailable, match="3 tries"):
            source.next_id()
    is_down[0] = False
    assert ids(store).next_id() == 1
    assert source.next_id() == 11


def test_the_version_belongs_to_the_data_that_was_read() -> None:
    """A descendant fetches the version anew just before it writes: no compare-and-swap at all."""

    class Interleaved(MemoryStore):
        rival: Ids | None = None

        def get(self, key: str, timeout_s: float) -> Entry | None:
            entry = super().get(key, timeout_s)
            rival, self.rival = self.rival, None
            if rival is not None:
                rival.next_id()
            return entry

    store = Interleaved()
    first, rival = ids(store), ids(store)
    store.rival = rival
    found = first.take(3)
    assert not set(found) & {1, *rival.take(9)}


@pytest.mark.parametrize("text", [b"", b"abc", b"-5", b"1.5", b"0x10", b"1" * 30, b"\xff"])
def test_what_is_no_number_is_quoted_again_and_again(text: bytes) -> None:
    """After an error about the data the published listing hands out ids from 0 on."""
    store = MemoryStore()
    put(store, text)
    source = ids(store)
    for _ in range(3):
        with pytest.raises(CorruptRecord, match="decimal number"):
            source.next_id()
    put(store, b"77")
    assert source.next_id() == 77


def test_a_store_that_goes_back_is_refused() -> None:
    store = MemoryStore()
    source = ids(store)
    source.take(10)
    put(store, b"5")
    with pytest.raises(CorruptRecord, match="11 or more"):
        source.take(1)


def test_ids_end_below_two_to_the_63() -> None:
    store = MemoryStore()
    put(store, b"%d" % (ID_MAX - 9))
    source = ids(store)
    assert source.take(10)[-1] == ID_MAX
    with pytest.raises((IdsExhausted, CorruptRecord)):
        source.next_id()


@pytest.mark.parametrize("kind", ["lost", "late"])
def test_a_write_without_an_answer_is_recognised(kind: str) -> None:
    troubles = [kind]
    store = Troubled(lambda what: troubles.pop() if what == "cas" and troubles else "")
    source = ids(store)
    assert source.next_id() == 1
    if kind == "lost":
        assert store.writes == 1
    rest = source.take(25)
    assert len({1, *rest}) == 26


@pytest.mark.parametrize("seed", range(60))
def test_never_twice_among_nodes_with_every_kind_of_trouble(seed: int) -> None:
    chance = random.Random(seed)
    random.seed(seed)

    def trouble(what: str) -> str:
        roll = chance.random()
        if what == "get":
            return "down" if roll < 0.1 else ""
        return "down" if roll < 0.1 else "lost" if roll < 0.25 else "late" if roll < 0.4 else ""

    store = Troubled(trouble)
    nodes = [ids(store, batch=chance.choice([1, 3, 10]), max_retries=3) for _ in range(4)]
    for node in nodes:
        node._driver.context.clock.random = lambda: 0.0  # type: ignore[method-assign]  # a double
    found: list[int] = []
    for _ in range(200):
        try:
            found += chance.choice(nodes).take(chance.choice([1, 1, 2, 7]))
        except IdsUnavailable:
            continue
    assert len(found) == len(set(found)) > 200


def test_threads_share_one_generator() -> None:
    source = ids(MemoryStore(), batch=7)
    found: list[list[int]] = [[] for _ in range(8)]

    def run(mine: list[int]) -> None:
        for _ in range(200):
            mine.append(source.next_id())

    threads = [threading.Thread(target=run, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one for mine in found for one in mine}) == 1600
    assert all(mine == sorted(mine) for mine in found)


def test_a_range_is_reserved_ahead() -> None:
    store = Troubled(lambda _: "")
    source = Ids(Client(store).driver, "orders", IdsOptions(batch=10, prefetch=True))
    found = source.take(9)
    for _ in range(2000):
        if store.writes == 2:
            break
        threading.Event().wait(0.005)
    assert store.writes == 2
    assert found + source.take(11) == list(range(1, 21))


def test_tasks_share_one_generator() -> None:
    async def scenario() -> list[int]:
        client = Client(MemoryStore())
        source = AioIds(client.aio.driver, "orders", IdsOptions(batch=7))
        taken = await asyncio.gather(*(source.take(3) for _ in range(50)))
        async for one in source:
            taken.append([one])
            break
        return [one for some in taken for one in some]

    found = asyncio.run(scenario())
    assert len(set(found)) == 151


def test_a_forked_child_has_a_range_of_its_own() -> None:
    source = ids(MemoryStore())
    assert source.next_id() == 1
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # The child's memory store is a copy: all that counts is that it asked it again.
        os.write(write, b"%d" % source.next_id())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"11"
    assert source.next_id() == 2


class Slow(MemoryStore):
    """Tells when it is asked to write, and does so when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may = threading.Event(), threading.Event()

    def cas(self, *arguments: Any, **named: Any) -> CasOutcome:
        self.asked.set()
        assert self.may.wait(60)
        return super().cas(*arguments, **named)


def test_a_child_forked_while_a_thread_reserves_waits_for_nobody() -> None:
    store = Slow()
    source = ids(store)
    thread = threading.Thread(target=source.next_id)
    thread.start()
    assert store.asked.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for a thread that it has not
        store.may.set()
        source.next_id()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    store.may.set()
    thread.join()
    assert code == 0


@pytest.mark.parametrize("bad", [{"batch": 0}, {"max_retries": -1}, {"first": -1}])
def test_options_that_make_no_sense(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"."):
        IdsOptions(**bad)  # type: ignore[arg-type]  # wrong on purpose


def test_one_client_wastes_no_range_on_a_second_generator() -> None:
    client = Client(MemoryStore())
    assert [client.ids("o").next_id() for _ in range(3)] == [1, 2, 3]
    assert client.ids("o", batch=10).next_id() == 1001
    assert client.sibling().ids("o").next_id() == 1011

    async def play() -> list[int]:
        return [await client.aio.ids("t").next_id() for _ in range(3)]

    assert asyncio.run(play()) == [1, 2, 3]
