"""A backup or restore that is killed at any time never counts as complete, and can be replaced."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import Step
from strongroom.engines.embedded.disk.directory import Damaged, Format, NotADataDirectory
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.store import EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep import copy_target
from strongroom.engines.embedded.upkeep.backup import backup, restore
from strongroom.engines.embedded.upkeep.check import check
from strongroom.engines.embedded.upkeep.copy_target import CopyTarget
from strongroom.testing.contract.subject import commit, content, face, pieces, place, value, writes

_OPTIONS = EmbeddedOptions(segment_bytes=100_000, ballast_bytes=64 * 1024)
_COUNT = 12
# A process that kills itself when its system calls have named the target so many times.
_KILLED = """
import os, signal, sys
copy, source, target, step = sys.argv[1:]
left = int(step)
def hook(event, arguments):
    global left
    if event in {"open", "os.mkdir", "os.link", "os.rename", "os.listdir"}:
        if any(target in str(argument) for argument in arguments):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
from strongroom.engines.embedded.upkeep import backup
sys.addaudithook(hook)
getattr(backup, copy)(source, target)
"""


# A process that kills itself when some of the records are copied.
_KILLED_IN_SQLITE = """
import os, signal, sys
from strongroom.engines.embedded.upkeep import backup
from strongroom.engines.embedded.records.record_copy import RecordCopier
def copy(copier, progress=None):
    copier._execute("INSERT INTO copy.face SELECT * FROM main.face")
    os.kill(os.getpid(), signal.SIGKILL)
RecordCopier.copy = copy
backup.backup(*sys.argv[1:])
"""


def _body(number: int) -> bytes:
    return b"%d " % number * 8_000


def _fill(path: Path) -> None:
    async def fill() -> None:
        store = await open_store(path, ManualClock(), options=_OPTIONS)
        for number in range(_COUNT):
            written = await store.contents.write(pieces(_body(number)), len(_body(number)))
            head = face(b"", b"%d" % number)
            step = Step(place(b"%d" % number), adopt=(written.id,))
            await commit(store, *writes((head, b"%d" % written.id)), step)
        await store.close()

    asyncio.run(fill())


def _is_complete(path: Path) -> bool:
    """Return whether a data directory holds every body, byte for byte."""

    async def compare() -> bool:
        store = await open_store(path, ManualClock(), options=_OPTIONS)
        try:
            for number in range(_COUNT):
                head = await value(store, face(b"", b"%d" % number))
                if head is None or await content(store, int(head)) != _body(number):
                    return False
            return True
        finally:
            await store.close()

    return asyncio.run(compare())


def _kill(copy: str, source: Path, target: Path, step: int) -> bool:
    """Run `backup` or `restore` and kill it at a step. Return False when it ended before."""
    arguments = [copy, str(source), str(target), str(step)]
    ran = subprocess.run([sys.executable, "-c", _KILLED, *arguments], check=False, timeout=60)
    assert ran.returncode in (0, -signal.SIGKILL)
    return ran.returncode != 0


def test_a_killed_backup_is_refused_or_whole_and_the_next_replaces_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    _fill(data)
    refused = step = 0
    while _kill("backup", data, tmp_path / f"backup-{step}", step + 1):
        target = tmp_path / f"backup-{step}"
        try:
            restore(target, tmp_path / f"restored-{step}")
        except (NotADataDirectory, FileNotFoundError):
            refused += 1
            backup(data, target)
            restore(target, tmp_path / f"restored-{step}")
        assert list(check(target)) == []
        assert _is_complete(tmp_path / f"restored-{step}")
        step += 2
    assert step > 10, "it was killed at many moments"
    assert refused > 5


def test_a_backup_that_is_killed_between_two_tables_is_refused_and_replaced(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "backup"
    _fill(data)
    arguments = [sys.executable, "-c", _KILLED_IN_SQLITE, str(data), str(target)]
    assert subprocess.run(arguments, check=False, timeout=60).returncode == -signal.SIGKILL
    assert (target / "records.sqlite").exists()
    with pytest.raises(NotADataDirectory):
        restore(target, tmp_path / "restored")
    backup(data, target)
    restore(target, tmp_path / "restored")
    assert _is_complete(tmp_path / "restored")


def test_a_killed_restore_is_not_served_and_the_next_replaces_it(tmp_path: Path) -> None:
    _fill(tmp_path / "data")
    source = tmp_path / "backup"
    backup(tmp_path / "data", source)
    step = 0
    while _kill("restore", source, tmp_path / f"restored-{step}", step + 1):
        target = tmp_path / f"restored-{step}"
        if (target / "UNFINISHED").exists():
            with pytest.raises(NotADataDirectory, match="was interrupted, or is still at work"):
                _is_complete(target)
            restore(source, target)
        elif not list(target.parent.glob(f"{target.name}/*")):
            restore(source, target)
        assert _is_complete(target)
        step += 3
    assert step > 10


def _interrupted(path: Path) -> None:
    """Leave the files of a killed backup."""
    with CopyTarget(path, Format(backup=True)) as making:
        Path(making.layout.records).write_bytes(b"half")
        Path(making.layout.segment(1)).write_bytes(b"half")


def test_an_interrupted_backup_says_what_to_do(tmp_path: Path) -> None:
    _interrupted(tmp_path / "backup")
    with pytest.raises(NotADataDirectory, match=r"interrupted.*same command again"):
        restore(tmp_path / "backup", tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


@pytest.mark.parametrize(
    "strange", ["notes.txt", "segments/notes.seg", "FORMAT", "accounts.json", "more/records.sqlite"]
)
def test_what_holds_anything_else_is_never_replaced(strange: str, tmp_path: Path) -> None:
    _fill(tmp_path / "data")
    target = tmp_path / "backup"
    _interrupted(target)
    (target / strange).parent.mkdir(exist_ok=True)
    (target / strange).write_text("precious")
    before = {one: one.read_bytes() for one in target.rglob("*") if one.is_file()}
    with pytest.raises(FileExistsError, match="is not empty"):
        backup(tmp_path / "data", target)
    assert {one: one.read_bytes() for one in target.rglob("*") if one.is_file()} == before


@pytest.mark.parametrize("name", ["UNFINISHED", "records.sqlite", "segments"])
def test_links_to_elsewhere_are_never_followed(name: str, tmp_path: Path) -> None:
    _fill(tmp_path / "data")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "0000000000000001.seg").write_text("precious")
    target = tmp_path / "backup"
    target.mkdir()
    if name != "UNFINISHED":
        (target / "UNFINISHED").write_text("")
    (target / name).symlink_to(elsewhere if name == "segments" else elsewhere / "new")
    with pytest.raises(OSError, match=r"not empty|symbolic links"):
        backup(tmp_path / "data", target)
    assert [one.name for one in elsewhere.iterdir()] == ["0000000000000001.seg"]
    assert os.path.islink(target / name)


def test_a_backup_at_work_is_not_replaced(tmp_path: Path) -> None:
    _fill(tmp_path / "data")
    target = tmp_path / "backup"
    with CopyTarget(target, Format(backup=True)) as making:
        Path(making.layout.records).write_bytes(b"half")
        with pytest.raises(FileExistsError, match="another backup, restore, import or copy"):
            backup(tmp_path / "data", target)
        assert Path(making.layout.records).read_bytes() == b"half"
    backup(tmp_path / "data", target)
    assert list(check(target)) == []


def test_a_whole_backup_is_not_replaced(tmp_path: Path) -> None:
    _fill(tmp_path / "data")
    backup(tmp_path / "data", tmp_path / "backup")
    for target in (tmp_path / "backup", tmp_path / "data"):
        with pytest.raises(FileExistsError, match="is not empty"):
            backup(tmp_path / "data", target)
        assert list(check(target)) == []


@pytest.mark.parametrize("harm", ["a segment is missing", "a segment is short", "a bit flipped"])
def test_a_damaged_backup_is_restored_only_knowingly(harm: str, tmp_path: Path) -> None:
    _fill(tmp_path / "data")
    source = tmp_path / "backup"
    backup(tmp_path / "data", source)
    segment = min((source / "segments").iterdir())
    held = segment.read_bytes()
    segment.unlink()  # it may be a link to the source's
    if harm == "a segment is short":
        segment.write_bytes(held[:30_000])
    elif harm == "a bit flipped":
        segment.write_bytes(held[:1000] + bytes([held[1000] ^ 1]) + held[1001:])
    with pytest.raises(Damaged, match=r"is not whole: .*--accept-damage"):
        restore(source, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()
    restore(source, tmp_path / "restored", accept_damage=True)
    assert _holds_its_heads(tmp_path / "restored")


def _holds_its_heads(path: Path) -> bool:
    async def look() -> bool:
        store = await open_store(path, ManualClock(), options=_OPTIONS)
        heads = [await value(store, face(b"", b"%d" % number)) for number in range(_COUNT)]
        await store.close()
        return all(heads)

    return asyncio.run(look())


@pytest.mark.parametrize("name", ["records.sqlite", "segments"])
def test_a_backup_without_its_parts_is_refused_by_name(name: str, tmp_path: Path) -> None:
    _fill(tmp_path / "data")
    source = tmp_path / "backup"
    backup(tmp_path / "data", source)
    (source / name).rename(tmp_path / "away")
    with pytest.raises(Damaged, match=f"{name} is missing"):
        restore(source, tmp_path / "restored")


def test_records_that_are_no_database_are_refused(tmp_path: Path) -> None:
    _fill(tmp_path / "data")
    source = tmp_path / "backup"
    backup(tmp_path / "data", source)
    (source / "records.sqlite").write_bytes(b"no database " * 1000)
    with pytest.raises(Damaged, match="is not whole"):
        restore(source, tmp_path / "restored")


def test_the_names_of_all_new_folders_above_a_copy_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()

    class Noted(OsFiles):
        def sync_directory(self, path: str) -> None:
            super().sync_directory(path)
            synced.add(path)
            if path == str(tmp_path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(copy_target, "OsFiles", Noted)
    target = tmp_path / "on" / "a" / "disk"
    with CopyTarget(target, Format(backup=True)) as making:
        making.finish()
    assert {str(one) for one in (target, *list(target.parents)[:3])} <= synced
    assert str(tmp_path.parent) not in synced
