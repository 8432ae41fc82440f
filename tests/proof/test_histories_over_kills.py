"""The long proof of order: many histories on entities, transactions and messages.

The server is killed and restarted in each; every answer has its place in one order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from strongroom.testing.history import Verdict
from tests.durability import queue_histories, table_histories
from tests.durability.crashes import Crashes

HISTORIES = 25
CLIENTS = 32
CONSUMERS = 64
KILLS = 4


def _histories(tmp_path: Path, one: Callable[[Crashes, int], Verdict], tables: bool) -> None:
    first = random.SystemRandom().getrandbits(31)
    with Crashes(tmp_path / "data") as crashes:
        if tables:
            table_histories.make_table(crashes)
        for seed in range(first, first + HISTORIES):
            print(f"SEED={seed}", flush=True)
            assert table_histories.explained(one(crashes, seed))
        assert crashes.count == HISTORIES * KILLS


@pytest.mark.timeout(1800)
def test_entities_of_32_clients(tmp_path: Path) -> None:
    """T-WRI-08, T-WRI-09."""

    def one(crashes: Crashes, seed: int) -> Verdict:
        return table_histories.entities(crashes, CLIENTS, 40, KILLS, seed)

    _histories(tmp_path, one, tables=True)


@pytest.mark.timeout(1800)
def test_transactions_of_32_clients(tmp_path: Path) -> None:
    """T-BAT-02, T-QRY-11."""

    def one(crashes: Crashes, seed: int) -> Verdict:
        return table_histories.transactions(crashes, CLIENTS, 20, KILLS, seed)

    _histories(tmp_path, one, tables=True)


@pytest.mark.timeout(1800)
def test_messages_of_64_consumers(tmp_path: Path) -> None:
    """Q-GET-07, Q-POP-02, Q-POP-05."""

    def one(crashes: Crashes, seed: int) -> Verdict:
        return queue_histories.messages(crashes, CLIENTS, CONSUMERS, 30, KILLS, seed)

    _histories(tmp_path, one, tables=False)
