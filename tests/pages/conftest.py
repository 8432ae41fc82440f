"""What the pages share: one server, and one process that runs their Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom.testing.server import InProcessServer
from tests.pages.python_runs import PythonRuns


@pytest.fixture(scope="session")
def shared() -> Iterator[InProcessServer]:
    """Provide the server of all pages that start none."""
    with InProcessServer.start(test_clock=False) as server:
        yield server


@pytest.fixture(scope="session")
def python() -> Iterator[PythonRuns]:
    """Provide the process that runs blocks of Python."""
    with PythonRuns() as process:
        yield process
