"""Long reads by handles do not share a turn of the event loop, so that other work can run."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from strongroom.semantics.file.accesses import Disposition
from strongroom.slices import SliceTurns
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services.handle_calls import mounted

LONG, SHORT = 1 << 20, 4096
COUNT = 8


@pytest.mark.parametrize(("size", "turns"), [(LONG, COUNT), (SHORT, 1)])
def test_one_long_read_is_carried_out_in_a_turn(size: int, turns: int) -> None:
    """In memory a read never suspends by itself. Short ones share a turn."""

    async def scenario() -> None:
        on = await file_calls.services()
        seconds = itertools.count()
        on.turns = SliceTurns(lambda: float(next(seconds)))  # whatever is done takes too long
        ann = await mounted(on)
        handle = await ann.handle("f", disposition=Disposition.OPEN_IF)
        await ann.write(handle, 0, bytes(COUNT * LONG))
        turn, ends = 0, list[int]()

        async def count_turns() -> None:
            nonlocal turn
            while True:
                turn += 1
                await asyncio.sleep(0)

        async def read(number: int) -> None:
            await ann.read(handle, number * LONG, size)
            ends.append(turn)

        counting = asyncio.ensure_future(count_turns())
        await asyncio.gather(*(read(number) for number in range(COUNT)))
        counting.cancel()
        assert len(set(ends)) == turns

    given.run(scenario)
