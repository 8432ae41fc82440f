"""Long reads and writes by handles do not share a turn of the event loop, so that other work can
run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.semantics.file.accesses import Disposition
from strongroom.services.file.handles import transfers
from strongroom.services.file.node import changing
from strongroom.store.core import extents
from strongroom.store.core.extents.model import LEAF_BYTES
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services.counted_turns import counted_turns
from tests.services.handle_calls import mounted

LONG, SHORT = 1 << 20, 4096
COUNT = 8


@pytest.mark.parametrize(("size", "distinct"), [(LONG, COUNT), (SHORT, 1)])
def test_one_long_read_ends_in_a_turn(size: int, distinct: int) -> None:
    """In memory a read never suspends by itself. Short ones share a turn."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handle = await ann.handle("f", disposition=Disposition.OPEN_IF)
        await ann.write(handle, 0, bytes(COUNT * LONG))
        ends = list[int]()
        async with counted_turns(on) as turns:

            async def read(number: int) -> None:
                await ann.read(handle, number * LONG, size)
                ends.append(turns.number)

            await asyncio.gather(*(read(number) for number in range(COUNT)))
        assert len(set(ends)) == distinct

    given.run(scenario)


def test_one_long_read_takes_several_turns() -> None:
    """It reads the contents of 16 leaves, with a pause after each."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handle = await ann.handle("f", disposition=Disposition.OPEN_IF)
        await ann.write(handle, 0, bytes(LONG))
        async with counted_turns(on) as turns:
            await ann.read(handle, 0, LONG)
            assert turns.number >= LONG // LEAF_BYTES - 1

    given.run(scenario)


@pytest.mark.parametrize(("size", "distinct"), [(LONG, COUNT), (SHORT, 1)])
def test_one_long_write_begins_in_a_turn(
    size: int, distinct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So do the decisions on long writes, whose bytes may be stored at the same time."""
    began, decided = list[int](), list[int]()

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        handle = await ann.handle("f", disposition=Disposition.OPEN_IF)
        async with counted_turns(on) as turns:
            receive, change = extents.received, changing.change_bytes

            async def receive_noted(*given: Any) -> Any:
                began.append(turns.number)
                return await receive(*given)

            async def change_noted(*given: Any) -> Any:
                decided.append(turns.number)
                return await change(*given)

            monkeypatch.setattr(extents, "received", receive_noted)
            monkeypatch.setattr(transfers, "change_bytes", change_noted)
            writes = (ann.write(handle, number * LONG, bytes(size)) for number in range(COUNT))
            await asyncio.gather(*writes)

    given.run(scenario)
    assert (len(set(began)), len(set(decided))) == (distinct, distinct)
