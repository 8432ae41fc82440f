"""Histories of registers and locks on every store with a real server are linearizable.

Every fault occurs, in many orders.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.coordination.histories import ClientProcesses, JudgedHistory, judge_processes
from tests.coordination.history_client import Kind
from tests.coordination.history_faults import each_once
from tests.coordination.real_stores import STORES

HISTORIES = 5
KINDS: tuple[Kind, ...] = ("register", "lock")


@pytest.mark.parametrize("name", STORES)
def test_linearizable_under_faults(name: str, tmp_path: Path) -> None:
    first = random.SystemRandom().getrandbits(32)
    found: list[JudgedHistory] = []
    (tmp_path / "server").mkdir()
    with STORES[name](tmp_path / "server") as store:
        for seed in range(first, first + HISTORIES):
            groups = [
                ClientProcesses(
                    kind, store.url, tmp_path / f"{kind}-{seed}", seed, keys=3, ttl_s=store.ttl_s
                )
                for kind in KINDS
            ]
            both = judge_processes(groups, each_once(store, seed))
            assert all(judged.verdict.linearizable for judged in both), f"seed {seed}: {both}"
            found += both
    print(
        f"{store.name}: {len(found)} histories with seeds from {first},"
        f" {sum(judged.operations for judged in found):,} operations,"
        f" {sum(judged.taken for judged in found):,} holds,"
        f" {sum(judged.lost for judged in found)} answers lost: linearizable"
    )
