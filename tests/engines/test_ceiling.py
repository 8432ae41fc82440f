"""The ceiling of store time, and the ids that follow from time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from strongroom.clock import ManualClock
from strongroom.engines.embedded.commit.store_time import ContentIds, DurableTime
from strongroom.values import TICKS_PER_S
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import store_on


def test_ids_of_contents_are_new_and_above_all_that_were_given_before() -> None:
    clock = ManualClock()
    ids = ContentIds(DurableTime(clock, 0), clock.wall_ticks() + 5)
    assert [ids.new() - clock.wall_ticks() for _ in range(3)] == [6, 7, 8]
    clock.advance(1)
    assert ids.new() == clock.wall_ticks()


def test_all_who_wait_for_time_share_one_commit(tmp_path: Path) -> None:
    async def prove() -> None:
        clock = ManualClock()
        async with store_on(Disk(tmp_path), clock) as store:
            await store.now()
            clock.advance(10)
            rising = store._ceiling.rise_to(store._time.now())
            assert store._ceiling.rise_to(0) is rising
            times = await asyncio.gather(*(store.now() for _ in range(5)))
            assert rising.done()
            assert min(times) >= clock.wall_ticks() - TICKS_PER_S
            assert store._ceiling.rise_to(0) is not rising

    asyncio.run(prove())
