"""Compaction on a full disk: what is deleted comes back, whoever takes space meanwhile."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import EngineError, Full, Step
from strongroom.engines.embedded.bodies.segments import LARGE_BODY_BYTES
from strongroom.engines.embedded.disk.directory import DirectoryLayout, FileLock
from strongroom.engines.embedded.store import EmbeddedEngine, EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.contract.subject import commit, content, pieces, place
from strongroom.values import Health
from tests.effort import stride
from tests.engines.disks.disk import Disk, DiskFiles, Fault
from tests.engines.disks.sqlite import DiskVfs

_BODY_BYTES = 150_000
_COUNT = 12
_KEPT = 3
_BALLAST_BYTES = 1024 * 1024
_SLICE_BYTES = _BALLAST_BYTES // 16
_TRIES = 400
_vfs_numbers = itertools.count()

Ids = dict[int, int]


@asynccontextmanager
async def _opened(
    disk: Disk, compact: bool = False, large_body_bytes: int = LARGE_BODY_BYTES
) -> AsyncIterator[EmbeddedEngine]:
    """Segments have the usual size, so nothing here fills one."""
    with DiskVfs(disk, f"strongroom-compact-{next(_vfs_numbers)}") as vfs:
        options = EmbeddedOptions(
            files=DiskFiles(disk),
            vfs=vfs.name,
            ballast_bytes=_BALLAST_BYTES,
            large_body_bytes=large_body_bytes,
            compact=compact,
            log_ahead=False,
        )
        directory = Path(disk.root, "data")
        store = await open_store(directory, ManualClock(), test_clock=True, options=options)
        try:
            yield store
        finally:
            await store.close()


def _body(number: int) -> bytes:
    return hashlib.shake_128(b"%d" % number).digest(_BODY_BYTES)


async def _written(store: EmbeddedEngine, number: int) -> int:
    return (await store.contents.write(pieces(_body(number)), _BODY_BYTES)).id


async def _mostly_dead(store: EmbeddedEngine, disk: Disk) -> Ids:
    """Fill a disk with bodies, then drop most of them. Return those that are kept."""
    ids = {number: await _written(store, number) for number in range(_COUNT)}
    for number, content_id in ids.items():
        await commit(store, Step(place(b"%d" % number), adopt=(content_id,)))
    disk.capacity_bytes = disk.used_bytes()
    for number in range(_KEPT, _COUNT):
        await commit(store, Step(place(b"%d" % number), drop=(ids.pop(number),)))
    return ids


async def _all_there(store: EmbeddedEngine, ids: Ids) -> None:
    for number, content_id in ids.items():
        assert await content(store, content_id) == _body(number)


def _segments_bytes(disk: Disk) -> int:
    folder = Path(disk.root, "data", "segments")
    return sum(disk.size_bytes(str(one)) for one in folder.iterdir())


async def _until(is_so: Callable[[], bool], what: str) -> None:
    for _ in range(_TRIES):
        if is_so():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(what)


async def _compact_all(store: EmbeddedEngine) -> None:
    for _ in range(_TRIES):
        with suppress(Full):
            if not await store.compact_once():
                return
        await asyncio.sleep(0.05)
    raise AssertionError("compaction waits for ever")


@pytest.mark.parametrize("large_body_bytes", [LARGE_BODY_BYTES, _BODY_BYTES])
def test_another_program_takes_what_was_released_for_a_copy(
    large_body_bytes: int, tmp_path: Path
) -> None:
    """All that it leaves is enough for the copy, which is never refused."""

    async def prove() -> None:
        disk = Disk(tmp_path)
        async with _opened(disk, large_body_bytes=large_body_bytes) as store:
            ids = await _mostly_dead(store, disk)
            left = [_BALLAST_BYTES - _SLICE_BYTES * 2 - _KEPT * _BODY_BYTES - 3 * 4096 - 40_000]

            def take(operation: str, path: str) -> int | None:
                if operation == "sync" and path.endswith("ballast"):
                    taken = min(left[0], disk.free_bytes())
                    left[0] -= taken
                    assert disk.capacity_bytes is not None
                    disk.capacity_bytes -= taken
                return None

            disk.fault = take
            assert await store.compact_once()
            assert left == [0]
            disk.fault = None
            await _all_there(store, ids)
            await _until(lambda: _segments_bytes(disk) <= _KEPT * (_BODY_BYTES + 4096), "no room")
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


class _RefusesFrom:
    """From the `after`th matching operation on, the disk has no space."""

    def __init__(self, after: int, operation: str, end: str) -> None:
        self._operation = operation
        self._end = end
        self._left = after

    def __call__(self, operation: str, path: str) -> int | None:
        if operation == self._operation and path.endswith(self._end):
            self._left -= 1
            return errno.ENOSPC if self._left < 0 else None
        return None


_STEPS = {
    "the file": _RefusesFrom(0, "create", ".seg"),
    "the first write": _RefusesFrom(0, "write", ".seg"),
    "the second": _RefusesFrom(1, "write", ".seg"),
    "the last": _RefusesFrom(2, "write", ".seg"),
    "the commit": _RefusesFrom(0, "write", "records.sqlite-wal"),
}


@pytest.mark.parametrize("large_body_bytes", [LARGE_BODY_BYTES, _BODY_BYTES])
@pytest.mark.parametrize("step", _STEPS)
def test_a_copy_that_fails_gives_all_its_bytes_back(
    step: str, large_body_bytes: int, tmp_path: Path
) -> None:
    async def prove(fault: Fault) -> None:
        disk = Disk(tmp_path)
        async with _opened(disk, large_body_bytes=large_body_bytes) as store:
            ids = await _mostly_dead(store, disk)
            before = _segments_bytes(disk)
            disk.fault = fault
            for _ in range(3):
                with pytest.raises(Full):
                    await store.compact_once()
                assert _segments_bytes(disk) == before
            disk.fault = None
            await _compact_all(store)
            await _all_there(store, ids)
            await _until(lambda: _segments_bytes(disk) <= _KEPT * (_BODY_BYTES + 4096), "no room")
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove(_STEPS[step]))


@pytest.mark.parametrize("size_bytes", [_BODY_BYTES, 3 * LARGE_BODY_BYTES])
def test_a_body_under_way_takes_nothing_of_what_is_released(
    size_bytes: int, tmp_path: Path
) -> None:
    """It began while there was space. It ends with the others: refused."""

    async def prove() -> None:
        disk = Disk(tmp_path)
        async with _opened(disk) as store:
            go_on, begun = asyncio.Event(), asyncio.Event()

            async def slow() -> AsyncIterator[bytes]:
                for _ in range(2):
                    yield bytes(size_bytes // 2)
                    begun.set()
                    await go_on.wait()

            ids = await _mostly_dead(store, disk)
            disk.capacity_bytes = disk.used_bytes() + size_bytes // 2 + 4096
            writing = asyncio.create_task(store.contents.write(slow(), size_bytes))
            await begun.wait()
            # What is read keeps its space, so the reserve stays in use.
            opened = [await store.contents.open(content_id) for content_id in ids.values()]
            await _compact_all(store)
            assert await store.health(5.0) is Health.FULL
            go_on.set()
            with pytest.raises(Full):
                await writing
            for one in opened:
                one.close()
            await _all_there(store, ids)
            await _until(lambda: _segments_bytes(disk) <= _KEPT * (_BODY_BYTES + 4096), "no room")

    asyncio.run(prove())


def test_a_segment_with_nothing_alive_goes_however_small(tmp_path: Path) -> None:
    """It needs no copy, so no reserve either."""

    async def prove() -> None:
        disk = Disk(tmp_path)
        async with _opened(disk, compact=True) as store:
            content_id = await _written(store, 1)
            await commit(store, Step(place(b"1"), adopt=(content_id,)))
            (tmp_path / "data" / "ballast").unlink()
            disk.unlinked(str(tmp_path / "data" / "ballast"))
            disk.capacity_bytes = disk.used_bytes()
            await commit(store, Step(place(b"1"), drop=(content_id,)))
            await _until(lambda: _segments_bytes(disk) == 0, "the body keeps its space")

    asyncio.run(prove())


async def _ends_early(size_bytes: int) -> AsyncIterator[bytes]:
    yield bytes(size_bytes // 2)
    await asyncio.sleep(0)
    raise ConnectionResetError("the client has gone")


@pytest.mark.parametrize("size_bytes", [600_000, 3 * LARGE_BODY_BYTES])
def test_bodies_that_do_not_arrive_keep_no_space(size_bytes: int, tmp_path: Path) -> None:
    """Several at once: the room of each lies behind that of another one."""

    async def prove() -> None:
        disk = Disk(tmp_path)
        async with _opened(disk) as store:
            kept = await _written(store, 0)
            await commit(store, Step(place(), adopt=(kept,)))
            before = _segments_bytes(disk)
            writing = [store.contents.write(_ends_early(size_bytes), size_bytes) for _ in range(5)]
            for outcome in await asyncio.gather(*writing, return_exceptions=True):
                assert isinstance(outcome, ConnectionResetError)
            await _until(lambda: _segments_bytes(disk) == before, "they keep space")
            again = await _written(store, 1)
            await commit(store, Step(place(b"1"), adopt=(again,)))
            await _all_there(store, {0: kept, 1: again})
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_only_rooms_behind_which_nothing_lies_are_given_back(tmp_path: Path) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with _opened(disk) as store:
            lost = store.contents.write(_ends_early(_BODY_BYTES), _BODY_BYTES)
            gone, kept = await asyncio.gather(lost, _written(store, 0), return_exceptions=True)
            assert isinstance(gone, ConnectionResetError)
            assert isinstance(kept, int)
            await commit(store, Step(place(), adopt=(kept,)))
            again = await _written(store, 1)
            await commit(store, Step(place(b"1"), adopt=(again,)))
            await _all_there(store, {0: kept, 1: again})
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


async def _leave_unfinished(first: Disk, image: Path, ids: Ids) -> None:
    """Make what a killed process leaves: contents, and bytes behind them that no record names."""
    async with _opened(first) as store:
        for number in range(2):
            ids[number] = await _written(store, number)
            await commit(store, Step(place(b"%d" % number), adopt=(ids[number],)))
        await _written(store, 2)
        first.after_power_cut(image, 1)


@pytest.mark.parametrize("is_held", [False, True])
def test_what_a_killed_process_left_behind_contents_goes_at_the_start(
    is_held: bool, tmp_path: Path
) -> None:
    for name in ("first", "image"):
        (tmp_path / name).mkdir()

    async def prove() -> None:
        ids: Ids = {}
        await _leave_unfinished(Disk(tmp_path / "first"), tmp_path / "image", ids)
        disk = Disk(tmp_path / "image")
        assert _segments_bytes(disk) == 3 * _BODY_BYTES
        disk.capacity_bytes = disk.used_bytes() + 100_000
        held = FileLock(DirectoryLayout(str(tmp_path / "image" / "data")).backup_lock)
        async with _opened(disk, compact=True) as store:
            if is_held:  # a backup: the records that it has seen may name these bytes
                assert held.acquire(shared=True)
                await asyncio.sleep(0.1)
                assert _segments_bytes(disk) == 3 * _BODY_BYTES
                held.release()
            await _until(lambda: _segments_bytes(disk) == 2 * _BODY_BYTES, "the rest stays")
            await _all_there(store, ids)
        assert list(check(tmp_path / "image" / "data")) == []

    asyncio.run(prove())


async def _compact_until_cut(disk: Disk, after: int) -> Ids:
    """Fail one copy, and cut the power `after` operations into the next one."""
    async with _opened(disk) as store:
        ids = await _mostly_dead(store, disk)
        disk.fault = _RefusesFrom(1, "write", ".seg")
        with pytest.raises(Full):
            await store.compact_once()
        disk.fault = None
        disk.cut_at = disk.operations + after
        with suppress(EngineError):
            await _compact_all(store)
    return ids


async def _judge(root: Path, capacity_bytes: int | None, ids: Ids) -> None:
    disk = Disk(root, capacity_bytes)
    async with _opened(disk, compact=True) as store:
        await _until(lambda: _segments_bytes(disk) <= _KEPT * (_BODY_BYTES + 4096), "no room")
        await _all_there(store, ids)
    assert list(check(root / "data")) == []


def test_a_power_cut_at_any_step_loses_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    for after in range(1, 40, stride()):
        first = tmp_path / f"first-{after}"
        first.mkdir()
        disk = Disk(first)
        ids = asyncio.run(_compact_until_cut(disk, after))
        for seed in (0, 1, 100 + after):
            image = tmp_path / f"{after}-{seed}"
            image.mkdir()
            disk.after_power_cut(image, seed)
            asyncio.run(_judge(image, disk.capacity_bytes, ids))


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES])
def test_a_cut_whose_file_cannot_be_opened_harms_nothing(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "image"):
        (tmp_path / name).mkdir()
    reopen, failed = DiskFiles.reopen, list[str]()

    def without_descriptor(files: DiskFiles, path: str) -> int:
        if path.endswith(".seg") and not failed:
            failed.append(path)
            raise OSError(number, "no descriptor")
        return reopen(files, path)

    async def prove() -> None:
        ids: Ids = {}
        await _leave_unfinished(Disk(tmp_path / "first"), tmp_path / "image", ids)
        monkeypatch.setattr(DiskFiles, "reopen", without_descriptor)
        disk = Disk(tmp_path / "image")
        disk.capacity_bytes = disk.used_bytes() + 100_000
        async with _opened(disk, compact=True) as store:
            await _until(lambda: bool(failed), "no cut was tried")
            await asyncio.sleep(0.1)
            await _all_there(store, ids)

    asyncio.run(prove())
