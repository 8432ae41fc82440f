"""The upgrade of a directory or a backup of format 3: complete, or as if it had not begun."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from strongroom.engines.base import Unavailable
from strongroom.engines.embedded.disk.directory import (
    Damaged,
    DirectoryInUse,
    DirectoryLayout,
    FileLock,
    Format,
    UnknownFormat,
    parse_format,
)
from strongroom.engines.embedded.disk.files import OsFiles
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import connect
from strongroom.engines.embedded.upkeep.backup import backup, restore
from strongroom.engines.embedded.upkeep.check import check
from strongroom.engines.embedded.upkeep.upgrade.steps import upgrade
from tests.durability.kept_directories import unpack
from tests.effort import stride
from tests.engines import upgrade_rounds as rounds
from tests.engines.disks.disk import Disk


class _Report:
    """Collects what an upgrade says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begins(self, path: str, needed_bytes: int, free_bytes: int) -> None:
        assert needed_bytes > PAGE_BYTES
        assert free_bytes > needed_bytes
        self.said.append("begins")

    def copied(self, done_bytes: int, total_bytes: int) -> None:
        assert 0 <= done_bytes <= total_bytes
        self.said.append("copied")

    def ended(self, path: str, duration_s: float) -> None:
        assert duration_s >= 0
        self.said.append("ended")


@pytest.mark.parametrize("kind", ["data", "backup"])
def test_everything_is_in_the_upgraded_directory(kind: str, tmp_path: Path) -> None:
    path = unpack("3", kind, tmp_path)
    right = rounds.held_by(path)
    assert len(right.records) > 200
    report = _Report()
    assert upgrade(path, report)
    assert report.said[0] == "begins"
    assert report.said[-1] == "ended"
    assert (path / "FORMAT").read_text().startswith("strongroom 4")
    assert ("backup" in (path / "FORMAT").read_text()) == (kind == "backup")
    assert rounds.held_by(path) == right
    assert list(check(path)) == []
    assert not upgrade(path, _Report())


def test_a_backup_of_the_old_format_is_restored_into_the_new_one(tmp_path: Path) -> None:
    source = unpack("3", "backup", tmp_path)
    restore(source, tmp_path / "restored")
    assert (tmp_path / "restored" / "FORMAT").read_text() == "strongroom 4\n"
    assert (source / "FORMAT").read_text() == "strongroom 3 backup\n"
    assert rounds.held_by(tmp_path / "restored") == rounds.held_by(source)


def test_a_restore_opens_no_file_of_a_backup_for_writing(tmp_path: Path) -> None:
    """A backup may be on a file system that is mounted read-only."""
    source = unpack("3", "backup", tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (source, *source.iterdir())}
    restore(source, tmp_path / "restored")
    assert {path: path.stat().st_mtime_ns for path in (source, *source.iterdir())} == before


def test_a_damaged_backup_of_the_old_format_is_restored_on_request(tmp_path: Path) -> None:
    source = unpack("3", "backup", tmp_path)
    right = rounds.held_by(source).records
    records = bytearray((source / "records.sqlite").read_bytes())
    records[records.index(b"entity 5 000300")] ^= 1
    (source / "records.sqlite").write_bytes(records)
    with pytest.raises(Damaged, match="--accept-damage"):
        restore(source, tmp_path / "restored")
    restore(source, tmp_path / "restored", accept_damage=True)
    assert (tmp_path / "restored" / "FORMAT").read_text() == "strongroom 4\n"
    assert list(check(tmp_path / "restored"))
    found = rounds.held_by(tmp_path / "restored").records
    assert rounds.held_by(source).records == found != right
    kept = [one for one in found if one[1] is not None]
    assert len(kept) > len(right) - 10
    assert set(kept) < set(right)


def test_a_directory_of_the_old_format_is_backed_up_in_the_new_one(tmp_path: Path) -> None:
    source = unpack("3", "data", tmp_path)
    backup(source, tmp_path / "copied")
    assert (tmp_path / "copied" / "FORMAT").read_text() == "strongroom 4 backup\n"
    assert (source / "FORMAT").read_text() == "strongroom 3\n"
    assert rounds.held_by(tmp_path / "copied") == rounds.held_by(source)


def test_a_power_cut_at_any_step_leaves_one_format_with_everything_in_it(tmp_path: Path) -> None:
    source = rounds.old_directory(tmp_path / "old")
    right = rounds.held_by(rounds.old_directory(tmp_path / "same"))
    steps = rounds.count_operations(_home_with(source, tmp_path / "counted"))
    assert steps > 100
    found: set[str] = set()
    last = range(steps - 14, steps + 1)  # where one format becomes the other
    for step in sorted({*range(1, steps, 10 * stride()), *last}):
        found |= rounds.cut_at(step, tmp_path, source, (0, 1, step + 2), right)
    assert found == {"3", "4 upgrading", "4"}


def test_a_full_disk_at_any_step_leaves_one_format_with_everything_in_it(tmp_path: Path) -> None:
    source = rounds.old_directory(tmp_path / "old")
    right = rounds.held_by(rounds.old_directory(tmp_path / "same"))
    steps = rounds.count_operations(_home_with(source, tmp_path / "counted"))
    last = range(steps - 14, steps - 2)
    for step in sorted({*range(1, steps, 20 * stride()), *last}):
        rounds.fail_from(step, errno.ENOSPC, tmp_path, source, right)


def _home_with(source: Path, home: Path) -> Path:
    shutil.copytree(source, home / "data")
    return home


def test_too_little_space_is_said_before_anything_is_changed(tmp_path: Path) -> None:
    source = rounds.old_directory(tmp_path)
    before = {path.name: path.read_bytes() for path in source.iterdir() if path.is_file()}
    disk = Disk(tmp_path)
    disk.capacity_bytes = disk.used_bytes() + 2 * PAGE_BYTES
    with pytest.raises(Unavailable, match=r"needs \d MiB more space.*Nothing was changed"):
        rounds.upgrade_on(disk)
    after = {path.name: path.read_bytes() for path in source.iterdir() if path.is_file()}
    assert after["FORMAT"] == before["FORMAT"]
    assert "records.sqlite.new" not in after


def _flip(page: bytearray) -> None:
    page[100] ^= 1


def _zero(page: bytearray) -> None:
    page[:] = bytes(len(page))


@pytest.mark.parametrize("harm", [_flip, _zero])
@pytest.mark.parametrize("kind", ["data", "backup"])
def test_damage_is_named_and_not_converted(
    kind: str, harm: Callable[[bytearray], None], tmp_path: Path
) -> None:
    path = unpack("3", kind, tmp_path)
    connection = connect(str(path / "records.sqlite"), None, 100, is_bound=False)
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    records = bytearray((path / "records.sqlite").read_bytes())
    at = records.index(b"entity 5 000300")  # not in the value's last page
    start = at - at % PAGE_BYTES
    page = records[start : start + PAGE_BYTES]
    harm(page)
    records[start : start + PAGE_BYTES] = page
    (path / "records.sqlite").write_bytes(records)
    assert _finds_damage(path)
    with pytest.raises(Damaged, match=r"format 3 and is damaged, so it was not upgraded.*doctor"):
        upgrade(path, _Report())
    assert (path / "records.sqlite").read_bytes() == records
    assert (path / "FORMAT").read_text().startswith("strongroom 3")
    assert not (path / "records.sqlite.new").exists()
    copy = backup if kind == "data" else restore
    with pytest.raises(Damaged):
        copy(path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def _finds_damage(path: Path) -> bool:
    try:
        return bool(list(check(path)))
    except apsw.CorruptError:  # SQLite's own check stops at a value that lacks a page
        return True


@pytest.mark.parametrize("length", range(1_000, 20_000, 1_900))
def test_a_long_value_of_zeros_is_no_damage(length: int, tmp_path: Path) -> None:
    """Its last page is all zeros, and format 3 stores no other checksum of that than 0."""
    path = unpack("3", "data", tmp_path)
    connection = connect(str(path / "records.sqlite"), None, 100, is_bound=False)
    row = (b"zeros", b"", b"", 1, bytes(length))
    connection.execute("INSERT INTO hidden VALUES (?, ?, ?, ?, ?)", row)
    connection.close()
    right = rounds.held_by(path)
    assert list(check(path)) == []
    backup(path, tmp_path / "copied")
    assert upgrade(path, _Report())
    assert list(check(path)) == []
    assert rounds.held_by(path) == rounds.held_by(tmp_path / "copied") == right


@pytest.mark.parametrize("lock", ["lock", "backup_lock"])
def test_a_directory_that_is_open_is_not_upgraded(lock: str, tmp_path: Path) -> None:
    path = unpack("3", "data", tmp_path)
    held = FileLock(getattr(DirectoryLayout(str(path)), lock))
    assert held.acquire(shared=True)
    with pytest.raises(DirectoryInUse):
        upgrade(path, _Report())
    held.release()
    assert upgrade(path, _Report())


def test_an_interrupted_upgrade_is_completed_by_whoever_comes_next(tmp_path: Path) -> None:
    path = unpack("3", "data", tmp_path)
    right = rounds.held_by(path)
    assert upgrade(path, _Report())
    (path / "FORMAT").write_text("strongroom 4 upgrading\n")
    os.rename(path / "records.sqlite", path / "records.sqlite.new")
    unpack("3", "data", tmp_path / "again")
    for name in ("records.sqlite", "records.sqlite-wal"):
        os.rename(tmp_path / "again" / "data" / name, path / name)
    assert rounds.held_by(path) == right
    assert (path / "FORMAT").read_text() == "strongroom 4\n"
    assert not (path / "records.sqlite.new").exists()


@pytest.mark.parametrize("reader", ["check", "backup"])
def test_a_reader_that_waited_for_a_killed_upgrade_completes_it(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, decided = unpack("3", "data", tmp_path), unpack("3", "data", tmp_path / "decided")
    right = rounds.held_by(path)
    upgrade(decided, _Report())

    def killed_after_its_decision(layout: DirectoryLayout) -> None:
        os.rename(decided / "records.sqlite", path / "records.sqlite.new")
        (path / "FORMAT").write_text("strongroom 4 upgrading\n")

    # Both call this between their first look at FORMAT and the lock.
    name = f"strongroom.engines.embedded.upkeep.{reader}.refuse_damaged_idle_log"
    with monkeypatch.context() as patched:
        patched.setattr(name, killed_after_its_decision)
        if reader == "check":
            assert list(check(path)) == []
        else:
            backup(path, tmp_path / "copy", verify=False)
            assert rounds.held_by(tmp_path / "copy") == right
    assert (path / "FORMAT").read_text() == "strongroom 4\n"
    assert rounds.held_by(path) == right


def test_what_root_upgrades_still_belongs_to_the_user_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack("3", "data", tmp_path)
    given: list[str] = []

    def note(made: int | str, uid: int, gid: int, follow_symlinks: bool = True) -> None:
        assert (uid, gid) == (path.stat().st_uid, path.stat().st_gid)
        name = os.readlink(f"/proc/self/fd/{made}") if isinstance(made, int) else made
        if isinstance(made, str):
            assert not follow_symlinks
        given.append(os.path.basename(name))

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", note)
    monkeypatch.setattr(os, "fchown", note)
    assert upgrade(path, _Report())
    assert given == ["LOCK", "BACKUP", "records.sqlite.new", "FORMAT.next", "FORMAT.next"]
    assert list(check(path)) == []


class _Noted(OsFiles):
    """Notes the calls that change entries of directories."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def rename(self, source: str, target: str) -> None:
        self.calls.append("rename")
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self.calls.append("unlink")
        super().unlink(path)

    def sync_directory(self, path: str) -> None:
        self.calls.append("sync")
        super().sync_directory(path)


def test_what_a_killed_upgrade_decided_is_durable_before_the_old_log_is_deleted(
    tmp_path: Path,
) -> None:
    path, decided = unpack("3", "data", tmp_path), unpack("3", "data", tmp_path / "decided")
    upgrade(decided, _Report())
    os.rename(decided / "records.sqlite", path / "records.sqlite.new")
    (path / "FORMAT").write_text("strongroom 4 upgrading\n")
    assert (path / "records.sqlite-wal").exists()
    files = _Noted()
    assert upgrade(path, _Report(), files)
    assert files.calls == ["sync", "unlink", "sync", "rename", "sync", "rename", "sync"]


def test_pages_of_the_old_format_do_not_pass_for_pages_of_the_new_one(tmp_path: Path) -> None:
    path = unpack("3", "backup", tmp_path)
    (path / "FORMAT").write_text("strongroom 4 backup\n")
    with pytest.raises((Damaged, apsw.IOError)):
        restore(path, tmp_path / "restored")


def test_older_versions_refuse_each_new_text_of_format() -> None:
    """What versions of format 3 accept: a product, the version 3, and two marks."""
    for one in (Format(), Format(upgrading=True), Format(backup=True)):
        assert one.text().split()[1] != "3"
        assert parse_format(one.text(), "here") == one
    with pytest.raises(UnknownFormat):
        parse_format("strongroom 3 upgrading\n", "here")
