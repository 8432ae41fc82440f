"""Both engines satisfy the contract, case by case."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strongroom.testing.engine_contract import (
    CONTRACT,
    SHARED_CONTRACT,
    STOPPING_CONTRACT,
    Case,
    SharedCase,
    Subject,
    prove,
)
from tests.engines.subjects import EmbeddedSubject, MemorySubject


@pytest.mark.parametrize("case", CONTRACT + STOPPING_CONTRACT, ids=lambda case: case.__name__)
@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_the_engine_keeps_the_contract(engine: str, case: Case, tmp_path: Path) -> None:
    subject: Subject = MemorySubject() if engine == "memory" else EmbeddedSubject(tmp_path)
    asyncio.run(prove(case, subject))


@pytest.mark.parametrize("case", SHARED_CONTRACT, ids=lambda case: case.__name__)
def test_two_gateways_of_the_memory_engine_keep_the_contract(case: SharedCase) -> None:
    asyncio.run(prove(case, MemorySubject()))
