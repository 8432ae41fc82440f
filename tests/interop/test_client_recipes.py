"""The pages of recipes are followed from top to bottom, with the programs that they speak of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom.testing.server import Server
from tests.interop.conftest import serving
from tests.interop.tools import require_node_package, require_tool
from tests.pages.blocks import ROOT
from tests.pages.follow import Follower
from tests.pages.python_runs import PythonRuns

PAGES = ("clients.md", "files.md")
TOOLS = ("curl", "rclone", "restic", "smbclient")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the page is followed; it has the packages of Node that `make interop` installs."""
    packages = require_node_package("@azure/storage-blob") / "node_modules"
    (tmp_path / "node_modules").symlink_to(packages)
    yield tmp_path
    (tmp_path / "node_modules").unlink()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_every_recipe_prints_what_the_page_says(page: str, folder: Path) -> None:
    for tool in TOOLS:
        require_tool(tool)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    with serving(folder / "shared") as server, PythonRuns() as python:
        asked_first(server)
        assert Follower(folder, server, python, require_tool).follow(text)


def asked_first(server: Server) -> None:
    """One request, which the log must show; a page may start a server of its own."""
    BlobServiceClient.from_connection_string(server.connection_string).get_service_properties()
