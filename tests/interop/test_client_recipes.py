"""docs/clients.md is followed from top to bottom, with the programs that it speaks of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.conftest import serving
from tests.interop.tools import require_node_package, require_tool
from tests.pages.blocks import ROOT
from tests.pages.follow import Follower
from tests.pages.python_runs import PythonRuns

PAGE = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
TOOLS = ("curl", "rclone", "restic", "smbclient")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the page is followed; it has the packages of Node that `make interop` installs."""
    packages = require_node_package("@azure/storage-blob") / "node_modules"
    (tmp_path / "node_modules").symlink_to(packages)
    yield tmp_path
    (tmp_path / "node_modules").unlink()


@pytest.mark.timeout(600)
def test_every_recipe_prints_what_the_page_says(folder: Path) -> None:
    for tool in TOOLS:
        require_tool(tool)
    with serving(folder / "strongroom-data") as server, PythonRuns() as python:
        assert Follower(folder, server, python, require_tool).follow(PAGE)
