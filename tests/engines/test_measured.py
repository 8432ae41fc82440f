"""How long a request waits for the engine: what counts, and for which request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

import pytest

from strongroom.clock import ManualClock
from strongroom.engines import measured
from strongroom.engines.base import Commit, Key, Partition, Position, Ref, Step, Write
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

    async def read(self, reads: Any) -> Any:
        return await self._slowly(super().read(reads))

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


def test_reads_scans_and_updates_add_up() -> None:
    async def request() -> None:
        slow = Slow()
        engine = MeasuredEngine(slow, lambda: slow.seconds)
        measured.begin()
        assert await write(engine) == "done"
        assert measured.spent_s() == 1
        (found,) = await engine.read([REF])
        assert found is not None and found.value == b"value"
        assert measured.spent_s() == 2
        assert len(await engine.read_range(PLACE, False, b"", None, 10)) == 1
        page = await engine.scan(b"space", Position(b"", b""), None, 10)
        assert len(page.faces()) == 1
        assert measured.spent_s() == 4

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

        async def request(reads: int) -> float:
            measured.begin()
            for _ in range(reads):
                await asyncio.create_task(engine.read([REF]))
            return measured.spent_s()

        found = [await asyncio.create_task(request(reads)) for reads in (1, 3)]
        assert found == [1, 3]
        assert measured.spent_s() == 0

    run(all_requests())


def test_each_update_is_told_before_it_is_awaited() -> None:
    async def request() -> None:
        told: list[Awaitable[Any]] = []
        memory = MemoryEngine(ManualClock())
        engine = MeasuredEngine(memory, lambda: 0.0, told.append)
        pending = write(engine)
        assert len(told) == 1
        assert await pending == "done"

    run(request())
