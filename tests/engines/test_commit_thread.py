"""The commit thread: what runs on it, and what on the loop itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from strongroom.engines.commit_thread import CommitThread

MANY = 200


class Disk:
    """Work that takes as long as it is told to, and notes where it ran."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.takes_s = 0.0001
        self.on_loop: list[bool] = []

    def time_s(self) -> float:
        return self.now_s

    def work(self) -> None:
        self.now_s += self.takes_s
        self.on_loop.append(threading.current_thread() is threading.main_thread())


class Runs:
    """A thread, and the work that is done by it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.disk, self.loop = Disk(), loop
        self.thread = CommitThread(loop, "commit", self.disk.time_s)

    async def run(self, count: int = 1) -> list[bool]:
        """Run work `count` times; of each, whether it ran on the loop."""
        first = len(self.disk.on_loop)
        for _ in range(count):
            done: asyncio.Future[BaseException | None] = self.loop.create_future()
            self.thread.run(self.disk.work, done.set_result)
            assert await asyncio.wait_for(done, 30) is None
        return self.disk.on_loop[first:]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def test_quick_work_comes_to_the_loop_and_slow_work_leaves_it(
    loop: asyncio.AbstractEventLoop,
) -> None:
    async def play() -> None:
        runs = Runs(loop)
        begun = await runs.run(MANY)
        assert not begun[0], "nobody knows yet how quick the disk is"
        assert begun[-1] and begun == sorted(begun), "it is quick"
        runs.disk.takes_s = 0.2
        assert await runs.run(3) == [True, False, False], "only the first one is not foreseen"
        runs.disk.takes_s = 0.0001
        again = await runs.run(MANY)
        assert again == sorted(again) and again[-1]
        assert again.count(False) > 50, "one slow sync is remembered"
        runs.thread.stop()

    loop.run_until_complete(play())


def test_what_fails_on_the_loop_is_told_as_what_fails_on_the_thread(
    loop: asyncio.AbstractEventLoop,
) -> None:
    def broken() -> None:
        raise OSError("the disk is gone")

    async def play() -> None:
        runs = Runs(loop)
        told: list[BaseException | None] = []
        await runs.run(MANY)
        runs.thread.run(broken, told.append)
        assert [str(error) for error in told] == ["the disk is gone"]
        done: asyncio.Future[BaseException | None] = loop.create_future()
        runs.thread.submit(broken, done.set_result)
        assert str(await asyncio.wait_for(done, 30)) == "the disk is gone"
        runs.thread.stop()

    loop.run_until_complete(play())
