"""`strongroom backup --keep` and `--incremental`: what is reused, deleted, and never deleted."""

from __future__ import annotations

import datetime
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom.cli.exits import Exit
from strongroom.engines.embedded.disk.directory import RECORDS_NAME, DirectoryLayout, FileLock
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.record_copy import RecordCopier
from strongroom.engines.embedded.upkeep.kept_backups import (
    NotDeleted,
    delete_backup,
    name_of,
    newest_backup,
    surplus,
)
from strongroom.testing import InProcessServer
from tests.cli.command import Ran, in_process

BODY = b"b" * 200_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    _write(tmp_path / "data", "first")
    return tmp_path / "data"


def _write(data: Path, name: str) -> None:
    with InProcessServer.start(data=data, test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        box = client.get_container_client("box")
        if not box.exists():
            box.create_container()
        box.upload_blob(name, BODY, overwrite=True)


def _made(*arguments: object) -> dict[str, Any]:
    ran = in_process("backup", *arguments, "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def _aged(data: Path, folder: Path, *days: int) -> list[Path]:
    """Make one backup, and copies of it under the names of earlier days."""
    folder.mkdir(exist_ok=True)
    assert in_process("backup", data, folder / "source").code == 0
    made = []
    for day in days:
        moment = datetime.datetime(2020, 1, day, tzinfo=datetime.UTC)
        made.append(folder / name_of(moment))
        shutil.copytree(folder / "source", made[-1])
    shutil.rmtree(folder / "source")
    return made


def _segments(backup: Path) -> list[Path]:
    return sorted((backup / "segments").iterdir())


def _ran(data: Path, folder: Path, *flags: str) -> Ran:
    return in_process("backup", data, folder, "--keep", "2", *flags)


def test_an_incremental_backup_shares_unchanged_segments_and_is_complete_alone(
    data: Path, tmp_path: Path
) -> None:
    first = _made(data, tmp_path / "backups" / "one")
    second = _made(data, tmp_path / "backups" / "two", "--incremental")
    assert (first["base"], first["reused_bytes"]) == (None, 0)
    assert second["base"] == str(tmp_path / "backups" / "one")
    assert second["reused_bytes"] >= len(BODY)
    (one,), (two,) = (_segments(tmp_path / "backups" / name) for name in ("one", "two"))
    assert os.path.samefile(one, two)
    shutil.rmtree(tmp_path / "backups" / "one")
    assert in_process("doctor", tmp_path / "backups" / "two").code == 0
    assert in_process("restore", tmp_path / "backups" / "two", tmp_path / "again").code == 0
    with InProcessServer.start(data=tmp_path / "again", test_clock=False) as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        assert client.get_blob_client("box", "first").download_blob().readall() == BODY


def test_what_was_written_since_is_in_an_incremental_backup(data: Path, tmp_path: Path) -> None:
    _made(data, tmp_path / "backups" / "one")
    _write(data, "second")
    made = _made(data, tmp_path / "backups" / "two", "--incremental")
    assert made["copied_bytes"] + made["linked_bytes"] >= len(BODY)
    assert in_process("doctor", tmp_path / "backups" / "two").code == 0
    report = json.loads(in_process("doctor", tmp_path / "backups" / "two", "--json").out)
    assert report["counts"]["blobs"] == 2


def test_a_damaged_earlier_backup_is_not_built_on(data: Path, tmp_path: Path) -> None:
    _made(data, tmp_path / "backups" / "one")
    (segment,) = _segments(tmp_path / "backups" / "one")
    with segment.open("r+b") as file:
        file.seek(100)
        file.write(b"!")
    made = _made(data, tmp_path / "backups" / "two", "--incremental")
    assert (made["base"], made["reused_bytes"]) == (None, 0)
    assert in_process("doctor", tmp_path / "backups" / "two").code == 0
    assert in_process("doctor", tmp_path / "backups" / "one").code == Exit.REFUSED


def test_records_that_the_copy_has_damaged_are_no_backup(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = RecordCopier.copy

    def damaging(copier: RecordCopier) -> None:
        copy(copier)
        with (tmp_path / "x" / RECORDS_NAME).open("r+b") as file:
            file.seek(PAGE_BYTES + 200)
            byte = file.read(1)
            file.seek(PAGE_BYTES + 200)
            file.write(bytes((byte[0] ^ 1,)))

    monkeypatch.setattr(RecordCopier, "copy", damaging)
    assert in_process("backup", data, tmp_path / "x").code == Exit.DATA
    assert not (tmp_path / "x").exists()


def test_what_is_reused_is_always_verified(data: Path, tmp_path: Path) -> None:
    ran = in_process("backup", data, tmp_path / "x", "--incremental", "--no-verify")
    assert ran.code == Exit.USAGE
    assert not (tmp_path / "x").exists()


def test_the_newest_are_kept_and_the_new_one_counts(data: Path, tmp_path: Path) -> None:
    old = _aged(data, tmp_path / "backups", 1, 2, 3)
    made = _made(data, tmp_path / "backups", "--keep", "2", "--incremental")
    assert made["removed"] == [str(old[0]), str(old[1])]
    left = sorted((tmp_path / "backups").iterdir())
    assert left == [old[2], Path(made["target"])]
    assert made["base"] in map(str, old)
    for one in left:
        assert in_process("doctor", one).code == 0


def test_nothing_but_complete_backups_of_its_own_is_deleted(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    by_hand, extra, unfinished, linked = _aged(data, folder, 1, 2, 3, 4)
    by_hand = by_hand.rename(folder / "monday")
    (extra / "notes.txt").write_text("mine")
    (unfinished / "FORMAT").rename(unfinished / "UNFINISHED")
    elsewhere = linked.rename(tmp_path / "elsewhere")
    linked.symlink_to(elsewhere)
    (folder / "2020-01-05T000000Z").mkdir()
    (folder / "2020-01-06T000000Z").write_text("a file")
    ran = in_process("backup", data, folder, "--keep", "1")
    assert ran.code == Exit.REFUSED  # one backup should have gone, and could not
    assert f"{extra} is not deleted" in ran.err
    assert f"{unfinished} was interrupted" in ran.out
    names = {one.name for one in folder.iterdir()}
    assert {by_hand.name, extra.name, unfinished.name, linked.name} <= names
    assert {"2020-01-05T000000Z", "2020-01-06T000000Z"} <= names
    assert in_process("doctor", elsewhere).code == 0


def test_a_backup_that_is_read_is_left(data: Path, tmp_path: Path) -> None:
    (old, _) = _aged(data, tmp_path / "backups", 1, 2)
    lock = FileLock(DirectoryLayout(str(old)).backup_lock)
    assert lock.acquire(shared=True)
    try:
        ran = _ran(data, tmp_path / "backups", "--quiet")
    finally:
        lock.release()
    assert (ran.code, ran.out) == (Exit.REFUSED, "")
    assert "is being read" in ran.err
    assert in_process("doctor", old).code == 0


def test_a_backup_that_fails_deletes_nothing(data: Path, tmp_path: Path) -> None:
    old = _aged(data, tmp_path / "backups", 1, 2, 3)
    (segment,) = _segments(data)
    with segment.open("r+b") as file:
        file.seek(100)
        file.write(b"!")
    ran = _ran(data, tmp_path / "backups")
    assert ran.code == Exit.DATA
    assert sorted((tmp_path / "backups").iterdir()) == old


def test_a_killed_deletion_leaves_no_backup_behind(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old,) = _aged(data, tmp_path / "backups", 1)

    def killed(path: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            delete_backup(str(old))
    assert newest_backup(str(tmp_path / "backups")) is None
    assert in_process("restore", old, tmp_path / "again").code == Exit.DATA
    with pytest.raises(NotDeleted):
        delete_backup(str(old))


def test_the_folder_of_backups_is_no_data_directory(data: Path, tmp_path: Path) -> None:
    ran = in_process("backup", data, data, "--keep", "2")
    assert (ran.code, "name a folder of backups" in ran.err) == (Exit.DATA, True)
    assert in_process("backup", data, tmp_path / "b", "--keep", "0").code == Exit.USAGE
    assert surplus(str(tmp_path / "none"), 1) == []
