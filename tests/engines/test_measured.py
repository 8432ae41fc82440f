"""How long a request waits for the engine: what counts, and for which request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from strongroom.clock import ManualClock, SystemClock
from strongroom.engines import measured
from strongroom.engines.base import Commit, Key, Partition, Position, Ref, Step, Write
from strongroom.engines.embedded import open_store
from strongroom.engines.measured import MeasuredEngine
from strongroom.engines.memory import MemoryEngine

PLACE = Partition(b"space", b"place")
REF = Ref(PLACE, Key(hidden=False, name=b"name"))


class Slow(MemoryEngine):
    """An engine in which each call takes a second of the test's clock."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.seconds = 0.0

    async def update(self, *given: Any) -> Any:
        return await self._slowly(super().update(*given))

    async def read_range(self, *given: Any) -> Any:
        return await self._slowly(super().read_range(*given))

    async def scan(self, *given: Any) -> Any:
        return await self._slowly(super().scan(*given))

    async def _slowly(self, work: Awaitable[Any]) -> Any:
        self.seconds += 1
        return await work


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def write(engine: MeasuredEngine) -> Awaitable[str]:
    step = Step(PLACE, (Write(REF.key, b"value"),))
    return engine.update(PLACE, [REF], lambda found, stamp: Commit("done", (step,)))


def test_scans_and_updates_add_up() -> None:
    async def request() -> None:
        slow = Slow()
        engine = MeasuredEngine(slow, lambda: slow.seconds)
        measured.begin()
        assert await write(engine) == "done"
        assert measured.spent_s() == 1
        assert len(await engine.read_range(PLACE, False, b"", None, 10)) == 1
        page = await engine.scan(b"space", Position(b"", b""), None, 10)
        assert len(page.faces()) == 1
        assert measured.spent_s() == 3

    run(request())


def test_a_refused_update_counts_too() -> None:
    async def request() -> None:
        slow = Slow()
        engine = MeasuredEngine(slow, lambda: slow.seconds)

        def refuse(found: object, stamp: int) -> Commit[None]:
            raise KeyError("refused")

        measured.begin()
        with pytest.raises(KeyError, match="refused"):
            await engine.update(PLACE, [REF], refuse)
        assert measured.spent_s() == 1

    run(request())


def test_requests_at_the_same_time_have_their_own_sums_and_their_tasks_share_them() -> None:
    async def all_requests() -> None:
        slow = Slow()
        engine = MeasuredEngine(slow, lambda: slow.seconds)

        async def request(scans: int) -> float:
            measured.begin()
            for _ in range(scans):
                await asyncio.create_task(engine.scan(b"space", Position(b"", b""), None, 10))
            return measured.spent_s()

        found = [await asyncio.create_task(request(scans)) for scans in (1, 3)]
        assert found == [1, 3]
        assert measured.spent_s() == 0

    run(all_requests())


def test_a_task_that_begins_no_request_has_a_sum_of_its_own() -> None:
    async def all_requests() -> None:
        slow = Slow()
        engine = MeasuredEngine(slow, lambda: slow.seconds)

        async def request() -> float:
            await write(engine)
            return measured.spent_s()

        assert [await asyncio.create_task(request()) for _ in range(2)] == [1, 1]
        assert measured.spent_s() == 0

    run(all_requests())


def test_the_embedded_engine_adds_the_reads_that_it_cannot_answer_from_memory(
    tmp_path: Path,
) -> None:
    async def request() -> None:
        store = await open_store(tmp_path / "data", SystemClock())
        step = Step(PLACE, (Write(REF.key, b"value"),))
        await store.update(PLACE, [], lambda found, stamp: Commit("done", (step,)))
        measured.begin()
        sums = []
        for _ in range(5):  # the engine keeps what is read repeatedly
            await store.read([REF])
            sums.append(measured.spent_s())
        assert 0 < sums[0] <= sums[-2] == sums[-1]
        await store.close()

    run(request())


def test_each_update_is_told_before_it_is_awaited() -> None:
    async def request() -> None:
        told: list[Awaitable[Any]] = []
        memory = MemoryEngine(ManualClock())
        engine = MeasuredEngine(memory, lambda: 0.0, told.append)
        pending = write(engine)
        assert len(told) == 1
        assert await pending == "done"

    run(request())
