"""Blocks that are staged again: acknowledged ones are never lost, and each id counts once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest

from strongroom import limits
from strongroom.engines.base import Item, Partition
from strongroom.operations.blob import block
from strongroom.services.blob.decisions.precedence import Precedence
from strongroom.services.blob.types import blocks
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.core import gateway_keys, keys
from tests.services import blob_calls as do
from tests.services.container_calls import refused, run
from tests.services.service_engine import settle
from tests.services.sweeps import drop_container, fresh, swept

BIG = 20_000


async def uncommitted(on: Services) -> list[int]:
    """Return the lengths of the staged blocks."""
    lists = await do.run(on, block.GET_BLOCK_LIST, "b", blocks.GetBlockList(True, True))
    return [item.size_bytes for item in lists.uncommitted]


def when_blocks_have_been_read(on: Services, name: str, data: bytes) -> list[asyncio.Task[None]]:
    """Stage a block by another request as soon as a list has read the staged blocks. Its commit
    precedes the list's."""
    real = on.store.read_range
    tasks: list[asyncio.Task[None]] = []

    async def read_range(
        partition: Partition, hidden: bool, first: bytes, until: bytes | None, max_records: int
    ) -> list[Item]:
        found = await real(partition, hidden, first, until, max_records)
        if not tasks and max_records > 100:
            tasks.append(asyncio.create_task(do.stage(on, "b", name, data)))
            await settle()
        return found

    on.store.read_range = read_range  # type: ignore[method-assign]  # a double
    return tasks


@pytest.mark.parametrize("ahead", [False, True])
def test_a_block_staged_while_its_list_is_made_is_in_the_blob_or_still_staged(
    ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come before the list (as from another process) or give way to it."""

    async def test() -> None:
        on, _ = await fresh()
        await do.stage(on, "b", "0", b"old" * BIG)
        if ahead:

            async def at_once(partition: Partition) -> None:
                """Do not give way."""

            monkeypatch.setattr(on.disposable.of(Precedence), "wait_for_holders", at_once)
        tasks = when_blocks_have_been_read(on, "0", b"new!" * BIG)
        await do.commit(on, "b", ["0"])
        await tasks[0]
        if ahead:
            assert await do.read(on, "b") == b"new!" * BIG and await uncommitted(on) == []
        else:
            assert await do.read(on, "b") == b"old" * BIG
            assert await uncommitted(on) == [4 * BIG], "it comes after the list, and is kept"

    run(test)


def test_a_refused_list_is_judged_with_what_was_staged_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        on, _ = await fresh()
        await do.stage(on, "b", "0", b"x")

        async def at_once(partition: Partition) -> None:
            """Do not give way."""

        monkeypatch.setattr(on.disposable.of(Precedence), "wait_for_holders", at_once)
        tasks = when_blocks_have_been_read(on, "1", b"y")
        await do.commit(on, "b", ["0", "1"])
        await tasks[0]
        assert await do.read(on, "b") == b"xy"

    run(test)


def test_a_list_is_not_overtaken_for_ever() -> None:
    """A list is committed although many requests stage without a pause."""

    async def test() -> None:
        on, _ = await fresh()
        await do.stage(on, "b", "000", b"x")
        begun, done = asyncio.Event(), asyncio.Event()

        async def stage(number: int) -> None:
            for _ in range(500):
                if done.is_set():
                    return
                await do.stage(on, "b", f"{number:03}", b"y")
                begun.set()
            raise AssertionError("the list was not committed in all that time")

        stagers = [asyncio.create_task(stage(number)) for number in range(1, 9)]
        await begun.wait()
        await do.commit(on, "b", ["000"])
        done.set()
        await asyncio.gather(*stagers)
        assert await do.read(on, "b") == b"x"
        assert not on.disposable.of(Precedence)._taken

    run(test)


def test_an_id_counts_once_however_often_it_is_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UNCOMMITTED_BLOCKS_MAX", 2)

    async def test() -> None:
        on, sweeper = await fresh()
        for number in range(10):
            await do.stage(on, "b", "1", b"x" * (number + 1))
            await do.stage(on, "b", "2", b"y")
        assert await uncommitted(on) == [10, 1]
        assert len(do.left(on)[1]) == 2, "what was replaced takes no space"
        assert await refused(do.stage(on, "b", "3", b"z")) == (409, "BlockCountExceedsLimit")
        await do.commit(on, "b", ["1", "2"])
        assert await do.read(on, "b") == b"x" * 10 + b"y"
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])

    run(test)


def test_an_id_that_many_stage_at_once() -> None:
    """The count is that of the records, for any order of commits."""

    async def test() -> None:
        on, sweeper = await fresh()
        for _ in range(3):
            await asyncio.gather(*(do.stage(on, "b", "1", b"x" * size) for size in range(1, 9)))
            found = [ref for ref, _ in do.left(on)[0] if ref.key.name[:1] == keys.STAGED]
            counted = [
                blob_records.UPLOAD.decode(record.value).count
                for ref, record in do.left(on)[0]
                if gateway_keys.upload_gateway(ref.key.name) is not None
            ]
            assert sum(counted) == len(found)
        await do.stage(on, "b", "1", b"last")
        assert await uncommitted(on) == [4]
        await do.commit(on, "b", ["1"])
        await swept(on, sweeper)
        assert await do.read(on, "b") == b"last" and len(do.left(on)[1]) == 1

    run(test)


def test_a_block_in_the_blob_outlives_its_id_staged_anew() -> None:
    """The record of its staging still exists when the id is staged again; it then belongs to
    another block."""

    async def test() -> None:
        on, sweeper = await fresh()
        await do.stage(on, "b", "1", b"old")
        await do.commit(on, "b", ["1"])
        await do.stage(on, "b", "1", b"new")
        await swept(on, sweeper)
        assert await do.read(on, "b") == b"old" and await uncommitted(on) == [3]

    run(test)


def as_pages_are_read(on: Services, act: Callable[[int], Awaitable[None]]) -> None:
    """Run `act` after each page of staged blocks that a list reads; its argument is the number of
    earlier pages."""
    real = on.store.read_range
    pages = itertools.count()

    async def read_range(
        partition: Partition, hidden: bool, first: bytes, until: bytes | None, max_records: int
    ) -> list[Item]:
        found = await real(partition, hidden, first, until, max_records)
        if max_records == blocks._PAGE_RECORDS:
            await act(next(pages))
        return found

    on.store.read_range = read_range  # type: ignore[method-assign]  # a double


def test_a_long_list_shows_what_was_staged_at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block acknowledged while its pages are read is shown only with all earlier ones."""
    monkeypatch.setattr(blocks, "_PAGE_RECORDS", 3)

    async def test() -> None:
        on, _ = await fresh()
        for number in range(2, 7):
            await do.stage(on, "b", str(number), b"x" * number)

        async def stage_two(page: int) -> None:
            if page == 0:
                await do.stage(on, "b", "1", b"x")
                await do.stage(on, "b", "7", b"x" * 7)

        as_pages_are_read(on, stage_two)
        assert await uncommitted(on) == [1, 2, 3, 4, 5, 6, 7]
        assert not on.disposable.of(Precedence)._taken

    run(test)


def test_a_long_list_is_not_overtaken_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_PAGE_RECORDS", 3)

    async def test() -> None:
        on, _ = await fresh()
        for number in range(5):
            await do.stage(on, "b", f"{number:03}", b"x")
        staging: list[asyncio.Task[None]] = []

        async def stage_one(page: int) -> None:
            assert page < 100, "the list was not read in all that time"
            staging.append(asyncio.create_task(do.stage(on, "b", f"{100 + page}", b"y")))
            await settle()

        as_pages_are_read(on, stage_one)
        async with asyncio.timeout(30):
            assert len(await uncommitted(on)) >= 5
            await asyncio.gather(*staging)
        assert not on.disposable.of(Precedence)._taken

    run(test)


def test_a_short_list_holds_nobody_up() -> None:
    """One page is from one snapshot: a block that is staged after it does not matter."""

    async def test() -> None:
        on, _ = await fresh()
        await do.stage(on, "b", "1", b"x")
        looks: list[int] = []

        async def stage_one(page: int) -> None:
            looks.append(page)
            await do.stage(on, "b", f"{2 + page}", b"xy")

        as_pages_are_read(on, stage_one)
        assert await uncommitted(on) == [1] and looks == [0]

    run(test)
