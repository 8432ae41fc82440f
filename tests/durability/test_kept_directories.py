"""Directories and backups that earlier versions wrote are opened, and all of them is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom.engines.embedded.disk.directory import FORMAT_VERSION
from strongroom.engines.embedded.upkeep.backup import restore
from strongroom.engines.embedded.upkeep.check import Inspection
from strongroom.store.integrity import Integrity
from strongroom.testing import InProcessServer
from tests.durability.kept_data import Services, questions
from tests.durability.kept_directories import unpack, versions


def test_a_directory_of_each_format_is_kept() -> None:
    assert versions() == [str(one) for one in range(3, int(FORMAT_VERSION) + 1)]


@pytest.mark.parametrize("version", versions())
def test_a_kept_directory_holds_everything(version: str, tmp_path: Path) -> None:
    data = unpack(version, "data", tmp_path)
    _expect_whole(data)
    _expect_everything(data)
    _expect_whole(data)


@pytest.mark.parametrize("version", versions())
def test_a_kept_backup_holds_everything(version: str, tmp_path: Path) -> None:
    source = unpack(version, "backup", tmp_path)
    _expect_whole(source)
    restore(source, tmp_path / "restored")
    _expect_everything(tmp_path / "restored")


def _expect_whole(path: Path) -> None:
    with Inspection(path) as inspection:
        assert list(inspection.findings()) == []
        assert list(Integrity(inspection).findings()) == []


def _expect_everything(path: Path) -> None:
    asked = 0
    with InProcessServer.start(data=path, test_clock=False) as server:
        on = Services(server)
        for one in questions(on):
            assert one.ask() == one.right, one.name
            asked += 1
        on.close()
    assert asked > 100
