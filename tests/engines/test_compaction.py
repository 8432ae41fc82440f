"""Compaction while serving: dead space stays within its bound, and no live content is ever lost."""

from __future__ import annotations

import asyncio
import errno
import gc
import hashlib
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from strongroom.engines.base import Busy, DataDamaged, Step, StorageEngine
from strongroom.engines.embedded import EmbeddedEngine
from strongroom.engines.embedded.bodies import copies
from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.disk.directory import DirectoryLayout, FileLock
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.contract.subject import body_of, commit, content, pieces, place
from tests.engines import embedded_stores
from tests.engines.disks.disk import Disk
from tests.engines.embedded_stores import SEGMENT_BYTES, Gate, store_on

_BODY_BYTES = 30_000


@pytest.fixture(params=["shared", "tails"], autouse=True)
def _rooms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bodies share segments, or give each a tail to itself."""
    large_body_bytes = _BODY_BYTES if request.param == "tails" else _BODY_BYTES + 1
    monkeypatch.setattr(embedded_stores, "LARGE_BODY_BYTES", large_body_bytes)


def _body(number: int) -> bytes:
    return hashlib.shake_128(b"%d" % number).digest(_BODY_BYTES)


async def _store_bodies(store: StorageEngine, numbers: range) -> dict[int, int]:
    ids = {}
    for number in numbers:
        written = await store.contents.write(pieces(_body(number)), _BODY_BYTES)
        await commit(store, Step(place(b"%d" % number), adopt=(written.id,)))
        ids[number] = written.id
    return ids


async def _drop(store: StorageEngine, ids: dict[int, int], numbers: list[int]) -> None:
    for number in numbers:
        await commit(store, Step(place(b"%d" % number), drop=(ids.pop(number),)))


async def _all_there(store: StorageEngine, ids: dict[int, int]) -> None:
    for number, content_id in ids.items():
        assert await content(store, content_id) == _body(number)


def _segments_bytes(root: Path) -> int:
    total = 0
    for one in (root / "data" / "segments").iterdir():
        with suppress(FileNotFoundError):  # unlinked in the meantime
            total += one.stat().st_size
    return total


async def _until_small(root: Path, bound: int) -> None:
    for _ in range(500):
        if _segments_bytes(root) <= bound:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{_segments_bytes(root)} bytes are used, more than {bound}")


def test_waste_stays_within_its_bound_while_serving(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path), compact=True) as store:
            ids = await _store_bodies(store, range(60))
            await _drop(store, ids, [number for number in range(60) if number % 5])
            # Waste is at most the live bytes, and the open segments (one is shared here).
            await _until_small(tmp_path, 2 * len(ids) * _BODY_BYTES + SEGMENT_BYTES)
            await _all_there(store, ids)
        async with store_on(Disk(tmp_path), compact=True) as store:
            await _all_there(store, ids)
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


async def _compact_all(store: EmbeddedEngine) -> int:
    count = 0
    while await store.compact_once():
        count += 1
    return count


def test_a_dead_segment_goes_at_once_and_for_good(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            ids = await _store_bodies(store, range(20))
            await _drop(store, ids, list(range(20)))
            assert await _compact_all(store) > 0
            await _until_small(tmp_path, SEGMENT_BYTES)
            assert not await store.compact_once()

    asyncio.run(prove())


def test_readers_keep_what_compaction_moves_or_removes(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            ids = await _store_bodies(store, range(20))
            pins = {number: await store.contents.open(ids[number]) for number in range(20)}
            await _drop(store, ids, [number for number in range(20) if number % 4])
            before = _segments_bytes(tmp_path)
            assert await _compact_all(store) > 0
            assert _segments_bytes(tmp_path) >= before, "a pinned segment was unlinked"
            for number, opened in pins.items():
                assert await body_of(opened) == _body(number)
            await _all_there(store, ids)
            for opened in pins.values():
                opened.close()
            await _until_small(tmp_path, before - SEGMENT_BYTES)
            await _all_there(store, ids)

    asyncio.run(prove())


def test_what_is_dropped_while_it_is_copied_stays_dropped(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            ids = await _store_bodies(store, range(40))
            await _drop(store, ids, [number for number in range(40) if number % 4])
            dropped = dict(ids)
            await asyncio.gather(_compact_all(store), _drop(store, ids, list(ids)[::2]))
            for number in dropped.keys() - ids.keys():
                assert await content(store, dropped[number]) is None
            await _all_there(store, ids)
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_a_copy_that_fails_after_compaction_was_stopped_is_nobodys_error(tmp_path: Path) -> None:
    """asyncio would log it at a later time, without its context."""
    begun, go_on = threading.Event(), threading.Event()

    def fail(operation: str, path: str) -> int | None:
        if not path.endswith(".seg") or threading.current_thread() is threading.main_thread():
            return None  # not the copy
        begun.set()
        assert go_on.wait(20)
        return errno.EIO

    async def prove() -> list[object]:
        unheard: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: unheard.append(told))
        disk = Disk(tmp_path)
        async with store_on(disk) as store:
            ids = await _store_bodies(store, range(20))
            await _drop(store, ids, [number for number in range(20) if number % 4])
            disk.fault = fail
            compacting = asyncio.create_task(_compact_all(store))
            assert await asyncio.to_thread(begun.wait, 20)
            compacting.cancel()
            await asyncio.sleep(0)
            go_on.set()
            await asyncio.wait([compacting])
            assert compacting.cancelled()
            disk.fault = None
            gc.collect()
        return unheard

    assert asyncio.run(prove()) == []


def test_what_a_cancelled_compaction_has_moved_is_not_emptied_before_it_lives_there(
    tmp_path: Path,
) -> None:
    """The move's commit continues, and the segment that it fills has no live bytes until then."""
    fitting = 4 if embedded_stores.LARGE_BODY_BYTES == _BODY_BYTES else 5

    async def prove() -> None:
        disk, gate = Disk(tmp_path), Gate()
        async with store_on(disk) as store:
            ids = await _store_bodies(store, range(2 * fitting - 2))
            await _drop(store, ids, [number for number in ids if number > 1])
            disk.fault = gate
            gate.shut()
            try:
                first = asyncio.create_task(store.compact_once())
                assert await asyncio.to_thread(gate.reached.wait, 30)
                first.cancel()
                await asyncio.wait([first])
                second = asyncio.create_task(store.compact_once())
                await asyncio.sleep(0)
            finally:
                gate.open()
            await second
            await _compact_all(store)
            await _all_there(store, ids)
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_a_damaged_content_is_left_where_it_is(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            ids = await _store_bodies(store, range(10))
            first = min((tmp_path / "data" / "segments").iterdir())
            with first.open("r+b") as file:
                file.seek(100)
                file.write(b"damage")
            await _drop(store, ids, [1, 2, 3, 4])
            await _compact_all(store)
            assert first.exists()
            with pytest.raises(DataDamaged, match=r"30000 bytes at 0 of segment .* checksum"):
                await content(store, ids[0])
            del ids[0]
            await _all_there(store, ids)
        (finding,) = check(tmp_path / "data")
        assert "checksum" in finding.problem

    asyncio.run(prove())


def test_no_segment_goes_while_a_backup_holds_them(tmp_path: Path) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path), compact=True) as store:
            held = FileLock(DirectoryLayout(str(tmp_path / "data")).backup_lock)
            assert held.acquire(shared=True)
            ids = await _store_bodies(store, range(20))
            names = set((tmp_path / "data" / "segments").iterdir())
            await _drop(store, ids, list(range(20)))
            while await store.compact_once():
                pass
            assert set((tmp_path / "data" / "segments").iterdir()) >= names
            held.release()
            await _until_small(tmp_path, SEGMENT_BYTES)

    asyncio.run(prove())


def test_the_last_reader_of_a_dead_segment_has_it_removed_after_a_backup(tmp_path: Path) -> None:
    """The segment dies while a backup holds the files, and no other work is pending."""

    async def prove() -> None:
        async with store_on(Disk(tmp_path), compact=True) as store:
            ids = await _store_bodies(store, range(20))
            names = set((tmp_path / "data" / "segments").iterdir())
            pins = [await store.contents.open(content_id) for content_id in ids.values()]
            await _drop(store, ids, list(range(20)))
            while await store.compact_once():
                pass
            held = FileLock(DirectoryLayout(str(tmp_path / "data")).backup_lock)
            assert await asyncio.to_thread(held.acquire, shared=True, wait=True)
            for opened in pins:
                opened.close()
            assert set((tmp_path / "data" / "segments").iterdir()) >= names
            held.release()
            await _until_small(tmp_path, SEGMENT_BYTES)

    asyncio.run(prove())


def _once(error: Exception, then: Callable[..., object]) -> Callable[..., object]:
    """Return a function that raises at its first call."""
    errors = [error]

    def call(*arguments: object, **named: object) -> object:
        if errors:
            raise errors.pop()
        return then(*arguments, **named)

    return call


@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [
        (Reader, "contents_of", apsw.IOError("the disk did not answer")),
        (FileLock, "acquire", OSError(errno.EMFILE, "too many open files")),
    ],
)
def test_compaction_that_failed_once_goes_on(
    owner: type, name: str, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path), compact=True) as store:
            ids = await _store_bodies(store, range(20))
            monkeypatch.setattr(owner, name, _once(error, getattr(owner, name)))
            await _drop(store, ids, [number for number in range(10) if number % 5])
            await asyncio.sleep(0.05)
            await _drop(store, ids, [number for number in range(10, 20) if number % 5])
            await _until_small(tmp_path, 2 * len(ids) * _BODY_BYTES + SEGMENT_BYTES)
            await _all_there(store, ids)

    asyncio.run(prove())


def _hide_oldest_segment(root: Path) -> Callable[[], None]:
    """Replace a segment by a directory: opening it works, reading it fails."""
    victim = min((root / "data" / "segments").iterdir(), key=lambda path: path.name)
    hidden = victim.with_suffix(".aside")
    victim.rename(hidden)
    victim.mkdir()

    def restore() -> None:
        victim.rmdir()
        hidden.rename(victim)

    return restore


def test_a_segment_that_cannot_be_read_is_left_alone_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def prove() -> None:
        disk = Disk(tmp_path)
        async with store_on(disk) as store:
            ids = await _store_bodies(store, range(8))
            await _drop(store, ids, [0, 1, 2])
            restore = _hide_oldest_segment(tmp_path)
            assert await store.compact_once()
            assert not await store.compact_once(), "it is not tried again"
            assert "cannot be read in" in caplog.text
            assert "checksum" not in caplog.text, "nothing was read, so nothing was compared"
            restore()
            await _all_there(store, ids)
            await _store_bodies(store, range(20, 22))

    asyncio.run(prove())


def test_a_segment_is_not_damaged_because_too_many_files_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path)) as store:
            ids = await _store_bodies(store, range(8))
            await _drop(store, ids, [0, 1, 2])
            refused = _once(OSError(errno.EMFILE, os.strerror(errno.EMFILE)), open)
            monkeypatch.setattr(copies, "open", refused, raising=False)
            with pytest.raises(Busy):
                await store.compact_once()
            assert await store.compact_once(), "it is tried again"
            assert not await store.compact_once()
            await _all_there(store, ids)
        assert not [one for one in caplog.records if one.levelno >= logging.CRITICAL]
        assert list(check(tmp_path / "data")) == []

    asyncio.run(prove())


def test_compaction_goes_on_by_itself_when_the_trouble_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prove() -> None:
        async with store_on(Disk(tmp_path), compact=True) as store:
            ids = await _store_bodies(store, range(20))
            reserve: Callable[..., object] = SegmentStore.reserve
            for _ in range(4):
                reserve = _once(Busy("too many files are open"), reserve)
            monkeypatch.setattr(SegmentStore, "reserve", reserve)
            await _drop(store, ids, [number for number in range(20) if number % 4])
            # No other event happens: nothing signals that there is space again.
            await _until_small(tmp_path, 2 * len(ids) * _BODY_BYTES + SEGMENT_BYTES)
            await _all_there(store, ids)

    asyncio.run(prove())
