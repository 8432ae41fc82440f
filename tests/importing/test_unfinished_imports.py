"""An import that is killed or fails: nothing opens what it leaves, and the next begins anew."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.engines.embedded.disk.directory import UnknownFormat, parse_format
from strongroom.importing import ImportUnsound, import_folder, run
from strongroom.testing.ports import port_flags
from tests.cli.command import in_process, strongroom
from tests.importing.folders import PeerFolder, blob, container

# Imports a folder, and kills itself as a power cut would when so many bytes were read.
_KILLED = """
import os, signal, sys
from strongroom.importing import import_folder

def progress(done, total):
    if done >= total * float(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

import_folder(sys.argv[1], sys.argv[2], progress=progress)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    peer = PeerFolder(tmp_path / "azurite")
    peer.blobs = [blob(f"blob {number}", count=9_000) for number in range(50)]
    return peer.write()


@pytest.mark.parametrize("share", ["0.01", "0.5", "1"])
def test_a_killed_import_is_not_served_and_the_next_begins_anew(
    share: str, folder: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    command = [sys.executable, "-c", _KILLED, str(folder), str(data), share]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert (data / "UNFINISHED").exists()
    served = strongroom("serve", "--data", data, *port_flags())
    assert (served.code, "interrupted" in served.err) == (Exit.DATA, True)
    assert in_process("doctor", data).code == Exit.DATA
    report = import_folder(folder, data)
    assert (report.counts.blobs, report.is_complete) == (50, True)
    assert in_process("doctor", data).code == 0


def test_a_failed_check_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = run._fill

    async def damaged(*arguments: object) -> None:
        await filled(*arguments)  # type: ignore[arg-type]
        (segment,) = (tmp_path / "data" / "building" / "segments").iterdir()
        data = bytearray(segment.read_bytes())
        data[100] ^= 1
        segment.write_bytes(data)

    monkeypatch.setattr(run, "_fill", damaged)
    with pytest.raises(ImportUnsound, match="checksum"):
        import_folder(folder, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_directory_with_other_files_is_refused_and_stays(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "mine").write_text("mine")
    ran = in_process("import-azurite", folder, "--data", data)
    assert (ran.code, "not empty" in ran.err) == (Exit.DATA, True)
    assert [path.name for path in data.iterdir()] == ["mine"]


def test_the_data_may_lie_beside_the_old_files(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    report = import_folder(folder, folder)
    assert report.counts.blobs == 50
    assert in_process("doctor", folder).code == 0
    assert {path: path.read_bytes() for path in before} == before
    with pytest.raises(FileExistsError):
        import_folder(folder, folder)


def test_keys_that_lie_in_the_target_already_stay_there(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert in_process("account", "add", "orders", "--data", data).code == 0
    keys = (data / "accounts.json").read_bytes()
    assert import_folder(folder, data).is_complete
    assert (data / "accounts.json").read_bytes() == keys


def test_an_older_version_refuses_an_imported_directory_and_its_backup(
    folder: Path, tmp_path: Path
) -> None:
    data, backup, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    import_folder(folder, data)
    assert in_process("backup", data, backup).code == 0
    assert in_process("restore", backup, restored).code == 0
    for directory in (data, backup, restored):
        text = (directory / "FORMAT").read_text()
        assert parse_format(text, "").foreign_etags
        # The words that a version without imports knows.
        assert set(text.split()) - {"strongroom", "4", "backup"} == {"foreign-etags"}
    with pytest.raises(UnknownFormat):
        parse_format("strongroom 3 foreign-etags", "")


def test_the_report_as_json_and_the_exit_code(tmp_path: Path) -> None:
    peer = PeerFolder(tmp_path / "azurite")
    nowhere = {"id": "x", "offset": 0, "count": 10}
    peer.blobs = [blob("good"), blob("bad\x1b[31m", persistency=nowhere)]
    peer.containers.append(container("second"))
    folder = peer.write()
    ran = in_process("import-azurite", folder, "--data", tmp_path / "one", "--json")
    found = json.loads(ran.out)
    assert ran.code == Exit.REFUSED
    assert (found["complete"], found["counts"]["containers"]) == (False, 2)
    assert found["lost"][0]["kind"] == "blob"
    ran = in_process("import-azurite", folder, "--data", tmp_path / "two")
    assert ran.code == Exit.REFUSED
    assert "\x1b" not in ran.out
    assert "bad\\x1b" in ran.out
    ran = in_process("import-azurite", tmp_path / "none", "--data", tmp_path / "x")
    assert ran.code == Exit.DATA
