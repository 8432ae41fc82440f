"""Histories of registers and locks on every store with a real server are linearizable.

Requests and answers are lost or late, clients are killed or paused, and so is the server or the
leader. Longer histories are in tests/proof.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coordination.histories import ClientProcesses, judge_processes
from tests.coordination.history_client import Kind
from tests.coordination.history_faults import each_once
from tests.coordination.real_stores import STORES

KINDS: tuple[Kind, ...] = ("register", "lock")


@pytest.mark.parametrize("name", STORES)
def test_linearizable_under_faults(name: str, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with STORES[name](tmp_path / "server") as store:
        groups = [
            ClientProcesses(kind, store.url, tmp_path / kind, seed, ttl_s=store.ttl_s)
            for seed, kind in enumerate(KINDS)
        ]
        both = judge_processes(groups, each_once(store, seed=1))
        assert any(proxy.lost_count for proxy in store.proxies), "nothing was lost"
    for kind, judged in zip(KINDS, both, strict=True):
        print(f"{store.name}, {kind}: {judged}")
        assert judged.verdict.linearizable, judged
        assert judged.operations > 50
