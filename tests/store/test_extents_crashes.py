"""A crash between any two engine calls leaves the content as before or as after, and no waste that
a sweep does not find."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import Decide, Partition, Record, Ref
from strongroom.engines.memory import MemoryEngine
from strongroom.store.core import extents
from strongroom.store.core.extents.model import LEAF_BYTES
from strongroom.values import Purpose
from tests.store.volumes import Volume

SIZE: Final = 24 * 1024 * 1024
VIEW: Final = 5 * LEAF_BYTES


class Crash(BaseException):
    """The process ends."""


class Crashing(MemoryEngine):
    """A store whose process ends before or after the call `at`, counted from `arm`."""

    at = -1
    is_before = True
    calls = 0

    def __init__(self, clock: ManualClock, **options: Any) -> None:
        super().__init__(clock, **options)
        self._write = self.contents.write
        self._write_all = self.contents.write_all
        self.contents.write = self._broken_write  # type: ignore[method-assign]  # fails
        self.contents.write_all = self._broken_write_all  # type: ignore[method-assign]

    async def _broken_write(self, *arguments: Any, **options: Any) -> Any:
        return await self._around(self._write(*arguments, **options))

    async def _broken_write_all(self, bodies: Sequence[bytes | memoryview]) -> Any:
        return await self._around(self._write_all(bodies))

    def arm(self, at: int, is_before: bool) -> None:
        self.at, self.is_before, self.calls = at, is_before, 0

    async def _around(self, call: Awaitable[Any]) -> Any:
        number, self.calls = self.calls, self.calls + 1
        if self.at >= 0 and number >= self.at and self.is_before:
            asyncio.ensure_future(call).cancel()
            raise Crash
        result = await call
        if self.at >= 0 and number >= self.at:
            raise Crash
        return result

    async def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[Any],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Any:
        return await self._around(super().update(partition, reads, decide, purpose))

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        found: list[Record | None] = await self._around(super().read(reads))
        return found

    async def read_range(self, *arguments: Any) -> Any:
        return await self._around(super().read_range(*arguments))


async def prepared(store: MemoryEngine) -> tuple[Volume, int]:
    """Make a content of every kind: contents and inline data, a snapshot, pending clears, past
    leaves without readers."""
    chance = random.Random(3)
    volume = Volume(store)
    await volume.create(SIZE)
    await volume.write(100, chance.randbytes(3 * LEAF_BYTES))
    await volume.write(LEAF_BYTES - 50, b"inline" * 20)
    gone = await volume.snapshot()
    await volume.write(7, b"between")
    kept = await volume.snapshot()
    await volume.write(2 * LEAF_BYTES + 1, chance.randbytes(20_000))
    for index in range(30):
        await volume.write(3 * LEAF_BYTES + 2000 * index, b"x" * 512)
    await volume.clear(LEAF_BYTES + 30_000, 9 * 1024 * 1024)
    await volume.delete_snapshot(gone)
    return volume, kept


async def emptied(volume: Volume) -> None:
    await volume.apply(extents.end(volume.store, volume.place), SIZE)


DEEDS: Final[dict[str, Callable[[Volume], Awaitable[object]]]] = {
    "small write": lambda volume: volume.write(10, b"small"),
    "large write": lambda volume: volume.write(1000, b"large" * 40_000),
    "clear": lambda volume: volume.clear(20, LEAF_BYTES + 10_000),
    "clear that rewrites": lambda volume: volume.clear(5_000, 50_000),
    "long clear": lambda volume: volume.clear(77, 9 * 1024 * 1024),
    "truncation": lambda volume: volume.resize(40),
    "end": emptied,
    "sweep": lambda volume: volume.sweep(),
}


async def view(volume: Volume, kept: int) -> tuple[bytes, bytes]:
    return await volume.read(0, VIEW), await volume.read(0, VIEW, kept)


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("deed", DEEDS)
def test_a_crash_at_any_call_leaves_the_old_or_the_new(deed: str, is_before: bool) -> None:
    async def prove() -> None:
        volume, kept = await prepared(MemoryEngine(ManualClock()))
        old = await view(volume, kept)
        await DEEDS[deed](volume)
        new = await view(volume, kept)
        assert (new == old) == (deed == "sweep")
        assert new[1] == old[1]
        seen, at, is_over = set(), 0, False
        while not is_over:
            store = Crashing(ManualClock())
            volume, kept = await prepared(store)
            store.arm(at, is_before)
            try:
                await DEEDS[deed](volume)
                is_over = True
            except Crash:
                pass
            store.at = -1
            after = Volume(store.restarted())
            found = await view(after, kept)
            assert found in (old, new)
            seen.add(found == old)
            await recovered(after, kept, found)
            at += 1
        assert at > 1
        assert seen == ({True} if deed == "sweep" else {True, False})

    asyncio.run(prove())


async def recovered(volume: Volume, kept: int, found: tuple[bytes, bytes]) -> None:
    """Check that nothing is damaged, and that sweeps reclaim all data without readers."""
    store = volume.store
    assert isinstance(store, MemoryEngine)
    await volume.check()
    for _ in range(2):
        assert await volume.sweep()
        check = await volume.check()
        assert not check.has_waste
        assert check.needed == set(store.content_ids())
        assert await view(volume, kept) == found
    await volume.delete_snapshot(kept)
    await volume.apply(extents.end(store, volume.place), 0)
    assert await volume.sweep()
    assert not list(store.content_ids())
    assert await volume.hidden() == []


def test_two_sweeps_at_once_do_what_one_does() -> None:
    async def prove() -> None:
        store = MemoryEngine(ManualClock())
        volume, kept = await prepared(store)
        old = await view(volume, kept)
        assert await asyncio.gather(*(volume.sweep() for _ in range(3))) == [True] * 3
        await recovered(volume, kept, old)

    asyncio.run(prove())
