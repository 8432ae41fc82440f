"""`strongroom upgrade`, and `serve` on a directory of the last format."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.testing import Server
from tests.cli.command import in_process
from tests.durability.kept_directories import unpack


@pytest.mark.parametrize("kind", ["data", "backup"])
def test_an_upgrade_says_what_it_needs_and_how_long_it_took(kind: str, tmp_path: Path) -> None:
    path = unpack("3", kind, tmp_path)
    ran = in_process("upgrade", path)
    assert ran.code == 0, ran.err
    begin, end = ran.out.splitlines()
    assert f"{path} is upgraded to format 4. That needs 2 MiB of space" in begin
    assert f"{path} has format 4 now; the upgrade took " in end
    assert in_process("doctor", path).code == 0
    again = in_process("upgrade", path)
    assert (again.code, again.out) == (0, f"{path} has format 4 already.\n")
    assert in_process("upgrade", path, "--quiet").out == ""


def test_serve_upgrades_and_says_so(tmp_path: Path) -> None:
    path = unpack("3", "data", tmp_path)
    with Server.start(data=path, test_clock=False):
        assert (path / "FORMAT").read_text() == "strongroom 4\n"
    assert in_process("doctor", path).code == 0


def test_damage_is_not_upgraded(tmp_path: Path) -> None:
    path = unpack("3", "backup", tmp_path)
    held = bytearray((path / "records.sqlite").read_bytes())
    held[held.index(b"entity 5 000700")] ^= 1
    (path / "records.sqlite").write_bytes(held)
    ran = in_process("upgrade", path)
    assert ran.code == Exit.DATA
    assert "format 3 and is damaged, so it was not upgraded" in ran.err
    assert in_process("doctor", path).code == Exit.REFUSED
    assert in_process("restore", path, tmp_path / "new").code == Exit.DATA


def test_what_is_no_data_directory_is_refused(tmp_path: Path) -> None:
    ran = in_process("upgrade", tmp_path)
    assert ran.code == Exit.DATA
    assert "is not a data directory" in ran.err
