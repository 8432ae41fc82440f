"""A store to which nobody writes any more gives the dead space of its open segments back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from strongroom.engines.base import Step
from strongroom.engines.embedded import EmbeddedEngine
from strongroom.engines.embedded.bodies.dead_space import QUIET_TICKS
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.contract.subject import commit, content, pieces, place
from strongroom.values import TICKS_PER_S
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import SEGMENT_BYTES, store_on

_QUIET_S = QUIET_TICKS / TICKS_PER_S


async def _write(store: EmbeddedEngine, body: bytes) -> int:
    written = await store.contents.write(pieces(body), len(body))
    await commit(store, Step(place(b"%d" % written.id), adopt=(written.id,)))
    return written.id


async def _drop(store: EmbeddedEngine, content_id: int) -> None:
    await commit(store, Step(place(b"%d" % content_id), drop=(content_id,)))


def _bytes(root: Path) -> int:
    return sum(one.stat().st_size for one in (root / "data" / "segments").iterdir())


async def _until(is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it has not happened")


async def _let_the_store_look(store: EmbeddedEngine, seconds: float) -> None:
    """Move store time; the background work has had its turn when this returns."""
    store.advance(seconds)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not await store.compact_once()


def test_space_of_deleted_bodies_comes_back_after_an_hour(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path), compact=True) as store:
            await _drop(store, await _write(store, bytes(SEGMENT_BYTES // 2)))
            await _let_the_store_look(store, 1)
            await _let_the_store_look(store, _QUIET_S - 10)
            assert _bytes(tmp_path) == SEGMENT_BYTES // 2, "it may be needed again within the hour"
            store.advance(20)
            await _until(lambda: _bytes(tmp_path) == 0)
            again = await _write(store, b"more")
            assert await content(store, again) == b"more"
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_a_write_begins_the_hour_anew(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path), compact=True) as store:
            await _let_the_store_look(store, 1)
            await _let_the_store_look(store, _QUIET_S - 10)
            await _drop(store, await _write(store, bytes(SEGMENT_BYTES // 2)))
            await _let_the_store_look(store, 20)
            assert _bytes(tmp_path) == SEGMENT_BYTES // 2
            store.advance(_QUIET_S)
            await _until(lambda: _bytes(tmp_path) == 0)

    asyncio.run(prove())


def test_what_is_alive_stays_and_an_upload_in_flight_is_not_disturbed(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path), compact=True) as store:
            kept = await _write(store, b"kept")
            await _drop(store, await _write(store, bytes(SEGMENT_BYTES // 2)))
            unadopted = await store.contents.write(pieces(b"in flight"), 9)
            await _let_the_store_look(store, 1)
            await _let_the_store_look(store, 2 * _QUIET_S)
            await commit(store, Step(place(b"late"), adopt=(unadopted.id,)))
            assert await content(store, kept) == b"kept"
            assert await content(store, unadopted.id) == b"in flight"
        async with store_on(Disk(tmp_path), compact=True) as store:
            assert await content(store, kept) == b"kept"
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_a_restarted_store_gives_back_what_the_last_run_left(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            await _drop(store, await _write(store, bytes(SEGMENT_BYTES // 2)))
        async with store_on(Disk(tmp_path), compact=True) as store:
            await _let_the_store_look(store, 1)
            assert _bytes(tmp_path) == SEGMENT_BYTES // 2
            store.advance(_QUIET_S)
            await _until(lambda: _bytes(tmp_path) == 0)

    asyncio.run(prove())
