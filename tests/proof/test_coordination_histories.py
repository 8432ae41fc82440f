"""Histories of registers and locks on every store with a real server are linearizable.

Every fault occurs, in many orders.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.coordination.histories import Crowd, Told, told_by_processes
from tests.coordination.history_client import Kind
from tests.coordination.history_faults import each_once
from tests.coordination.real_stores import STORES

HISTORIES = 5
KINDS: tuple[Kind, ...] = ("register", "lock")


@pytest.mark.parametrize("name", STORES)
def test_linearizable_under_faults(name: str, tmp_path: Path) -> None:
    first = random.SystemRandom().getrandbits(32)
    found: list[Told] = []
    (tmp_path / "server").mkdir()
    with STORES[name](tmp_path / "server") as store:
        for seed in range(first, first + HISTORIES):
            crowds = [
                Crowd(kind, store.url, tmp_path / f"{kind}-{seed}", seed, keys=3, ttl_s=store.ttl_s)
                for kind in KINDS
            ]
            both = told_by_processes(crowds, each_once(store, seed))
            assert all(told.verdict.linearizable for told in both), f"seed {seed}: {both}"
            found += both
    print(
        f"{store.name}: {len(found)} histories with seeds from {first},"
        f" {sum(told.operations for told in found):,} operations,"
        f" {sum(told.taken for told in found):,} holds,"
        f" {sum(told.lost for told in found)} answers lost: linearizable"
    )
