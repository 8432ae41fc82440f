"""The log's file is longer than its content, and nothing depends on that."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.log.checkpoints import PASSIVE_PAGES
from strongroom.engines.embedded.log.space import STEP_BYTES, LogSpace
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.testing.contract.subject import face, put, value
from tests.engines.disks.disk import Disk, DiskFiles
from tests.engines.embedded_stores import store_on

_FRAME_BYTES = PAGE_BYTES + 24


def _log(disk: Disk) -> Path:
    return Path(disk.root, "data", "records.sqlite-wal")


async def _until_longer(disk: Disk, than_bytes: int) -> int:
    for _ in range(1000):
        if (size_bytes := _log(disk).stat().st_size) > than_bytes:
            return size_bytes
        await asyncio.sleep(0.005)
    raise AssertionError("the log has not been made longer")


def test_the_log_grows_ahead_of_its_use_and_is_read_after_a_power_cut(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path / "first")
        async with store_on(disk) as store:
            await put(store, (face(b"0"), b"0"))
            assert await _until_longer(disk, STEP_BYTES) < STEP_BYTES * 5 // 4
            for number in range(1, 200):
                await put(store, (face(b"%d" % number), b"%d" % number))
            await _until_longer(disk, 2 * STEP_BYTES)
            for seed in range(3):
                disk.after_power_cut(tmp_path / str(seed), seed)
        for seed in range(3):
            async with store_on(Disk(tmp_path / str(seed))) as store:
                for number in range(200):
                    assert await value(store, face(b"%d" % number)) == b"%d" % number

    (tmp_path / "first").mkdir()
    asyncio.run(prove())


@pytest.mark.parametrize("error", [errno.EMFILE, errno.EIO])
def test_a_log_that_cannot_be_made_longer_goes_on(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    then = DiskFiles.reopen

    def fail(files: DiskFiles, path: str) -> int:
        if not path.endswith("-wal"):
            return then(files, path)
        tried.append(path)
        if len(tried) == 1:  # the first sync is for the leftovers of an earlier run
            return then(files, path)
        raise OSError(error, "not now")

    async def prove() -> None:
        monkeypatch.setattr(DiskFiles, "reopen", fail)
        disk = Disk(tmp_path)
        async with store_on(disk) as store:
            for number in range(3):
                await put(store, (face(), b"%d" % number))
            assert await value(store, face()) == b"2"
            assert _log(disk).stat().st_size < STEP_BYTES

    asyncio.run(prove())
    assert len(tried) == 2, "once is enough"


class _Files(OsFiles):
    """A disk with so many bytes left."""

    def __init__(self, free_bytes: int) -> None:
        self._free_bytes = free_bytes

    def free_bytes(self, path: str) -> int:
        return self._free_bytes


def test_what_is_left_of_a_disk_is_for_data(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for free_bytes, expected in ((STEP_BYTES, 5), (1 << 40, 5 + STEP_BYTES)):
        log.write_bytes(b"frame")
        space = LogSpace(_Files(free_bytes), str(log), PASSIVE_PAGES)
        assert space.needs_extension(1)
        space.extend()
        assert log.stat().st_size == expected
        assert not space.needs_extension(1)


def test_it_is_made_as_long_as_it_becomes_and_no_longer(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"")
    space = LogSpace(_Files(1 << 40), str(log), 400)
    steps = 0
    for pages in range(1000):
        if space.needs_extension(pages):
            space.extend()
            steps += 1
        assert log.stat().st_size >= min(pages, 400) * _FRAME_BYTES
    assert steps == 4
    assert log.stat().st_size == 4 * STEP_BYTES
    log.write_bytes(b"")
    assert not space.needs_extension(1)
    space.emptied()
    assert space.needs_extension(1)
