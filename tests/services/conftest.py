"""The set-up of every test of the services: its decisions run twice with equal results, and some
tests run over two gateways too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.over_postgres import has_two_gateways, keeps_in_postgres
from tests.services import alternating, container_calls, queue_calls, sweeps
from tests.services.memory_only import is_memory_only
from tests.services.purity import twice
from tests.services.service_engine import ServiceEngine, drop_stores
from tests.services.two_gateways import counts

_FOLDER: Final = Path(__file__).parent
_NAMES: Final = {1: "one gateway", 2: "two gateways"}


@pytest.fixture(autouse=True)
def decisions_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServiceEngine, "update", twice(ServiceEngine.update))


@pytest.fixture(autouse=True)
def stores_dropped() -> Iterator[None]:
    """Drop the stores in a database that the test has made."""
    yield
    drop_stores()


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not hold for the engine of this run, or does not run over it."""
    if keeps_in_postgres():
        left_out = [item for item in items if _FOLDER in item.path.parents and _is_left_out(item)]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def _is_left_out(item: pytest.Item) -> bool:
    assert isinstance(item, pytest.Function)
    if is_memory_only(item.module.__name__.rpartition(".")[2], item.name, item.originalname):
        return True
    # A test over one gateway runs where PostgreSQL has one.
    return has_two_gateways() and "two gateways" not in item.name
