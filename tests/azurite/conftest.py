"""The fixture of the installed commands, and the time that the first test has to wait for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.azurite.installed import TIMEOUT_S, install


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Provide the folder of the four commands, installed from their wheel."""
    base = tmp_path_factory.getbasetemp()
    return install(base if worker_id == "master" else base.parent)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of installed commands the time that the installation may take."""
    for item in items:
        if "commands" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
