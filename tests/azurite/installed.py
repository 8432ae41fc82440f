"""The wheels of strongroom and strongroom-azurite, built and installed in an empty environment.

It is made once for all processes of a test run: they share the folder above their own.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTION = ROOT / "distributions" / "azurite"
_LEFT_OUT = shutil.ignore_patterns(
    ".*", "node_modules", "build", "tests", "docs", "*.egg-info", "__pycache__"
)
TIMEOUT_S = 600


def install(shared: Path) -> Path:
    """Return the folder of the environment's commands; make the environment if it is missing."""
    environment = shared / "azurite-environment"
    with open(shared / "azurite-environment.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (environment / "complete").exists():
            wheels = build_wheels(shared)
            venv.create(environment, clear=True, with_pip=True)
            pip = environment / "bin" / "python"
            constraints = ROOT / "constraints.txt"
            _run([pip, "-m", "pip", "install", "--quiet", "--constraint", constraints, *wheels])
            (environment / "complete").touch()
    return environment / "bin"


def build_wheels(shared: Path) -> list[Path]:
    """Return both wheels, built from copies, so that nothing is left in the working tree."""
    sources, wheels = shared / "azurite-sources", shared / "azurite-wheels"
    for folder in (sources, wheels):
        shutil.rmtree(folder, ignore_errors=True)
    wheels.mkdir()
    shutil.copytree(ROOT, sources / "strongroom", ignore=_LEFT_OUT)
    shutil.copytree(DISTRIBUTION, sources / "azurite", ignore=_LEFT_OUT)
    for name in ("strongroom", "azurite"):
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
        _run([*command, wheels, sources / name])
    return sorted(wheels.glob("*.whl"))


def _run(command: list[Path | str]) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
