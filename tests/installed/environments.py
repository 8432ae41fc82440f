"""Empty virtual environments, into which the built distributions are installed.

Lives here: how one is made, and how its commands are run. Must not live here: tests.

Other packages come from where pip gets them, in the versions of constraints.txt. Nothing of the
checkout is on the path: a command runs in a folder of its own, without this process's PYTHONPATH.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment in a folder of its own."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, *requirements: str | Path) -> Environment:
        """Make an environment without even pip, and install the requirements and what they need."""
        run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
        made = cls(folder)
        constraints = ROOT / "constraints.txt"
        flags = ("--quiet", "--disable-pip-version-check", "--constraint", constraints)
        made.pip("install", *flags, *requirements, cwd=folder)
        return made

    def pip(self, *arguments: object, cwd: Path) -> str:
        """Run pip of the checkout's environment on this one, and return its output."""
        command = (sys.executable, "-m", "pip", "--python", self.command("python"))
        return run(*command, *arguments, cwd=cwd)

    def command(self, name: str) -> Path:
        """Return the path of a program that the environment has."""
        return self.folder / "bin" / name

    def run(self, name: str, *arguments: object, cwd: Path) -> str:
        """Run one of the environment's programs to its end, and return its output.

        Raises AssertionError with all that it said if it fails.
        """
        command = [str(self.command(name)), *map(str, arguments)]
        return run(*command, cwd=cwd)


def run(*command: object, cwd: Path, **variables: str) -> str:
    """Run a program to its end, and return its output; raises AssertionError if it fails."""
    done = subprocess.run(
        [str(one) for one in command],
        cwd=cwd,
        env=outside(**variables),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, (
        f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    )
    return done.stdout


def outside(**variables: str) -> dict[str, str]:
    """Return this process's variables without those that would lead back to the checkout."""
    led = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL")
    kept = {name: text for name, text in os.environ.items() if name not in led}
    return kept | variables
