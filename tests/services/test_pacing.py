"""Long work goes on in one slice a turn of the loop, whoever asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from strongroom.operations.blob import block
from strongroom.operations.core import codec
from strongroom.services.blob.blocks import GetBlockList
from strongroom.services.core.pacing import SliceTurns
from strongroom.wire.blob.block_list import write_block_list
from strongroom.wire.core.http import Response
from tests.services import blob_calls as do
from tests.services.container_calls import run, services
from tests.services.sweeps import fresh
from tests.services.test_list_blobs import made, page_of


class Turns:
    """Counts the turns of the loop while others work."""

    def __init__(self) -> None:
        self.number = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Turns:
        self._task = asyncio.create_task(self._count())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()

    async def _count(self) -> None:
        while True:
            self.number += 1
            await asyncio.sleep(0)


def test_of_all_requests_one_goes_on_in_a_turn() -> None:
    async def test() -> None:
        pacing, went_on = SliceTurns(), list[int]()

        async def work() -> None:
            for _ in range(10):
                await pacing.turn()
                went_on.append(turns.number)

        async with Turns() as turns:
            await asyncio.gather(*(work() for _ in range(8)))
        assert len(went_on) == 80
        assert len(set(went_on)) == 80, "two slices in one turn"

    asyncio.run(test())


def test_requests_go_on_first_come_first_served_and_leave_no_gap_when_they_end() -> None:
    async def test() -> None:
        pacing, order = SliceTurns(), list[int]()

        async def work(number: int) -> None:
            await pacing.turn()
            order.append(number)

        tasks = [asyncio.create_task(work(number)) for number in range(6)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[3].cancel()
        await asyncio.wait(tasks)
        await asyncio.wait_for(pacing.turn(), 60)
        assert order == [1, 2, 4, 5]

    asyncio.run(test())


def test_rows_come_in_slices_and_short_ones_at_once() -> None:
    async def test() -> None:
        pacing = SliceTurns()
        async with Turns() as turns:
            before = turns.number
            short = [part async for part in pacing.slices(range(99), 100)]
            assert turns.number == before and short == [list(range(99))]
            parts = [part async for part in pacing.slices(range(450), 100)]
            assert [len(part) for part in parts] == [100, 100, 100, 100, 50]
            assert turns.number >= before + 4

    asyncio.run(test())


def test_a_long_document_is_made_over_many_turns() -> None:
    made_in: list[int] = []

    async def test() -> None:
        def blocks() -> Iterator[tuple[str, int]]:
            for number in range(50_000):
                made_in.append(turns.number)
                yield f"{number:06}", 7

        async with Turns() as turns:
            response = Response(200, [], b"")
            # Pieces, as the codec gives.
            response.body = write_block_list(blocks(), None)  # type: ignore[assignment]
            await codec.complete(response, SliceTurns())
        assert isinstance(response.body, bytes) and response.size_bytes == len(response.body)
        assert response.body.count(b"<Block>") == 50_000
        most = max(made_in.count(one) for one in set(made_in))
        assert most <= 1100, "so many rows were made in one turn"

    asyncio.run(test())


def test_a_listing_is_read_over_many_turns() -> None:
    async def scenario() -> None:
        on = services()
        names = [f"{number:05}" for number in range(1500)]
        await made(on, *names)
        async with Turns() as turns:
            before = turns.number
            pages = await asyncio.gather(*(page_of(on) for _ in range(3)))
            assert turns.number - before >= 3 * (1500 // 256)
        for page in pages:
            assert [getattr(row, "name", "") for row in page.items] == names

    run(scenario)


def test_the_blocks_of_a_long_list_are_chosen_and_told_over_many_turns() -> None:
    async def scenario() -> None:
        on, _ = await fresh()
        await do.stage(on, "long", "1", b"one")
        async with Turns() as turns:
            before = turns.number
            await do.commit(on, "long", ["1"] * 20_000)
            assert turns.number - before >= 20_000 // 500
            before = turns.number
            found = await do.run(on, block.GET_BLOCK_LIST, "long", GetBlockList())
            assert turns.number - before >= 20_000 // 500
        assert found.committed is not None and len(found.committed) == 20_000

    run(scenario)
