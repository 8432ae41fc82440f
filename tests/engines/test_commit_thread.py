"""Where a commit runs: on the loop only when it is alone and the disk has been quick for long."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from strongroom.engines import commit_thread
from strongroom.engines.base import CommitUnknown, EngineError, Store
from strongroom.engines.commit_thread import CommitThread
from strongroom.testing.contract_subject import face, put, value
from strongroom.testing.disk import Disk
from tests.engines.embedded_stores import store_on

_IN_A_ROW = 3


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_thread, "QUICK_IN_A_ROW", _IN_A_ROW)
    # What is quick is for the test to say: the machine may be busy.
    monkeypatch.setattr(commit_thread, "QUICK_S", 0.5)


async def _ran_here(thread: CommitThread, work: Callable[[], object], alone: bool = True) -> bool:
    """Commit `work`; whether that was done on the loop's thread."""
    ran: list[int] = []
    over: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    def noted() -> None:
        ran.append(threading.get_ident())
        work()

    thread.commit(noted, over.set_result, alone)
    error = await over
    if error is not None:
        raise error
    return ran == [threading.get_ident()]


def _nothing() -> None:
    return


def test_a_lone_commit_stays_on_the_loop_once_the_disk_has_been_quick() -> None:
    async def prove() -> None:
        thread = CommitThread(asyncio.get_running_loop(), "commits")
        found = [await _ran_here(thread, _nothing) for _ in range(_IN_A_ROW + 2)]
        assert found == [False] * _IN_A_ROW + [True, True]
        assert not await _ran_here(thread, _nothing, alone=False), "others wait behind it"
        assert await _ran_here(thread, lambda: time.sleep(0.6)), "nobody can know before"
        found = [await _ran_here(thread, _nothing) for _ in range(_IN_A_ROW + 1)]
        assert found == [False] * _IN_A_ROW + [True], "a slow one counts against those after it"
        thread.stop()

    asyncio.run(prove())


def test_an_error_is_an_outcome_wherever_it_is_raised() -> None:
    def failing() -> None:
        raise OSError(errno.EIO, "broken")

    async def prove() -> None:
        thread = CommitThread(asyncio.get_running_loop(), "commits")
        for _ in range(2):
            with pytest.raises(OSError, match="broken"):
                await _ran_here(thread, failing)
            for _ in range(_IN_A_ROW):
                await _ran_here(thread, _nothing)
        thread.stop()

    asyncio.run(prove())


async def _put_some(store: Store, count: int) -> None:
    for number in range(count):
        await put(store, (face(), b"%d" % number))


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
        async with store_on(disk) as store:
            store.on_fatal(told.append)
            await _put_some(store, _IN_A_ROW + 1)
            disk.fault = fault
            with pytest.raises(CommitUnknown):
                await put(store, (face(), b"unknown"))
            with pytest.raises(EngineError):
                await put(store, (face(), b"refused"))
        assert syncing[0] == threading.get_ident()
        assert len(told) == 1
        disk.fault = None
        async with store_on(disk) as store:
            assert await value(store, face()) in (b"%d" % _IN_A_ROW, b"unknown")

    asyncio.run(prove())
