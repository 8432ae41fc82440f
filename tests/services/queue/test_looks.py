"""The reads of a retrieval, and its result when others are taking the messages that it sees."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import Decide, Item, Partition, Ref
from strongroom.services.queue.expired_front import ExpiredFronts
from strongroom.values import Purpose
from tests.services import queue_calls as given
from tests.services.container_calls import run
from tests.services.queue.test_retrievals import fresh, message_partitions
from tests.services.service_engine import ServiceEngine, settle


class RangesCounted(ServiceEngine):
    """Counts the records that are read in ranges."""

    ranged = 0

    async def read_range(self, *asked: Any, **named: Any) -> list[Item]:
        found = await super().read_range(*asked, **named)
        self.ranged += len(found)
        return found


def test_what_has_expired_is_read_past_once() -> None:
    """Q-GET-09, Q-GET-06: thousands of unswept messages cost the next retrievals nothing, and hide
    no message."""

    async def scenario() -> None:
        store = RangesCounted(ManualClock())
        on = await fresh(store)
        for _ in range(3):
            await asyncio.gather(*(given.put(on, ttl_s=10) for _ in range(500)))
        await given.get(on, 32, 5)
        given.pass_time(on, 10)
        await given.put(on, "alive")
        assert given.texts(await given.peek(on)) == ["alive"]
        before = store.ranged
        for _ in range(20):
            assert given.texts(await given.peek(on)) == ["alive"]
        assert given.texts(await given.get(on, 32, 5)) == ["alive"]
        await given.put(on, "another")
        given.pass_time(on, 5)
        assert given.texts(await given.get(on, 32)) == ["another", "alive"]
        assert store.ranged - before < 30 * 5

    run(scenario)


def test_nothing_is_passed_over_where_a_commit_may_still_put_something() -> None:
    """Q-GET-07: a message that is not visible yet may have any stamp beyond the visible ones."""

    async def scenario() -> None:
        on = await fresh()
        await given.put(on, "hidden", visibility_s=9, ttl_s=10)
        given.pass_time(on, 10)
        assert await given.peek(on) == ()
        partition = next(iter(message_partitions(on)))
        assert on.disposable.of(ExpiredFronts).first(partition, b"none") == b"none"
        await given.put(on, "next")
        assert given.texts(await given.peek(on)) == ["next"]

    run(scenario)


class Held(ServiceEngine):
    """Delays all updates while its gate is shut."""

    gate: asyncio.Event | None = None

    async def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[Any],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Any:
        if self.gate is not None:
            await self.gate.wait()
        return await super().update(partition, reads, decide, purpose)


@pytest.mark.parametrize("wait_s", [0, 20])
@pytest.mark.parametrize("fails", [False, True])
def test_there_is_nothing_only_when_what_others_take_is_taken(fails: bool, wait_s: int) -> None:
    """Q-GET-01, Q-GET-07, Q-GET-08: a retrieval waits until the others have taken the messages, and
    gets them if they fail."""

    async def scenario() -> None:
        store = Held(ManualClock())
        on = await fresh(store)
        await given.put(on, "only")
        store.gate = asyncio.Event()
        first = asyncio.ensure_future(given.get(on))
        await settle()
        second = asyncio.ensure_future(given.get(on, 1, 30, wait_s=wait_s))
        await settle()
        assert not first.done() and not second.done()
        if fails:
            first.cancel()
            await settle()
        store.gate.set()
        if fails:
            assert given.texts(await asyncio.wait_for(second, 15)) == ["only"]
            return
        assert given.texts(await asyncio.wait_for(first, 15)) == ["only"]
        if wait_s:
            await settle()
            assert not second.done()
            second.cancel()
        else:
            assert await asyncio.wait_for(second, 15) == ()

    run(scenario)
