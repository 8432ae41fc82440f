"""The contract suite detects engines that break a rule."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.engines.memory import MemoryEngine
from strongroom.testing.contract import membership, shared, waiting
from strongroom.testing.engine_contract import CONTRACT, SHARED_CONTRACT, prove
from tests.engines.engine_mutants import MUTANTS, Case
from tests.engines.subjects import MemorySubject


@pytest.mark.parametrize(
    ("mutant", "case"), MUTANTS, ids=[f"{one.__name__}-{case.__name__}" for one, case in MUTANTS]
)
def test_a_broken_engine_fails(
    mutant: type[MemoryEngine], case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (membership, shared, waiting):
        for name in ("_SOON_S", "_LONG_S"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, 2.0)
    assert case in (*CONTRACT, *SHARED_CONTRACT)
    with pytest.raises((AssertionError, TimeoutError)):
        asyncio.run(prove(case, MemorySubject(mutant)))
