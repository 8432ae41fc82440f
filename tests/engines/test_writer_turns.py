"""When a group begins, beside long work."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, cast

import pytest

from strongroom.engines.embedded.commit.writer_turns import GroupPace, WorkQueue, WriterTurns
from strongroom.slices import SliceTurns
from strongroom.values import Purpose


class _Reader:
    """A reader whose snapshot is always fresh."""

    def end_snapshot(self) -> None:
        pass


@pytest.mark.parametrize(("works", "begins_in"), [(False, 1), (True, 2)])
def test_a_group_does_not_begin_at_the_end_of_a_long_turn(works: bool, begins_in: int) -> None:
    """It begins in the next turn, although that is long too."""

    async def prove() -> None:
        loop = asyncio.get_running_loop()
        seconds = itertools.count()
        slices = SliceTurns(lambda: float(next(seconds)))  # all that is done takes too long
        queue, turn, began_in = WorkQueue(loop), 0, list[int]()

        def run_group() -> None:
            began_in.append(turn)
            queue.take().future.cancel()

        turns = WriterTurns(
            queue,
            GroupPace(loop.time),
            cast("Any", None),
            cast("Any", _Reader()),
            run_group,
            slices,
        )

        async def work() -> None:
            while works:
                await slices.pause()

        working = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        for _ in range(3):
            queue.add((), None, None, Purpose.GROWTH)
            turns.schedule()
            turn, count = 0, len(began_in)
            while len(began_in) == count:
                turn += 1
                await asyncio.sleep(0)
        working.cancel()
        assert began_in == [begins_in] * 3

    asyncio.run(prove())
