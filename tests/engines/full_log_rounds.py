"""A commit that a full disk rolls back, another one, and then a power cut.

Lives here: the rounds. The short run is in test_log_gate.py, the long one in tests/proof.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from pathlib import Path

from strongroom.clock import ManualClock
from strongroom.engines.base import EngineError, Full
from strongroom.engines.embedded.log.wal_format import FRAME_HEAD_BYTES
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.testing.contract.subject import face, put, value
from tests.engines.disks.disk import Disk
from tests.engines.disks.sqlite import DiskVfs
from tests.engines.embedded_stores import options_on

_BALLAST_BYTES = 64 * 1024
_LARGE_BODY_BYTES = 48 * 1024
_RECORD = bytes(range(250)) * 12
_BIG = 60
_vfs_numbers = itertools.count()


def roll_back_and_cut_power(directory: Path, writes: int, seeds: Iterable[int]) -> bool:
    """Fill the disk up after so many writes of a commit. Return whether the commit was refused.

    The store continues with a small commit. Then the power is cut in the middle of another one.
    Each of the resulting images must open and hold all acknowledged commits.

    Arguments:
        writes: two for each frame, of its header and of its page.
        seeds: of the images; see Disk.after_power_cut.
    """
    disk = Disk(_made(directory / "first"))
    is_full = asyncio.run(_live(disk, writes))
    for seed in seeds:
        root = _made(directory / str(seed))
        disk.after_power_cut(root, seed)
        asyncio.run(_judge(root))
    return is_full


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


async def _live(disk: Disk, writes: int) -> bool:
    with DiskVfs(disk, f"strongroom-full-{next(_vfs_numbers)}") as vfs:
        options = options_on(disk, vfs, _LARGE_BODY_BYTES, _BALLAST_BYTES, log_ahead=False)
        big = [(face(b"big %d" % number), _RECORD) for number in range(_BIG)]
        store = await open_store(f"{disk.root}/data", ManualClock(), options=options)
        await put(store, *big, (face(b"small"), b"large"))
        # The log is emptied, and the database has all the pages that are written again below. So
        # the commit runs out of space in the log, in the middle of its frames.
        await store.close()
        store = await open_store(f"{disk.root}/data", ManualClock(), options=options)
        for number in range(6):
            await put(store, (face(b"%d" % number), _RECORD))
        frames, pages = (writes + 1) // 2, writes // 2
        room_bytes = frames * FRAME_HEAD_BYTES + pages * PAGE_BYTES
        disk.capacity_bytes = disk.used_bytes() + room_bytes
        is_full = False
        try:
            await put(store, *big)
        except Full:
            is_full = True
        disk.capacity_bytes = None
        # Updates that make nothing larger still work while the reserve is not whole.
        await put(store, (face(b"small"), b"small"))
        disk.cut_at = disk.operations + 2 + writes % 7
        try:
            await put(store, *big)
        except EngineError:
            assert disk.lost_power
        await store.close()
    return is_full


async def _judge(root: Path) -> None:
    options = EmbeddedOptions(ballast_bytes=_BALLAST_BYTES)
    store = await open_store(root / "data", ManualClock(), options=options)
    assert await value(store, face(b"small")) == b"small"
    for number in range(6):
        assert await value(store, face(b"%d" % number)) == _RECORD
    await store.close()
