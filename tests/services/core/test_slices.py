"""Long work runs in one slice per turn of the event loop, for all callers together."""

from __future__ import annotations

import asyncio
import itertools
import tracemalloc
from collections.abc import Iterator

from strongroom.operations.blob import block
from strongroom.operations.core import codec
from strongroom.services.blob.types.blocks import GetBlockList
from strongroom.services.core.runner import Services
from strongroom.slices import (
    SLICE_S,
    SliceTurns,
    Steps,
    joined,
    parts,
    run_to_completion,
)
from strongroom.wire.blob.block_list import read_block_list, write_block_list
from strongroom.wire.core.http import Response
from tests.services import blob_calls as do
from tests.services.blob.test_list_blobs import made, page_of
from tests.services.container_calls import run, services
from tests.services.sweeps import fresh


class Turns:
    """Counts the turns of the event loop while other tasks work."""

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


class Work:
    """A clock that only work moves. A step takes a third of a slice."""

    def __init__(self) -> None:
        self.done_s = 0.0

    def now_s(self) -> float:
        return self.done_s

    def steps(self, count: int, made_in: list[int], turns: Turns) -> Steps[int]:
        for _ in range(count):
            self.done_s += SLICE_S / 2.5
            made_in.append(turns.number)
            yield
        return count


def test_all_requests_together_have_one_slice_in_a_turn() -> None:
    async def test() -> None:
        work, made_in = Work(), list[int]()
        slices = SliceTurns(work.now_s)
        async with Turns() as turns:
            steps = [slices.run(work.steps(10, made_in, turns)) for _ in range(8)]
            assert await asyncio.gather(*steps) == [10] * 8
        # A slice ends with the third step.
        assert max(made_in.count(one) for one in set(made_in)) <= 4
        assert len(set(made_in)) >= 80 // 4

    asyncio.run(test())


def test_short_work_does_not_wait() -> None:
    async def test() -> None:
        work, made_in = Work(), list[int]()
        slices = SliceTurns(work.now_s)
        async with Turns() as turns:
            before = turns.number
            assert await slices.run(work.steps(2, made_in, turns)) == 2
            assert turns.number == before
            await slices.run(work.steps(2, made_in, turns))
            assert turns.number > before, "the slice was used up"

    asyncio.run(test())


def test_work_that_is_given_up_ends_at_once_and_holds_nobody_up() -> None:
    async def test() -> None:
        work, made_in, ended = Work(), list[int](), list[str]()
        slices = SliceTurns(work.now_s)

        def steps(name: str) -> Steps[None]:
            try:
                yield from work.steps(1000, made_in, turns)
            finally:
                ended.append(name)

        async with Turns() as turns:
            tasks = [asyncio.create_task(slices.run(steps(name))) for name in "abc"]
            await asyncio.sleep(0)
            tasks[0].cancel()
            tasks[1].cancel()
            await asyncio.wait(tasks[:2])
            assert ended == ["a"], "the other had not begun"
            await asyncio.wait_for(tasks[2], 60)

    asyncio.run(test())


def test_requests_go_on_first_come_first_served_and_leave_no_gap_when_they_end() -> None:
    async def test() -> None:
        work, made_in, order = Work(), list[int](), list[int]()
        slices = SliceTurns(work.now_s)

        async def ask(number: int) -> None:
            await slices.run(work.steps(4, made_in, turns))
            order.append(number)

        async with Turns() as turns:
            tasks = [asyncio.create_task(ask(number)) for number in range(6)]
            await asyncio.sleep(0)
            tasks[1].cancel()
            tasks[3].cancel()
            await asyncio.wait(tasks)
        assert order == [0, 2, 4, 5]

    asyncio.run(test())


def test_a_coroutine_gives_way_after_a_slice_too() -> None:
    async def test() -> None:
        work, done_in = Work(), list[int]()
        slices = SliceTurns(work.now_s)

        async def read() -> None:
            for _ in range(30):
                work.done_s += SLICE_S / 2.5
                done_in.append(turns.number)
                await slices.pause()

        async with Turns() as turns:
            await asyncio.gather(*(read() for _ in range(4)))
        # Each has done one step before it must yield.
        assert max(done_in.count(one) for one in set(done_in)) <= 4 + 3
        assert len(set(done_in)) >= 120 // 4

    asyncio.run(test())


def test_turns_are_not_measured_when_nobody_works_for_long() -> None:
    async def test() -> None:
        asked = 0

        def now_s() -> float:
            nonlocal asked
            asked += 1
            return 0.0

        slices = SliceTurns(now_s)
        await slices.pause()
        for _ in range(5):
            await asyncio.sleep(0)
        seen = asked
        for _ in range(5):
            await asyncio.sleep(0)
        assert asked == seen

    asyncio.run(test())


def test_another_loop_may_go_on_with_the_store_of_one_that_has_ended() -> None:
    work, made_in = Work(), list[int]()
    slices = SliceTurns(work.now_s)

    async def test() -> None:
        async with Turns() as turns:
            long = asyncio.create_task(slices.run(work.steps(1000, made_in, turns)))
            steps = slices.run(work.steps(20, made_in, turns))
            assert await asyncio.wait_for(steps, 60) == 20
            assert not long.done()

    asyncio.run(test())
    asyncio.run(test())


def test_rows_come_in_parts() -> None:
    assert [len(part) for part in parts(range(450), 100)] == [100, 100, 100, 100, 50]
    assert list(parts((), 100)) == []


def test_pieces_are_joined_without_a_second_copy_of_the_document() -> None:
    whole = b"x" * 1_000_000
    tracemalloc.start()
    try:
        document = run_to_completion(joined(whole[at : at + 1000] for at in range(0, 10**6, 1000)))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert document == whole
    assert most < 1.5 * len(whole)


def every_pause() -> SliceTurns:
    """Return turns by a clock after which each pause ends a slice."""
    passed = itertools.count()
    return SliceTurns(lambda: next(passed) * 2 * SLICE_S)


def slow(on: Services) -> Services:
    """Make the services yield at every pause from now on, and return them."""
    on.turns = on.store.turns = every_pause()  # type: ignore[misc]  # a double
    return on


def test_a_long_document_is_made_over_many_turns() -> None:
    made_in: list[int] = []

    async def test() -> None:
        def blocks() -> Iterator[tuple[str, int]]:
            for number in range(50_000):
                made_in.append(turns.number)
                yield f"{number:06}", 7

        async with Turns() as turns:
            response = Response(200, [], b"")
            # Pieces, as the codec returns.
            response.body = write_block_list(blocks(), None)  # type: ignore[assignment]  # late
            await codec.complete(response, every_pause())
        assert isinstance(response.body, bytes) and response.size_bytes == len(response.body)
        assert response.body.count(b"<Block>") == 50_000
        most = max(made_in.count(one) for one in set(made_in))
        assert most <= 2100, "so many rows were made in one turn"

    asyncio.run(test())


def test_a_list_of_50_000_is_parsed_over_many_turns() -> None:
    async def test() -> None:
        body = b"<BlockList>" + b"<Latest>MDAwMDAx</Latest>" * 50_000 + b"</BlockList>"
        async with Turns() as turns:
            before = turns.number
            found = await every_pause().run(read_block_list(body))
            assert turns.number - before >= 100
        assert found == [("Latest", "MDAwMDAx")] * 50_000

    asyncio.run(test())


def test_a_listing_is_read_over_many_turns() -> None:
    async def scenario() -> None:
        on = services()
        names = [f"{number:05}" for number in range(1500)]
        await made(on, *names)
        slow(on)
        async with Turns() as turns:
            before = turns.number
            pages = await asyncio.gather(*(page_of(on) for _ in range(3)))
            assert turns.number - before >= 3 * (1500 // 256)
        for page in pages:
            assert [getattr(row, "name", "") for row in page.items] == names

    run(scenario)


def test_the_blocks_of_a_long_list_are_chosen_read_and_located_over_many_turns() -> None:
    async def scenario() -> None:
        on, _ = await fresh()
        await do.stage(on, "long", "1", b"one")
        slow(on)
        async with Turns() as turns:
            before = turns.number
            await do.commit(on, "long", ["1"] * 20_000)
            assert turns.number - before >= 20_000 // 500
            before = turns.number
            found = await do.run(on, block.GET_BLOCK_LIST, "long", GetBlockList())
            assert turns.number - before >= 20_000 // 500
            before = turns.number
            assert await do.read(on, "long") == b"one" * 20_000
            assert turns.number - before >= 20_000 // 500
        assert found.committed is not None and len(found.committed) == 20_000

    run(scenario)
