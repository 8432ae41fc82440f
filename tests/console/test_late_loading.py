"""What the console needs only when somebody looks is not loaded when a server starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

_LATE = (
    "strongroom.coordination",
    "strongroom.console.opening",
    "strongroom.servers.console.oidc",
    "strongroom.servers.console.requests.replay",
    "strongroom.servers.console.requests.rules",
    "strongroom.servers.console.requests.sdk_calls",
    "strongroom.servers.console.requests.signatures",
)
_START = "import strongroom.app, strongroom.console.serving, sys; print(*sys.modules)"


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """The modules that a server with a console has loaded when it starts."""
    command = [sys.executable, "-c", _START]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("module", _LATE)
def test_it_is_not_loaded_at_the_start(loaded: list[str], module: str) -> None:
    assert "strongroom.servers.console.listener" in loaded
    assert [name for name in loaded if name == module or name.startswith(f"{module}.")] == []
