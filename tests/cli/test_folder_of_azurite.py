"""A command that is given a folder of Azurite names the command that imports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.testing.ports import port_flags
from tests.cli.command import Ran, in_process, strongroom

_DATABASE = "__azurite_db_blob__.json"


def _folder(tmp_path: Path, file: str) -> Path:
    folder = tmp_path / "old data"
    folder.mkdir()
    (folder / file).write_text("{}", encoding="utf-8")
    return folder


def _advice(folder: Path) -> str:
    return f"strongroom import-azurite '{folder}' --data NEW_DIRECTORY"


def _serve(folder: Path) -> Ran:
    return strongroom("serve", "--data", folder, *port_flags())


def test_serve_names_the_import(tmp_path: Path) -> None:
    folder = _folder(tmp_path, _DATABASE)
    ran = _serve(folder)
    assert ran.code == Exit.DATA
    assert _advice(folder) in ran.err
    assert [path.name for path in folder.iterdir()] == [_DATABASE]


def test_serve_says_nothing_of_azurite_about_another_folder(tmp_path: Path) -> None:
    ran = _serve(_folder(tmp_path, "letters.txt"))
    assert ran.code == Exit.DATA
    assert "is not a data directory of Strongroom" in ran.err
    assert "zurite" not in ran.err


@pytest.mark.parametrize("command", ["doctor", "upgrade", "backup"])
def test_other_commands_name_it_too(tmp_path: Path, command: str) -> None:
    folder = _folder(tmp_path, _DATABASE)
    target = [tmp_path / "backup"] if command == "backup" else []
    ran = in_process(command, folder, *target)
    assert ran.code == Exit.DATA
    assert _advice(folder) in ran.err
