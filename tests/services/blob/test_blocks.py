"""Block lists at the serial point: blocks that were read for a list must be unchanged at its
commit."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable

import pytest

from strongroom import limits
from strongroom.engines.base import Item, Partition
from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.operations.blob import block
from strongroom.services.blob.types import blocks
from strongroom.services.core.runner import Services
from tests.services import blob_calls as do
from tests.services.container_calls import run
from tests.services.sweeps import drop_container, fresh, swept

BIG = 20_000


def before_blocks_are_read(on: Services, act: Callable[[], Awaitable[None]]) -> None:
    """Run `act` once, before the staged blocks are read for the first time."""
    real = on.store.read_range
    done: list[bytes] = []

    async def read_range(
        partition: Partition, hidden: bool, first: bytes, until: bytes | None, max_records: int
    ) -> list[Item]:
        if hidden and not done:
            done.append(first)
            await act()
        return await real(partition, hidden, first, until, max_records)

    on.store.read_range = read_range  # type: ignore[method-assign]  # a double


def test_a_list_that_another_overtook_is_made_again() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await do.stage(on, "b", "1", b"one")
        await do.stage(on, "b", "2", b"two")
        before_blocks_are_read(on, lambda: do.commit(on, "b", ["1", "2"]))
        await do.commit(on, "b", ["2", "1"])
        assert await do.read(on, "b") == b"twoone", "the blocks were committed meanwhile: Latest"

    run(test)


def test_a_list_of_what_was_replaced_meanwhile_is_refused() -> None:
    async def test() -> None:
        on, _ = await fresh()
        await do.stage(on, "b", "1", b"one")
        before_blocks_are_read(on, lambda: do.put(on, "b", b"other"))
        with pytest.raises(StorageError) as caught:
            await do.commit(on, "b", ["1"])
        assert caught.value.row is blob_errors.INVALID_BLOCK_LIST
        assert await do.read(on, "b") == b"other"

    run(test)


def test_many_lists_at_once_leave_one_of_them_whole() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        for number in range(4):
            await do.stage(on, "b", str(number), bytes((number,)) * BIG)
        orders = [[str((start + step) % 4) for step in range(4)] for start in range(4)]
        await asyncio.gather(*(do.commit(on, "b", order) for order in orders))
        wanted = [b"".join(bytes((int(one),)) * BIG for one in order) for order in orders]
        assert await do.read(on, "b") in wanted
        await swept(on, sweeper)
        assert await do.read(on, "b") in wanted
        assert len(do.left(on)[1]) == 4

    run(test)


def test_a_block_that_is_staged_again_counts_with_its_last_body() -> None:
    """B-BLK-05."""

    async def test() -> None:
        on, sweeper = await fresh()
        for text in (b"first", b"second"):
            await do.stage(on, "b", "1", text)
        listed = await do.run(on, block.GET_BLOCK_LIST, "b", blocks.GetBlockList(True, True))
        assert listed.committed == ()
        assert [one.size_bytes for one in listed.uncommitted] == [6]
        await do.commit(on, "b", ["1", "1"])
        assert await do.read(on, "b") == b"secondsecond"
        await swept(on, sweeper)
        assert len(do.left(on)[1]) == 1

    run(test)


def test_the_limit_of_staged_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-BLK-09."""
    monkeypatch.setattr(limits, "UNCOMMITTED_BLOCKS_MAX", 2)

    async def test() -> None:
        on, _ = await fresh()
        for number in range(2):
            await do.stage(on, "b", str(number), b"x")
        with pytest.raises(StorageError) as caught:
            await do.stage(on, "b", "2", b"x")
        assert caught.value.row is blob_errors.BLOCK_COUNT_EXCEEDS_LIMIT
        assert len(do.left(on)[1]) == 2, "what was received is given up"

    run(test)


def test_a_refused_block_leaves_nothing() -> None:
    """B-BLK-04, B-BLK-06."""

    async def test() -> None:
        on, sweeper = await fresh()
        await do.stage(on, "b", "1", b"x")
        for block_id, data, row in (
            ("22", b"x", blob_errors.INVALID_BLOB_OR_BLOCK),
            ("2", b"", errors.INVALID_HEADER_VALUE),
        ):
            with pytest.raises(StorageError) as caught:
                await do.stage(on, "b", block_id, data)
            assert caught.value.row is row
        await drop_container(on)
        await swept(on, sweeper)
        assert do.left(on) == ([], [])
        assert not on.store.contents.adoptions.written  # type: ignore[attr-defined]

    run(test)


def test_a_long_list_lies_in_a_content_of_its_own() -> None:
    async def test() -> None:
        on, sweeper = await fresh()
        await do.stage(on, "b", "1", b"x")
        await do.commit(on, "b", ["1"] * 2000)
        assert await do.read(on, "b") == b"x" * 2000
        assert len(do.left(on)[1]) == 2
        names = [base64.b64encode(b"1").decode()] * 2000
        listed = await do.run(on, block.GET_BLOCK_LIST, "b", blocks.GetBlockList(True, True))
        assert [one.id for one in listed.committed] == names
        await do.commit(on, "b", [])
        assert await do.read(on, "b") == b""
        await swept(on, sweeper)
        assert do.left(on)[1] == []

    run(test)
