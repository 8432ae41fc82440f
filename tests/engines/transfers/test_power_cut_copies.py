"""The power fails during a copy to a directory: what is found afterwards can be gone on with."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from strongroom.engines.embedded.upkeep.check import check as check_directory
from strongroom.engines.embedded.upkeep.transfer_source import EmbeddedSource
from strongroom.engines.embedded.upkeep.transfer_target import EmbeddedTarget
from strongroom.engines.store_copy import copy_store
from tests.engines.disks.disk import Disk, DiskFiles
from tests.engines.disks.sqlite import DiskVfs
from tests.engines.transfers.cutting import Cut, Scissors, Small, Tampered
from tests.engines.transfers.stores import SEGMENT_BYTES, Directory, check, copy, fill, served

_SIZES = (1000, 60_000, 65_537, 1_300_000, 0, 5, 900_000, 20_000)


@pytest.mark.parametrize("seed", range(4))
def test_a_copy_goes_on_after_a_power_cut(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    home, found = Directory(tmp_path / "home"), Directory(tmp_path / "found")

    async def prove() -> None:
        async with served(home) as store:
            filled = await fill(store, sizes=_SIZES)
        has_batch = await _cut(home, found, chance, seed)
        report = await copy(home, found)
        assert report.resumed or not has_batch
        assert list(check_directory(found.path)) == []
        async with served(found) as store:
            await check(store, filled)

    asyncio.run(prove())


async def _cut(home: Directory, found: Directory, chance: random.Random, seed: int) -> bool:
    """Cut the power during a copy, and make `found` what a machine may find then. Return whether a
    batch had been written."""
    root = found.path.parent / "disk"
    root.mkdir()
    disk, goal = Disk(root), root / "goal"
    source = EmbeddedSource(home.path)
    for folder in (goal, goal / "segments"):
        disk.directory_made(str(folder))
        disk.directory_synced(str(folder.parent))
    with DiskVfs(disk, f"strongroom-cut-{seed}") as vfs:
        target = EmbeddedTarget(
            goal, files=DiskFiles(disk), vfs=vfs.name, segment_bytes=SEGMENT_BYTES
        )
        scissors = Scissors(chance, 40)
        with pytest.raises(Cut):
            await copy_store(Small(source), Tampered(target, scissors.before, scissors.after))
        cut = found.path.parent / "cut"
        cut.mkdir()
        disk.after_power_cut(cut, seed)
        mark = (goal / "UNFINISHED").read_bytes()
        await target.close()
    await source.close()
    (cut / "goal").rename(found.path)
    (found.path / "UNFINISHED").write_bytes(mark)
    return scissors.batches > 1
