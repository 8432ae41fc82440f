"""A cancelled or interrupted client leaves no record behind that others must wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strongroom.coordination import Client
from strongroom.coordination.aio import AioClient
from strongroom.coordination.effects import CasOutcome, LeaseTerms
from strongroom.coordination.stores.memory import MemoryStore

TAKING: dict[str, Callable[[AioClient], Any]] = {
    "lock": lambda client: client.lock("a").acquire(),
    "fair lock": lambda client: client.lock("a", fair=True).acquire(),
    "several locks": lambda client: client.locks("a", "b").__aenter__(),
    "election": lambda client: client.election("a").campaign(),
    "semaphore": lambda client: client.semaphore("a", 1).acquire(),
    "writer": lambda client: client.rwlock("a").write().acquire(),
    "barrier": lambda client: client.barrier("a", 2).wait(),
}
OTHERS: dict[str, Callable[[Client], Any]] = {
    "lock": lambda client: client.lock("a", wait=0).acquire(),
    "fair lock": lambda client: client.lock("a", wait=0, fair=True).acquire(),
    "several locks": lambda client: client.locks("a", "b", wait=0).__enter__(),
    "election": lambda client: client.election("a", wait=0).campaign(),
    "semaphore": lambda client: client.semaphore("a", 1, wait=0).acquire(),
    "writer": lambda client: client.rwlock("a", wait=0).write().acquire(),
    # A party that still counts expects two parties, and would refuse three.
    "barrier": lambda client: client.barrier("a", 3).show(),
}
STEPS_MAX = 6


class Interrupting(MemoryStore):
    """A memory store whose next writer is interrupted, before or after the write."""

    def __init__(self, written: bool) -> None:
        super().__init__()
        self.written, self.armed = written, False

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        interrupted, self.armed = self.armed, False
        if interrupted and not self.written:
            raise KeyboardInterrupt
        outcome = super().cas(key, expected, value, timeout_s, lease, note)
        if interrupted:
            raise KeyboardInterrupt
        return outcome


async def cancelled(taking: Coroutine[Any, Any, Any], steps: int) -> bool:
    """Cancel it after so many steps of the loop; return whether it was still at it."""
    task = asyncio.create_task(taking)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


@pytest.mark.parametrize("what", TAKING)
def test_a_cancelled_taker_leaves_it_free(what: str) -> None:
    cancelled_count = 0
    for steps in range(1, STEPS_MAX):
        store = MemoryStore()
        if not asyncio.run(cancelled(TAKING[what](Client(store).aio), steps)):
            break
        cancelled_count += 1
        found = OTHERS[what](Client(store))
        assert what != "barrier" or found is None or not found.arrived
    assert cancelled_count > 1


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("server_lease", [False, True])
def test_an_interrupted_taker_leaves_it_free(written: bool, server_lease: bool) -> None:
    store = Interrupting(written)
    store._registers.server_lease = server_lease
    taker, other = Client(store), Client(store)
    for name in ("never there", "there before"):
        if name == "there before":
            taker.lock(name).acquire().release()
        store.armed = True
        with pytest.raises(KeyboardInterrupt):
            taker.lock(name).acquire()
        assert other.lock(name).try_acquire()


@pytest.mark.parametrize("written", [False, True])
def test_an_interrupted_release_is_one(written: bool) -> None:
    store = Interrupting(written)
    for what in ("lock", "semaphore", "writer"):
        client = Client(store)
        held = {
            "lock": client.lock("a"),
            "semaphore": client.semaphore("a", 1),
            "writer": client.rwlock("a").write(),
        }[what].acquire()
        store.armed = True
        with pytest.raises(KeyboardInterrupt):
            held.release()
        assert OTHERS[what](Client(store))


def test_a_cancelled_release_is_one() -> None:
    async def play(store: MemoryStore, steps: int) -> bool:
        held = await Client(store).aio.lock("a").acquire()
        return await cancelled(held.release(), steps)

    for steps in (1, 2):
        store = MemoryStore()
        assert asyncio.run(play(store, steps))
        assert Client(store).lock("a").try_acquire()


@pytest.mark.parametrize("kind", ["thread", "alert", "task"])
def test_a_taker_that_cannot_start_a_thread_leaves_it_free(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    store = MemoryStore()
    client, other = Client(store), Client(store)
    if kind == "alert":
        client.lock("warm").acquire().release()  # the threads that renew run from now on

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def take() -> None:
        if kind == "task":
            asyncio.run(client.aio.lock("a", on_lost="abort").acquire())
        else:
            client.lock("a", alert=kind == "alert").acquire()

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            take()
    held = other.lock("a").try_acquire()
    assert held is not None and held.release()
    assert client.lock("a", wait=0).acquire().release()
