"""Runs a folder of tests over a PostgreSQL in place of memory, in processes of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Final

from tests.over_postgres import VARIABLE

_TEST_S_MAX: Final = 660
"""Longer than tests/services gives to the calls of a test, whose error says more."""


def passed(folder: str, store: str) -> int:
    """Return how many tests pass; all others make the calling test fail.

    Arguments:
        store: which store the tests have; see tests/over_postgres.py.
    """
    command = [sys.executable, "-m", "pytest", "-q", folder]
    command += ["--numprocesses=2", "--dist=worksteal", "-p", "no:cacheprovider"]
    # Some tests make thousands of calls, each of which waits for the database.
    command += [f"--timeout={_TEST_S_MAX}"]
    # Repetitions are for engines in memory.
    environment = os.environ | {VARIABLE: store, "HYPOTHESIS_PROFILE": "steady"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    print(ran.stdout[-1500:])
    assert ran.returncode == 0, ran.stdout[-10_000:]
    (found,) = re.findall(r"(\d+) passed", ran.stdout)
    return int(found)
