"""What the operations on a queue cost: calls of the engine, and the records in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from strongroom.clock import ManualClock
from strongroom.engines.base import Commit, Decide, Item, Partition, Record, Ref
from strongroom.services.queue import queues
from strongroom.values import Purpose
from tests.over_postgres import keeps_in_postgres
from tests.services import queue_calls as given
from tests.services.container_calls import run
from tests.services.queue.test_retrievals import fresh
from tests.services.service_engine import ServiceEngine


class Counting:
    """A store that counts its calls and their records."""

    def __init__(self, store: ServiceEngine) -> None:
        self._store = store
        self.calls = 0
        self.records = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        self._add(len(reads))
        return await self._store.read(reads)

    async def read_range(
        self,
        partition: Partition,
        hidden: bool,
        first: bytes,
        until: bytes | None,
        max_records: int,
    ) -> list[Item]:
        found = await self._store.read_range(partition, hidden, first, until, max_records)
        self._add(max_records)
        return found

    async def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[Any],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Any:
        def counted(found: Sequence[Record | None], stamp: int) -> Commit[Any]:
            commit = decide(found, stamp)
            written[:] = [len(step.writes) for step in commit.steps]
            return commit

        written: list[int] = []
        result = await self._store.update(partition, reads, counted, purpose)
        self._add(len(reads) + sum(written))
        return result

    def _add(self, records: int) -> None:
        self.calls += 1
        self.records += records

    def taken(self) -> tuple[int, int]:
        found = self.calls, self.records
        self.calls = self.records = 0
        return found


async def costs(size: int) -> list[tuple[int, int]]:
    """Return (calls of the engine, records) of each operation on a queue of `size` messages."""
    store = Counting(ServiceEngine(ManualClock()))
    on = await fresh(store)
    for number in range(size):
        await given.put(on, str(number))
    store.taken()
    found = []
    for _ in range(2):
        made = await given.put(on, "last")
        found.append(store.taken())
        got = await given.get(on, 32)
        found.append(store.taken())
        await given.peek(on)
        found.append(store.taken())
        await given.update(on, got[0], 5)
        found.append(store.taken())
        await given.delete(on, got[1])
        found.append(store.taken())
        await given.count(on)
        found.append(store.taken())
        await given.delete(on, made)
        store.taken()
    await given.clear(on)
    found.append(store.taken())
    await queues.delete_queue(on, await given.placed(on))
    found.append(store.taken())
    return found


def test_the_size_of_a_queue_costs_nothing() -> None:
    """Q-GET-09: many messages against few, in engine calls and records."""
    # Over a database each message takes milliseconds. Few are still more than a call may read.
    few, many = (300, 1_200) if keeps_in_postgres() else (1_000, 8_000)

    async def scenario() -> None:
        small, large = await costs(few), await costs(many)
        assert large == small
        assert all(calls <= 4 and records < 200 for calls, records in large)

    run(scenario)
