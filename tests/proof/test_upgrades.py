"""Upgrades that are killed, or whose disk loses power or is full, at every moment."""

from __future__ import annotations

import errno
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines import upgrade_rounds as rounds

# A process that kills itself at the given event of Python's that names a file of the directory.
_KILLED = """
import os, signal, sys
path, step = sys.argv[1], int(sys.argv[2])
from strongroom.engines.embedded.upkeep.upgrade import report
from strongroom.engines.embedded.upkeep.upgrade import steps
left = step
def hook(event, arguments):
    global left
    if any(path in str(argument) for argument in arguments):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
steps.upgrade(path, report.LoggedUpgrade())
"""


@pytest.mark.timeout(3600)
def test_every_step_of_an_upgrade_leaves_one_format_with_everything_in_it(tmp_path: Path) -> None:
    source = rounds.old_directory(tmp_path / "old")
    right = rounds.held_by(rounds.old_directory(tmp_path / "same"))
    shutil.copytree(source, tmp_path / "counted" / "data")
    steps = rounds.count_operations(tmp_path / "counted")
    found: set[str] = set()
    for step in range(1, steps + 1):
        found |= rounds.cut_at(step, tmp_path, source, (0, 1, step + 2), right)
        rounds.fail_from(step, errno.ENOSPC, tmp_path, source, right)
    assert found == {"3", "4 upgrading", "4"}


@pytest.mark.timeout(1800)
def test_a_kill_at_any_step_leaves_one_format_with_everything_in_it(tmp_path: Path) -> None:
    source = rounds.old_directory(tmp_path / "old")
    right = rounds.held_by(rounds.old_directory(tmp_path / "same"))
    for step in range(1, 1000):
        path = tmp_path / f"killed-{step}"
        shutil.copytree(source, path)
        arguments = [sys.executable, "-c", _KILLED, str(path), str(step)]
        ran = subprocess.run(arguments, check=False, timeout=60, capture_output=True)
        assert ran.returncode in (0, -signal.SIGKILL), ran.stderr
        rounds.judge(path, right)
        shutil.rmtree(path)
        if not ran.returncode:
            break
    assert step > 10, "it was killed at many steps"
