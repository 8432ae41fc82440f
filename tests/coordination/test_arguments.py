"""Invalid times, counts and words are refused before any request is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from strongroom.coordination import Client, Unsupported
from strongroom.coordination.stores.memory import MemoryStore

NAN = float("nan")
INF = float("inf")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.mark.parametrize("ttl", [True, Decimal(5), Fraction(5)])
def test_a_ttl_of_another_kind_spoils_no_record(ttl: Any, store: MemoryStore) -> None:
    holder, other = Client(store), Client(store)
    held = holder.lock("a", ttl=ttl).acquire()
    view = other.show("a")
    assert view is not None and view.ttl_s == float(ttl)
    assert held.release() and other.lock("a").try_acquire()


BAD: dict[str, Callable[[Client], Any]] = {
    "ttl": lambda client: client.lock("b", ttl="15"),  # type: ignore[arg-type]  # wrong on purpose
    "wait NaN": lambda client: client.lock("b", wait=NAN),
    # Wrong on purpose.
    "wait text": lambda client: client.lock("b", wait="1"),  # type: ignore[arg-type]
    "wait of a semaphore": lambda client: client.semaphore("b", 2, wait=NAN),
    "wait of several": lambda client: client.locks("b", wait=NAN),
    "lock_delay below 0": lambda client: client.lock("b", lock_delay=-100.0),
    "lock_delay NaN": lambda client: client.lock("b", lock_delay=NAN),
    "lock_delay without end": lambda client: client.lock("b", lock_delay=INF),
    # Wrong on purpose.
    "on_lost": lambda client: client.lock("b", on_lost="abrot"),  # type: ignore[arg-type]
    # Wrong on purpose.
    "permits": lambda client: client.semaphore("b", 2.5),  # type: ignore[arg-type]
    # Wrong on purpose.
    "parties": lambda client: client.barrier("b", 2.5),  # type: ignore[arg-type]
    "barrier's timeout": lambda client: client.barrier("b", 2).wait(NAN),
    "gate's timeout": lambda client: client.gate("b").wait(NAN),
    "register's timeout": lambda client: client.register("b").wait_for_change(None, NAN),
    "register's ttl": lambda client: client.register("b").put(1, NAN),
    "observer's timeout": lambda client: next(client.election("b").observe(NAN)),
    "watcher's timeout": lambda client: next(client.members("b").watch(NAN)),
    "watcher's pace": lambda client: next(client.members("b").watch(1, -1)),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_none_is_refused_and_nothing_is_written(what: str, store: MemoryStore) -> None:
    with pytest.raises(Unsupported):
        BAD[what](Client(store))
    assert store.list_keys("", 1.0) == []


@pytest.mark.parametrize("rate_error", [-0.9, 1, 2, NAN])
def test_a_bound_on_clocks_that_bounds_nothing(rate_error: float, store: MemoryStore) -> None:
    with pytest.raises(Unsupported, match="rate_error"):
        Client(store, rate_error=rate_error)


@pytest.mark.parametrize("what", ["lock", "locks", "semaphore", "rwlock", "members", "election"])
def test_a_block_that_would_not_be_cancelled(what: str, store: MemoryStore) -> None:
    async def make() -> None:
        arguments = ("a", 1) if what == "semaphore" else ("a",)
        with pytest.raises(Unsupported, match="deadline"):
            getattr(Client(store).aio, what)(*arguments, cancel="dead-line")

    asyncio.run(make())


@pytest.mark.parametrize("write", ["gate", "register", "election", "members"])
def test_what_is_no_json_is_not_written(write: str, store: MemoryStore) -> None:
    client = Client(store)
    told: dict[str, Callable[[], Any]] = {
        "gate": lambda: client.gate("a").open(NAN),
        "register": lambda: client.register("a").put([INF]),
        "election": lambda: client.election("a", NAN).campaign(),
        "members": lambda: client.members("a").join({"load": NAN}),
    }
    with pytest.raises(ValueError, match="JSON"):
        told[write]()
    assert store.list_keys("", 1.0) == []
