"""The wheels of strongroom and strongroom-azurite, built and installed in an environment.

It is made once for all processes of a test run: they share the folder above their own. The two
projects come from their wheels, and what they need from the packages of this process: nothing is
fetched. `tests/installed` installs the wheels into an empty environment with all that they need.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTION = ROOT / "distributions" / "azurite"
TIMEOUT_S = 600


def install(shared: Path) -> Path:
    """Return the folder of the environment's commands; make the environment if it is missing."""
    environment = shared / "azurite-environment"
    with open(shared / "azurite-environment.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (environment / "complete").exists():
            venv.create(environment, clear=True)
            _lend_packages(environment)
            pip: list[Path | str] = [sys.executable, "-m", "pip", "--python"]
            pip += [environment / "bin" / "python"]
            flags = ["--quiet", "--no-deps", "--no-index", "--force-reinstall"]
            _run([*pip, "install", *flags, *build_wheels(shared)], ROOT)
            (environment / "complete").touch()
    return environment / "bin"


def build_wheels(shared: Path) -> list[Path]:
    """Return both wheels; nothing is left in the working tree."""
    wheels = shared / "azurite-wheels"
    for project in (ROOT, DISTRIBUTION):
        _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels], project)
    return sorted(wheels.glob("*.whl"))


def _lend_packages(environment: Path) -> None:
    """Put this process's packages behind the environment's own; the checkout is not among them."""
    [packages] = environment.glob("lib/*/site-packages")
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "lent.pth").write_text("\n".join(sorted(lent)), encoding="utf-8")


def _run(command: list[Path | str], folder: Path) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={name: text for name, text in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
