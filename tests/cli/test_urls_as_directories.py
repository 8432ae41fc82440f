"""A URL of a PostgreSQL where a data directory is wanted: no folder gets its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.testing import InProcessServer
from tests.cli.command import in_process

URL = "postgresql://someone:hunter2@127.0.0.1:1/store"
# A server that took the URL would end all the same: everybody knows the only key.
SERVE = ("serve", "--host", "192.0.2.1", "--port-base", "0")

COMMANDS = {
    "backup": (("backup", "home", URL), "pg_basebackup"),
    "backup of it": (("backup", URL, "new"), "pg_basebackup"),
    "restore": (("restore", "kept", URL), "pg_basebackup"),
    "restore of it": (("restore", URL, "new"), "pg_basebackup"),
    "upgrade": (("upgrade", URL), "strongroom store migrate"),
    "import-azurite": (("import-azurite", "kept", "--data", URL), "strongroom store copy"),
    "account": (("account", "add", "orders", "--data", URL), "--store or --store-file"),
    "role": (("role", "list", "--data", URL), "--store or --store-file"),
    "serve": ((*SERVE, "--data", URL), "--store or --store-file"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a data directory and a backup of it; commands run there."""
    monkeypatch.chdir(tmp_path)
    with InProcessServer.start(data=tmp_path / "home", test_clock=False):
        pass
    assert in_process("backup", "home", "kept").code == Exit.DONE
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_makes_no_directory_of_a_url(command: str, folder: Path) -> None:
    before = sorted(folder.iterdir())
    words, advice = COMMANDS[command]
    ran = in_process(*words)
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert advice in ran.err
    assert "hunter2" not in ran.err
    assert sorted(folder.iterdir()) == before


def test_the_environment_and_the_configuration_file_name_no_url_as_a_directory(
    folder: Path,
) -> None:
    file = folder / "serve.toml"
    file.write_text(f'data = "{URL}"\n')
    for ran in (
        in_process(*SERVE, STRONGROOM_DATA=URL),
        in_process(*SERVE, "--config", file),
    ):
        assert ran.code == Exit.SETTINGS
        assert "must be a directory: give the URL by --store or --store-file" in ran.err
        assert "hunter2" not in ran.err
