"""Writes and sweeps of a map that fail, or that another operation interrupts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import Decide, Full, Opened, Partition, Ref, Written
from strongroom.engines.memory import MemoryEngine
from strongroom.store.core import extents
from strongroom.store.core.extents.model import LEAF_BYTES
from strongroom.values import Purpose
from tests.store.volumes import Volume

KIB = 1024
MIB = 1024 * KIB
LEAF = 144 * LEAF_BYTES


class Interrupted(MemoryEngine):
    """A store in which something happens once, before the next update.

    Attributes:
        first: the operation that happens.
    """

    first: Callable[[], Awaitable[object]] | None = None

    async def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[Any],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Any:
        first, self.first = self.first, None
        if first is not None:
            await first()
        return await super().update(partition, reads, decide, purpose)


async def cut_leaf(store: Interrupted, clear_bytes: int) -> Volume:
    """Make a volume with one whole leaf, from whose beginning a pending clear has removed some
    bytes."""
    volume = Volume(store)
    await volume.create(64 * MIB)
    await volume.write(LEAF, b"x" * LEAF_BYTES)
    await volume.clear(0, LEAF + clear_bytes)
    return volume


def test_a_clear_that_comes_during_a_sweep_brings_no_earlier_bytes_back() -> None:
    """After both clears so little of the leaf is left that the sweep must rewrite it."""

    async def prove() -> None:
        store = Interrupted(ManualClock())
        volume = await cut_leaf(store, 20 * KIB)
        expected = bytes(20 * KIB) + b"x" * 20 * KIB + bytes(24 * KIB)
        store.first = lambda: volume.clear(LEAF + 40 * KIB, 9 * MIB)
        for _ in range(2):
            await volume.sweep()
            assert await volume.read(LEAF, LEAF_BYTES) == expected
        check = await volume.check()
        assert not check.has_waste
        assert check.needed == set(store.content_ids())

    asyncio.run(prove())


def test_two_sweeps_that_saw_different_readers_give_up_what_all_versions_share() -> None:
    """The first sweep sees no reader any more. It has listed the versions before the second removed
    those that the reader did not need."""

    async def prove() -> None:
        store = Interrupted(ManualClock())
        volume = Volume(store)
        await volume.create(LEAF_BYTES)
        await volume.write(0, b"x" * LEAF_BYTES)
        reading = await volume.begin()
        snapshots = []
        for number in range(10):
            await volume.write(0, bytes([number]) * 16 * KIB)
            snapshots.append(await volume.snapshot())
        await volume.write(0, b"y" * LEAF_BYTES)
        for stamp in snapshots:
            await volume.delete_snapshot(stamp)

        async def other() -> None:
            assert not await volume.sweep()
            reading.end()

        store.first = other
        await volume.sweep()
        assert await volume.sweep()
        assert not (await volume.check()).has_waste
        assert len(list(store.content_ids())) == 1

    asyncio.run(prove())


def test_a_sweep_that_cannot_commit_a_rewritten_leaf_leaves_no_content_behind() -> None:
    async def refuse() -> None:
        raise Full

    async def prove() -> None:
        store = Interrupted(ManualClock())
        volume = await cut_leaf(store, 40 * KIB)
        store.first = refuse
        with pytest.raises(Full):
            await volume.sweep()
        assert not store.contents.adoptions.written
        assert await volume.sweep()
        assert await volume.read(LEAF, LEAF_BYTES) == bytes(40 * KIB) + b"x" * 24 * KIB

    asyncio.run(prove())


def test_a_write_that_is_cancelled_twice_leaves_no_content_behind() -> None:
    """The second cancellation comes while it waits for contents that are still being stored."""

    async def prove() -> None:
        store = MemoryEngine(ManualClock())
        volume = Volume(store)
        write_all, stored = store.contents.write_all, asyncio.Event()
        waiting = asyncio.Event()

        async def first_only(bodies: Sequence[bytes | memoryview]) -> Sequence[Written]:
            if stored.is_set():
                waiting.set()
                await asyncio.Event().wait()
            written = await write_all(bodies)
            stored.set()
            return written

        async def source() -> AsyncIterator[bytes]:
            yield bytes(LEAF_BYTES)
            await stored.wait()
            yield bytes(LEAF_BYTES)
            await asyncio.Event().wait()

        store.contents.write_all = first_only  # type: ignore[method-assign]  # as a slow disk
        length = 3 * LEAF_BYTES
        task = asyncio.ensure_future(extents.receive(store, volume.place, 0, source(), length))
        await waiting.wait()
        assert store.contents.adoptions.written
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not store.contents.adoptions.written

    asyncio.run(prove())


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def test_a_read_that_begins_when_a_sweep_is_cut_off_waits_for_its_rewrite() -> None:
    """Otherwise it would see the leaf of before, whose store the commit drops."""

    async def prove() -> None:
        store = MemoryEngine(ManualClock())
        volume = Volume(store)
        await volume.create(64 * MIB)
        await volume.write(LEAF, b"x" * LEAF_BYTES)
        await volume.clear(0, LEAF + 40 * KIB)
        released = asyncio.Event()

        async def hold() -> None:
            await released.wait()

        store.before_commit = hold
        sweeping = asyncio.ensure_future(volume.sweep())
        await settle()
        sweeping.cancel()
        await settle()
        real = store.contents.open

        async def late(content_id: int) -> Opened:
            await released.wait()
            await settle()
            return await real(content_id)

        store.contents.open = late  # type: ignore[assignment, method-assign]  # a double
        reading = asyncio.ensure_future(volume.read(LEAF, LEAF_BYTES))
        await settle()
        released.set()
        assert await reading == bytes(40 * KIB) + b"x" * 24 * KIB
        with pytest.raises(asyncio.CancelledError):
            await sweeping

    asyncio.run(prove())
