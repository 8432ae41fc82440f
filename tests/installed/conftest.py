"""The built distributions, and an environment that has the wheel and nothing of the checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from strongroom import __version__
from tests.installed.environments import ROOT, Environment, run


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that `make dist` has filled."""
    folder = tmp_path_factory.mktemp("dist")
    run("make", "dist", f"DIST={folder}", f"VENV={sys.prefix}", cwd=ROOT)
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    """Return the path of Strongroom's wheel."""
    return built / f"strongroom-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="session")
def sdist(built: Path) -> Path:
    """Return the path of Strongroom's sdist."""
    return built / f"strongroom-{__version__}.tar.gz"


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with the wheel and what it needs."""
    return Environment.create(tmp_path_factory.mktemp("plain") / "venv", wheel)
