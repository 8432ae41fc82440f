"""Backups under load, restores, and the checks that find damage."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import EngineError, Ref, Step, StorageEngine
from strongroom.engines.embedded.disk.directory import NotADataDirectory, UnknownFormat
from strongroom.engines.embedded.records.checksummed_pages import CHECKSUM_VFS
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.backup import backup, restore
from strongroom.engines.embedded.upkeep.check import Inspection, check
from strongroom.engines.embedded.upkeep.kept_backups import NotDeleted, delete_backup
from strongroom.engines.embedded.upkeep.transfer_source import EmbeddedSource
from strongroom.testing.contract.subject import (
    commit,
    content,
    face,
    pieces,
    place,
    put,
    value,
    writes,
)

_OPTIONS = EmbeddedOptions(segment_bytes=100_000, ballast_bytes=64 * 1024)
_BODY = bytes(range(256)) * 100


async def _write(store: StorageEngine, number: int) -> int:
    written = await store.contents.write(pieces(_BODY), len(_BODY))
    head = face(b"", b"%d" % number)
    step = Step(place(b"%d" % number), adopt=(written.id,))
    await commit(store, *writes((head, b"%d" % written.id)), step)
    return written.id


async def _fill(path: Path, count: int) -> None:
    store = await open_store(path, ManualClock(), options=_OPTIONS)
    for number in range(count):
        await _write(store, number)
    await store.close()


async def _holds(path: Path, numbers: range) -> None:
    store = await open_store(path, ManualClock(), options=_OPTIONS)
    for number in numbers:
        head = await value(store, face(b"", b"%d" % number))
        assert head is not None, f"write {number} is not in the backup"
        assert await content(store, int(head)) == _BODY
    await put(store, (face(b"new"), b"goes on"))
    await store.close()


def test_a_backup_under_load_holds_what_was_acknowledged_before(tmp_path: Path) -> None:
    async def prove() -> None:
        store = await open_store(tmp_path / "data", ManualClock(), options=_OPTIONS)
        acknowledged = 0
        done = False
        progress: list[tuple[int, int]] = []

        async def load() -> None:
            nonlocal acknowledged
            while not done:
                content_id = await _write(store, acknowledged)
                acknowledged += 1
                if acknowledged % 3 == 0:  # work for the compaction
                    await commit(store, Step(place(b"x"), drop=(content_id,)))
                    await commit(store, *writes((face(b"", b"%d" % (acknowledged - 1)), None)))

        loading = asyncio.create_task(load())
        for number in range(3):
            goal = 10 * (number + 1)
            await _reached(lambda: acknowledged, goal)
            before = acknowledged
            progress.clear()
            target = tmp_path / f"backup-{number}"
            await store.backup(target, lambda *one: progress.append(one))
            assert progress[-1][0] == progress[-1][1] > 0
            assert list(check(target)) == []
            kept = {ref.partition.name for ref in _heads(target)}
            assert kept >= {b"%d" % one for one in range(before) if one % 3 != 2}
        done = True
        await loading
        await store.close()

    asyncio.run(prove())
    restore(tmp_path / "backup-1", tmp_path / "restored")
    assert list(check(tmp_path / "restored")) == []
    asyncio.run(_holds(tmp_path / "restored", range(2)))


async def _reached(count: Callable[[], int], goal: int) -> None:
    for _ in range(10_000):
        if count() >= goal:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the load stands still")


def _heads(path: Path) -> list[Ref]:
    with Inspection(path) as inspection:
        return [ref for ref, _ in inspection.records()]


def test_another_process_can_back_up_a_served_directory(tmp_path: Path) -> None:
    async def prove() -> None:
        store = await open_store(tmp_path / "data", ManualClock(), options=_OPTIONS)
        for number in range(10):
            await _write(store, number)
        code = (
            "import sys; from strongroom.engines.embedded.upkeep.backup import backup; "
            "backup(*sys.argv[1:])"
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, str(tmp_path / "data"), str(tmp_path / "backup")
        )
        assert await process.wait() == 0
        await _write(store, 10)
        await store.close()

    asyncio.run(prove())
    restore(tmp_path / "backup", tmp_path / "restored")
    asyncio.run(_holds(tmp_path / "restored", range(10)))
    asyncio.run(_holds(tmp_path / "data", range(11)))


def test_sealed_segments_are_linked_and_open_ones_copied(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "data", 10))
    backup(tmp_path / "data", tmp_path / "backup")
    links = {one.stat().st_nlink for one in (tmp_path / "backup" / "segments").iterdir()}
    assert links == {1, 2}
    restore(tmp_path / "backup", tmp_path / "restored")
    assert all(one.stat().st_nlink == 1 for one in (tmp_path / "restored/segments").iterdir())


def test_a_backup_is_not_served_and_only_backups_are_restored(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "data", 1))
    backup(tmp_path / "data", tmp_path / "backup")
    with pytest.raises(UnknownFormat, match="restore"):
        asyncio.run(_fill(tmp_path / "backup", 1))
    with pytest.raises(NotADataDirectory, match="not a backup"):
        restore(tmp_path / "data", tmp_path / "restored")
    with pytest.raises(UnknownFormat, match="backup already"):
        backup(tmp_path / "backup", tmp_path / "again")
    with pytest.raises(FileExistsError):
        restore(tmp_path / "backup", tmp_path / "data")
    with pytest.raises(FileExistsError):
        backup(tmp_path / "data", tmp_path / "backup")
    with pytest.raises(NotADataDirectory):
        backup(tmp_path / "nowhere", tmp_path / "other")


def test_no_backup_is_deleted_while_it_is_restored_or_copied(tmp_path: Path) -> None:
    """As `strongroom backup --keep` of another process may try it."""
    source = tmp_path / "2020-01-01T000000Z"
    asyncio.run(_fill(tmp_path / "data", 9))
    backup(tmp_path / "data", source, verify=False)

    def delete(done: int, total: int) -> None:
        with pytest.raises(NotDeleted, match="is being read"):
            delete_backup(str(source))

    restore(source, tmp_path / "restored", delete)
    asyncio.run(_holds(tmp_path / "restored", range(9)))
    reading = EmbeddedSource(source)
    delete(0, 0)
    asyncio.run(reading.close())
    delete_backup(str(source))
    assert not source.exists()


def test_a_backup_that_cannot_be_locked_is_restored_and_copied(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "data", 3))
    backup(tmp_path / "data", tmp_path / "backup")
    (tmp_path / "backup" / "BACKUP").unlink()
    (tmp_path / "backup" / "BACKUP").mkdir()
    restore(tmp_path / "backup", tmp_path / "restored")
    asyncio.run(_holds(tmp_path / "restored", range(3)))
    asyncio.run(EmbeddedSource(tmp_path / "backup").close())


def test_a_backup_that_was_interrupted_is_not_taken_for_whole(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "data", 2))
    backup(tmp_path / "data", tmp_path / "backup")
    (tmp_path / "backup" / "FORMAT").unlink()
    with pytest.raises(NotADataDirectory):
        restore(tmp_path / "backup", tmp_path / "restored")


def _first_segment(path: Path) -> Path:
    return min((path / "segments").iterdir())


def _flip(path: Path) -> None:
    with _first_segment(path).open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))


def _miscount(path: Path) -> None:
    connection = apsw.Connection(str(path / "records.sqlite"), vfs=CHECKSUM_VFS)
    connection.execute("UPDATE segments SET live_bytes = live_bytes + 1 WHERE id > 0")
    connection.close()


def _overlap(path: Path) -> None:
    connection = apsw.Connection(str(path / "records.sqlite"), vfs=CHECKSUM_VFS)
    connection.execute(
        "UPDATE contents SET offset = offset - 1 WHERE id = (SELECT max(id) FROM contents)"
    )
    connection.close()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_flip, {"its checksum differs"}),
        (lambda path: os.truncate(_first_segment(path), 30_000), {"checksum", "contents reach"}),
        (lambda path: _first_segment(path).unlink(), {"the file is missing"}),
        (_miscount, {"are noted"}),
        (_overlap, {"overlaps", "checksum"}),
    ],
)
def test_the_check_finds(harm: Callable[[Path], object], words: set[str], tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "data", 3))
    assert list(check(tmp_path / "data")) == []
    harm(tmp_path / "data")
    problems = [finding.problem for finding in check(tmp_path / "data")]
    for word in words:
        assert any(word in problem for problem in problems), problems


def test_a_missing_segment_harms_only_its_own_contents(tmp_path: Path) -> None:
    async def prove() -> None:
        await _fill(tmp_path / "data", 8)
        _first_segment(tmp_path / "data").unlink()
        store = await open_store(tmp_path / "data", ManualClock(), options=_OPTIONS)
        first, last = [int(await value(store, face(b"", b"%d" % one)) or b"") for one in (0, 7)]
        with pytest.raises(EngineError, match="missing"):
            await store.contents.open(first)
        assert await content(store, last) == _BODY
        await store.close()

    asyncio.run(prove())


def test_an_inspection_lists_what_is_there(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "data", 3))
    with Inspection(tmp_path / "data") as inspection:
        ids = list(inspection.content_ids())
        heads = [int(record.value) for _, record in inspection.records() if record]
        assert sorted(heads) == ids
        assert len(ids) == 3
        assert b"".join(inspection.read_content(ids[0])) == _BODY
