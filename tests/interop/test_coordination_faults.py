"""Locks on real servers under real faults. Holders are stopped past their TTL, cut off and killed,
locks are broken, servers or leaders are killed. With a guard no update is lost, and every write of
an overtaken holder is refused; without one the same faults lose updates. More rounds, and every
store, are in tests/proof.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coordination.real_stores import STORES
from tests.coordination.shared_set import FAULTS, SharedSet, run


@pytest.mark.parametrize("name", ["strongroom-etag", "etcd", "postgres", "redis"])
def test_guarded_no_update_is_lost(name: str, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with STORES[name](tmp_path / "server") as store:
        outcome = run(store, tmp_path / "set", FAULTS, guarded=True)
    print(f"{store.name}, guarded: {outcome}")
    assert outcome.lost == 0
    assert outcome.overtaken and outcome.overtaken <= outcome.refused


@pytest.mark.parametrize("name", ["strongroom-etag", "etcd"])
def test_without_a_guard_updates_are_lost(name: str, tmp_path: Path) -> None:
    """The lock is the same, and so are the faults: the test bites."""
    faults = (SharedSet.stop_holder, SharedSet.cut_off)
    (tmp_path / "server").mkdir()
    with STORES[name](tmp_path / "server") as store:
        outcome = run(store, tmp_path / "set", faults, guarded=False)
    print(f"{store.name}, without a guard: {outcome}")
    assert len(outcome.overtaken) == 2 and not outcome.refused
    assert outcome.lost > 0
