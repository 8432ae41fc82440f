"""Whatever a test of the services is about: its decisions are run twice and decide the same."""

from __future__ import annotations

import pytest

from strongroom.engines.memory import MemoryStore
from tests.services.purity import twice


@pytest.fixture(autouse=True)
def decisions_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryStore, "update", twice(MemoryStore.update))
