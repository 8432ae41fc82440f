"""The shared set under the lock of every store with a real server, many faults in a row.

With the fence's guard no update is lost, and every write of an overtaken holder is refused. Without
a guard the same faults lose updates.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.coordination.real_stores import STORES
from tests.coordination.shared_set import FAULTS, SharedSet, run

ROUNDS = 5
ROUNDS_OF_LONG_TTL = 1
LONG_TTL_S = 10.0
CONTROL = (SharedSet.stop_holder, SharedSet.break_lock, SharedSet.cut_off)


@pytest.mark.parametrize("name", STORES)
def test_guarded_no_update_is_lost(name: str, tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    (tmp_path / "server").mkdir()
    with STORES[name](tmp_path / "server") as store:
        rounds = ROUNDS_OF_LONG_TTL if store.ttl_s > LONG_TTL_S else ROUNDS
        chance = random.Random(seed)
        faults = [fault for _ in range(rounds) for fault in chance.sample(FAULTS, len(FAULTS))]
        outcome = run(store, tmp_path / "set", faults, guarded=True)
    print(f"{store.name}, guarded, {len(faults)} faults, seed {seed}: {outcome}")
    assert outcome.lost == 0
    assert len(outcome.overtaken) >= rounds * (len(FAULTS) - 1)
    assert outcome.overtaken <= outcome.refused


@pytest.mark.parametrize("name", STORES)
def test_without_a_guard_updates_are_lost(name: str, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with STORES[name](tmp_path / "server") as store:
        outcome = run(store, tmp_path / "set", CONTROL, guarded=False)
    print(f"{store.name}, without a guard, {len(CONTROL)} faults: {outcome}")
    assert not outcome.refused
    assert outcome.lost > 0
