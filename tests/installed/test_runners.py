"""`uvx --from` and `pipx run`: programs that install the wheel where it is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom import __version__
from tests.installed.environments import Environment, run


@pytest.fixture(scope="module")
def runners(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with uv and pipx."""
    return Environment.create(tmp_path_factory.mktemp("runners") / "venv", "uv", "pipx")


def test_uvx_runs_it(runners: Environment, wheel: Path, tmp_path: Path) -> None:
    command = (runners.command("uvx"), "--from", wheel, "strongroom", "--version")
    said = run(*command, cwd=tmp_path, UV_TOOL_DIR=str(tmp_path), UV_PYTHON_DOWNLOADS="never")
    assert said == f"strongroom {__version__}\n"


def test_pipx_runs_it(runners: Environment, wheel: Path, tmp_path: Path) -> None:
    command = (runners.command("pipx"), "run", "--spec", wheel, "strongroom", "--version")
    said = run(*command, cwd=tmp_path, PIPX_HOME=str(tmp_path / "pipx"))
    assert said == f"strongroom {__version__}\n"
