"""Runs the command: in a process of its own, as users do, or faster in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from typer.testing import CliRunner

from strongroom.cli import app
from strongroom.config import without_settings

TIMEOUT_S = 60
# A terminal wide enough to keep lines whole.
_TERMINAL = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


@dataclass(frozen=True)
class Ran:
    """The exit code and the output of a command."""

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

    It is for commands that read, write and return. A command that serves, starts other programs, or
    ends by signals needs a process of its own. An unexpected error of the command is raised here.
    """
    present = os.environ.keys() - without_settings(os.environ).keys()
    without: dict[str, str | None] = dict.fromkeys(present)
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
    """Return this process's environment, without accounts and values of flags."""
    return without_settings(os.environ) | _TERMINAL
