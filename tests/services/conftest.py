"""The set-up of every test of the services: its decisions run twice with equal results, and some
tests run over two gateways too."""

from __future__ import annotations

import pytest

from strongroom.engines.memory import MemoryEngine
from tests.services import alternating, container_calls, queue_calls, sweeps
from tests.services.purity import twice
from tests.services.two_gateways import counts

_NAMES = {1: "one gateway", 2: "two gateways"}


@pytest.fixture(autouse=True)
def decisions_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryEngine, "update", twice(MemoryEngine.update))


@pytest.fixture(autouse=True)
def gateways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set how many gateways serve the store of the test (alternating.py)."""
    if getattr(request, "param", 1) == 2:
        monkeypatch.setattr(container_calls, "gateways", 2)
        for module in (request.module, sweeps, queue_calls):
            if hasattr(module, "Sweeper"):
                monkeypatch.setattr(module, "Sweeper", alternating.sweeper_of)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each number of gateways."""
    found = counts(metafunc.module.__name__.rpartition(".")[2], metafunc.function.__name__)
    if found != [1]:
        names = [_NAMES[count] for count in found]
        metafunc.parametrize("gateways", found, ids=names, indirect=True)
