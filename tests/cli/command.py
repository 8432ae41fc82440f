"""Running the command: as people do, in a process of its own, or quicker, in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from typer.testing import CliRunner

from strongroom.cli import app
from strongroom.config import ACCOUNTS_VARIABLES

TIMEOUT_S = 60
# A terminal wide enough to keep lines whole.
_TERMINAL = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


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


def in_process(*arguments: object, stdin: str = "", **environment: str) -> Ran:
    """Run `strongroom ARGUMENTS...` to its end in this process, which saves starting another.

    It is for commands that read, write and return. What needs a process of its own is a command
    that serves, that starts other programs, or that signals end. An error that the command does
    not expect is raised here.
    """
    without: dict[str, str | None] = dict.fromkeys(ACCOUNTS_VARIABLES)
    done = CliRunner().invoke(
        app,
        list(map(str, arguments)),
        input=stdin,
        env=without | _TERMINAL | environment,
        catch_exceptions=False,
        prog_name="python -m strongroom",
    )
    return Ran(done.exit_code, done.stdout, done.stderr)


def _environment() -> dict[str, str]:
    """This process's, without accounts."""
    kept = {name: text for name, text in os.environ.items() if name not in ACCOUNTS_VARIABLES}
    return kept | _TERMINAL
