"""A store and its tools refuse a damaged log, report a torn one, and leave no leftovers in it."""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.embedded.disk.directory import (
    Damaged,
    DirectoryInUse,
    DirectoryLayout,
    FileLock,
)
from strongroom.engines.embedded.log.gate import cut_damaged_log
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.backup import backup
from strongroom.engines.embedded.upkeep.check import check
from strongroom.testing.contract.subject import face, put, value
from tests.engines.full_log_rounds import roll_back_and_cut_power
from tests.engines.logs import flipped, frame_at, judged

_OPTIONS = EmbeddedOptions(ballast_bytes=64 * 1024)
_COUNT = 30


async def _killed(path: Path, count: int = _COUNT) -> Path:
    """Make a directory in which a server was killed after so many acknowledged commits."""
    store = await open_store(path / "source", ManualClock(), options=_OPTIONS)
    for number in range(count):
        await put(store, (face(b"%d" % number), b"%d" % number))
    data = path / "data"
    shutil.copytree(path / "source", data)
    (data / "records.sqlite-shm").unlink()
    await store.close()
    return data


def _log(data: Path) -> Path:
    return data / "records.sqlite-wal"


def _harm(data: Path, number: int) -> None:
    harmed = flipped(_log(data).read_bytes(), frame_at(number, PAGE_BYTES) + 1000, 3)
    _log(data).write_bytes(harmed)


async def _values(data: Path) -> list[bytes | None]:
    store = await open_store(data, ManualClock(), options=_OPTIONS)
    found = [await value(store, face(b"%d" % number)) for number in range(_COUNT)]
    await store.close()
    return found


def _names(data: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in data.iterdir() if one.is_file()}


def _open(data: Path) -> None:
    asyncio.run(_values(data))


@pytest.mark.parametrize(
    "use", [_open, lambda data: list(check(data)), lambda data: backup(data, data / "copy")]
)
def test_a_damaged_log_is_refused_and_nothing_is_changed(use: object, tmp_path: Path) -> None:
    assert callable(use)
    data = asyncio.run(_killed(tmp_path))
    _harm(data, 5)
    before = _names(data)
    with pytest.raises(Damaged, match=r"records\.sqlite-wal is damaged at frame 5 of \d+\."):
        use(data)
    after = _names(data)
    after.pop("BACKUP", None)
    before.pop("BACKUP", None)
    assert after == before


@pytest.mark.parametrize("use", [_open, lambda data: list(check(data))])
def test_an_incomplete_last_commit_is_reported(
    use: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(use)
    data = asyncio.run(_killed(tmp_path))
    frames = judged(_log(data).read_bytes(), PAGE_BYTES).frames
    _harm(data, frames)
    with caplog.at_level(logging.WARNING):
        use(data)
    assert f"is incomplete: 1 of {frames} frames are dropped" in caplog.text
    expected = [b"%d" % number for number in range(_COUNT - 1)]
    assert asyncio.run(_values(data)) == [*expected, None]


def test_a_whole_log_is_taken_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = asyncio.run(_killed(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert asyncio.run(_values(data)) == [b"%d" % number for number in range(_COUNT)]
    assert not caplog.records


def test_the_log_of_a_serving_store_is_not_judged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A frame that the server is writing may be read half old and half new."""

    async def prove() -> None:
        store = await open_store(tmp_path / "data", ManualClock(), options=_OPTIONS)
        for number in range(_COUNT):
            await put(store, (face(b"%d" % number), b"%d" % number))
        whole = _log(tmp_path / "data").read_bytes()
        # Zeroing the beginning of an old frame affects nothing that is read later.
        with _log(tmp_path / "data").open("r+b") as file:
            file.seek(frame_at(5, PAGE_BYTES))
            file.write(bytes(4))
        backup(tmp_path / "data", tmp_path / "copy")
        list(check(tmp_path / "data"))
        _log(tmp_path / "data").write_bytes(whole)
        await store.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(prove())
    assert not caplog.records
    assert list(check(tmp_path / "copy")) == []


def test_a_damaged_log_is_cut_on_demand_and_kept_beside(tmp_path: Path) -> None:
    data = asyncio.run(_killed(tmp_path))
    assert cut_damaged_log(data) is None, "a whole log is not cut"
    _harm(data, 9)
    harmed = _log(data).read_bytes()
    verdict = judged(harmed, PAGE_BYTES)
    said = cut_damaged_log(data)
    assert said is not None
    assert f"at frame 9 of {verdict.frames}. Lost after the damage:" in said
    assert f"{verdict.cut_commits} commits" in said
    assert (data / "records.sqlite-wal.damaged").read_bytes() == harmed
    assert list(check(data)) == []
    found = asyncio.run(_values(data))
    kept = found.index(None)
    assert 0 < kept < _COUNT - 1
    assert found == [b"%d" % number for number in range(kept)] + [None] * (_COUNT - kept)


def test_a_log_whose_header_is_lost_is_cut_to_nothing(tmp_path: Path) -> None:
    data = asyncio.run(_killed(tmp_path))
    _log(data).write_bytes(flipped(_log(data).read_bytes(), 9, 1))
    with pytest.raises(Damaged, match=r"at its header, before \d+ frames"):
        _open(data)
    said = cut_damaged_log(data)
    assert said is not None
    assert "at its header" in said
    assert _log(data).read_bytes() == b""


def test_a_cut_never_replaces_what_an_earlier_one_kept(tmp_path: Path) -> None:
    data = asyncio.run(_killed(tmp_path))
    _harm(data, 9)
    kept = data / "records.sqlite-wal.damaged"
    kept.write_bytes(b"precious")
    harmed = _log(data).read_bytes()
    with pytest.raises(FileExistsError, match="earlier cut"):
        cut_damaged_log(data)
    assert (kept.read_bytes(), _log(data).read_bytes()) == (b"precious", harmed)
    # The files that an interrupted cut leaves.
    kept.write_bytes(harmed)
    (data / "records.sqlite-wal.new").write_bytes(b"half")
    assert cut_damaged_log(data) is not None
    assert not (data / "records.sqlite-wal.new").exists()


@pytest.mark.parametrize("name", ["LOCK", "BACKUP"])
def test_nothing_is_cut_while_anybody_has_the_directory_open(name: str, tmp_path: Path) -> None:
    data = asyncio.run(_killed(tmp_path))
    _harm(data, 9)
    lock = FileLock(str(data / name))
    assert lock.acquire(shared=name == "BACKUP")
    harmed = _log(data).read_bytes()
    with pytest.raises(DirectoryInUse, match="stop it first"):
        cut_damaged_log(data)
    lock.release()
    assert _log(data).read_bytes() == harmed
    assert cut_damaged_log(data) is not None


def test_leftovers_are_removed_where_a_reader_keeps_the_log_from_beginning_anew(
    tmp_path: Path,
) -> None:
    """Otherwise the leftovers of two torn commits would look like damage."""

    async def prove() -> None:
        data = await _killed(tmp_path)
        layout = DirectoryLayout(str(data))
        frames = judged(_log(data).read_bytes(), PAGE_BYTES).frames
        _harm(data, frames)  # the last commit is torn
        reader = Reader(layout.records, None, scanning=True)
        reader.snapshot()
        store = await open_store(data, ManualClock(), options=_OPTIONS)
        image = _log(data).read_bytes()
        assert judged(image, PAGE_BYTES).frames == frames - 1
        assert not any(image[frame_at(frames, PAGE_BYTES) :])
        await put(store, (face(b"more"), b"more"))
        verdict = judged(_log(data).read_bytes(), PAGE_BYTES)
        assert verdict.frames >= frames, "the log goes on"
        assert verdict.cut_frames == 0
        reader.release()
        reader.close()
        await store.close()

    asyncio.run(prove())


def test_a_commit_that_was_written_and_never_shown_is_a_leftover(tmp_path: Path) -> None:
    """The server was killed in a sync while a backup had the log open. SQLite then continues with
    the index that the backup shares, and overwrites that commit."""

    async def prove() -> None:
        store = await open_store(tmp_path / "source", ManualClock(), options=_OPTIONS)
        await put(store, (face(b"0"), b"0"))
        data = tmp_path / "data"
        shutil.copytree(tmp_path / "source", data)
        (data / "records.sqlite-shm").unlink()
        await put(store, (face(b"1"), bytes(60_000)))
        longer = _log(tmp_path / "source").read_bytes()
        await store.close()
        frames = judged(_log(data).read_bytes(), PAGE_BYTES).frames
        reader = Reader(DirectoryLayout(str(data)).records, None, scanning=True)
        reader.snapshot()
        with _log(data).open("r+b") as file:
            file.write(longer)
        assert judged(longer, PAGE_BYTES).kept_bytes > frame_at(frames + 1, PAGE_BYTES)
        store = await open_store(data, ManualClock(), options=_OPTIONS)
        assert await value(store, face(b"1")) is None
        assert not any(_log(data).read_bytes()[frame_at(frames + 1, PAGE_BYTES) :])
        reader.release()
        reader.close()
        await store.close()

    asyncio.run(prove())


@pytest.mark.parametrize("writes", [3, 6, 9, 12])
def test_a_commit_that_a_full_disk_rolled_back_is_no_damage(writes: int, tmp_path: Path) -> None:
    assert roll_back_and_cut_power(tmp_path, writes, seeds=range(3))
