"""Running the command as people do: a process of its own, its output and exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from strongroom.config import ACCOUNTS_VARIABLES

TIMEOUT_S = 60


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


def strongroom(*arguments: object, stdin: str = "", **environment: str) -> Ran:
    """Run `strongroom ARGUMENTS...` to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "strongroom", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env=_environment() | environment,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def _environment() -> dict[str, str]:
    """This process's, without accounts, and with a terminal wide enough to keep lines whole."""
    kept = {name: text for name, text in os.environ.items() if name not in ACCOUNTS_VARIABLES}
    return kept | {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
