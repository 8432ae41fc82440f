"""Every conformance test once more, over a PostgreSQL in place of memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.over_postgres import VARIABLE


@pytest.mark.timeout(3600)
def test_the_conformance_tests_pass_over_postgresql() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "tests/conformance"]
    command += ["--numprocesses=2", "--dist=worksteal", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        command,
        env=os.environ | {VARIABLE: "postgres"},
        capture_output=True,
        text=True,
        check=False,
    )
    print(ran.stdout[-1500:])
    assert ran.returncode == 0, ran.stdout[-10_000:]
    (passed,) = re.findall(r"(\d+) passed", ran.stdout)
    assert int(passed) > 4000
