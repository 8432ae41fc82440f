"""The unit tests of the console's page, which run in Node."""

from __future__ import annotations

import subprocess

import pytest

from tests.auth import console_vectors
from tests.interop.console import parquet_file
from tests.interop.console.browsers import CONSOLE_SOURCES
from tests.interop.tools import require_tool


def test_the_vectors_are_what_the_server_signs() -> None:
    assert console_vectors.FILE.read_text(encoding="utf-8") == console_vectors.content()


def test_the_parquet_file_is_what_pyarrow_writes_and_says() -> None:
    assert parquet_file.FILE.read_text(encoding="utf-8") == parquet_file.content()


@pytest.mark.timeout(600)
def test_the_units_of_the_page() -> None:
    require_tool("node")
    program = CONSOLE_SOURCES / "node_modules" / ".bin" / "vitest"
    if not program.exists():
        pytest.fail("Vitest is missing: run 'make interop' or 'npm ci' in console/.", pytrace=False)
    command = [str(program), "run", "--maxWorkers=1"]
    run = subprocess.run(command, cwd=CONSOLE_SOURCES, capture_output=True, text=True)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
