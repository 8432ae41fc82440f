"""The choice where a commit runs: on the loop if the disk was fast for long, else on the thread."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from strongroom.engines.base import CommitUnknown, EngineError
from strongroom.engines.embedded.commit import commit_thread
from strongroom.engines.embedded.commit.commit_thread import CommitThread
from strongroom.testing.contract.subject import face, put, value
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import store_on


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise QUICK_S, so that a busy machine does not make fast commits count as slow."""
    monkeypatch.setattr(commit_thread, "QUICK_S", 0.5)


async def _ran_here(thread: CommitThread, work: Callable[[], object]) -> bool:
    """Commit `work`. Return whether it ran on the loop's thread."""
    ran: list[int] = []
    over: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    def noted() -> None:
        ran.append(threading.get_ident())
        work()

    thread.commit(noted, over.set_result)
    error = await over
    if error is not None:
        raise error
    return ran == [threading.get_ident()]


def _nothing() -> None:
    return


def test_a_commit_stays_on_the_loop_while_the_disk_is_quick() -> None:
    async def prove() -> None:
        loop = asyncio.get_running_loop()
        thread = CommitThread(loop, "commits")
        assert await _ran_here(thread, _nothing)
        begun_s = loop.time()
        assert await _ran_here(thread, lambda: time.sleep(0.6)), "nobody can know before"
        ended_s = loop.time()
        assert not await _ran_here(thread, _nothing)
        shortest_s, longest_s = begun_s + 11 * 0.6, ended_s + 10 * (ended_s - begun_s)
        assert shortest_s <= thread._thread_until_s <= longest_s, "ten times as long as it took"
        thread.use_thread_for(0)
        assert await _ran_here(thread, _nothing)
        thread.use_thread_for(0.5)
        await _ran_here(thread, lambda: time.sleep(0.6))
        assert not await _ran_here(thread, _nothing), "a slow one counts wherever it ran"
        thread.stop()

    asyncio.run(prove())


@pytest.mark.parametrize("thread_s", [0, 60])
def test_an_error_is_an_outcome_wherever_it_is_raised(thread_s: int) -> None:
    def failing() -> None:
        raise OSError(errno.EIO, "broken")

    async def prove() -> None:
        thread = CommitThread(asyncio.get_running_loop(), "commits")
        thread.use_thread_for(thread_s)
        for _ in range(2):
            with pytest.raises(OSError, match="broken"):
                await _ran_here(thread, failing)
        assert await _ran_here(thread, _nothing) == (not thread_s)
        thread.stop()

    asyncio.run(prove())


def test_a_slow_one_counts_also_when_it_fails() -> None:
    def failing() -> None:
        time.sleep(0.6)
        raise OSError(errno.ENOSPC, "full")

    async def prove() -> None:
        thread = CommitThread(asyncio.get_running_loop(), "commits")
        with pytest.raises(OSError, match="full"):
            await _ran_here(thread, failing)
        assert not await _ran_here(thread, _nothing)
        thread.stop()

    asyncio.run(prove())


def test_an_interrupt_reaches_whoever_runs_the_loop() -> None:
    outcomes: list[BaseException | None] = []

    def interrupted() -> None:
        raise KeyboardInterrupt

    async def prove() -> None:
        thread = CommitThread(asyncio.get_running_loop(), "commits")
        with pytest.raises(KeyboardInterrupt):
            thread.commit(interrupted, outcomes.append)
        thread.stop()

    asyncio.run(prove())
    assert [type(one) for one in outcomes] == [KeyboardInterrupt]


def test_a_store_whose_sync_fails_on_the_loop_stops_as_well(tmp_path: Path) -> None:
    syncing: list[int] = []

    def fault(operation: str, path: str) -> int | None:
        if operation == "sync" and path.endswith("-wal"):
            syncing.append(threading.get_ident())
            return errno.EIO
        return None

    async def prove() -> None:
        disk = Disk(tmp_path)
        told: list[EngineError] = []
        async with store_on(disk, commits_on_loop=True) as store:
            store.on_fatal(told.append)
            await put(store, (face(), b"known"))
            disk.fault = fault
            with pytest.raises(CommitUnknown):
                await put(store, (face(), b"unknown"))
            with pytest.raises(EngineError):
                await put(store, (face(), b"refused"))
        assert syncing[0] == threading.get_ident()
        assert len(told) == 1
        disk.fault = None
        async with store_on(disk) as store:
            assert await value(store, face()) in (b"known", b"unknown")

    asyncio.run(prove())


def test_a_thread_that_the_system_does_not_start_is_a_lack_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def prove() -> None:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(MemoryError, match="can't start new thread"):
            CommitThread(asyncio.get_running_loop(), "commit")

    asyncio.run(prove())
