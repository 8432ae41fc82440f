"""A disk full of bodies that are then deleted: their space is free at once."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import Full, Step
from strongroom.engines.embedded.store import EmbeddedEngine, EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.contract.subject import commit, content, pieces, place
from tests.engines.disks.disk import Disk, DiskFiles
from tests.engines.disks.sqlite import DiskVfs

_BODY_BYTES = 512 * 1024
_CAPACITY_BYTES = 6 * 1024 * 1024
_BALLAST_BYTES = 1024 * 1024
_ATTEMPTS = 400
_vfs_numbers = itertools.count()


async def _opened(disk: Disk, vfs: DiskVfs) -> EmbeddedEngine:
    """Segments of the usual size: nothing here ever fills one."""
    options = EmbeddedOptions(files=DiskFiles(disk), vfs=vfs.name, ballast_bytes=_BALLAST_BYTES)
    directory = Path(disk.root, "data")
    return await open_store(directory, ManualClock(), test_clock=True, options=options)


async def _keep(store: EmbeddedEngine) -> int:
    """Write a body and adopt it. One whose commit is refused is discarded, as by every caller."""
    written = await store.contents.write(pieces(bytes(_BODY_BYTES), 128 * 1024), _BODY_BYTES)
    try:
        await commit(store, Step(place(), adopt=(written.id,)))
    except Full:
        store.contents.discard(written.id)
        raise
    return written.id


async def _keep_until_full(store: EmbeddedEngine) -> list[int]:
    kept: list[int] = []
    while len(kept) * _BODY_BYTES < _CAPACITY_BYTES:
        try:
            kept.append(await _keep(store))
        except Full:
            return kept
    raise AssertionError("the disk does not fill")


async def _keep_soon(store: EmbeddedEngine) -> int:
    """Write when there is space again; fails when that does not happen."""
    for _ in range(_ATTEMPTS):
        try:
            return await _keep(store)
        except Full:
            await asyncio.sleep(0.05)
    raise AssertionError("the space of what was deleted does not come back")


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_deleted_makes_room_though_no_segment_is_full(
    tmp_path: Path, restarts: bool
) -> None:
    """B-LIM-06: bodies may all lie in one open segment."""

    async def prove() -> None:
        disk = Disk(tmp_path)
        with DiskVfs(disk, f"strongroom-hostile-{next(_vfs_numbers)}") as vfs:
            store = await _opened(disk, vfs)
            disk.capacity_bytes = _CAPACITY_BYTES
            kept = await _keep_until_full(store)
            assert len(kept) > 4
            first, *others = kept
            if restarts:
                await store.close()
                store = await _opened(disk, vfs)
            for content_id in others:
                await commit(store, Step(place(), drop=(content_id,)))
            again = [await _keep_soon(store) for _ in range(len(kept) // 2)]
            for content_id in (first, *again):
                assert await content(store, content_id) == bytes(_BODY_BYTES)
            await store.close()
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())
