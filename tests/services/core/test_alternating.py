"""Tests over two gateways really run over two, and the list of exceptions is correct."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from types import ModuleType

import pytest

from strongroom.services.core.copies.sources import CopySources
from strongroom.services.core.runner import Services
from tests.services import blob_calls, container_calls, two_gateways
from tests.services.alternating import SweeperOfBoth, next_call, sweeper_of
from tests.services.container_calls import run
from tests.services.memory_only import memory_only
from tests.services.service_engine import ServiceEngine


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_calls, "gateways", 2)


def number(on: Services) -> int:
    """Return the number of the present gateway."""
    assert isinstance(on.store, ServiceEngine)
    return on.store.gateways.number


def test_consecutive_calls_go_to_both_gateways_of_one_store(two: None) -> None:
    async def test() -> None:
        on = container_calls.services()
        seen = []
        for _ in range(4):
            container_calls.call()
            seen.append(number(on))
        assert sorted(seen[:2]) == [0, 1] and seen[2:] == seen[:2]
        await container_calls.create(on)
        await blob_calls.put(on, "b", b"x")
        assert [await blob_calls.read(on, "b") for _ in range(2)] == [b"x", b"x"]
        assert isinstance(sweeper_of(on), SweeperOfBoth)

    run(test)


def test_a_call_stays_at_its_gateway_whatever_other_tasks_do(two: None) -> None:
    async def test() -> None:
        on = container_calls.services()

        async def act() -> set[int]:
            next_call()
            seen = set()
            for _ in range(5):
                seen.add(number(on))
                await asyncio.sleep(0)
            return seen

        found = await asyncio.gather(*(act() for _ in range(4)))
        assert sorted(map(list, found)) == [[0], [0], [1], [1]]

    run(test)


def test_both_gateways_copy_from_the_same_sources(two: None) -> None:
    async def test() -> None:
        on = container_calls.services()
        sources = []
        for _ in range(2):
            container_calls.call()
            sources.append(on.held.of(CopySources))
        first, second = sources
        assert first is not second

        async def locate(url: str, call: object, wanted: object) -> None:
            return None

        second.locate = locate
        assert first.locate is locate and first.remote is None
        assert first._open is not second._open

    run(test)


def module_of(name: str) -> ModuleType:
    """Import a test module of any of the folders beside this one."""
    (path,) = Path(__file__).parents[1].glob(f"*/{name}.py")
    return importlib.import_module(f"tests.services.{path.parent.name}.{name}")


def test_what_runs_over_one_gateway_only_is_there() -> None:
    for module in (*two_gateways.SHORT, *two_gateways.OWN):
        module_of(module)
    for module, functions in two_gateways.left_out():
        found = module_of(module)
        for function in functions:
            assert callable(getattr(found, function)), (module, function)
            assert two_gateways.counts(module, function) == [1]
    assert 2 in two_gateways.counts("test_queues", "any other")


def test_what_holds_in_memory_only_is_there() -> None:
    for module, names in memory_only():
        found = module_of(module)
        for name in names:
            assert callable(getattr(found, name.partition("[")[0])), (module, name)
