"""A waiter does not delay another client's renewal: the threads that the asyncio API shares."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strongroom import coordination as coord
from strongroom.coordination.effects import Applied, Entry, Watched
from strongroom.coordination.store import AsyncStore
from strongroom.coordination.stores.memory import MemoryStore
from strongroom.coordination.stores.threaded_store import ThreadedStore

CROWD = 100
PATIENCE_S = 60.0
"""Bounds a test that hangs; no test measures it."""


class Slow(MemoryStore):
    """A store whose watches, or reads, last until the test ends them."""

    def __init__(self, *, slow_reads: bool = False) -> None:
        super().__init__()
        self.over, self.slow_reads = threading.Event(), slow_reads
        self.began = threading.Semaphore(0)
        self.watching, self.ended = 0, 0

    def aio(self) -> AsyncStore:
        return ThreadedStore(self)

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        self.watching += 1
        self.began.release()
        self.over.wait(PATIENCE_S)
        self.ended += 1
        return self.get_now(key)

    def get(self, key: str, timeout_s: float) -> Entry | None:
        if self.slow_reads:
            self.began.release()
            self.over.wait(PATIENCE_S)
            self.ended += 1
        return self.get_now(key)

    def get_now(self, key: str) -> Entry | None:
        return super().get(key, PATIENCE_S)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so."""
    for _ in range(int(PATIENCE_S * 1000)):
        if condition():
            return
        await asyncio.sleep(0.001)
    pytest.fail("it does not come to that")


async def crowd_of(store: Slow, waits: Any, begun: int) -> list[asyncio.Task[Any]]:
    """Start so many waiters, and return when `begun` of them occupy a thread."""
    tasks = [asyncio.ensure_future(waits(f"lock/{number}")) for number in range(CROWD)]
    for _ in range(begun):
        await until(lambda: store.began.acquire(blocking=False))
    return tasks


@pytest.mark.parametrize("what", ["watch", "read"])
def test_a_write_does_not_wait_for_a_crowd(what: str) -> None:
    async def main() -> None:
        store = Slow(slow_reads=what == "read")
        face = ThreadedStore(store)

        async def waits(key: str) -> object:
            if what == "read":
                return await face.get(key, PATIENCE_S)
            return await face.watch(key, None, PATIENCE_S)

        tasks = await crowd_of(store, waits, 32)
        try:
            written = await asyncio.wait_for(face.cas("lock/x", None, b"x", 5.0), PATIENCE_S)
            assert isinstance(written, Applied)
            assert store.ended == 0, "it was sent while everybody still waited"
            gone = await asyncio.wait_for(face.delete("lock/x", written.version, 5.0), PATIENCE_S)
            assert isinstance(gone, Applied) and store.ended == 0
        finally:
            store.over.set()
            await asyncio.gather(*tasks)
            await face.close()

    asyncio.run(main())


def test_a_read_does_not_wait_for_a_watch() -> None:
    async def main() -> None:
        store = Slow()
        face = ThreadedStore(store)
        tasks = await crowd_of(store, lambda key: face.watch(key, None, PATIENCE_S), 64)
        try:
            assert await asyncio.wait_for(face.get("lock/x", 5.0), PATIENCE_S) is None
            assert await asyncio.wait_for(face.list_keys("lock/", 5.0), PATIENCE_S) == []
            assert store.ended == 0
        finally:
            store.over.set()
            await asyncio.gather(*tasks)
            await face.close()

    asyncio.run(main())


def test_whoever_finds_no_thread_to_watch_on_reads_instead() -> None:
    async def main() -> None:
        store = Slow()
        face = ThreadedStore(store, watches=2)
        first = [asyncio.ensure_future(face.watch("lock/a", None, PATIENCE_S)) for _ in range(2)]
        await until(lambda: store.watching == 2)
        written = store.cas("lock/a", None, b"new", 5.0)
        assert isinstance(written, Applied)
        third = await asyncio.wait_for(face.watch("lock/a", None, PATIENCE_S), PATIENCE_S)
        assert isinstance(third, Entry) and third.value == b"new"
        assert (store.watching, store.ended) == (2, 0)
        first[0].cancel()  # its thread is not free before the watch has ended
        await asyncio.wait_for(face.watch("lock/a", None, PATIENCE_S), PATIENCE_S)
        assert (store.watching, store.ended) == (2, 0)
        store.over.set()
        await asyncio.gather(*first, return_exceptions=True)
        for _ in range(1000):
            await asyncio.wait_for(face.watch("lock/a", None, PATIENCE_S), PATIENCE_S)
            if store.watching > 2:
                break
        assert store.watching == 3, "a thread that is free again is used again"
        await face.close()

    asyncio.run(main())


def test_a_hold_is_renewed_while_a_crowd_waits_for_other_locks() -> None:
    async def main() -> None:
        store = Slow()
        with coord.Client(store) as client, coord.Client(store) as other:
            held = [other.lock(str(number), ttl=60).acquire() for number in range(CROWD)]
            async with client.aio.lock("mine", ttl=1.5) as mine:
                waiting = [
                    asyncio.ensure_future(client.aio.lock(one.name, ttl=60).acquire())
                    for one in held
                ]
                await until(lambda: store.watching == 64)
                renewed = mine._hold.renewed_count
                await until(lambda: mine._hold.renewed_count >= renewed + 2)
                mine.check()
                assert store.ended == 0
                for task in waiting:
                    task.cancel()
                store.over.set()
                await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(main())


def test_whoever_waits_when_the_client_is_closed_is_told_so() -> None:
    """Some calls run on threads then, others have not begun; the watches end by themselves."""

    async def close() -> None:
        store = Slow(slow_reads=True)
        reads = ThreadedStore(store)
        calls = [asyncio.create_task(reads.get("k", PATIENCE_S)) for _ in range(CROWD)]
        await until(lambda: store.began.acquire(blocking=False))
        await asyncio.sleep(0)
        await reads.close()
        later = await asyncio.gather(
            reads.get("k", PATIENCE_S), reads.watch("k", None, 1), return_exceptions=True
        )
        store.over.set()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {type(None), coord.ClientClosed}
        assert [type(outcome) for outcome in later] == [coord.ClientClosed] * 2

    asyncio.run(close())


def test_a_waiter_for_a_lock_is_told_that_its_client_was_closed(tmp_path: Path) -> None:
    async def wait() -> None:
        url = tmp_path.as_uri()
        with coord.connect(url) as holder, coord.connect(url) as other, holder.lock("x"):
            waiting = asyncio.create_task(other.aio.lock("x").acquire())
            await asyncio.sleep(0.05)
            await other.aio.close()
            with pytest.raises(coord.ClientClosed, match="was closed"):
                async with asyncio.timeout(PATIENCE_S):
                    await waiting

    asyncio.run(wait())
