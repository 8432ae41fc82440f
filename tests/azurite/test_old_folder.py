"""A folder that Azurite left is recognised, and nothing is written before it is imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.config import DEFAULT_DATA
from strongroom_azurite import main, old_folder, serving
from strongroom_azurite.commands import AZURITE, AZURITE_QUEUE, COMMANDS, Command
from strongroom_azurite.password_file import password_file
from tests.azurite.installed import DISTRIBUTION

OLD = "__azurite_db_blob__.json"


class Ran:
    """Stands for a server and for the import: both only note that they were called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, import_code: int = 0) -> None:
        self.calls: list[str] = []
        self._import_code = import_code
        monkeypatch.setattr(serving, "run", lambda settings, program: self._serve())
        monkeypatch.setattr(subprocess, "run", self._import)

    def _serve(self) -> int:
        self.calls.append("serve")
        return 0

    def _import(self, command: list[str], **options: object) -> subprocess.CompletedProcess[bytes]:
        self.calls.append(" ".join(command[1:]))
        return subprocess.CompletedProcess(command, self._import_code)


def test_a_location_that_no_folder_can_have_is_refused_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(monkeypatch)
    code = main.run(AZURITE, ["--location", str(tmp_path / ("a" * 300))], {})
    assert (code, ran.calls) == (Exit.DATA, [])
    assert "cannot be used: File name too long\n" in capsys.readouterr().err


def test_ctrl_c_before_the_server_runs_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(settings: object, program: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(serving, "run", interrupted)
    assert main.run(AZURITE, ["--location", str(tmp_path)], {}) == Exit.INTERRUPTED


def test_a_password_in_another_encoding_keeps_its_bytes() -> None:
    with password_file(os.fsdecode(b"p\xff")) as path:
        assert path.read_bytes() == b"p\xff"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_it_does_not_start_on_an_old_folder(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran = Ran(monkeypatch)
    (tmp_path / OLD).write_text("{}")
    assert main.run(command, ["--location", str(tmp_path)], {}) == Exit.SETTINGS
    printed = capsys.readouterr()
    assert printed.out == ""
    data = tmp_path / DEFAULT_DATA
    assert f"\n  strongroom import-azurite {tmp_path} --data {data}\n" in printed.err
    assert f"\n  {command.name} --location {tmp_path}\n" in printed.err
    assert f"{command.name} --import --location {tmp_path}\n" in printed.err
    assert [path.name for path in tmp_path.iterdir()] == [OLD]
    assert ran.calls == []


def test_the_import_is_run_and_then_it_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Ran(monkeypatch)
    (tmp_path / OLD).write_text("{}")
    assert main.run(AZURITE, ["--import", "-l", str(tmp_path)], {}) == 0
    data = tmp_path / DEFAULT_DATA
    assert ran.calls == [f"-m strongroom import-azurite {tmp_path} --data {data}", "serve"]


@pytest.mark.parametrize(("code", "expected"), [(Exit.REFUSED, 0), (Exit.DATA, Exit.DATA)])
def test_what_the_import_left_out_is_served_without_it_and_a_failed_one_is_not(
    code: int,
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran = Ran(monkeypatch, code)
    (tmp_path / OLD).write_text("{}")
    assert main.run(AZURITE, ["--import", "--silent", "-l", str(tmp_path)], {}) == expected
    assert ("serve" in ran.calls) == (expected == 0)
    assert ("WARNING: the import left something out" in capsys.readouterr().err) == (expected == 0)


def test_a_signal_ends_the_import_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The import is a process of its own here, which notes its id and then waits."""
    program = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    start = (
        "import sys; from strongroom_azurite import main, old_folder; "
        f"old_folder.import_command = lambda location: [sys.executable, '-c', {program!r}]; "
        "sys.exit(main.run(main.AZURITE, ['--import'], {}))"
    )
    (tmp_path / OLD).write_text("{}")
    monkeypatch.setenv("PYTHONPATH", str(DISTRIBUTION / "src"))
    process = subprocess.Popen([sys.executable, "-c", start], cwd=tmp_path)
    try:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_an_imported_folder_is_served_with_and_without_the_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Ran(monkeypatch)
    (tmp_path / OLD).write_text("{}")
    (tmp_path / DEFAULT_DATA).mkdir()
    for flags in ([], ["--import"]):
        assert main.run(AZURITE_QUEUE, [*flags, "-l", str(tmp_path)], {}) == 0
    assert ran.calls == ["serve", "serve"]


def test_an_import_that_did_not_end_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Ran(monkeypatch)
    (tmp_path / OLD).write_text("{}")
    (tmp_path / DEFAULT_DATA).mkdir()
    (tmp_path / DEFAULT_DATA / "UNFINISHED").touch()
    assert main.run(AZURITE, ["-l", str(tmp_path)], {}) == Exit.SETTINGS
    assert ran.calls == []
    assert main.run(AZURITE, ["--import", "-l", str(tmp_path)], {}) == 0
    assert len(ran.calls) == 2


def test_in_memory_an_old_folder_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Ran(monkeypatch)
    (tmp_path / OLD).write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert main.run(AZURITE, ["--inMemoryPersistence"], {}) == 0
    assert ran.calls == ["serve"]


def test_new_folders_are_made_for_data_and_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Ran(monkeypatch)
    data, log = tmp_path / "new" / "folder", tmp_path / "logs" / "debug.log"
    assert main.run(AZURITE, ["-l", str(data), "--debug", str(log)], {}) == 0
    assert data.is_dir() and log.parent.is_dir()
    assert ran.calls == ["serve"]


def test_a_file_in_place_of_the_folder_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main.run(AZURITE, ["-l", str(tmp_path / "file")], {}) == Exit.DATA
    assert f"the folder {tmp_path / 'file'} cannot be made" in capsys.readouterr().err


def test_the_names_of_the_databases_are_azurites(tmp_path: Path) -> None:
    names = [f"__azurite_db_{name}__.json" for name in ("blob", "blob_extent", "queue", "table")]
    for name in (*names, "package.json", "__azurite_db_.txt", "azurite_db_blob.json"):
        (tmp_path / name).touch()
    assert old_folder.databases_in(tmp_path) == tuple(sorted(names))
